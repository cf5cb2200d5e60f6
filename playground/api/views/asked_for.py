"""What is asked for once and looked at later, of a cluster or a share: formal model, joint placement, luck, upgrades.

They differ in what they find, and in nothing else: POST asks, GET reads the newest, DELETE cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.views.base import PlaygroundView, accepted
from playground.api.views.scenarios import Reads
from playground.clusters import questions
from playground.clusters.errors import NotFound
from playground.clusters.questions import questions_of
from playground.scenarios import selectors

_WHERE: Final = {"cluster": ("clusters", "c"), "scenario": ("scenarios", "s")}
"""Of what -> its collection in this API and in the pages."""


class Search(NamedTuple):
    """One kind of work that is asked for.

    Attributes
    ----------
    name
        The questions' kind, and the last part of its path, here and on the pages.
    fields
        What an answer has besides the fields all have.
    finds, does
        Texts of GET and POST.
    missing
        What a 404 says when it was not asked for.
    body
        Shape of the request's body, if it has one.
    said
        The question's parameters from a valid body.
    """

    name: str
    fields: Callable[[Any], dict[str, Any]]
    finds: str
    does: str
    missing: str
    body: str = ""
    said: Callable[[Mapping[str, Any]], dict[str, Any]] = dict

    def document(self, request: Request, row: Any, of: str, public_id: str) -> dict[str, Any]:
        """A row as this API writes it."""
        collection, pages = _WHERE[of]
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


def _subject(found: Any, of: str) -> dict[str, Any]:
    return {"cluster" if of == "cluster" else "share": found}


def found_of(view: Any, request: Request, of: str, public_id: str) -> Any:
    """The cluster or scenario of the path."""
    return view.cluster(public_id) if of == "cluster" else selectors.get_scenario(public_id, request.user)


def view_of(search: Search, of: str) -> type[PlaygroundView]:
    """The view of a kind of work, of a cluster or of a scenario."""

    class View(PlaygroundView if of == "cluster" else Reads):  # type: ignore[misc]  # one of two
        def get(self, request: Request, **path: str) -> Response:
            found = found_of(self, request, of, path[f"{of}_id"])
            return Response(search.document(request, search.newest(found, of), of, found.public_id))

        def post(self, request: Request, **path: str) -> Response:
            found = found_of(self, request, of, path[f"{of}_id"])
            said = search.said(self.body(search.body)) if search.body else {}
            row = questions.ask(kind=search.name, params=said, **_subject(found, of))
            answer = search.document(request, row, of, found.public_id)
            return accepted(answer, answer["url"])

        def delete(self, request: Request, **path: str) -> Response:
            """It is not wanted any more: a worker that is at it stops within about a second. Twice is once."""
            found = found_of(self, request, of, path[f"{of}_id"])
            row = search.newest(found, of)
            questions.cancel(search.rows(found, of))
            row.refresh_from_db()
            return Response(search.document(request, row, of, found.public_id))

    View.get.__doc__, View.post.__doc__ = search.finds, search.does
    return View


MODEL: Final = Search(
    name="model",
    fields=lambda row: {
        "cycle": row.params["cycle"],
        "engine": row.engine_version,
        "tookMs": row.took_ms,
        "result": row.answer,
    },
    finds="Order, placement and minimal casualty of every cycle; the result is there once `state` is done.",
    does="A worker makes the run again with the model looking on. The same cycles are checked once.",
    missing="the model was not checked yet: POST here asks for it",
)

OPTIMUM: Final = Search(
    name="optimum",
    fields=lambda row: {
        "cycle": row.params["cycle"],
        "timeLimitS": row.params["time_limit_s"],
        "step": row.doing or None,
        "progress": row.progress or 0.0,
        "result": row.answer,
    },
    finds="How far one pod at a time is from the best of all placements; there once `state` is done.",
    does="All pods at once, as many as possible, higher priorities first; rules between pods are constraints.",
    missing="it was not looked for yet: POST here asks for it",
    body="OptimumRequest",
    said=lambda body: {"cycle": body.get("cycle"), "time_limit_s": body["timeLimitS"]},
)

LUCK: Final = Search(
    name="luck",
    fields=lambda row: {
        "state": "queued" if row.is_open else row.state,
        "seeds": row.params["seeds"],
        "progress": {"done": row.done, "total": row.params["seeds"]},
        "result": row.answer,
    },
    finds="How often each end state occurs with other seeds; there once `state` is done.",
    does="Workers run the same objects and steps with other draws among equals. The same seeds are run once.",
    missing="no other seeds were run yet: POST here asks for it",
    body="LuckRequest",
    said=lambda body: {"seeds": body["seeds"]},
)

UPGRADE: Final = Search(
    name="upgrade",
    fields=lambda row: {
        "before": row.params["before"],
        "after": row.params["after"],
        "step": row.doing or None,
        "progress": row.progress or 0.0,
        "engine": row.engine_version,
        "tookMs": row.took_ms,
        "result": row.answer,
    },
    finds="What differs, by proved cause; the result is there once `state` is done.",
    does="A worker decides the whole run by both releases. Nothing else changes.",
    missing="no upgrade was previewed yet: POST here asks for it",
    body="ClusterRelease",
    said=lambda body: {"name": body["kubernetesRelease"], "gates": body.get("featureGates")},
)
