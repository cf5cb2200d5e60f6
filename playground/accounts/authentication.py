"""Who asks: a token's owner, the person logged in, or (embedded) whoever sits at this machine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from playground.accounts.limits import wait_s
from playground.accounts.tokens import user_of


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer <token>`, as kubectl and most tools send it. Embedded mode has no tokens."""

    def authenticate(self, request: Request) -> tuple[Any, str] | None:
        if settings.EMBEDDED:
            return None
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        user = user_of(text.strip())
        if user is None:
            raise AuthenticationFailed("This token is nobody's, or has expired.")
        return user, text

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="playground"'


class Session(SessionAuthentication):
    """The person logged in to the pages; writes need the pages' CSRF token."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        if settings.EMBEDDED:
            return None
        return super().authenticate(request)  # type: ignore[no-any-return]


class MayEnter(BasePermission):
    """Embedded: everybody (the wall around it is LoopbackOnlyMiddleware). Team: who says who they are."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return settings.EMBEDDED or bool(request.user and request.user.is_authenticated)


class Requests(BaseThrottle):
    """So many requests a minute of one person; none are counted in embedded mode."""

    scope = "requests"

    def allow_request(self, request: Request, view: Any) -> bool:
        self.left_s = 0 if settings.EMBEDDED or not request.user else wait_s(request.user, self.scope)
        return self.left_s == 0

    def wait(self) -> float:
        return self.left_s


class Writes(Requests):
    """As `Requests`, for what changes something."""

    scope = "writes"

    def allow_request(self, request: Request, view: Any) -> bool:
        return request.method in SAFE_METHODS or super().allow_request(request, view)
