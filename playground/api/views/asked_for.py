"""What is asked for once and looked at later, of a cluster or a share: formal model, joint placement, luck, upgrades.

They differ in what they find, and in nothing else: POST asks, GET reads the newest, DELETE cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import whole_answers
from playground.api.documentation import operation
from playground.api.serializers import requests
from playground.api.serializers import scenarios as answers
from playground.api.views.base import PlaygroundView, accepted
from playground.api.views.scenarios import Reads
from playground.clusters import questions
from playground.clusters.errors import NotFound
from playground.clusters.questions import questions_of
from playground.scenarios import selectors

_WHERE: Final = {"cluster": ("clusters", "c", "scheduling"), "scenario": ("scenarios", "s", "scenarios")}
"""Of what -> its collection in this API, in the pages, and the tag of its operations."""


@dataclass(frozen=True, slots=True)
class Search:
    """One kind of work that is asked for.

    Attributes
    ----------
    name
        The questions' kind, and the last part of its path, here and on the pages.
    verb
        Last part of the POST's operation id.
    fields
        What an answer has besides the fields all have.
    read_it, ask_for_it, finds, does
        Summaries and texts of GET and POST.
    missing
        What a 404 says when it was not asked for.
    answer, queued, done
        Serializer of an answer, and examples of `fields`.
    body, asked
        Serializer of the request's body and an example, if there is one.
    said
        The question's parameters from a valid body.
    """

    name: str
    verb: str
    fields: Callable[[Any], dict[str, Any]]
    read_it: str
    ask_for_it: str
    finds: str
    does: str
    missing: str
    answer: Any
    queued: Mapping[str, Any]
    done: Mapping[str, Any]
    body: Any = None
    asked: Any = None
    said: Callable[[Mapping[str, Any]], dict[str, Any]] = dict

    def document(self, request: Request, row: Any, of: str, public_id: str) -> dict[str, Any]:
        """A row as this API writes it."""
        collection, pages, _ = _WHERE[of]
        return {
            "page": request.build_absolute_uri(f"/{pages}/{public_id}/{self.name}/"),
            "url": f"/api/v1/{collection}/{public_id}/{self.name}/",
            "state": row.state,
            "problem": row.error or None,
            "createdAt": row.created,
            **self.fields(row),
        }

    def rows(self, found: Any, of: str) -> Any:
        """All that were asked for, of a cluster those since its last reset."""
        return questions_of(self.name, **_subject(found, of))

    def newest(self, found: Any, of: str) -> Any:
        row = self.rows(found, of).order_by("-pk").first()
        if row is None:
            raise NotFound(self.missing, kind="Question")
        return row

    def example(self, of: str, **fields: Any) -> dict[str, Any]:
        collection, pages, _ = _WHERE[of]
        public_id = "fk5pq8t2ab" if of == "cluster" else "k3fq9abc2mxy"
        return {
            "page": f"https://playground.example/{pages}/{public_id}/{self.name}/",
            "url": f"/api/v1/{collection}/{public_id}/{self.name}/",
            "state": "queued",
            "problem": None,
            "createdAt": "2026-01-02T00:00:00Z",
            **self.queued,
            **fields,
        }


def _subject(found: Any, of: str) -> dict[str, Any]:
    return {"cluster" if of == "cluster" else "share": found}


def found_of(view: Any, request: Request, of: str, public_id: str) -> Any:
    """The cluster or scenario of the path."""
    return view.cluster(public_id) if of == "cluster" else selectors.get_scenario(public_id, request.user)


def view_of(search: Search, of: str) -> type[PlaygroundView]:
    """The view of a kind of work, of a cluster or of a scenario."""
    collection, _, tag = _WHERE[of]
    prefix = f"{collection}_{search.name}"
    base = PlaygroundView if of == "cluster" else Reads

    def get(self: Any, request: Request, **path: str) -> Response:
        found = found_of(self, request, of, path[f"{of}_id"])
        return Response(search.document(request, search.newest(found, of), of, found.public_id))

    def post(self: Any, request: Request, **path: str) -> Response:
        found = found_of(self, request, of, path[f"{of}_id"])
        said: dict[str, Any] = {}
        if search.body is not None:
            body = search.body(data=request.data or {})
            body.is_valid(raise_exception=True)
            said = search.said(body.validated_data)
        row = questions.ask(kind=search.name, params=said, **_subject(found, of))
        answer = search.document(request, row, of, found.public_id)
        return accepted(answer, answer["url"])

    def delete(self: Any, request: Request, **path: str) -> Response:
        found = found_of(self, request, of, path[f"{of}_id"])
        row = search.newest(found, of)
        questions.cancel(search.rows(found, of))
        row.refresh_from_db()
        return Response(search.document(request, row, of, found.public_id))

    get.__doc__, post.__doc__ = search.finds, search.does
    delete.__doc__ = (
        "It is not wanted any more: a worker that is at it stops within about a second. Twice is once."
    )
    errors = (400, 403, 404, 409) if search.body is None else (400, 403, 404, 409, 413, 415)
    cancelled = search.example(of, state="cancelled", problem="Cancelled.")
    methods = {
        "get": operation(
            search.read_it,
            id=f"{prefix}_read",
            answers_={200: search.answer},
            errors=(400, 404),
            answer_example=search.example(of, state="done", **search.done),
            tag=tag,
            reads=True,
        )(get),
        "post": operation(
            search.ask_for_it,
            id=f"{prefix}_{search.verb}",
            request=search.body,
            answers_={202: search.answer},
            errors=errors,
            example=search.asked,
            answer_example=search.example(of),
            tag=tag,
        )(post),
        "delete": operation(
            f"Cancel: {search.ask_for_it[0].lower()}{search.ask_for_it[1:]}",
            id=f"{prefix}_cancel",
            answers_={200: search.answer},
            errors=(400, 403, 404),
            answer_example=cancelled,
            tag=tag,
        )(delete),
    }
    return type(f"{of.capitalize()}{search.name.capitalize()}", (base,), {**methods, "__module__": __name__})


MODEL: Final = Search(
    name="model",
    verb="check",
    fields=lambda row: {
        "cycle": row.params["cycle"],
        "engine": row.engine_version,
        "tookMs": row.took_ms,
        "result": row.answer,
    },
    read_it="Read the newest check of the formal model",
    ask_for_it="Check the formal model on every cycle",
    finds="Order, placement and minimal casualty of every cycle; the result is there once `state` is done.",
    does="A worker makes the run again with the model looking on. The same cycles are checked once.",
    missing="the model was not checked yet: POST here asks for it",
    answer=answers.ModelCheck,
    queued={"cycle": 12, "engine": "1.0.0", "tookMs": None, "result": None},
    done={
        "tookMs": 840,
        "result": whole_answers.MODEL_RESULT,
    },
)

OPTIMUM: Final = Search(
    name="optimum",
    verb="find",
    fields=lambda row: {
        "cycle": row.params["cycle"],
        "timeLimitS": row.params["time_limit_s"],
        "step": row.doing or None,
        "progress": row.progress or 0.0,
        "result": row.answer,
    },
    read_it="Read the newest joint placement",
    ask_for_it="Look for the best joint placement",
    finds="How far one pod at a time is from the best of all placements; there once `state` is done.",
    does="All pods at once, as many as possible, higher priorities first; rules between pods are constraints.",
    missing="it was not looked for yet: POST here asks for it",
    answer=answers.Optimum,
    queued={"cycle": 12, "timeLimitS": 30, "step": None, "progress": 0.0, "result": None},
    done={
        "progress": 1.0,
        "result": whole_answers.OPTIMUM_RESULT,
    },
    body=answers.OptimumRequest,
    asked={"timeLimitS": 10},
    said=lambda body: {"cycle": body.get("cycle"), "time_limit_s": body["timeLimitS"]},
)

LUCK: Final = Search(
    name="luck",
    verb="run",
    fields=lambda row: {
        "state": "queued" if row.is_open else row.state,
        "seeds": row.params["seeds"],
        "progress": {"done": row.done, "total": row.params["seeds"]},
        "result": row.answer,
    },
    read_it="Read how much of a scenario is luck",
    ask_for_it="Run a scenario with other seeds",
    finds="How often each end state occurs with other seeds; there once `state` is done.",
    does="Workers run the same objects and steps with other draws among equals. The same seeds are run once.",
    missing="no other seeds were run yet: POST here asks for it",
    answer=answers.Luck,
    queued={"seeds": 50, "progress": {"done": 0, "total": 50}, "result": None},
    done={
        "progress": {"done": 50, "total": 50},
        "result": whole_answers.END_STATES,
    },
    body=answers.LuckRequest,
    asked={"seeds": 50},
    said=lambda body: {"seeds": body["seeds"]},
)

UPGRADE: Final = Search(
    name="upgrade",
    verb="preview",
    fields=lambda row: {
        "before": row.params["before"],
        "after": row.params["after"],
        "step": row.doing or None,
        "progress": row.progress or 0.0,
        "engine": row.engine_version,
        "tookMs": row.took_ms,
        "result": row.answer,
    },
    read_it="Read the newest preview of an upgrade",
    ask_for_it="Preview an upgrade",
    finds="What differs, by proved cause; the result is there once `state` is done.",
    does="A worker decides the whole run by both releases. Nothing else changes.",
    missing="no upgrade was previewed yet: POST here asks for it",
    answer=answers.Upgrade,
    queued={
        "before": {"name": "1.34", "switched": {}},
        "after": {"name": "1.36", "switched": {}},
        "step": None,
        "progress": 0.0,
        "engine": "1.0.0",
        "tookMs": None,
        "result": None,
    },
    done={
        "progress": 1.0,
        "tookMs": 840,
        "result": whole_answers.UPGRADE_RESULT,
    },
    body=requests.ClusterRelease,
    asked={"kubernetesRelease": "1.36"},
    said=lambda body: {"name": body["kubernetesRelease"], "gates": body.get("featureGates")},
)
