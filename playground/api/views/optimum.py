"""The best joint placement of the pods of a cluster or a share."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.documentation import operation
from playground.api.serializers import scenarios as answers
from playground.api.views.base import PlaygroundView
from playground.clusters.errors import NotFound
from playground.scenarios import selectors, services
from playground.scenarios.models import Optimum

QUEUED = {
    "page": "https://playground.example/c/fk5pq8t2ab/optimum/",
    "url": "/api/v1/clusters/fk5pq8t2ab/optimum/",
    "state": "queued",
    "problem": None,
    "cycle": 12,
    "timeLimitS": 30,
    "step": None,
    "progress": 0.0,
    "createdAt": "2026-01-02T00:00:00Z",
    "result": None,
}
DONE = QUEUED | {
    "state": "done",
    "progress": 1.0,
    "result": {
        "levels": [{"priority": 0, "pods": 3, "now": 2, "best": 3, "atMost": 3}],
        "placed": [2, 3],
        "score": [150, 190],
        "scoreAtMost": 190,
        "gap": 0.0,
        "proved": True,
        "nRules": 0,
        "pods": [{"pod": "default/big", "priority": 0, "now": "", "best": "node-b"}],
    },
}
ASKED = {"timeLimitS": 10}


def _answer(request: Request, optimum: Optimum, path: str, page: str) -> dict[str, Any]:
    return {
        "page": request.build_absolute_uri(page),
        "url": path,
        "state": optimum.state,
        "problem": optimum.problem or None,
        "cycle": optimum.cycle,
        "timeLimitS": optimum.time_limit_s,
        "step": optimum.step or None,
        "progress": optimum.progress,
        "createdAt": optimum.created,
        "result": optimum.result or None,
    }


def _newest(rows: Any) -> Optimum:
    optimum: Optimum | None = rows.order_by("-pk").first()
    if optimum is None:
        raise NotFound("it was not looked for yet: POST here asks for it", kind="Optimum")
    return optimum


def _asked(request: Request) -> dict[str, Any]:
    asked = answers.OptimumRequest(data=request.data or {})
    asked.is_valid(raise_exception=True)
    return {"cycle": asked.validated_data.get("cycle"), "time_limit_s": asked.validated_data["timeLimitS"]}


class ClusterOptimum(PlaygroundView):
    @operation(
        "Read the newest joint placement",
        id="clusters_optimum_read",
        answers_={200: answers.Optimum},
        errors=(400, 404),
        answer_example=DONE,
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """How far one pod at a time is from the best of all placements; there once `state` is done."""
        cluster = self.cluster(cluster_id)
        rows = Optimum.objects.filter(cluster=cluster, generation=cluster.generation)
        return Response(_of_cluster(request, _newest(rows), cluster.public_id))

    @operation(
        "Look for the best joint placement",
        id="clusters_optimum_find",
        request=answers.OptimumRequest,
        answers_={202: answers.Optimum},
        errors=(400, 403, 404, 409, 413, 415),
        example=ASKED,
        answer_example=QUEUED,
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """All pods at once, as many as possible, higher priorities first; rules between pods are constraints."""
        cluster = self.cluster(cluster_id)
        optimum = services.request_optimum(cluster=cluster, **_asked(request))
        return _accepted(_of_cluster(request, optimum, cluster.public_id))


class ScenarioOptimum(PlaygroundView):
    @operation(
        "Read the newest joint placement",
        id="scenarios_optimum_read",
        answers_={200: answers.Optimum},
        errors=(400, 404),
        answer_example=DONE,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, scenario_id: str) -> Response:
        """How far one pod at a time is from the best of all placements; there once `state` is done."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        optimum = _newest(Optimum.objects.filter(scenario=scenario))
        return Response(_of_scenario(request, optimum, scenario.public_id))

    @operation(
        "Look for the best joint placement",
        id="scenarios_optimum_find",
        request=answers.OptimumRequest,
        answers_={202: answers.Optimum},
        errors=(400, 403, 404, 409, 413, 415),
        example=ASKED,
        answer_example=QUEUED,
        tag="scenarios",
    )
    def post(self, request: Request, scenario_id: str) -> Response:
        """All pods at once, as many as possible, higher priorities first; rules between pods are constraints."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        optimum = services.request_optimum(scenario=scenario, **_asked(request))
        return _accepted(_of_scenario(request, optimum, scenario.public_id))


def _of_cluster(request: Request, optimum: Optimum, public_id: str) -> dict[str, Any]:
    return _answer(request, optimum, f"/api/v1/clusters/{public_id}/optimum/", f"/c/{public_id}/optimum/")


def _of_scenario(request: Request, optimum: Optimum, public_id: str) -> dict[str, Any]:
    return _answer(request, optimum, f"/api/v1/scenarios/{public_id}/optimum/", f"/s/{public_id}/optimum/")


def _accepted(body: dict[str, Any]) -> Response:
    return Response(body, status=202, headers={"Location": body["url"], "Retry-After": "1"})
