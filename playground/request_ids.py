"""A name for every request, which answers, refusals and logs tell: `X-Request-Id`."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from django.http import HttpRequest, HttpResponseBase

HEADER: Final = "X-Request-Id"
_TAKEN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """The id of the request that is answered now; empty where none is."""
    return _current.get()


class RequestIdMiddleware:
    """Take the name a client or proxy gave, if it is one, else draw one; every answer tells it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        named = given if _TAKEN.fullmatch(given) else uuid.uuid4().hex
        token = _current.set(named)
        try:
            response = self.get_response(request)
        finally:
            _current.reset(token)
        response.headers[HEADER] = named
        return response
