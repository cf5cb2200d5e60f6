"""Questions about decisions and whole clusters: asked here, answered by a worker, read at the question's own path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.requests import whole_number
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.bodies import media_type, read_body
from playground.clusters import questions
from playground.clusters.choices import QuestionKind
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.questions import get_question, is_stale
from playground.scenarios import services as sharing
from scheduler_core.whatif.answers import answer_text
from scheduler_core.whatif.questions import ASKS

if TYPE_CHECKING:
    from playground.clusters.row_types import Question as QuestionRow

MOST_TRIED_BYTES: Final = 3 * 2**20
"""Of the body that holds a pod to try: far more than one object may have."""


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
    def post(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """Every single edit after which the pod would be placed, the cheapest first, each proven by a cycle run on a
        copy of the cluster; and how far every node is from taking it.

        Equal questions about an unchanged cluster are one: the answer may be there at once.
        """
        return self.asked(self.cluster(cluster_id), "what-would-it-take", namespace=namespace, name=pod)


class WhyNot(_Asking):
    def post(self, request: Request, cluster_id: str, namespace: str, pod: str) -> Response:
        """Every filter with the values it compared, also past the first that fails; score by score why it loses."""
        node = request.GET.get("node", "")
        return self.asked(self.cluster(cluster_id), "why-not", namespace=namespace, name=pod, node=node)


class WhyNotThen(_Asking):
    def post(self, request: Request, cluster_id: str, number: int) -> Response:
        """Ask the same about a recorded cycle, from the cluster just before it."""
        return self.asked(self.cluster(cluster_id), "why-not", cycle=number, node=request.GET.get("node", ""))


class Devices(_Asking):
    def post(self, request: Request, cluster_id: str, number: int) -> Response:
        """Claims, requests and constraints; each device of a node with what first stood against it and every check;
        each node's verdict.
        """
        return self.asked(self.cluster(cluster_id), "devices", cycle=number, node=request.GET.get("node", ""))


class Weights(_Asking):
    def post(self, request: Request, cluster_id: str, number: int) -> Response:
        """For each score plugin the exact points where the winner of this cycle switches; the whole weights on either
        side are run again. With the draw, if the cycle hung on one.
        """
        return self.asked(self.cluster(cluster_id), "weights", cycle=number)


class Group(_Asking):
    def post(self, request: Request, cluster_id: str, namespace: str, group: str) -> Response:
        """Who of it fits where, how far it is from being scheduled, and what was proved to place it."""
        return self.asked(self.cluster(cluster_id), "group", namespace=namespace, name=group)


class Try(_Asking):
    parser_classes: list[Any] = []

    def post(self, request: Request, cluster_id: str) -> Response:
        """The cycle the first Pod of the body would have if it were submitted now and came first. Nothing is kept."""
        cluster = self.cluster(cluster_id)
        inner = django_request(request)
        text = read_body(inner, limit_bytes=min(MOST_TRIED_BYTES, settings.PLAYGROUND_MAX_UPLOAD_BYTES))
        manifest = questions.admitted_pod(cluster=cluster, text=text, content_type=media_type(inner))
        return self.asked(cluster, "try", manifest=manifest)


class TryRule(_Asking):
    def post(self, request: Request, cluster_id: str) -> Response:
        """What a rule, a CEL expression that filters or scores, would say of every node for a pod. Nothing is kept; a
        configuration names one `Rule/NAME`.
        """
        cluster = self.cluster(cluster_id)
        asked = self.body("TriedRule")
        rule = dict(asked)
        pod = rule.pop("pod", "")
        return self.asked(cluster, "try-rule", rule=rule, pod=pod)


class Seeds(_Asking):
    def post(self, request: Request, cluster_id: str) -> Response:
        """Run the cluster's whole log again with other seeds, and count how it ends."""
        wanted = whole_number(request, "seeds", default=questions.N_SEEDS, least=2, most=questions.N_SEEDS)
        return self.asked(self.cluster(cluster_id), "seeds", seeds=wanted)


class OneQuestion(PlaygroundView):
    def get(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """Its state, progress, and the answer once `state` is done."""
        cluster = self.cluster(cluster_id)
        return Response(document(get_question(cluster, question_id), cluster))

    def delete(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """No answer is wanted any more: a worker that is at it stops within about a second. Twice is once."""
        cluster = self.cluster(cluster_id)
        found = get_question(cluster, question_id)
        questions.cancel(cluster.questions.filter(pk=found.pk))
        found.refresh_from_db()
        return Response(document(found, cluster))


class Plan(PlaygroundView):
    def post(self, request: Request, cluster_id: str) -> Response:
        """What nodes may be drained or lost, how many more pods fit, which nodes are wanted or spare. `ask` is one of
        drain, lose (`nodes`, `label: KEY=VALUE`), any-node, any-domain (`label: KEY`), headroom (`workload: KIND
        NAMESPACE/NAME` or `pod`), backlog, consolidate (`prices`). Nothing of the cluster changes.

        Equal questions about an unchanged cluster are one: the answer may be there at once.
        """
        cluster = self.cluster(cluster_id)
        if not isinstance(request.data, dict):
            raise InvalidInput(f"a question says what is asked: ask, one of {', '.join(ASKS)}", field="ask")
        return asked(questions.ask(cluster=cluster, kind="plan", params=dict(request.data)), cluster)


class PlanAnswer(PlaygroundView):
    def get(self, request: Request, cluster_id: str, question_id: str) -> HttpResponse:
        """The answer alone, byte for byte what `python -m scheduler_core plan --json` prints of the same objects."""
        found = get_question(self.cluster(cluster_id), question_id)
        if found.kind != QuestionKind.PLAN or found.answer is None:
            raise Conflict("there is no answer yet", kind="Question", name=question_id)
        return HttpResponse(answer_text(found.answer), content_type="application/json")


class ShareVerdict(PlaygroundView):
    def post(self, request: Request, cluster_id: str, question_id: str) -> Response:
        """Freeze the question, the answer and the objects it was asked of. Who has the link may read it."""
        found = get_question(self.cluster(cluster_id), question_id)
        made = sharing.share_verdict(question=found, owner=self.person)
        page = django_request(request).build_absolute_uri(f"/v/{made.public_id}/")
        body = {
            "id": made.public_id,
            "page": page,
            "sentence": made.sentence,
            "digest": made.digest,
            "createdAt": made.created,
        }
        return Response(body, status=201, headers={"Location": page})
