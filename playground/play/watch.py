"""Watches over processes: what was stopped by a signal, or is stuck, is ended or begun again.

Progress is what counts: each place in a worker goes round and sees to a child (rooms.py), and a child that decides or
answers for long is at work.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from celery import bootsteps
from django.db import connections

from playground.clusters import lanes, wake
from playground.play.processes import descendants, is_stopped
from playground.play.rooms import Deciding, LanePlace, Room

logger = logging.getLogger(__name__)

STOPPED_S: Final = 1.0
"""A child, or a child's child, that has been stopped for so long is ended: it may hold the lock that its own worker
waits for, so its room cannot be the one to notice."""
BUSY_WEB_S: Final = 30.0
"""A web process answers requests in threads; a loop of its own that stands still for so long is stuck."""
LOOK_EVERY_S: Final = 1.0
TIDY_EVERY_S: Final = 3600.0
TIDY_TASKS: Final = ("tidy", "tidy_shares")


def end_now() -> None:
    """Nothing is lost: what was not committed is done again."""
    os.kill(os.getpid(), signal.SIGKILL)


class ProcessWatch:
    """Watches the places of one worker process, and has tidying done now and then.

    Parameters
    ----------
    places
        Where its work is done.
    end
        Ends the process, or begins it anew.
    """

    def __init__(self, places: Sequence[LanePlace], *, end: Callable[[], None] = end_now) -> None:
        self.places = places
        self.end = end
        self._stopped_since_s: dict[int, float] = {}
        self._stopping = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._stay, name="watch", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _stay(self) -> None:
        tidied_s = time.monotonic()
        tidies = any(place.lane != lanes.DECIDE for place in self.places)
        while not self._stopping.wait(LOOK_EVERY_S):
            now_s = time.monotonic()
            self.end_stopped(now_s)
            why = self.why_stuck(now_s)
            if why:
                logger.error("this worker is stuck and begins anew: %s", why)
                self.end()
            if tidies and now_s - tidied_s >= TIDY_EVERY_S:
                tidied_s = now_s
                wake_tidying()

    def end_stopped(self, now_s: float) -> list[int]:
        """End the processes below this one that have been stopped for long; which."""
        since_s = self._stopped_since_s
        stopped = [pid for pid in descendants(os.getpid()) if is_stopped(pid)]
        self._stopped_since_s = {pid: since_s.get(pid, now_s) for pid in stopped}
        ended = [pid for pid, at_s in self._stopped_since_s.items() if now_s - at_s >= STOPPED_S]
        for pid in ended:
            logger.error("process %d below this worker was stopped by a signal and is ended", pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return ended

    def why_stuck(self, now_s: float) -> str:
        """What is wrong with this process; empty when nothing is."""
        for place in self.places:
            if not place.alive or now_s - place.ticked_s > lanes.STUCK_S:
                return f"nothing looks after the lane {place.lane}"
        return ""


def wake_tidying() -> None:
    """Have cleared away what is of no use any more."""
    for task in TIDY_TASKS:
        wake.send(task)
    connections.close_all()


class WebWatch:
    """Watches the loop of a web process that answers requests."""

    def __init__(self) -> None:
        self.signed_s = time.monotonic()

    async def sign(self) -> None:
        """The loop took a turn."""
        self.signed_s = time.monotonic()

    def start(self) -> None:
        threading.Thread(target=self._stay, name="watch", daemon=True).start()

    def _stay(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            if time.monotonic() - self.signed_s > BUSY_WEB_S:
                logger.error("the web process is stuck and ends: its loop took no turn in %g s", BUSY_WEB_S)
                end_now()


_BORN = os.getpid()
"""The process that imported this: one of another number was forked."""


class LaneStep(bootsteps.StartStopStep):
    """Runs as long as the worker."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        worker = parent.hostname
        served = [lane for lane in lanes.LANES if lane in parent.app.amqp.queues.consume_from]
        self._places = [
            Deciding(worker) if lane == lanes.DECIDE else Room(lane, worker=worker) for lane in served
        ]
        self._watch = ProcessWatch(self._places, end=begin_anew)

    def start(self, parent: Any) -> None:
        for place in self._places:
            place.start()
        self._watch.start()

    def stop(self, parent: Any) -> None:
        self._watch.stop()
        for place in self._places:
            place.stop()


def begin_anew() -> None:
    """Be the same command again, so that nothing else is needed to start it; a process that was forked just ends."""
    if os.getpid() == _BORN:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    end_now()
