"""What the pages of accounts ask first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from playground.accounts.teams import TeamError, team_of_member

if TYPE_CHECKING:
    from playground.accounts.row_types import Team


def team_mode(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A page that embedded mode does not have, and that no cache keeps."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if settings.EMBEDDED:
            raise Http404("The embedded playground has no accounts.")
        return view(request, *args, **kwargs)

    return never_cache(wrapped)


def administrators(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A page that to all but administrators does not exist."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not (request.user.is_authenticated and request.user.is_superuser):
            raise Http404("There is no such page.")
        return view(request, *args, **kwargs)

    return team_mode(wrapped)


def own_team(request: HttpRequest, team_id: int) -> Team:
    """A team the person is in, or 404."""
    assert request.user.is_authenticated
    team = team_of_member(request.user, team_id)
    if team is None:
        raise Http404("There is no such team.")
    return team


def as_page_error(error: TeamError) -> Exception:
    """A refusal that is no form's to show."""
    return PermissionDenied(error.message) if error.reason == "Forbidden" else Http404(error.message)
