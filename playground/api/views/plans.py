"""Questions about a whole cluster: asked here, polled, read and cancelled as any question."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import whole_answers
from playground.api.documentation import operation
from playground.api.serializers import plans
from playground.api.serializers.answers import Answer
from playground.api.views.base import PlaygroundView, django_request
from playground.api.views.questions import ERRORS, EXAMPLE, Question, asked
from playground.clusters import questions
from playground.clusters.choices import QuestionKind
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.questions import get_question
from playground.scenarios import services as sharing
from scheduler_core.whatif.answers import answer_text
from scheduler_core.whatif.questions import ASKS

ASKED: Final = {"ask": "drain", "nodes": ["node-1"]}


class SharedVerdict(Answer):
    id = serializers.CharField()
    page = serializers.CharField(help_text="Its page, which does not follow the cluster.")
    sentence = serializers.CharField()
    digest = serializers.CharField(help_text="SHA-256 of the answer's bytes.")
    createdAt = serializers.DateTimeField()


class Plan(PlaygroundView):
    @operation(
        "Ask about the whole cluster",
        id="clusters_plan",
        request=plans.PlanRequest,
        answers_={202: Question},
        errors=(*ERRORS, 413, 415),
        example=ASKED,
        answer_example=EXAMPLE | {"kind": "plan"},
        tag="scheduling",
    )
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
    @operation(
        "Read the bytes of an answer",
        id="plan_answer",
        answers_={200: plans.PlanAnswer},
        errors=(400, 404, 409),
        answer_example=whole_answers.PLAN_ANSWER,
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, question_id: str) -> HttpResponse:
        """The answer alone, byte for byte what `python -m scheduler_core plan --json` prints of the same objects."""
        found = get_question(self.cluster(cluster_id), question_id)
        if found.kind != QuestionKind.PLAN or found.answer is None:
            raise Conflict("there is no answer yet", kind="Question", name=question_id)
        return HttpResponse(answer_text(found.answer), content_type="application/json")


class ShareVerdict(PlaygroundView):
    @operation(
        "Share an answer as a page of its own",
        id="plan_share",
        answers_={201: SharedVerdict},
        errors=ERRORS,
        answer_example={
            "id": "k3m8w2p9x4ab",
            "page": "https://playground.example/v/k3m8w2p9x4ab/",
            "sentence": "All 3 of its pods find another node.",
            "digest": "9f" * 32,
            "createdAt": "2026-01-02T00:00:00Z",
        },
        tag="scheduling",
    )
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
