"""The formal model checked on every cycle of a cluster or a share."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.documentation import operation
from playground.api.serializers import scenarios as answers
from playground.api.views.base import PlaygroundView
from playground.api.views.scenarios import Reads
from playground.clusters.errors import NotFound
from playground.scenarios import selectors, services
from playground.scenarios.models import ModelCheck
from playground.scenarios.services.model_checks import model_result

QUEUED = {
    "page": "https://playground.example/c/fk5pq8t2ab/model/",
    "url": "/api/v1/clusters/fk5pq8t2ab/model/",
    "state": "queued",
    "problem": None,
    "cycle": 12,
    "engine": "0.1.0",
    "createdAt": "2026-01-02T00:00:00Z",
    "tookMs": None,
    "result": None,
}
DONE = QUEUED | {
    "state": "done",
    "tookMs": 840,
    "result": {
        "status": "holds",
        "sentence": "The model holds in all 12 cycles.",
        "nCycles": 12,
        "counts": {"order": {"holds": 12, "leaves": 0, "fails": 0, "notComputed": 0}},
        "departures": [],
        "violations": [],
        "cycles": [],
    },
}


def _answer(request: Request, check: ModelCheck, path: str, page: str) -> dict[str, Any]:
    return {
        "page": request.build_absolute_uri(page),
        "url": path,
        "state": check.state,
        "problem": check.problem or None,
        "cycle": check.cycle,
        "engine": check.engine_version,
        "createdAt": check.created,
        "tookMs": check.took_ms,
        "result": model_result(check),
    }


def _newest(rows: Any) -> ModelCheck:
    check: ModelCheck | None = rows.order_by("-pk").first()
    if check is None:
        raise NotFound("the model was not checked yet: POST here asks for it", kind="ModelCheck")
    return check


class ClusterModel(PlaygroundView):
    @operation(
        "Read the newest check of the formal model",
        id="clusters_model_read",
        answers_={200: answers.ModelCheck},
        errors=(400, 404),
        answer_example=DONE,
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """Order, placement and minimal casualty of every cycle; the result is there once `state` is done."""
        cluster = self.cluster(cluster_id)
        rows = ModelCheck.objects.filter(cluster=cluster, generation=cluster.generation)
        return Response(_of_cluster(request, _newest(rows), cluster.public_id))

    @operation(
        "Check the formal model on every cycle",
        id="clusters_model_check",
        answers_={202: answers.ModelCheck},
        errors=(400, 403, 404, 409),
        answer_example=QUEUED,
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """A worker makes the run again with the model looking on. The same cycles are checked once."""
        cluster = self.cluster(cluster_id)
        check = services.request_model_check(cluster=cluster)
        return _accepted(_of_cluster(request, check, cluster.public_id))


class ScenarioModel(Reads):
    @operation(
        "Read the check of the formal model",
        id="scenarios_model_read",
        answers_={200: answers.ModelCheck},
        errors=(400, 404),
        answer_example=DONE,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, scenario_id: str) -> Response:
        """Order, placement and minimal casualty of every cycle; the result is there once `state` is done."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        check = _newest(ModelCheck.objects.filter(scenario=scenario))
        return Response(_of_scenario(request, check, scenario.public_id))

    @operation(
        "Check the formal model on every cycle",
        id="scenarios_model_check",
        answers_={202: answers.ModelCheck},
        errors=(400, 403, 404, 409),
        answer_example=QUEUED,
        tag="scenarios",
    )
    def post(self, request: Request, scenario_id: str) -> Response:
        """A worker makes the run again with the model looking on. It is checked once for each engine."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        return _accepted(
            _of_scenario(request, services.request_model_check(scenario=scenario), scenario.public_id)
        )


def _of_cluster(request: Request, check: ModelCheck, public_id: str) -> dict[str, Any]:
    return _answer(request, check, f"/api/v1/clusters/{public_id}/model/", f"/c/{public_id}/model/")


def _of_scenario(request: Request, check: ModelCheck, public_id: str) -> dict[str, Any]:
    return _answer(request, check, f"/api/v1/scenarios/{public_id}/model/", f"/s/{public_id}/model/")


def _accepted(body: dict[str, Any]) -> Response:
    return Response(body, status=202, headers={"Location": body["url"], "Retry-After": "1"})
