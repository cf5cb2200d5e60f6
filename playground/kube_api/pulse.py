"""One look at the database a process and moment, however many watches are open.

Each event loop has one task that reads the newest sequence number of every watched cluster and stops when nobody
watches.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from asgiref.sync import sync_to_async
from django.db import connections

from playground.clusters.models import Cluster

POLL_S: Final = 0.2


def _stamps(ids: list[int]) -> dict[int, tuple[int, int]]:
    try:
        rows = Cluster.objects.filter(pk__in=ids).values_list("pk", "generation", "next_seq")
        return {pk: (generation, seq) for pk, generation, seq in rows}
    finally:
        # The thread may be a new one every time: leave no connection of its own behind.
        connections.close_all()


class _Pump:
    def __init__(self) -> None:
        self.watchers: dict[int, set[asyncio.Event]] = {}
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        known: dict[int, tuple[int, int] | None] = {}
        read = sync_to_async(_stamps, thread_sensitive=False)
        while self.watchers:
            ids = list(self.watchers)
            stamps = await read(ids)
            for pk in ids:
                if known.get(pk, (-1, -1)) != stamps.get(pk):
                    known[pk] = stamps.get(pk)
                    for event in self.watchers.get(pk, ()):
                        event.set()
            await asyncio.sleep(POLL_S)


_pumps: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pump] = weakref.WeakKeyDictionary()


@contextmanager
def changes(cluster_id: int) -> Iterator[asyncio.Event]:
    """An event that is set whenever the cluster's log may have grown; clear it before reading the log."""
    pump = _pumps.setdefault(asyncio.get_running_loop(), _Pump())
    event = asyncio.Event()
    pump.watchers.setdefault(cluster_id, set()).add(event)
    pump.start()
    try:
        yield event
    finally:
        waiting = pump.watchers.get(cluster_id, set())
        waiting.discard(event)
        if not waiting:
            pump.watchers.pop(cluster_id, None)
