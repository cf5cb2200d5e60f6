"""One look at the database a process and moment, however many pages and watches are open.

Each event loop has one task that reads the stamps of every watched cluster and stops when there is no watcher.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections

from playground.clusters.lanes import DECIDE
from playground.clusters.models import Cluster, Run
from playground.clusters.trouble import why_clocks_wait, why_waiting

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
GONE: Final = "gone"


def stamps_of(ids: list[int]) -> dict[int, str]:
    """What can be seen to change, as a word per cluster: its log, its version and how far its run is. Two queries.

    And whether it waits for what is amiss, which is asked for every few seconds.
    """
    rows = Cluster.objects.filter(pk__in=ids).values_list(
        "pk", "generation", "version", "next_seq", "clock_mode"
    )
    stamps = {}
    for pk, generation, version, seq, clock in rows:
        stamps[pk] = f"{generation}.{version}.{seq}"
        if clock == Cluster.ClockMode.REALTIME and why_clocks_wait():
            stamps[pk] += ".waits"
    runs = Run.objects.filter(cluster__in=ids, state__in=Run.OPEN).order_by("pk").values_list(
        "created", "cluster", "public_id", "state", "cycles_done", "cancel_requested"
    )  # fmt: skip
    for created, pk, *progress in runs:
        if pk in stamps:
            stamps[pk] += "." + ".".join(str(part) for part in progress)
            if why_waiting(DECIDE, created):
                stamps[pk] += ".waits"
    return stamps


def _read(ids: list[int]) -> dict[int, str]:
    try:
        return stamps_of(ids)
    finally:
        # The thread may be a new one every time: leave no connection of its own behind.
        connections.close_all()


@dataclass(eq=False)
class Watcher:
    """A reader that watches a cluster.

    Attributes
    ----------
    changed
        Set whenever the stamp is another one, and once at the first look; who waits clears it, then reads.
    stamp
        The newest; `GONE` when the cluster is.
    """

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    stamp: str = ""

    @property
    def last_seq(self) -> int | None:
        """Number of the newest entry sent to all watchers of this loop; None = none yet."""
        parts = self.stamp.split(".")
        return int(parts[2]) - 1 if len(parts) > 2 else None


class _Pump:
    """Polls for all watchers of one event loop."""

    def __init__(self) -> None:
        self.watchers: dict[int, set[Watcher]] = {}
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        read = sync_to_async(_read, thread_sensitive=False)
        while self.watchers:
            ids = list(self.watchers)
            try:
                stamps = await read(ids)
            except DatabaseError:
                logger.warning("stamps could not be read; trying again", exc_info=True)
            else:
                for pk in ids:
                    self._tell(pk, stamps.get(pk, GONE))
            await asyncio.sleep(POLL_S)

    def _tell(self, pk: int, stamp: str) -> None:
        for watcher in tuple(self.watchers.get(pk, ())):
            if watcher.stamp != stamp:
                watcher.stamp = stamp
                watcher.changed.set()


_pumps: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pump] = weakref.WeakKeyDictionary()


@contextmanager
def watching(cluster_id: int) -> Iterator[Watcher]:
    """Watch a cluster from within an event loop."""
    pump = _pumps.setdefault(asyncio.get_running_loop(), _Pump())
    watcher = Watcher()
    pump.watchers.setdefault(cluster_id, set()).add(watcher)
    pump.start()
    try:
        yield watcher
    finally:
        waiting = pump.watchers.get(cluster_id, set())
        waiting.discard(watcher)
        if not waiting:
            pump.watchers.pop(cluster_id, None)


# ---- Server-sent events of a cluster: one look at the database for all who watch (`pulse`), whatever they are told

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
    with watching(pk) as watcher:
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
            if watcher.stamp == GONE:
                return
