"""A request gives its database connection back before its answer is sent.

Under ASGI every request has a thread of its own, and with it a connection of its own. Kept open for the next request
(`CONN_MAX_AGE`) it would find none, as that one has another thread; kept for the length of a streamed answer, every
watching client would hold one of the hundred that a PostgreSQL has by default.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import connections
from django.http import HttpRequest, HttpResponseBase


class ConnectionsMiddleware:
    """First of the middleware, so that it closes connections last."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return self.get_response(request)
        finally:
            for connection in connections.all(initialized_only=True):
                # A transaction around the request is a test's; it needs its connection.
                if not connection.in_atomic_block:
                    connection.close()
