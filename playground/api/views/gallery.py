"""Our own teaching scenarios."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples
from playground.api.documentation import operation
from playground.api.serializers import answers
from playground.api.serializers import scenarios as shares
from playground.api.serializers.answers import Answer
from playground.api.serializers.shapes import text, whole
from playground.api.views.base import accepted
from playground.api.views.forks import cluster_made
from playground.api.views.scenarios import ANSWER, Reads, scenario_document
from playground.engine.scenarios import gallery_documents, read_scenario
from playground.scenarios import selectors, services
from playground.scenarios.services.gallery import gallery_scenario


class Lesson(Answer):
    name = text()
    url = text()
    group = text()
    title = text()
    lesson = text()
    nodes = whole()
    pods = whole()
    scenario = text("Id of its share; null: it is not shared yet.", allow_null=True)
    reproduced = whole("Decisions of the newest proof that are as recorded.", allow_null=True)
    recorded = whole(allow_null=True)


class Lessons(Answer):
    items = Lesson(many=True)


_LESSON: Final = {
    "name": "preemption-budget",
    "url": "/api/v1/gallery/preemption-budget/",
    "group": "preemption",
    "title": "A budget decides who goes",
    "lesson": "Fewer budget violations come before everything else.",
    "nodes": 3,
    "pods": 4,
    "scenario": "k3fq9abc2mxy",
    "reproduced": 5,
    "recorded": 5,
}


class Gallery(Reads):
    @operation(
        "List the teaching scenarios",
        id="gallery_list",
        answers_={200: Lessons},
        errors=(400,),
        answer_example={"items": [_LESSON]},
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """In the order of their page, with what each teaches and its newest proof."""
        rows = selectors.gallery_rows()
        return Response(
            {
                "items": [
                    _lesson(name, document, rows.get(name)) for name, document in gallery_documents().items()
                ]
            }
        )


def _lesson(name: str, document: bytes, row: Any) -> dict[str, Any]:
    facts = read_scenario(document)
    return {
        "name": name,
        "url": f"/api/v1/gallery/{name}/",
        "group": facts.group,
        "title": facts.title,
        "lesson": facts.lesson,
        "nodes": facts.n_nodes,
        "pods": facts.n_pods,
        "scenario": row.public_id if row is not None else None,
        "reproduced": row.proof_same if row is not None else None,
        "recorded": row.proof_recorded if row is not None else None,
    }


class OneLesson(Reads):
    @operation(
        "Read a teaching scenario",
        id="gallery_read",
        answers_={200: shares.Scenario},
        errors=(400, 404),
        answer_example=ANSWER,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, name: str) -> Response:
        """Its share: what it is and whether its decisions were reproduced."""
        scenario = gallery_scenario(name)
        return Response(scenario_document(request, scenario, selectors.scenario_page(scenario).proof))


class OpenLesson(Reads):
    @operation(
        "Open a teaching scenario",
        id="gallery_open",
        answers_={201: answers.Cluster},
        errors=(400, 403, 404, 409, 413),
        answer_example=examples.CLUSTER | {"name": _LESSON["title"]},
        tag="scenarios",
    )
    def post(self, request: Request, name: str) -> Response:
        """A new cluster of yours that begins as it does; its steps wait to be done one by one (`steps`)."""
        return cluster_made(services.open_gallery_scenario(name=name, owner=self.person))


class AtScale(Reads):
    @operation(
        "Make the production-sized scenario",
        id="gallery_make_large",
        answers_={202: shares.Scenario},
        errors=(400, 403, 404, 409),
        answer_example=ANSWER | {"title": "At scale"},
        tag="scenarios",
    )
    def post(self, request: Request) -> Response:
        """The share of it, made if it is not there yet; a worker runs it then, which takes minutes."""
        scenario = services.share_lookalike()
        body = scenario_document(request, scenario, selectors.scenario_page(scenario).proof)
        where = f"/api/v1/scenarios/{scenario.public_id}/"
        return accepted(body, where, retry_after_s=5)
