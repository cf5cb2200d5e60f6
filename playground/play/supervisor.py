"""Keeps the site's processes running: whatever ends, or is stopped by a signal, is started again at once.

They are forked from this process, which has imported everything: so each is there within a fraction of a second, and
they share most of their memory. This process itself runs nothing else, has no thread, and holds no connection to a
database or a broker; the socket is its own, so requests wait for a new web process instead of being refused.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playground.play.processes import end, fork, is_stopped, name_process

LOOK_EVERY_S: Final = 0.25
FIRST_BACKOFF_S: Final = 0.25
LONGEST_BACKOFF_S: Final = 2.0
"""Short: a start is a fork, and while a process is waited for the site has one less."""
HEALTHY_AFTER_S: Final = 10.0
"""A process that lived this long was well; its end starts the back-off anew."""
STOPPED_S: Final = 1.0
"""A process that has been stopped for so long is ended: it may hold a lock that all others wait for."""
STOP_TIMEOUT_S: Final = 3.0


@dataclass
class ProcessPlace:
    """One process of the site.

    Attributes
    ----------
    name
        For people: `web`, `decide-1`, ...
    body
        What the process does; it ends with it.
    """

    name: str
    body: Callable[[], None]
    pid: int = 0
    started_s: float = 0.0
    start_at_s: float = 0.0
    backoff_s: float = FIRST_BACKOFF_S
    stopped_since_s: float | None = field(default=None, repr=False)


class Supervisor:
    """Starts places, starts them again, stops them with us.

    Parameters
    ----------
    places
        In the order in which they are started; stopped in the reverse order.
    log
        File that gets the output of all but the first.
    report
        Called with a sentence when a process ended and is started again.
    let_go
        Called in each new process first: closes what is the supervisor's own.
    """

    def __init__(
        self,
        places: list[ProcessPlace],
        log: Path,
        report: Callable[[str], None],
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        self.places = places
        self._log = log
        self._report = report
        self._let_go = let_go
        # All children hold the reading end of this pipe, and only we the writing one: it ends when we do.
        self._life, self._our_end = os.pipe()

    def start(self) -> None:
        for place in self.places:
            self._start(place)

    def look(self) -> None:
        """One look at every process; called a few times a second."""
        now_s = time.monotonic()
        for place in self.places:
            if place.pid == 0:
                if now_s >= place.start_at_s:
                    self._start(place)
            elif (code := self._code_of(place)) is not None:
                self._ended(place, now_s, f"ended ({code})")
            elif not is_stopped(place.pid):
                place.stopped_since_s = None
            elif place.stopped_since_s is None:
                place.stopped_since_s = now_s
            elif now_s - place.stopped_since_s >= STOPPED_S:
                end(place.pid)
                self._ended(place, now_s, "was stopped by a signal")

    def stop(self) -> None:
        """Let all finish within `STOP_TIMEOUT_S`, then kill them; messages they did not finish are kept."""
        running = [place for place in reversed(self.places) if place.pid]
        for place in running:
            with suppress(ProcessLookupError):
                os.kill(place.pid, signal.SIGTERM)
        until_s = time.monotonic() + STOP_TIMEOUT_S
        while running and time.monotonic() < until_s:
            running = [place for place in running if self._code_of(place) is None]
            time.sleep(0.02)
        for place in running:
            end(place.pid)
            place.pid = 0

    def _ended(self, place: ProcessPlace, now_s: float, how: str) -> None:
        if now_s - place.started_s >= HEALTHY_AFTER_S:
            place.backoff_s = FIRST_BACKOFF_S
        self._report(f"The process {place.name} {how}; starting it again. See {self._log}")
        place.pid, place.stopped_since_s = 0, None
        place.start_at_s = now_s + place.backoff_s
        place.backoff_s = min(place.backoff_s * 2, LONGEST_BACKOFF_S)

    def _code_of(self, place: ProcessPlace) -> int | None:
        try:
            pid, status = os.waitpid(place.pid, os.WNOHANG)
        except ChildProcessError:
            return -1
        if pid == 0:
            return None
        return os.waitstatus_to_exitcode(status)

    def _start(self, place: ProcessPlace) -> None:
        place.pid, place.started_s = fork(lambda: self._be(place)), time.monotonic()

    def _be(self, place: ProcessPlace) -> None:
        os.close(self._our_end)
        self._let_go()
        # Ctrl-C is for the parent, which then stops us in order.
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        name_process(place.name)
        descriptor = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if place is not self.places[0]:
            os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
        follow(self._life)
        place.body()


def follow(descriptor: int) -> None:
    """End this process as soon as the other end of a pipe is closed, which the parent's end does."""

    def wait() -> None:
        while os.read(descriptor, 1):
            pass
        # Not a warm stop: nothing is left to wait for it, and what is not acknowledged is handed out again.
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="follow-parent", daemon=True).start()
