"""Shared answers of plans: frozen with the objects they were asked of."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import whole_answers
from playground.api.documentation import operation
from playground.api.serializers.answers import Answer
from playground.api.serializers.plans import PlanAnswer
from playground.api.serializers.shapes import Manifest, many, moment, text
from playground.api.views.scenarios import Reads
from playground.clusters.errors import Forbidden
from playground.scenarios import selectors, services


class FrozenAnswer(Answer):
    id = text()
    page = text()
    url = text()
    sentence = text()
    digest = text("SHA-256 of the answer's bytes.")
    engine = text()
    createdAt = moment()
    answer = PlanAnswer()


class Dump(Answer):
    apiVersion = text()
    kind = text("List.")
    items = many(Manifest())


EXAMPLE: Final[dict[str, Any]] = {
    "id": "k3m8w2p9x4ab",
    "page": "https://playground.example/v/k3m8w2p9x4ab/",
    "url": "/api/v1/verdicts/k3m8w2p9x4ab/",
    "sentence": whole_answers.PLAN_ANSWER["verdict"],
    "digest": "9f" * 32,
    "engine": "1.0.0",
    "createdAt": "2026-01-02T00:00:00Z",
    "answer": whole_answers.PLAN_ANSWER,
}


class OneVerdict(Reads):
    @operation(
        "Read a shared answer",
        id="verdicts_read",
        answers_={200: FrozenAnswer},
        errors=(400, 404),
        answer_example=EXAMPLE,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, verdict_id: str) -> Response:
        """It does not follow the cluster."""
        found = selectors.get_verdict(verdict_id, request.user)
        return Response(
            {
                "id": found.public_id,
                "page": request.build_absolute_uri(f"/v/{found.public_id}/"),
                "url": f"/api/v1/verdicts/{found.public_id}/",
                "sentence": found.sentence,
                "digest": found.digest,
                "engine": found.engine_version,
                "createdAt": found.created,
                "answer": found.answer,
            }
        )

    @operation(
        "End a shared answer",
        id="verdicts_delete",
        answers_={204: None},
        errors=(400, 403, 404),
        tag="scenarios",
    )
    def delete(self, request: Request, verdict_id: str) -> Response:
        """Its link leads nowhere then; who shared it may."""
        found = selectors.get_verdict(verdict_id, request.user)
        if found.owner_id != getattr(self.person, "pk", None):
            raise Forbidden("only who shared it may end the link", kind="Verdict", name=verdict_id)
        services.end_verdict(verdict=found)
        return Response(status=204)


class VerdictObjects(Reads):
    @operation(
        "Read what a shared answer was asked of",
        id="verdicts_objects",
        answers_={200: Dump},
        errors=(400, 404),
        answer_example={"apiVersion": "v1", "kind": "List", "items": []},
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, verdict_id: str) -> Response:
        """The objects as a dump, of which `python -m scheduler_core plan --json` prints the same answer."""
        return Response(selectors.get_verdict(verdict_id, request.user).state)
