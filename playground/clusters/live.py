"""Server-sent events of a cluster: one look at the database for all who watch (`pulse`), whatever they are told."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator

from playground.clusters import pulse

BEAT_S = 15.0
MOST_A_SECOND = 2
"""Who watches is told twice a second at most, however fast cycles come; the first two at once."""
RETRY = b"retry: 2000\n\n"
HERE = b": here\n\n"
"""A comment now and then, so that nothing between here and there closes a quiet stream."""


def _not_an_ended_stream(record: logging.LogRecord) -> bool:
    """Whether a record of uvicorn is anything else than an open event stream cut when the server ends."""
    cut = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut and not record.getMessage().startswith("Cancel ")


# However the site is served: one that still watches is no reason for a traceback when the server stops.
logging.getLogger("uvicorn.error").addFilter(_not_an_ended_stream)


async def changes(pk: int) -> AsyncGenerator[str | None, None]:
    """The stamp of a cluster at first and at every change, up to `pulse.GONE`; None where nothing came for a while."""
    told: deque[float] = deque(maxlen=MOST_A_SECOND)
    with pulse.watching(pk) as watcher:
        while True:
            try:
                await asyncio.wait_for(watcher.changed.wait(), BEAT_S)
            except TimeoutError:
                yield None
                continue
            if len(told) == MOST_A_SECOND:
                await asyncio.sleep(max(0.0, told[0] + 1 - time.monotonic()))
            told.append(time.monotonic())
            watcher.changed.clear()
            yield watcher.stamp
            if watcher.stamp == pulse.GONE:
                return
