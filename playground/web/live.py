"""Ticks for open pages: one poll a process, however many pages watch.

A tick says only that something changed; the page then asks for its fragments. Each event loop has one task
that reads the version of every watched cluster and stops when nobody watches.
"""

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections

from playground.clusters.models import Cluster, Run

logger = logging.getLogger(__name__)

POLL_S = 0.3
BEAT_S = 15.0
GONE = "gone"


def _not_an_ended_stream(record: logging.LogRecord) -> bool:
    """Whether a record of uvicorn is anything else than an open page's event stream cut when the server ends."""
    cut = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut and not record.getMessage().startswith("Cancel ")


# However the site is served: a page that still watches is no reason for a traceback when the server stops.
logging.getLogger("uvicorn.error").addFilter(_not_an_ended_stream)


def cluster_stamps(ids: list[int]) -> dict[int, str]:
    """Return what a page can see change, as a word per cluster: its version and how far its run is."""
    stamps = {
        pk: f"{generation}.{version}"
        for pk, generation, version in Cluster.objects.filter(pk__in=ids).values_list(
            "pk", "generation", "version"
        )
    }
    runs = Run.objects.filter(cluster__in=ids, state__in=Run.OPEN).values_list(
        "cluster", "public_id", "state", "cycles_done", "cancel_requested"
    )
    for pk, *progress in runs:
        if pk in stamps:
            stamps[pk] += "." + ".".join(str(part) for part in progress)
    return stamps


def _read(ids: list[int]) -> dict[int, str]:
    try:
        return cluster_stamps(ids)
    finally:
        # The thread may be a new one every time: leave no connection of its own behind.
        connections.close_all()


class _Pump:
    """Polls for all watchers of one event loop."""

    def __init__(self) -> None:
        self.watchers: dict[int, set[asyncio.Queue[str]]] = {}
        self.known: dict[int, str] = {}
        self.task: asyncio.Task[None] | None = None

    def watch(self, pk: int) -> asyncio.Queue[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        self.watchers.setdefault(pk, set()).add(queue)
        # The page was rendered a moment ago and may have missed a change since: the next poll ticks anyway.
        self.known.pop(pk, None)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())
        return queue

    def leave(self, pk: int, queue: asyncio.Queue[str]) -> None:
        queues = self.watchers.get(pk, set())
        queues.discard(queue)
        if not queues:
            self.watchers.pop(pk, None)

    async def _run(self) -> None:
        read = sync_to_async(_read, thread_sensitive=False)
        while self.watchers:
            ids = list(self.watchers)
            try:
                stamps = await read(ids)
            except DatabaseError:
                logger.warning("versions could not be read; trying again", exc_info=True)
                await asyncio.sleep(POLL_S)
                continue
            for pk in ids:
                stamp = stamps.get(pk, GONE)
                if self.known.get(pk) != stamp:
                    self.known[pk] = stamp
                    for queue in tuple(self.watchers.get(pk, ())):
                        queue.put_nowait(stamp)
            await asyncio.sleep(POLL_S)


_pumps: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pump] = weakref.WeakKeyDictionary()


async def ticks(pk: int) -> AsyncIterator[bytes]:
    """Server-sent events of one cluster: ``tick`` on every change, a comment now and then to stay open."""
    pump = _pumps.setdefault(asyncio.get_running_loop(), _Pump())
    queue = pump.watch(pk)
    try:
        yield b"retry: 2000\n\n"
        while True:
            try:
                stamp = await asyncio.wait_for(queue.get(), BEAT_S)
            except TimeoutError:
                yield b": here\n\n"
                continue
            while not queue.empty():
                stamp = queue.get_nowait()
            yield f"event: tick\ndata: {stamp}\n\n".encode()
            if stamp == GONE:
                return
    finally:
        pump.leave(pk, queue)
