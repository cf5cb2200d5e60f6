"""A worker that watches itself, and ends when it is stuck: its parent process starts it again.

Not a heartbeat beside the work: the signs come from the loop that takes messages, from the task it is at, and from
the database, where pulses show what went through the lane.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from celery.signals import task_postrun, task_prerun
from django.db import DatabaseError, connections
from django.utils import timezone

from playground.broker.transport import Transport
from playground.clusters.models import LanePulse
from playground.play.processes import descendants, is_stopped
from playground.play.rooms import Room

logger = logging.getLogger(__name__)

SILENT_S: Final = 15.0
"""A loop that took no turn for so long, and is at no task, is stuck."""
BUSY_S: Final = 300.0
"""So is one that has been at one task for so long."""
LANE_SILENT_S: Final = 45.0
"""So is, perhaps, every worker of a lane through which nothing went for so long while the database could be read."""
STOPPED_S: Final = 1.0
"""A child, or a child's child, that has been stopped for so long is ended: it may hold the lock that its own worker
waits for, so its room cannot be the one to notice."""
BUSY_WEB_S: Final = 30.0
"""A web process answers requests in threads; a loop of its own that stands still for so long is stuck."""
LOOK_EVERY_S: Final = 1.0


def end_now() -> None:
    """Nothing is lost: what was not committed is done again, and what was not acknowledged is handed out again."""
    os.kill(os.getpid(), signal.SIGKILL)


class ProcessWatch:
    """Watches one worker process.

    Parameters
    ----------
    served
        Lanes whose messages it takes.
    rooms
        Its rooms.
    end
        Ends the process.
    """

    def __init__(
        self, served: Sequence[str], rooms: Sequence[Room], *, end: Callable[[], None] = end_now
    ) -> None:
        self.served = served
        self.rooms = rooms
        self.end = end
        self.signed_s = self.began_s = time.monotonic()
        self.busy_since_s: float | None = None
        self._stopped_since_s: dict[int, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._stay, name="watch", daemon=True)

    def start(self) -> None:
        Transport.looked = self.sign
        task_prerun.connect(self._busy, weak=False, dispatch_uid="watch")
        task_postrun.connect(self._idle, weak=False, dispatch_uid="watch")
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def sign(self) -> None:
        """The worker's loop took a turn."""
        self.signed_s = time.monotonic()

    def _busy(self, **kwargs: Any) -> None:
        self.busy_since_s = time.monotonic()

    def _idle(self, **kwargs: Any) -> None:
        self.busy_since_s = None
        self.sign()

    def _stay(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            self.end_stopped(time.monotonic())
            why = self.why_stuck(time.monotonic())
            if why:
                logger.error("this worker is stuck and ends: %s", why)
                self.end()

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
        busy_since_s = self.busy_since_s
        if busy_since_s is not None and now_s - busy_since_s > BUSY_S:
            return f"it has been at one task for {BUSY_S:g} s"
        if busy_since_s is None and now_s - self.signed_s > SILENT_S:
            return f"its loop took no turn in {SILENT_S:g} s"
        for room in self.rooms:
            if not room.alive or now_s - room.ticked_s > BUSY_S:
                return f"nothing looks after the lane {room.lane}"
        if busy_since_s is None and now_s - self.began_s > LANE_SILENT_S:
            silent = self._silent_lane()
            if silent:
                self.began_s = now_s  # a new process would be as patient
                return f"nothing went through the lane {silent} in {LANE_SILENT_S:g} s"
        return ""

    def _silent_lane(self) -> str:
        horizon = timezone.now() - timedelta(seconds=LANE_SILENT_S)
        try:
            passed = set(LanePulse.objects.filter(passed_at__gte=horizon).values_list("lane", flat=True))
        except DatabaseError:
            return ""  # it is not this process that is amiss
        finally:
            connections.close_all()
        return next((lane for lane in self.served if lane not in passed), "")


class WebWatch:
    """Watches the loop of a web process that answers requests."""

    def __init__(self, *, end: Callable[[], None] = end_now) -> None:
        self.signed_s = time.monotonic()
        self.end = end

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
                self.end()
