"""A real HTTP server that answers like an extender, badly on request, and logs every request."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, Any], Any]


class ExtenderServer:
    """`answer(path, body)` gives the JSON to answer with, or a `Misbehave`."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.log: list[tuple[str, Any]] = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.log.append((self.path, body))
                given = server.answer(self.path, body)
                if callable(given):
                    given(self)
                    return
                data = json.dumps(given).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A peer that hung up is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def hang(self, handler: Any) -> None:
        """Never answer while the test runs."""
        self.released.wait(30)

    @staticmethod
    def cut(handler: Any) -> None:
        """Promise more than is sent."""
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"NodeNames": [')

    @staticmethod
    def flood(handler: Any) -> None:
        """Ten megabytes."""
        handler.send_response(200)
        handler.end_headers()
        for _ in range(160):
            handler.wfile.write(b" " * 65536)

    def drip(self, handler: Any) -> None:
        """One header byte now and then, for ever."""
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not self.released.wait(0.05):
            handler.wfile.write(b"x")

    def start(self) -> ExtenderServer:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@contextmanager
def serving(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[ExtenderServer]:
    server = ExtenderServer(answer, context).start()
    try:
        yield server
    finally:
        server.stop()
