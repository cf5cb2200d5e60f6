"""What the scheduler did and holds: cycles, the queue, a pod's story, Permit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples, representations, whole_answers
from playground.api.documentation import number, operation, query
from playground.api.pages import next_page
from playground.api.queries import flag, whole_number
from playground.api.serializers import answers, requests
from playground.api.serializers.cycles import CycleExplanation, Story
from playground.api.views.base import PlaygroundView, accepted
from playground.clusters.choices import CycleOutcome
from playground.clusters.drive.extender_calls import calls_of_cycle
from playground.clusters.drive.runs import decide_permit
from playground.clusters.history.cycles import cycle_explanation, cycles
from playground.clusters.history.queue import queue_view
from playground.clusters.history.redecide import request_trace
from playground.clusters.history.story import pod_story
from playground.clusters.metrics import metrics_text

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle


class Cycles(PlaygroundView):
    @operation(
        "List scheduling cycles",
        id="cycles_list",
        answers_={200: answers.CyclePage},
        errors=(400, 404),
        parameters=[
            number("limit", "How many at most.", least=1, most=500),
            number("before", "Only cycles with a smaller number."),
            number("after", "Only cycles with a greater number."),
            query("outcome", "Only these.", enum=CycleOutcome.values),
            query("pod", "`namespace/name`, or a name in namespace default."),
        ],
        answer_example={"items": [examples.CYCLE], "next": None},
        tag="scheduling",
        reads=True,
    )
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
    @operation(
        "Explain a scheduling cycle",
        id="cycles_read",
        answers_={200: CycleExplanation, 202: answers.CycleSummary},
        errors=(400, 404),
        parameters=[
            query(
                "full",
                "With `filterByPlugin`, what every filter says of every node, and `amounts`, what it compared there.",
                type=OpenApiTypes.BOOL,
            )
        ],
        answer_example=whole_answers.CYCLE_EXPLANATION,
        tag="scheduling",
        reads=True,
    )
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
    @operation(
        "Read the scheduling queue",
        id="queue_read",
        answers_={200: answers.Queue},
        errors=(400, 404),
        answer_example=examples.QUEUE,
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """Every lane, each in its own order, as of the engine's last commit."""
        lanes = queue_view(self.cluster(cluster_id))
        return Response(
            {lane: [representations.queue_item(item) for item in items] for lane, items in lanes.items()}
        )


class Metrics(PlaygroundView):
    @operation(
        "Read a cluster's metrics",
        id="clusters_metrics",
        answers_={(200, "text/plain"): OpenApiTypes.STR},
        errors=(400, 404),
        answer_example='scheduler_pending_pods{queue="active"} 0\n',
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> HttpResponse:
        """In the Prometheus text format, under upstream's names; what /metrics sums over all clusters."""
        text = metrics_text(self.cluster(cluster_id))
        return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


class PodStory(PlaygroundView):
    @operation(
        "Read a pod's story",
        id="pods_story",
        answers_={200: Story},
        errors=(400, 404),
        answer_example={
            "pod": "default/web-1",
            "exists": True,
            "phase": "Running",
            "node": "node-1",
            "waitsFor": None,
            "queue": None,
            "story": [
                {
                    "at": "2026-01-02T00:00:00Z",
                    "what": "cycle",
                    "title": examples.CYCLE["sentence"],
                    "detail": None,
                    "cycle": 1,
                    "outcome": "bound",
                    "plugin": None,
                    "hint": None,
                    "reason": None,
                    "withoutEffect": [],
                }
            ],
        },
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """Everything that happened to one pod, oldest first, and where it waits now; also of a pod that is gone."""
        return Response(representations.story(pod_story(self.cluster(cluster_id), namespace, pod)))


class Permits(PlaygroundView):
    @operation(
        "Allow or reject a pod that waits at Permit",
        id="permits_decide",
        request=requests.Permit,
        answers_={202: answers.Accepted},
        errors=(400, 404, 409, 413, 415),
        example={"decision": "allow"},
        answer_example={"resourceVersion": "43"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """The answer is an input of the log; the engine acts on it when it next looks."""
        cluster = self.cluster(cluster_id)
        asked = requests.Permit(data=request.data)
        asked.is_valid(raise_exception=True)
        entry = decide_permit(cluster=cluster, namespace=namespace, name=pod, **asked.validated_data)
        where = f"/api/v1/clusters/{cluster.public_id}/pods/{namespace}/{pod}/story"
        return accepted({"resourceVersion": str(entry.seq)}, where)
