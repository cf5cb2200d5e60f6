"""Runs: asking for cycles, and how far they are."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples, representations
from playground.api.documentation import number, operation, query
from playground.api.pages import next_page
from playground.api.queries import whole_number
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView, accepted
from playground.clusters.drive.runs import cancel_run, request_run
from playground.clusters.objects.queries import get_run, list_runs


class StartRun(PlaygroundView):
    @operation(
        "Run the scheduler",
        id="runs_start",
        request=requests.RunRequest,
        answers_={202: answers.Run},
        errors=(400, 404, 409, 413, 415),
        example={"until": "idle"},
        answer_example=examples.RUN,
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """Ask for one cycle, cycles until idle, or a duration of virtual time; a worker runs them.

        Poll the run at its `url` (`Location`) until its `state` is done, cancelled or failed.
        """
        cluster = self.cluster(cluster_id)
        asked = requests.RunRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        run = request_run(
            cluster=cluster,
            until=asked.validated_data["until"],
            max_cycles=asked.validated_data["maxCycles"],
        )
        body = representations.run(run, cluster.public_id)
        return accepted(body, body["url"])


class Runs(PlaygroundView):
    @operation(
        "List runs",
        id="runs_list",
        answers_={200: answers.RunPage},
        errors=(400, 404),
        parameters=[
            number("limit", "How many at most.", least=1, most=100),
            query("before", "The id of a run: only older ones."),
        ],
        answer_example={"items": [examples.RUN], "next": None},
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """Newest first."""
        cluster = self.cluster(cluster_id)
        limit = whole_number(request, "limit", default=20, least=1, most=100) or 20
        before = request.GET.get("before")
        last = get_run(cluster, before) if before else None
        found = list_runs(cluster, before=last, limit=limit + 1)
        items = [representations.run(run, cluster.public_id) for run in found[:limit]]
        more = items[-1]["id"] if len(found) > limit else None
        return Response({"items": items, "next": next_page(request, before=more)})


class OneRun(PlaygroundView):
    @operation(
        "Read a run",
        id="runs_read",
        answers_={200: answers.Run},
        errors=(400, 404),
        answer_example=examples.RUN | {"state": "running", "progress": 0.4, "cyclesDone": 400},
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, run_id: str) -> Response:
        """State, cycles done, progress; when it is done, why it stopped."""
        cluster = self.cluster(cluster_id)
        return Response(representations.run(get_run(cluster, run_id), cluster.public_id))

    @operation(
        "Cancel a run",
        id="runs_cancel",
        answers_={202: answers.Run},
        errors=(400, 404),
        answer_example=examples.RUN | {"state": "cancelled", "cancelRequested": True},
        tag="scheduling",
    )
    def delete(self, request: Request, cluster_id: str, run_id: str) -> Response:
        """It stops after its present batch; what it has done stays done. Cancelling twice is cancelling once."""
        cluster = self.cluster(cluster_id)
        run = cancel_run(run=get_run(cluster, run_id))
        body = representations.run(run, cluster.public_id)
        return accepted(body, body["url"])
