"""Questions about decisions: asked here, answered by a worker, read at the question's own path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples, whole_answers
from playground.api.documentation import number, operation, query
from playground.api.queries import whole_number
from playground.api.serializers import advice, answers, plans, requests, results
from playground.api.serializers.answers import Answer
from playground.api.serializers.shapes import one_of
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.bodies import media_type, read_body
from playground.clusters import questions
from playground.clusters.choices import QuestionKind, WorkState
from playground.clusters.questions import get_question, is_stale

if TYPE_CHECKING:
    from playground.clusters.row_types import Question as QuestionRow

NODE: Final = query("node", "The node to ask about.", required=True)
ERRORS: Final = (400, 404, 409)
MOST_TRIED_BYTES: Final = 3 * 2**20
"""Of the body that holds a pod to try: far more than one object may have."""


SHAPES: Final = {
    QuestionKind.EDITS: advice.Edits,
    QuestionKind.WHY_NOT: advice.WhyNot,
    QuestionKind.WEIGHTS: advice.Weights,
    QuestionKind.TRY: advice.Tried,
    QuestionKind.SEEDS: results.EndStates,
    QuestionKind.RULE: advice.TriedRuleAnswer,
    QuestionKind.PLAN: plans.PlanAnswer,
    QuestionKind.DEVICES: advice.DevicesAnswer,
    QuestionKind.GROUP: advice.GroupStory,
    QuestionKind.JUDGE: advice.JudgedCount,
}
"""Kind of question -> what its answer looks like."""


class QuestionProgress(Answer):
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    doing = serializers.CharField(help_text="What is tried now.")


class Question(Answer):
    id = serializers.CharField()
    url = serializers.CharField(help_text="Where to poll.")
    kind = serializers.ChoiceField(QuestionKind.values)
    state = serializers.ChoiceField(WorkState.values)
    progress = QuestionProgress()
    resourceVersion = serializers.CharField(
        allow_null=True,
        help_text="The moment of the cluster's log that was asked about; null for a past cycle.",
    )
    stale = serializers.BooleanField(help_text="The cluster has moved on since that moment.")
    answer = one_of("QuestionAnswer", SHAPES.values(), allow_null=True, help_text="As its kind says.")
    error = serializers.CharField(allow_null=True)
    tookMs = serializers.IntegerField(allow_null=True)
    createdAt = serializers.DateTimeField()


EXAMPLE: Final = {
    "id": "w4n7kq2xzp",
    "url": f"/api/v1/clusters/{examples.RUN['url'].split('/')[4]}/questions/w4n7kq2xzp/",
    "kind": "what-would-it-take",
    "state": "queued",
    "progress": {"done": 0, "total": 0, "doing": ""},
    "resourceVersion": "42",
    "stale": False,
    "answer": None,
    "error": None,
    "tookMs": None,
    "createdAt": "2026-01-02T00:00:00Z",
}
ANSWERED: Final = EXAMPLE | {
    "state": "done",
    "progress": {"done": 9, "total": 9, "doing": ""},
    "tookMs": 41,
    "answer": whole_answers.EDITS,
}


def document(row: QuestionRow, cluster: Any) -> dict[str, Any]:
    """A question as this API writes it."""
    return {
        "id": row.public_id,
        "url": f"/api/v1/clusters/{cluster.public_id}/questions/{row.public_id}/",
        "kind": row.kind,
        "state": row.state,
        "progress": {"done": row.done, "total": row.total, "doing": row.doing},
        "resourceVersion": str(row.seq) if row.seq else None,
        "stale": is_stale(cluster, row),
        "answer": row.answer,
        "error": row.error or None,
        "tookMs": row.took_ms,
        "createdAt": row.created,
    }


def asked(row: Any, cluster: Any) -> Response:
    """A question that was asked: 202, and where its answer will be."""
    body = document(row, cluster)
    return accepted(body, body["url"])


class _Asking(PlaygroundView):
    """A view whose POST asks a question."""

    def asked(self, cluster: Any, kind: str, **params: Any) -> Response:
        return asked(questions.ask(cluster=cluster, kind=kind, params=params), cluster)


class WhatWouldItTake(_Asking):
    @operation(
        "Ask what it would take to place a pod",
        id="pods_what_would_it_take",
        answers_={202: Question},
        errors=ERRORS,
        answer_example=EXAMPLE,
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """Every single edit after which the pod would be placed, the cheapest first, each proven by a cycle run on a
        copy of the cluster; and how far every node is from taking it.

        Equal questions about an unchanged cluster are one: the answer may be there at once.
        """
        return self.asked(self.cluster(cluster_id), "what-would-it-take", namespace=namespace, name=pod)


class WhyNot(_Asking):
    @operation(
        "Ask why a pod would not go to a node",
        id="pods_why_not",
        answers_={202: Question},
        errors=ERRORS,
        parameters=[NODE],
        answer_example=EXAMPLE | {"kind": "why-not"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """Every filter with the values it compared, also past the first that fails; score by score why it loses."""
        node = request.GET.get("node", "")
        return self.asked(self.cluster(cluster_id), "why-not", namespace=namespace, name=pod, node=node)


class WhyNotThen(_Asking):
    @operation(
        "Ask why a cycle did not choose a node",
        id="cycles_why_not",
        answers_={202: Question},
        errors=ERRORS,
        parameters=[NODE],
        answer_example=EXAMPLE | {"kind": "why-not", "resourceVersion": None},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, number: int) -> Response:
        """The same about a recorded cycle, from the cluster as it was just before it."""
        return self.asked(self.cluster(cluster_id), "why-not", cycle=number, node=request.GET.get("node", ""))


class Devices(_Asking):
    @operation(
        "Ask how a cycle looked for its pod's devices",
        id="cycles_devices",
        answers_={202: Question},
        errors=ERRORS,
        parameters=[query("node", "The node to open up; none = where the pod went, or the first.")],
        answer_example=EXAMPLE | {"kind": "devices", "resourceVersion": None},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, number: int) -> Response:
        """Claims, requests and constraints; each device of a node with what first stood against it and every check;
        each node's verdict.
        """
        return self.asked(self.cluster(cluster_id), "devices", cycle=number, node=request.GET.get("node", ""))


class Weights(_Asking):
    @operation(
        "Ask from which weights on another node would have won",
        id="cycles_weights",
        answers_={202: Question},
        errors=ERRORS,
        answer_example=EXAMPLE | {"kind": "weights", "resourceVersion": None},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, number: int) -> Response:
        """For each score plugin the exact points where the winner of this cycle switches; the whole weights on either
        side are run again. With the draw, if the cycle hung on one.
        """
        return self.asked(self.cluster(cluster_id), "weights", cycle=number)


class Group(_Asking):
    @operation(
        "Ask about a pod group",
        id="groups_ask",
        answers_={202: Question},
        errors=ERRORS,
        answer_example=EXAMPLE | {"kind": "group"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str, namespace: str, group: str) -> Response:
        """Who of it fits where, how far it is from being scheduled, and what was proved to place it."""
        return self.asked(self.cluster(cluster_id), "group", namespace=namespace, name=group)


class Try(_Asking):
    parser_classes: list[Any] = []

    @operation(
        "Try a pod without submitting it",
        id="clusters_try",
        request={"application/yaml": OpenApiTypes.STR, "application/json": answers.MANIFEST},
        answers_={202: Question},
        errors=(*ERRORS, 413, 415),
        example=examples.MANIFESTS,
        example_media_type="application/yaml",
        answer_example=EXAMPLE | {"kind": "try"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """The cycle the first Pod of the body would have if it were submitted now and came first. Nothing is kept."""
        cluster = self.cluster(cluster_id)
        inner = django_request(request)
        text = read_body(inner, limit_bytes=min(MOST_TRIED_BYTES, settings.PLAYGROUND_MAX_UPLOAD_BYTES))
        manifest = questions.admitted_pod(cluster=cluster, text=text, content_type=media_type(inner))
        return self.asked(cluster, "try", manifest=manifest)


class TryRule(_Asking):
    @operation(
        "Try a rule without writing it into the configuration",
        id="clusters_try_rule",
        request=requests.TriedRule,
        answers_={202: Question},
        errors=(*ERRORS, 413, 415),
        example={"filter": 'node.metadata.labels.?disk.orValue("") == "ssd"', "pod": "default/web-0"},
        answer_example=EXAMPLE | {"kind": "try-rule"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """What a rule, a CEL expression that filters or scores, would say of every node for a pod. Nothing is kept; a
        configuration names one `Rule/NAME`.
        """
        cluster = self.cluster(cluster_id)
        asked = requests.TriedRule(data=request.data)
        asked.is_valid(raise_exception=True)
        rule = dict(asked.validated_data)
        pod = rule.pop("pod", "")
        return self.asked(cluster, "try-rule", rule=rule, pod=pod)


class Seeds(_Asking):
    @operation(
        "Ask how often each end state occurs",
        id="clusters_seeds",
        answers_={202: Question},
        errors=ERRORS,
        parameters=[number("seeds", "How many.", least=2, most=50)],
        answer_example=EXAMPLE | {"kind": "seeds"},
        tag="scheduling",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """Run the cluster's whole log again with other seeds, and count how it ends."""
        wanted = whole_number(request, "seeds", default=questions.N_SEEDS, least=2, most=questions.N_SEEDS)
        return self.asked(self.cluster(cluster_id), "seeds", seeds=wanted)


class OneQuestion(PlaygroundView):
    @operation(
        "Read a question and its answer",
        id="questions_read",
        answers_={200: Question},
        errors=(400, 404),
        answer_example=ANSWERED,
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """Its state, progress, and the answer once `state` is done."""
        cluster = self.cluster(cluster_id)
        return Response(document(get_question(cluster, question_id), cluster))

    @operation(
        "Cancel a question",
        id="questions_cancel",
        answers_={200: Question},
        errors=(400, 404),
        answer_example=EXAMPLE | {"state": "cancelled", "error": "Cancelled."},
        tag="scheduling",
    )
    def delete(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """No answer is wanted any more: a worker that is at it stops within about a second. Twice is once."""
        cluster = self.cluster(cluster_id)
        found = get_question(cluster, question_id)
        questions.cancel(cluster.questions.filter(pk=found.pk))
        found.refresh_from_db()
        return Response(document(found, cluster))
