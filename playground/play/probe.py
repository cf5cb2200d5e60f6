"""Asks a site that is starting whether it is ready, without waiting for its answer."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def probing(address: Any, host_name: str = "") -> Iterator[Callable[[], bool]]:
    """A function that says whether `/readyz` answered 200; it asks again as often as it is called.

    Parameters
    ----------
    address
        Where the site listens.
    host_name
        The name it answers to, where that is not the address.
    """
    host, port = address[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    asking: list[socket.socket] = []

    def ask() -> bool:
        if not asking:
            connection = socket.create_connection((host, port), timeout=1)
            name = host_name or (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
            connection.sendall(f"GET /readyz HTTP/1.0\r\nHost: {name}\r\n\r\n".encode())
            connection.setblocking(False)
            asking.append(connection)
        connection = asking[0]
        try:
            said = connection.recv(64)
        except BlockingIOError:
            return False
        except OSError:
            said = b""
        asking.clear()
        connection.close()
        return said.split(b" ")[1:2] == [b"200"]

    try:
        yield lambda: _quietly(ask)
    finally:
        for connection in asking:
            connection.close()


def _quietly(ask: Callable[[], bool]) -> bool:
    with suppress(OSError):
        return ask()
    return False
