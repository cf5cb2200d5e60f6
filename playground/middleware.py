"""What every request goes through: its connection, its name, and the wall around the site."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from django.conf import settings
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port

from playground.bodies import megabytes, size_words

Handler = Callable[[HttpRequest], HttpResponse]


class ConnectionsMiddleware:
    """Gives a request's database connection back before its answer is sent. First, so that it closes connections last.

    Under ASGI every request has a thread of its own, and with it a connection of its own. Kept open for the next
    request (`CONN_MAX_AGE`) it would find none, as that one has another thread; kept for the length of a streamed
    answer, every watching client would hold one of the hundred that a PostgreSQL has by default.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            return self.get_response(request)
        finally:
            for connection in connections.all(initialized_only=True):
                # A transaction around the request is a test's; it needs its connection.
                if not connection.in_atomic_block:
                    connection.close()


# ---- A name for every request, which answers, refusals and logs tell

HEADER: Final = "X-Request-Id"
_TAKEN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """The id of the request that is answered now; empty where none is."""
    return _current.get()


class RequestIdMiddleware:
    """Take the name a client or proxy gave, if it is one, else draw one; every answer tells it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        named = given if _TAKEN.fullmatch(given) else uuid.uuid4().hex
        token = _current.set(named)
        try:
            response = self.get_response(request)
        finally:
            _current.reset(token)
        response.headers[HEADER] = named
        return response


# ---- Headers on every answer, and what is refused before it is read

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


class WallMiddleware:
    """Refuse strangers and what is too large; every answer has the content security policy: nothing from elsewhere."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = _refused(request) or self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


def _refused(request: HttpRequest) -> HttpResponse | None:
    words, status = _stranger(request) if settings.EMBEDDED else "", 403
    length = request.META.get("CONTENT_LENGTH") or "0"
    # The JSON surfaces say in their own words what is too large for them.
    is_page = not request.path_info.startswith(("/api/", "/k8s/"))
    if not words and is_page and length.isdecimal() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        words, status = size_words(megabytes(int(length))), 413
    if not words:
        return None
    return HttpResponse(f"{words}\n", status=status, content_type="text/plain; charset=utf-8")


def _stranger(request: HttpRequest) -> str:
    """Why a request does not come from this machine's own pages and tools: in embedded mode there is no login.

    - A `Host` that is not loopback is refused: a foreign name resolving to 127.0.0.1 (DNS rebinding) would
      otherwise make a web page elsewhere the same origin as ours.
    - An unsafe method with a foreign `Origin`, or that the browser itself calls cross-site, is refused;
      the JSON surfaces have no CSRF token. Tools send neither header and pass.
    """
    host = request.META.get("HTTP_HOST", "")
    name, _ = split_domain_port(host.lower())
    # "testserver" is Django's test client, which a real Host cannot be mistaken for: it is not in
    # ALLOWED_HOSTS outside tests.
    if host and name not in settings.ALLOWED_HOSTS:
        return f'Host: "{host}" is not this machine; the embedded playground answers on loopback only.'
    if request.method in SAFE_METHODS:
        return ""
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"{request.scheme}://{host}":
        return f'Origin: "{origin}" may not change anything here.'
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site not in ("same-origin", "none"):
        return f'Sec-Fetch-Site: a "{site}" request may not change anything here.'
    return ""
