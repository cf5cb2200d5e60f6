"""Where the work of the lanes `ask` and `make` is done: one child process a lane and worker, held to limits.

The worker itself only looks on: it claims a job whose turn it is (`clusters.jobs`), hands it to the child, renews the
claim, and ends the child when the job is cancelled, stuck, or over its limits. So nothing that is asked for can fill
the worker, and the end of a child is the end of one turn of one job. The child stays for the next job, as it has
engines in memory that take long to load; it ends when it has been idle for long, and with its worker at once.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import select
import signal
import threading
import time
from contextlib import suppress
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connections,
)

from playground.clusters import jobs, lanes
from playground.clusters.lanes import LaneLimits
from playground.clusters.models import Job
from playground.engine import limits as process_limits
from playground.play.failures import count_failure
from playground.play.fork_server import Child, ForkServer, ServerGone
from playground.play.processes import is_stopped

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
IDLE_S: Final = 300.0
"""A child that had nothing to do for so long ends, and gives back its memory."""
WATCH_EVERY_S: Final = 0.5
"""Whatever the child is at, work that is cancelled is ended so soon."""
RENEW_EVERY_S: Final = 1.0
DONE, MORE, ENDED = "done", "more", "ended"


class Room:
    """One lane's place in a worker: a thread that looks on, and its child.

    To be made before the worker has threads or connections (`fork_server`).

    Parameters
    ----------
    lane
        ``ask`` or ``make``.
    limits
        Of one turn.

    Attributes
    ----------
    ticked_s
        When the thread last went round, in monotonic seconds (`watch`).
    """

    def __init__(self, lane: str, limits: LaneLimits | None = None) -> None:
        self.lane = lane
        self.limits = limits or settings.PLAYGROUND_LANE_LIMITS[lane]
        self.ticked_s = time.monotonic()
        self.child: Child | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._forks = ForkServer(lane, _be_child)

    def start(self) -> None:
        if self._thread is not None:
            self._thread.join()
        self.ticked_s = time.monotonic()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._stay, name=f"room-{self.lane}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End at once; the job under way waits for its next turn elsewhere."""
        self._stopping.set()
        jobs.POKES[self.lane].set()
        if self._thread is not None:
            self._thread.join(5)

    def close(self) -> None:
        """Stop for good: nothing can be started any more."""
        self.stop()
        self._forks.stop()

    @property
    def alive(self) -> bool:
        """Whether it looks on; it does not any more when it cannot start children, which only a new worker can."""
        return self._thread is not None and self._thread.is_alive()

    def _stay(self) -> None:
        poke = jobs.POKES[self.lane]
        while not self._stopping.is_set():
            self.ticked_s = time.monotonic()
            try:
                close_old_connections()
                worked = self.work_once()
            except ServerGone as error:
                logger.error("lane %s: %s", self.lane, error)
                break
            except DatabaseError as error:
                logger.warning("lane %s: %s: %s", self.lane, type(error).__name__, error)
                connections.close_all()
                worked = False
            except Exception:
                logger.exception("lane %s", self.lane)
                worked = False
            if not worked:
                self._dismiss_idle()
                poke.wait(LOOK_EVERY_S)
                poke.clear()
        self._dismiss()
        connections.close_all()

    def work_once(self) -> bool:
        """Give one job a turn; False when none is waiting."""
        job = jobs.claim(self.lane)
        if job is None:
            return False
        began_s = time.monotonic()
        try:
            child = self._child()
        except ServerGone:
            jobs.give_back(job)
            raise
        try:
            os.write(child.asks, json.dumps({"task": job.task, "params": job.params}).encode() + b"\n")
            answer = self._look_on(job, child, began_s)
        except OSError:
            answer = {"state": "died"}
        self._settle(job, answer)
        return True

    def _look_on(self, job: Job, child: Child, began_s: float) -> dict[str, Any]:
        """What the child says when the turn is over, or why it was ended."""
        heard = b""
        renewed_s = 0.0
        while True:
            readable, _, _ = select.select([child.tells], [], [], WATCH_EVERY_S)
            now_s = self.ticked_s = time.monotonic()
            if readable:
                part = os.read(child.tells, 65536)
                if not part:
                    return {"state": "died"}
                heard += part
                if heard.endswith(b"\n"):
                    answer: dict[str, Any] = json.loads(heard)
                    return answer
            if self._stopping.is_set():
                return {"state": "stopped"}
            if is_stopped(child.pid):
                return {"state": "died"}
            if now_s - began_s > self.limits.wall_s:
                why = f"it was ended after {self.limits.wall_s:,} s, the most that one piece of work may take"
                return {"state": ENDED, "why": why, "kill": True}
            with suppress(DatabaseError):  # the claim lasts longer than a short absence
                if now_s - renewed_s < RENEW_EVERY_S:
                    goes_on = jobs.is_wanted(job)
                else:
                    renewed_s, goes_on = now_s, jobs.renew(job)
                if not goes_on:
                    return {"state": "unwanted"}

    def _settle(self, job: Job, answer: dict[str, Any]) -> None:
        state = answer["state"]
        if state in ("died", "stopped", "unwanted") or answer.get("kill"):
            self._dismiss()
        elif self.child is not None:
            self.child.idle_since_s = time.monotonic()
        match state:
            case "done":
                jobs.finish(job)
            case "more":
                jobs.give_back(job, after_s=float(answer.get("after_s") or 0.0))
            case "ended":
                jobs.give_up(job, f"The work was ended: {answer['why']}.")
                if answer.get("leaves"):
                    self._dismiss()
            case "unwanted":
                jobs.finish(job)
            case "stopped":
                jobs.give_back(job)
            case _ if job.deaths + 1 >= lanes.MOST_DEATHS:
                count_failure(job.task)
                jobs.give_up(job, f"The work was ended: its process died {lanes.MOST_DEATHS} times.")
            case _:
                logger.warning("lane %s: the process of %s died", self.lane, job)
                jobs.give_back(job, died=True)

    # ---- the child

    def _child(self) -> Child:
        if self.child is not None and self.child.has_ended:
            self._dismiss()
        if self.child is None:
            self.child = self._forks.start(self.limits)
        return self.child

    def _dismiss_idle(self) -> None:
        if self.child is not None and time.monotonic() - self.child.idle_since_s > IDLE_S:
            self._dismiss()

    def _dismiss(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            self._forks.end(child)


def _be_child(asked: int, told: int, limits: LaneLimits) -> None:
    """Do jobs one after the other until the worker is gone."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    current_app._after_fork()
    process_limits.step_back()
    process_limits.limit_memory(limits.memory_bytes)
    wanted: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        with os.fdopen(asked, "rb") as lines:
            for line in lines:
                wanted.put(line)
        with suppress(OSError):
            os.killpg(0, signal.SIGKILL)  # the worker is gone: so are we and what we started

    threading.Thread(target=read, name="jobs", daemon=True).start()
    while True:
        request = json.loads(wanted.get())
        answer = do(request["task"], request["params"], limits)
        connections.close_all()
        os.write(told, json.dumps(answer).encode() + b"\n")


def do(task: str, params: dict[str, Any], limits: LaneLimits) -> dict[str, Any]:
    """Run a task to its end or to the end of its turn, within the limits.

    A task returns None when it is done, True when more is left, or the seconds after which it wants to go on.
    """
    process_limits.limit_processor_time(limits.processor_s)
    try:
        left = current_app.tasks[task](**params)
    except process_limits.OutOfProcessorTime:
        return {"state": ENDED, "why": process_limits.words_of_time(), "leaves": True}
    except MemoryError:
        return {"state": ENDED, "why": process_limits.words_of_memory(), "leaves": True}
    except (OperationalError, InterfaceError) as error:
        logger.warning("%s: %s: %s", task, type(error).__name__, error)
        return {"state": MORE, "after_s": 2.0}
    except Exception as error:
        logger.exception("%s failed", task)
        count_failure(task)
        return {"state": ENDED, "why": f"{type(error).__name__}: {error}"[:500]}
    if left is None or left is False:
        return {"state": DONE}
    return {"state": MORE, "after_s": 0.0 if left is True else float(left)}
