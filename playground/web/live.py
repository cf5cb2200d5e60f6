"""Ticks for open pages. A tick says only that something changed; the page then asks for its fragments."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator

from playground.clusters import pulse

BEAT_S = 15.0
MOST_A_SECOND = 2
"""A page is told twice a second at most, however fast cycles come; the first two at once."""


def _not_an_ended_stream(record: logging.LogRecord) -> bool:
    """Whether a record of uvicorn is anything else than an open page's event stream cut when the server ends."""
    cut = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut and not record.getMessage().startswith("Cancel ")


# However the site is served: a page that still watches is no reason for a traceback when the server stops.
logging.getLogger("uvicorn.error").addFilter(_not_an_ended_stream)


async def ticks(pk: int) -> AsyncIterator[bytes]:
    """Server-sent events of one cluster: ``tick`` on every change, a comment now and then to stay open."""
    told: deque[float] = deque(maxlen=MOST_A_SECOND)
    with pulse.watching(pk) as watcher:
        yield b"retry: 2000\n\n"
        while True:
            try:
                await asyncio.wait_for(watcher.changed.wait(), BEAT_S)
            except TimeoutError:
                yield b": here\n\n"
                continue
            if len(told) == MOST_A_SECOND:
                await asyncio.sleep(max(0.0, told[0] + 1 - time.monotonic()))
            told.append(time.monotonic())
            watcher.changed.clear()
            yield f"event: tick\ndata: {watcher.stamp}\n\n".encode()
            if watcher.stamp == pulse.GONE:
                return
