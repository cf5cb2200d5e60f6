"""What another release of Kubernetes would decide otherwise in a cluster."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.documentation import operation
from playground.api.serializers import requests
from playground.api.serializers import scenarios as answers
from playground.api.views.base import PlaygroundView
from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster
from playground.scenarios import services
from playground.scenarios.models import Upgrade
from playground.scenarios.services.upgrades import upgrade_result

QUEUED = {
    "page": "https://playground.example/c/fk5pq8t2ab/upgrade/",
    "url": "/api/v1/clusters/fk5pq8t2ab/upgrade/",
    "state": "queued",
    "problem": None,
    "before": {"name": "1.34", "switched": {}},
    "after": {"name": "1.36", "switched": {}},
    "step": None,
    "progress": 0.0,
    "engine": "0.1.0",
    "createdAt": "2026-01-02T00:00:00Z",
    "tookMs": None,
    "result": None,
}
DONE = QUEUED | {
    "state": "done",
    "progress": 1.0,
    "tookMs": 840,
    "result": {
        "sentence": "No decision differs on 1.36: 12 of 12 pods end alike.",
        "same": True,
        "causes": [],
    },
}


class ClusterUpgrade(PlaygroundView):
    @operation(
        "Read the newest preview of an upgrade",
        id="clusters_upgrade_read",
        answers_={200: answers.Upgrade},
        errors=(400, 404),
        answer_example=DONE,
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """What differs, by proved cause; the result is there once `state` is done."""
        cluster = self.cluster(cluster_id)
        return Response(_answer(request, cluster, _newest(cluster)))

    @operation(
        "Preview an upgrade",
        id="clusters_upgrade_preview",
        request=requests.ClusterRelease,
        answers_={202: answers.Upgrade},
        errors=(400, 404, 409, 413, 415),
        example={"kubernetesRelease": "1.36"},
        answer_example=QUEUED,
        tag="settings",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """A worker decides the cluster's whole run by both releases. The cluster stays as it is."""
        cluster = self.cluster(cluster_id)
        asked = requests.ClusterRelease(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        upgrade = services.request_upgrade(
            cluster=cluster, name=wanted["kubernetesRelease"], gates=wanted.get("featureGates")
        )
        body = _answer(request, cluster, upgrade)
        return Response(body, status=202, headers={"Location": body["url"], "Retry-After": "1"})

    @operation(
        "Cancel the preview of an upgrade",
        id="clusters_upgrade_cancel",
        answers_={200: answers.Upgrade},
        errors=(400, 404),
        answer_example=QUEUED | {"state": "cancelled", "problem": "Cancelled."},
        tag="settings",
    )
    def delete(self, request: Request, cluster_id: str) -> Response:
        """The newest one, if it is open; twice is once."""
        cluster = self.cluster(cluster_id)
        upgrade = _newest(cluster)
        services.cancel_upgrade(upgrade=upgrade)
        upgrade.refresh_from_db()
        return Response(_answer(request, cluster, upgrade))


def _newest(cluster: Cluster) -> Upgrade:
    rows = Upgrade.objects.filter(cluster=cluster, generation=cluster.generation)
    found: Upgrade | None = rows.order_by("-pk").first()
    if found is None:
        raise NotFound("no upgrade was previewed yet: POST here asks for it", kind="Upgrade")
    return found


def _answer(request: Request, cluster: Cluster, upgrade: Upgrade) -> dict[str, Any]:
    return {
        "page": request.build_absolute_uri(f"/c/{cluster.public_id}/upgrade/"),
        "url": f"/api/v1/clusters/{cluster.public_id}/upgrade/",
        "state": upgrade.state,
        "problem": upgrade.problem or None,
        "before": upgrade.before,
        "after": upgrade.after,
        "step": upgrade.step or None,
        "progress": upgrade.progress,
        "engine": upgrade.engine_version,
        "createdAt": upgrade.created,
        "tookMs": upgrade.took_ms,
        "result": upgrade_result(upgrade),
    }
