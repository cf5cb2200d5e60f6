"""The site in a thread of this process, for tests in a browser."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STARTED_WITHIN_S = 20
_ENDED_WITHIN_S = 10


@contextmanager
def served(**config: Any) -> Iterator[str]:
    """The site by uvicorn (WSGI cannot stream events), on a free port of this machine.

    Parameters
    ----------
    **config
        Of ``uvicorn.Config``.

    Yields
    ------
    str
        Its host and port.

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

    async def serve() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        started.set()
        await serving
        # Who is still connected, because an answer was cut off after a second, is let go of while there is a loop.
        for connection in server.server_state.connections:
            connection.transport.abort()
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="site", daemon=True)
    thread.start()
    try:
        if not started.wait(_STARTED_WITHIN_S):
            raise TimeoutError(f"uvicorn did not start within {_STARTED_WITHIN_S} s")
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_ENDED_WITHIN_S)
        listener.close()
