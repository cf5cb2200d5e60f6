"""Running the scheduler: runs, cycles, the queue, a pod's story, Permit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import representations
from playground.api.requests import flag, next_page, whole_number
from playground.api.views.base import PlaygroundView, accepted
from playground.clusters.drive.extender_calls import calls_of_cycle
from playground.clusters.drive.runs import cancel_run, decide_permit, request_run
from playground.clusters.history.cycles import cycle_explanation, cycles
from playground.clusters.history.queue import queue_view
from playground.clusters.history.redecide import request_trace
from playground.clusters.history.story import pod_story
from playground.clusters.metrics import metrics_text
from playground.clusters.objects.queries import get_run, list_runs

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle


class Cycles(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Newest first, one line each."""
        cluster = self.cluster(cluster_id)
        page = cycles(
            cluster,
            outcome=request.GET.get("outcome", ""),
            pod=request.GET.get("pod", ""),
            before=whole_number(request, "before"),
            after=whole_number(request, "after"),
            limit=whole_number(request, "limit", default=50, least=1, most=500) or 50,
        )
        items = [representations.cycle(row, cluster.public_id) for row in page.cycles]
        return Response({"items": items, "next": next_page(request, before=page.before)})


class OneCycle(PlaygroundView):
    def get(self, request: Request, cluster_id: str, number: int) -> Response:
        """Everything that was recorded: why each node was refused, what each plugin scored, what came of it.

        An extender's call has `durationMs`, which the cluster's own time went on by, and `tookMs` by the wall clock;
        a bind call is made after the decision and is told once it was made.

        202 means that only the summary is kept: a worker decides the cycle again, ask once more in a moment.
        """
        cluster = self.cluster(cluster_id)
        found = cycle_explanation(cluster, number, full=flag(request, "full"))
        if found.document is not None:
            calls = representations.extender_calls(
                found.document.get("extenders") or [], calls_of_cycle(cluster, number)
            )
            return Response(found.document | {"extenders": calls} | self._row_facts(found.cycle))
        summary = representations.cycle(found.cycle, cluster.public_id)
        if request_trace(cluster=cluster, number=number):
            return accepted(summary, request.get_full_path())
        return Response(summary | self._row_facts(found.cycle))

    @staticmethod
    def _row_facts(row: Cycle) -> dict[str, Any]:
        return {"repeats": row.repeats} | ({"traceNote": row.trace_note} if row.trace_note else {})


class Queue(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Every lane, each in its own order, as of the engine's last commit."""
        lanes = queue_view(self.cluster(cluster_id))
        return Response(
            {lane: [representations.queue_item(item) for item in items] for lane, items in lanes.items()}
        )


class Metrics(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> HttpResponse:
        """In the Prometheus text format, under upstream's names; what /metrics sums over all clusters."""
        text = metrics_text(self.cluster(cluster_id))
        return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


class PodStory(PlaygroundView):
    def get(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """Everything that happened to one pod, oldest first, and where it waits now; also of a pod that is gone."""
        return Response(representations.story(pod_story(self.cluster(cluster_id), namespace, pod)))


class Permits(PlaygroundView):
    def post(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """The answer is an input of the log; the engine acts on it when it next looks."""
        cluster = self.cluster(cluster_id)
        asked = self.body("Permit")
        entry = decide_permit(cluster=cluster, namespace=namespace, name=pod, **asked)
        where = f"/api/v1/clusters/{cluster.public_id}/pods/{namespace}/{pod}/story"
        return accepted({"resourceVersion": str(entry.seq)}, where)


class StartRun(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """Ask for one cycle, cycles until idle, or a duration of virtual time; a worker runs them.

        Poll the run at its `url` (`Location`) until its `state` is done, cancelled or failed.
        """
        cluster = self.cluster(cluster_id)
        asked = self.body("RunRequest")
        run = request_run(
            cluster=cluster,
            until=asked["until"],
            max_cycles=asked["maxCycles"],
        )
        body = representations.run(run, cluster.public_id)
        return accepted(body, body["url"])


class Runs(PlaygroundView):
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
    def get(self, request: Request, cluster_id: str, run_id: str) -> Response:
        """State, cycles done, progress; when it is done, why it stopped."""
        cluster = self.cluster(cluster_id)
        return Response(representations.run(get_run(cluster, run_id), cluster.public_id))

    def delete(self, request: Request, cluster_id: str, run_id: str) -> Response:
        """It stops after its present batch; what it has done stays done. Cancelling twice is cancelling once."""
        cluster = self.cluster(cluster_id)
        run = cancel_run(run=get_run(cluster, run_id))
        body = representations.run(run, cluster.public_id)
        return accepted(body, body["url"])
