"""Query parameters of the pages. One that is most likely another, misspelt, is refused, as the APIs refuse it.

Others are passed over: who shares a link in a chat cannot help what it adds to the address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from playground.engine.schema import nearest_name

KNOWN: Final = frozenset(
    """
    a about action after all amount arrived as b before budget by c cancelled card class confirm
    csrfmiddlewaretoken cycle d days decisions description device download e effect f format go
    group have inline is_default kind lane maxheight maxwidth n name namespace next node none note
    on open opens_at ours_decide outcome owner page part plugin pod policy profile q redact release
    request rule selected selector show sort stands team theme title tried unhealthy url value
    verdict version view visibility wait weight
    """.split()  # noqa: SIM905 (a word a line would hide what it is)
)
OF_WEIGHTS: Final = "w-"
"""What the names of parameters begin with that end in a plugin's."""
_PAGES: Final = ("accounts", "scenarios", "web")


class ParametersMiddleware:
    """Looks at the query of every request to a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or match.app_name not in _PAGES:
            return None
        for name in request.GET:
            near = misspelt(name)
            if near:
                return render(request, "400.html", {"name": name[:80], "near": near}, status=400)
        return None


def misspelt(name: str) -> str:
    """The parameter that was probably meant; empty for a known one, and for one like none.

    Examples
    --------
    >>> misspelt("titel"), misspelt("title"), misspelt("utm_source")
    ('title', '', '')
    """
    if name in KNOWN or name.startswith(OF_WEIGHTS):
        return ""
    return nearest_name(name, sorted(KNOWN))
