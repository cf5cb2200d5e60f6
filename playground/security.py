"""Headers on every answer, and the wall around embedded mode."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.http.request import split_domain_port

from playground.bodies import megabytes, size_words

Handler = Callable[[HttpRequest], HttpResponse]

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


class SecurityHeadersMiddleware:
    """Add the content security policy: nothing inline, nothing from elsewhere."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class LoopbackOnlyMiddleware:
    """In embedded mode there is no login, so only this machine's own pages and tools may speak to us.

    - A `Host` that is not loopback is refused: a foreign name resolving to 127.0.0.1 (DNS rebinding) would
      otherwise make a web page elsewhere the same origin as ours.
    - An unsafe method with a foreign `Origin`, or that the browser itself calls cross-site, is refused;
      the JSON surfaces have no CSRF token. Tools send neither header and pass.
    """

    def __init__(self, get_response: Handler) -> None:
        if not settings.EMBEDDED:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        reason = self._refusal(request)
        if reason:
            return HttpResponseForbidden(f"{reason}\n", content_type="text/plain; charset=utf-8")
        return self.get_response(request)

    @staticmethod
    def _refusal(request: HttpRequest) -> str:
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


class RequestSizeMiddleware:
    """Answer 413 to a page's request that is too large, before anybody reads it (Django would answer 400).

    The JSON surfaces answer for themselves, in their own words.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        limit_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        length = request.META.get("CONTENT_LENGTH") or "0"
        if (
            length.isdecimal()
            and int(length) > limit_bytes
            and not request.path_info.startswith(("/api/", "/k8s/"))
        ):
            return HttpResponse(
                f"{size_words(megabytes(int(length)))}\n",
                status=413,
                content_type="text/plain; charset=utf-8",
            )
        return self.get_response(request)
