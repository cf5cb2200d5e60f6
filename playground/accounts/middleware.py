"""Team mode's door: pages are for people who are logged in, and the header says who is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from playground.accounts.limits import allowance
from playground.accounts.sessions import keep_seen
from playground.middleware import SAFE_METHODS

Handler = Callable[[HttpRequest], HttpResponse]

# The HTTP surfaces answer 401 themselves; who watches the process, schedulers that ask an extender, the login page's
# own files, and who has the link of an invitation or of a new password need no login.
OPEN: Final = (
    "/api/",
    "/k8s/",
    "/static/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/mock-extenders/",
    "/account/login",
    "/account/reset",
    "/account/invitation/",
)
# Read by who has the link; each view decides which of them is there for a stranger.
READABLE: Final = ("/s/", "/open/", "/oembed/", "/v/", "/compare/", "/gallery/", "/manual/")


class LoginMiddleware:
    """Send who is not logged in to the login page, whichever page was asked for."""

    def __init__(self, get_response: Handler) -> None:
        if settings.EMBEDDED:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(OPEN):
            return self.get_response(request)
        if request.user.is_authenticated:
            keep_seen(request)
            # The HTTP surfaces count for themselves, into the same sums.
            left_s = 0 if request.method in SAFE_METHODS else allowance(request.user, "writes").wait_s
            return _too_often(left_s) if left_s else self.get_response(request)
        if request.method in ("GET", "HEAD") and request.path_info.startswith(READABLE):
            return self.get_response(request)
        login = reverse("accounts:login")
        if request.headers.get("HX-Request"):
            # htmx would put the login page into a corner of this one.
            return HttpResponse(status=204, headers={"HX-Redirect": login})
        return redirect_to_login(request.get_full_path(), login)


def _too_often(left_s: int) -> HttpResponse:
    return HttpResponse(
        f"That is too much in one minute. Try again in {left_s} s.\n",
        status=429,
        content_type="text/plain; charset=utf-8",
        headers={"Retry-After": str(left_s)},
    )


def door(request: HttpRequest) -> dict[str, Any]:
    """`may_log_in`: whether this site has a login and no user is logged in."""
    user = getattr(request, "user", None)
    return {"may_log_in": not settings.EMBEDDED and not (user and user.is_authenticated)}
