"""The site in a thread of this process, for tests in a browser."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_STARTED_WITHIN_S = 20
_ENDED_WITHIN_S = 10
_LET_GO_AFTER_S, _GIVEN_UP_AFTER_S = 0.5, 5


@dataclass(frozen=True)
class Site:
    """The site that is served, and where.

    Attributes
    ----------
    place
        Host and port.
    server
        ``uvicorn.Server``.
    loop
        In which it runs.
    given_up
        Requests that are never done.
    """

    place: str
    server: Any
    loop: asyncio.AbstractEventLoop
    given_up: set[asyncio.Task[None]] = field(default_factory=set)

    def settle(self) -> None:
        """Wait until each request is answered; who is still sent something (ticks, a watch) is let go of.

        A request whose client left before a thread took it up may never be done: asgiref waits for what it has
        cancelled. Nothing works for it, and it is not waited for again.
        """
        tasks = self.server.server_state.tasks
        for wait_s in (_LET_GO_AFTER_S, _GIVEN_UP_AFTER_S):
            until = time.monotonic() + wait_s
            while tasks - self.given_up and time.monotonic() < until:
                time.sleep(0.005)
            if tasks - self.given_up:
                self.loop.call_soon_threadsafe(self.let_go)
        self.given_up.update(tasks)

    def let_go(self) -> None:
        """Cut every connection; within the loop."""
        for connection in self.server.server_state.connections:
            connection.transport.abort()


@contextmanager
def served(**config: Any) -> Iterator[Site]:
    """The site by uvicorn (WSGI cannot stream events), on a free port of this machine.

    Parameters
    ----------
    **config
        Of ``uvicorn.Config``.

    Yields
    ------
    Site
        Which it is.

    Raises
    ------
    TimeoutError
        It did not start.
    """
    import uvicorn

    from playground.asgi import application

    listener = socket.socket(proto=socket.IPPROTO_TCP)  # as in `play`: without it each body comes late
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            application, log_level="warning", lifespan="off", timeout_graceful_shutdown=1, **config
        )
    )
    started = threading.Event()
    loop = asyncio.new_event_loop()
    site = Site(f"127.0.0.1:{listener.getsockname()[1]}", server, loop)

    async def serve() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        started.set()
        await serving
        # Who is still connected, because an answer was cut off after a second, is let go of while there is a loop.
        site.let_go()
        await asyncio.sleep(0)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name="site", daemon=True)
    thread.start()
    try:
        if not started.wait(_STARTED_WITHIN_S):
            raise TimeoutError(f"uvicorn did not start within {_STARTED_WITHIN_S} s")
        yield site
    finally:
        server.should_exit = True
        thread.join(_ENDED_WITHIN_S)
        listener.close()
