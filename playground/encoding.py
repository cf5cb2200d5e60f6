"""What reaches the site before Django: requests are UTF-8 whatever they claim, and a WebSocket is a plain request.

All that speak to us send UTF-8. Django would decode even the query by a claim like ``charset=idna`` while it makes the
request, before any middleware, and fall over; so the claim is taken off in front of it. It knows no WebSockets either:
who opens one (``exec`` of a Kubernetes client) gets the answer of a GET in place of the handshake.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

_CLAIM: Final = re.compile(r";\s*charset\s*=[^;]*", re.IGNORECASE)


def plain(content_type: str) -> str:
    """A Content-Type without its charset."""
    return _CLAIM.sub("", content_type)


def asgi(application: Callable[..., Any]) -> Callable[..., Any]:
    """The ASGI application without charsets and WebSockets."""

    async def told(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            scope, receive, send = _as_get(scope, send)
        headers = [
            (name, plain(value.decode("latin-1")).encode("latin-1") if name == b"content-type" else value)
            for name, value in scope.get("headers", ())
        ]
        await application({**scope, "headers": headers}, receive, send)

    return told


def _as_get(scope: dict[str, Any], send: Any) -> tuple[dict[str, Any], Any, Any]:
    """A WebSocket's handshake as the GET that it is; the answer refuses the handshake with its status and body."""
    bodies = [{"type": "http.request", "body": b"", "more_body": False}]
    can_tell = "websocket.http.response" in scope.get("extensions", {})

    async def receive() -> dict[str, Any]:
        # After its body nothing comes of a request; Django listens until it has answered.
        return bodies.pop() if bodies else await asyncio.Future()

    async def refuse(message: dict[str, Any]) -> None:
        if can_tell:
            await send({**message, "type": f"websocket.{message['type']}"})
        elif message["type"] == "http.response.start":
            await send({"type": "websocket.close", "code": 1008})

    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "ws"), "http")
    return {**scope, "type": "http", "method": "GET", "scheme": scheme}, receive, refuse


def wsgi(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The WSGI application without charsets."""

    def told(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return application(
            {**environ, "CONTENT_TYPE": plain(environ.get("CONTENT_TYPE", ""))}, start_response
        )

    return told
