"""Refusals that no view of this API made: the same shape as all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from playground.api.documentation import MEDIA_TYPE, REASONS
from playground.api.errors import problem_body, reason_of

PREFIX: Final = "/api/v1/"


class ProblemMiddleware:
    """Outermost middleware: turns refusals before the view (hosts, CSRF, sizes) and bugs into answers of the API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code < 400 or not request.path_info.startswith(PREFIX):
            return response
        if response.streaming or response.headers.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        assert isinstance(response, HttpResponse)
        reason = reason_of(response.status_code)
        is_text = response.headers.get("Content-Type", "").startswith("text/plain")
        detail = response.content.decode("utf-8", "replace").strip() if is_text else REASONS[reason][2]
        told = JsonResponse(
            problem_body(response.status_code, reason, detail or REASONS[reason][2]),
            status=response.status_code,
            content_type=MEDIA_TYPE,
        )
        for name, value in response.items():
            if name not in ("Content-Type", "Content-Length"):
                told.headers.setdefault(name, value)
        return told
