"""Requests are UTF-8, whatever encoding their Content-Type claims.

All that speak to us send UTF-8. Django would decode even the query by a claim like ``charset=idna`` while it makes the
request, before any middleware, and fall over; so the claim is taken off in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

_CLAIM: Final = re.compile(r";\s*charset\s*=[^;]*", re.IGNORECASE)


def plain(content_type: str) -> str:
    """A Content-Type without its charset."""
    return _CLAIM.sub("", content_type)


def asgi(application: Callable[..., Any]) -> Callable[..., Any]:
    """The ASGI application, told nothing of charsets."""

    async def told(scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = [
            (name, plain(value.decode("latin-1")).encode("latin-1") if name == b"content-type" else value)
            for name, value in scope.get("headers", ())
        ]
        await application({**scope, "headers": headers}, receive, send)

    return told


def wsgi(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The WSGI application, told nothing of charsets."""

    def told(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return application(
            {**environ, "CONTENT_TYPE": plain(environ.get("CONTENT_TYPE", ""))}, start_response
        )

    return told
