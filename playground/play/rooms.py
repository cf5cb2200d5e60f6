"""Where the work of a lane is done: one child process a lane and worker, started again whenever it ends.

The worker itself only looks on. Of `ask` and `make` it claims a job whose turn it is (`clusters.jobs`), hands it to the
child, renews the claim, and ends the child when the job is cancelled, stuck, or over its limits. So nothing that is
asked for can fill the worker, and the end of a child is the end of one turn of one job. The child stays for the next
job, as it has engines in memory that take long to load; it ends when it has been idle for long, and with its worker at
once. The child of `decide` finds its work itself (`services.take_turn`), and ends after the visit it is at.
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
from functools import partial
from typing import Any, Final

from celery import current_app, shared_task
from django.conf import settings
from django.db import (
    DatabaseError,
    Error,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connections,
)

from playground.clusters import jobs, lanes
from playground.clusters.drive.turns import take_turn
from playground.clusters.jobs import Signs
from playground.clusters.lanes import LaneLimits
from playground.clusters.metrics import Counts
from playground.clusters.models import Job
from playground.engine import limits as process_limits
from playground.play.fork_server import Body, Child, ForkServer, ServerGone
from playground.play.processes import end_with_parent_alone, is_stopped

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
TEND_EVERY_S: Final = 0.5
"""So often the worker sees to the child that decides."""
AGAIN_S: Final = 0.5
"""A child that decides and cannot, as the database is away, tries again after so long."""
FAREWELL_S: Final = 3.0
"""A visit that is under way when the worker ends has so long; what is not committed then is decided again."""
IDLE_S: Final = 300.0
"""A child that had nothing to do for so long ends, and gives back its memory."""
WATCH_EVERY_S: Final = 0.5
"""Whatever the child is at, work that is cancelled is ended so soon."""
RENEW_EVERY_S: Final = 1.0
DONE, MORE, ENDED = "done", "more", "ended"
ENOUGH: Final = b"."
NO_LIMITS: Final = LaneLimits(0, 0, 0)
"""Of the child that decides: its visits and batches have bounds, each plugin and extender has its own."""


@shared_task(name=lanes.LOOK)
def look(*, lane: str) -> None:
    """Have this worker's room look for work. Safe to run twice, or never: rooms look every few moments anyway."""
    jobs.POKES[lane].set()


class LanePlace:
    """One lane's place in a worker: a thread that looks on, and its child.

    To be made before the worker has threads or connections (`fork_server`).

    Parameters
    ----------
    lane
        Whose work is done here.
    body
        What the child does.
    limits
        Of one turn.

    Attributes
    ----------
    ticked_s
        When the thread last went round, in monotonic seconds (`watch`).
    """

    look_every_s = LOOK_EVERY_S

    def __init__(self, lane: str, body: Body, limits: LaneLimits) -> None:
        self.lane = lane
        self.limits = limits
        self.ticked_s = time.monotonic()
        self.child: Child | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        jobs.load()
        self._forks = ForkServer(lane, body)

    def start(self) -> None:
        self.ticked_s = time.monotonic()
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
                poke.wait(self.look_every_s)
                poke.clear()
        self._farewell()
        connections.close_all()

    def work_once(self) -> bool:
        """Look on once; False when there is nothing to do now."""
        raise NotImplementedError

    def _child(self) -> Child:
        if self.child is not None and self.child.tells_within(0):  # with nothing to do it tells its end alone
            self._dismiss()
        if self.child is None:
            self.child = self._forks.start(self.limits)
        return self.child

    def _dismiss_idle(self) -> None:
        if self.child is not None and time.monotonic() - self.child.idle_since_s > IDLE_S:
            self._dismiss()

    def _farewell(self) -> None:
        self._dismiss()

    def _dismiss(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            self._forks.end(child)


class Room(LanePlace):
    """A place for jobs of the lanes ``ask`` and ``make``; `sign` says that it goes round (`services.pulses`)."""

    def __init__(self, lane: str, limits: LaneLimits | None = None, worker: str = "") -> None:
        super().__init__(lane, _be_child, limits or settings.PLAYGROUND_LANE_LIMITS[lane])
        self.signs = Signs(lane, worker)
        self._adopts_at_s = 0.0

    def _farewell(self) -> None:
        self._dismiss()
        with suppress(DatabaseError):
            self.signs.forget()

    def work_once(self) -> bool:
        """Give one job a turn; False when none is waiting."""
        self.signs.sign()
        if self.lane == lanes.ASK and time.monotonic() >= self._adopts_at_s:
            jobs.adopt()
            self._adopts_at_s = time.monotonic() + lanes.SIGN_EVERY_S
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
                self.signs.sign()
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


class Deciding(LanePlace):
    """A place for cycles: sees that a child decides, and that it goes round."""

    look_every_s = TEND_EVERY_S

    def __init__(self, worker: str = "") -> None:
        super().__init__(lanes.DECIDE, partial(_be_deciding, Signs(lanes.DECIDE, worker)), NO_LIMITS)

    def work_once(self) -> bool:
        """Have the child look; one that ended, or was at one thing for too long, is replaced."""
        if self.child is not None and not self._goes_round(self.child):
            self._dismiss()
        if self.child is None:
            self.child = self._forks.start(self.limits)
            os.set_blocking(self.child.asks, False)
        with suppress(OSError):
            os.write(self.child.asks, b"\n")
        return False

    def _goes_round(self, child: Child) -> bool:
        now_s = time.monotonic()
        if child.tells_within(0):
            if not os.read(child.tells, 65536):
                logger.error("the process that decides ended; it is started again")
                return False
            child.idle_since_s = now_s
        if now_s - child.idle_since_s > lanes.STUCK_S:
            logger.error("the process that decides was at one thing for %g s; it is replaced", lanes.STUCK_S)
            return False
        return True

    def _dismiss_idle(self) -> None:
        pass

    def _farewell(self) -> None:
        if self.child is not None:
            with suppress(OSError):
                os.write(self.child.asks, ENOUGH)
            until_s = time.monotonic() + FAREWELL_S
            while (left_s := until_s - time.monotonic()) > 0 and self.child.tells_within(left_s):
                if not os.read(self.child.tells, 65536):
                    break
        self._dismiss()


def _be_deciding(signs: Signs, asked: int, told: int, limits: LaneLimits) -> None:
    """Drive the clusters whose turn it is until the worker is gone: in the main thread, for plugins' limits of time."""
    end_with_parent_alone()
    current_app._after_fork()
    poked, ending = threading.Event(), threading.Event()

    def read() -> None:
        while (asking := os.read(asked, 4096)) and ENOUGH not in asking:
            poked.set()
        ending.set()
        poked.set()

    os.set_blocking(told, False)
    threading.Thread(target=read, name="look", daemon=True).start()
    while not ending.is_set():
        poked.clear()
        pause_s = decide_once(signs)
        with suppress(OSError):
            os.write(told, b".")
        if pause_s:
            poked.wait(pause_s)
    with suppress(DatabaseError):
        signs.forget()


def decide_once(signs: Signs) -> float:
    """Take one turn; the seconds after which to look again."""
    try:
        close_old_connections()
        signs.sign()
        report = take_turn()
        signs.sign()
        return report.pause_s
    except DatabaseError as error:
        logger.warning("lane decide: %s: %s", type(error).__name__, error)
        connections.close_all()
    except Exception:
        logger.exception("lane decide")
        count_failure("advance")
    return AGAIN_S


def _be_child(asked: int, told: int, limits: LaneLimits) -> None:
    """Do jobs one after the other until the worker is gone."""
    end_with_parent_alone()
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

    Returns how that turn ended: `jobs.Task.do` says whether more is left.
    """
    process_limits.limit_processor_time(limits.processor_s)
    try:
        left = jobs.TASKS[task].do(**params)
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


FAILURES = "playground_task_failures_total"


def count_failure(task: str) -> None:
    """Add one to the task's failures; a database that is away must not make one failure two."""
    try:
        counts = Counts()
        counts.add(FAILURES, task=task)
        counts.flush()
    except Error as error:
        logger.warning("the failure of %s is not counted: %s: %s", task, type(error).__name__, error)
