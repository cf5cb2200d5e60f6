"""From a path to its view: `routes.yaml` is the table; here is what every view has before it is called and after.

Who may see the page, what its method may be, the rows its path names, and what a refusal of a service becomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isclass, iscoroutinefunction, signature
from pkgutil import resolve_name
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.cache import patch_vary_headers
from django.views import generic
from django.views.decorators.cache import never_cache

from playground.accounts.teams import AccountError, team_of_member
from playground.clusters import drafts
from playground.clusters.errors import ClusterError
from playground.clusters.objects.queries import get_mock_extender, get_run
from playground.clusters.questions import get_question
from playground.scenarios import selectors
from playground.web.requests import get_cluster, next_page, site_user, wants_login
from scheduler_core.schema.tables import table_beside

_READS: Final = ("GET", "HEAD")
_METHODS: Final[Mapping[str, tuple[str, ...]]] = {"GET": _READS, "POST": ("POST",), "both": (*_READS, "POST")}
View = Callable[..., HttpResponseBase]


def _own_team(request: Any, team_id: int) -> Any:
    team = team_of_member(request.user, team_id)
    if team is None:
        raise Http404("There is no such team.")
    return team


_ROWS: Final[Mapping[str, tuple[str, Callable[[Any, Any, Mapping[str, Any]], Any]]]] = {
    "cluster_id": ("cluster", lambda request, id, named: get_cluster(request, id)),
    "share_id": ("share", lambda request, id, named: selectors.get_scenario(id, request.user)),
    "comparison_id": ("comparison", lambda request, id, named: selectors.get_comparison(id, request.user)),
    "verdict_id": ("verdict", lambda request, id, named: selectors.get_verdict(id, request.user)),
    "draft_id": ("draft", lambda request, id, named: drafts.get_draft(id, site_user(request))),
    "question_id": ("question", lambda request, id, named: get_question(named["cluster"], id)),
    "run_id": ("run", lambda request, id, named: get_run(named["cluster"], id)),
    "extender_id": ("extender", lambda request, id, named: get_mock_extender(named["cluster"], id)),
    "team_id": ("team", lambda request, id, named: _own_team(request, id)),
}
"""What a path names by its id -> the argument of a view that takes it, and its row."""


def _of_team_mode(request: HttpRequest) -> None:
    if settings.EMBEDDED:
        raise Http404("The embedded playground has no accounts.")


def _for_administrators(request: HttpRequest) -> None:
    """Refuse all others, for whom the page does not exist."""
    _of_team_mode(request)
    if not (request.user.is_authenticated and request.user.is_superuser):
        raise Http404("There is no such page.")


_WHO: Final[Mapping[str, Callable[[HttpRequest], HttpResponseBase | None]]] = {
    "": lambda request: None,
    "login": wants_login,
    "team": _of_team_mode,
    "administrators": _for_administrators,
}


def served(
    view: View, *, takes: str = "GET", who: str = "", back: str = "", refused: str = "", **tab: str
) -> View:
    """A view as it is called by Django.

    Parameters
    ----------
    takes
        Methods: ``GET``, ``POST`` or ``both``.
    who
        Sees it: everybody, or a key of `_WHO`.
    back
        Route where what a service refuses leads, with the refusal as a message; ``.`` is the page posted to. htmx
        gets the message alone.
    refused
        What the message begins with.
    tab
        `tab` and `sub`: under which of the cluster's pages it is found.
    """
    wanted = signature(view).parameters

    @wraps(view)
    def answer(request: Any, **named: Any) -> HttpResponseBase:
        request.tab = tab
        if (instead := _WHO[who](request)) is not None:
            return instead
        if request.method not in _METHODS[takes]:
            return HttpResponseNotAllowed(_METHODS[takes])
        place, where = named, ""
        try:
            for key in (key for key in tuple(named) if key in _ROWS and _ROWS[key][0] in wanted):
                name, row = _ROWS[key]
                named = {other: value for other, value in named.items() if other != key} | {
                    name: row(request, named[key], named)
                }
            request.rows = {name: named[name] for name, _ in _ROWS.values() if name in named}
            if back and (request.method == "POST" or back != "."):
                where = next_page(request) or _back(request, back, place)
            response = view(request, **named)
        except ClusterError as error:
            # What is looked at and is not there stays a 404.
            is_told = error.status != 404 or request.method == "POST"
            if where and is_told and not (error.status == 403 and isinstance(error, AccountError)):
                said = f"{error.message[:1].upper()}{error.message[1:].removesuffix('.')}."
                messages.error(request, f"{refused}: {error.message}" if refused else said)
                return render(request, "components/messages.html") if request.htmx else redirect(where)
            if error.status in _AS_DJANGO:
                raise _AS_DJANGO[error.status](error.message) from None
            raise
        patch_vary_headers(response, ("HX-Request", "HX-Target"))
        return response

    answer.methods = _METHODS[takes]  # type: ignore[attr-defined]  # tests ask
    return answer


_AS_DJANGO: Final[Mapping[int, type[Exception]]] = {403: PermissionDenied, 404: Http404}


def _back(request: HttpRequest, back: str, place: Mapping[str, Any]) -> str:
    """The path of a route, of what the path of this request names."""
    if back == ".":
        return request.get_full_path()
    route, _, anchor = back.partition("#")
    area, _, name = route.partition(":")
    wanted = re.findall(r"<\w+:(\w+)>", _areas()[area][name]["at"])
    path = reverse(route, kwargs={key: place[key] for key in wanted})
    return f"{path}#{anchor}" if anchor else path


def _areas() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = table_beside(__package__ or __name__, "routes.yaml")
    return found


def patterns(area: str) -> list[URLPattern]:
    """The paths of an area of the table."""
    found = []
    for name, said in _areas()[area].items():
        row = dict(said)
        at, view = row.pop("at"), resolve_name(f"playground.web.{row.pop('view')}")
        if isclass(view) and issubclass(view, generic.View):
            view = view.as_view()
        if not iscoroutinefunction(view):
            who = row.pop("who", "team" if area == "accounts" else "")
            view = served(view, who=who, **{"tab": name, **row})
            view = never_cache(view) if area == "accounts" else view
        found.append(path(at, view, name=name))
    return found
