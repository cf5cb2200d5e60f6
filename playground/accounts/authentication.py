"""Who asks: a token's owner, the person logged in, or (embedded) the person at this machine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import APIException, AuthenticationFailed, PermissionDenied
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from playground.accounts.choices import TokenScope
from playground.accounts.limits import allowance
from playground.accounts.models import AccessToken
from playground.accounts.tokens import beyond, token_of


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer <token>`, as kubectl and most tools send it. Embedded mode has no tokens.

    What a token may not do by its method and path is refused here, before any view sees who asks, so a new view
    cannot forget it; what a view then reaches from there, its selectors hand out within the token
    (`accounts.tokens.only_cluster`). A view says what differs from its methods:

    - `only_reads(request)`: whether a POST only asks, so that a token to read may send it;
    - `one_cluster_reads`: whether a token of one cluster may read it although no cluster is in the path.
    """

    def authenticate(self, request: Request) -> tuple[Any, AccessToken] | None:
        if settings.EMBEDDED:
            return None
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token_of(text.strip())
        if token is None:
            raise AuthenticationFailed("There is no such token, or it has expired.")
        _check_scope(token, request)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="playground"'


def _check_scope(token: AccessToken, request: Request) -> None:
    """Refuse what a token is not for.

    Raises
    ------
    PermissionDenied
    """
    view = request.parser_context["view"]
    reads = request.method in SAFE_METHODS
    asks = getattr(view, "only_reads", None)
    if token.scope == TokenScope.READ and not reads and not (asks is not None and asks(request)):
        raise PermissionDenied("This token may only read (its scope is read).")
    if not token.cluster:
        return
    match = request._request.resolver_match
    named = match.kwargs.get("cluster_id") if match else None
    of_the_site = named is None and reads and getattr(view, "one_cluster_reads", False)
    if not of_the_site and named != token.cluster:
        raise PermissionDenied(beyond(token.cluster))


class SessionLogin(SessionAuthentication):
    """The person logged in to the pages; writes need the pages' CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        if settings.EMBEDDED:
            return None
        return super().authenticate(request)


class MayEnter(BasePermission):
    """Embedded: everybody (the wall around it is WallMiddleware). Team: who says who they are."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return settings.EMBEDDED or bool(request.user and request.user.is_authenticated)


class Requests(BaseThrottle):
    """Limit the requests a minute of one person; none are counted in embedded mode."""

    scope = "requests"

    def allow_request(self, request: Request, view: Any) -> bool:
        self.left_s = 0
        if settings.EMBEDDED or not request.user or not request.user.is_authenticated:
            return True
        found = allowance(request.user, self.scope)
        inner = request._request
        # For the headers of the answer (`api.views.base`).
        inner.allowances = [*getattr(inner, "allowances", ()), found]  # type: ignore[attr-defined]  # ours
        self.left_s = found.wait_s
        return self.left_s == 0

    def wait(self) -> float:
        return self.left_s


class Writes(Requests):
    """Limit requests that change something, as `Requests` does all."""

    scope = "writes"

    def allow_request(self, request: Request, view: Any) -> bool:
        return request.method in SAFE_METHODS or super().allow_request(request, view)


class AlwaysJSON(DefaultContentNegotiation):
    """JSON whatever `Accept` says: there is nothing else, and a client that gets it can say so itself."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class Surface(APIView):
    """What views of the HTTP surfaces have in common: who asks, how often, and answers in JSON."""

    authentication_classes = [BearerToken, SessionLogin]
    permission_classes = [MayEnter]
    throttle_classes = [Requests, Writes]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = AlwaysJSON


def headers_of(error: APIException) -> dict[str, str]:
    """What goes with a refusal: how to say who asks, when to ask again, how a body may be packed."""
    headers = {
        "WWW-Authenticate": getattr(error, "auth_header", None),
        "Retry-After": int(getattr(error, "wait", None) or 0),
        "Accept-Encoding": getattr(error, "accepts", None),
    }
    return {name: str(value) for name, value in headers.items() if value}
