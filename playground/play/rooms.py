"""Where the work of the lanes `ask` and `make` is done: one child process a lane and worker, held to limits.

The worker itself only looks on: it claims a job whose turn it is (`clusters.jobs`), hands it to the child, renews the
claim, and ends the child when the job is cancelled, stuck, or over its limits. So nothing that is asked for can fill
the worker, and the end of a child is the end of one turn of one job. The child stays for the next job, as it has
engines in memory that take long to load; it ends when it has been idle for long, and with its worker at once.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
)

from playground.clusters import jobs, lanes
from playground.clusters.lanes import Limits
from playground.clusters.models import Job
from playground.engine import limits as process_limits
from playground.play.failures import count_failure
from playground.play.processes import is_stopped, name_process

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 2.0
IDLE_S: Final = 300.0
"""A child that had nothing to do for so long ends, and gives back its memory."""
BEGIN_S: Final = 15.0
"""A child that has not come to the database by then is stuck."""
BEGIN_TRIES: Final = 3
READY: Final = b"ready\n"
WATCH_EVERY_S: Final = 0.5
DONE, MORE, ENDED = "done", "more", "ended"


@dataclass(slots=True)
class Child:
    """A process that works; both pipes end with either of us."""

    pid: int
    asks: int
    """Descriptor we write jobs to, one JSON document a line."""
    tells: int
    """Descriptor it answers on."""
    idle_since_s: float = 0.0

    def end(self) -> None:
        """Kill it, with the processes it started, and wait for it."""
        for end in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        for descriptor in (self.asks, self.tells):
            with suppress(OSError):
                os.close(descriptor)


class Room:
    """One lane's place in a worker: a thread that looks on, and its child.

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

    def __init__(self, lane: str, limits: Limits | None = None) -> None:
        self.lane = lane
        self.limits = limits or settings.PLAYGROUND_LANE_LIMITS[lane]
        self.ticked_s = time.monotonic()
        self.child: Child | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._stay, name=f"room-{lane}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End at once; the job under way waits for its next turn elsewhere."""
        self._stopping.set()
        jobs.POKES[self.lane].set()
        self._thread.join(5)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _stay(self) -> None:
        poke = jobs.POKES[self.lane]
        while not self._stopping.is_set():
            self.ticked_s = time.monotonic()
            try:
                close_old_connections()
                worked = self.work_once()
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
            os.write(child.asks, json.dumps({"task": job.task, "params": job.params}).encode() + b"\n")
            answer = self._look_on(job, child, began_s)
        except OSError:
            answer = {"state": "died"}
        self._settle(job, answer)
        return True

    def _look_on(self, job: Job, child: Child, began_s: float) -> dict[str, Any]:
        """What the child says when the turn is over, or why it was ended."""
        heard = b""
        looked_s = 0.0
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
            if now_s - looked_s >= 1.0:
                looked_s = now_s
                with suppress(DatabaseError):  # the claim lasts longer than a short absence
                    if not jobs.renew(job):
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
        if self.child is not None and os.waitpid(self.child.pid, os.WNOHANG)[0] == 0:
            return self.child
        self.child = None
        # Sockets of the database must not be shared: whoever closes one first ends it for both.
        connections.close_all()
        self.child = start_child(self.lane, self.limits)
        return self.child

    def _dismiss_idle(self) -> None:
        if self.child is not None and time.monotonic() - self.child.idle_since_s > IDLE_S:
            self._dismiss()

    def _dismiss(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            child.end()


def start_child(lane: str, limits: Limits, body: Callable[[int, int, Limits], None] | None = None) -> Child:
    """Fork a child that works for a lane, and see that it can.

    Another thread of the worker may be within a call of the database's library as we fork, and the child then inherits
    a lock whose holder does not exist. So one that does not come to an answer is ended, and another is forked.

    Raises
    ------
    OSError
        None began.
    """
    for _ in range(BEGIN_TRIES):
        child = _forked(lane, limits, body or _be_child)
        readable, _, _ = select.select([child.tells], [], [], BEGIN_S)
        if readable and os.read(child.tells, len(READY)) == READY:
            return child
        child.end()
        logger.warning("lane %s: a child did not begin and was ended", lane)
    raise OSError(f"no child of the lane {lane} began")


def _forked(lane: str, limits: Limits, body: Callable[[int, int, Limits], None]) -> Child:
    asked, asks = os.pipe()
    tells, told = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    collects = gc.isenabled()
    gc.disable()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            # Connections of the worker's other threads are garbage here, and are better left than closed.
            gc.freeze()
            gc.enable()
            os.close(asks)
            os.close(tells)
            os.setpgid(0, 0)
            name_process(f"{lane}-child")
            _try_database()
            os.write(told, READY)
            body(asked, told, limits)
            code = 0
        except BaseException:
            logger.exception("lane %s: child ended", lane)
        finally:
            os._exit(code)
    if collects:
        gc.enable()
    os.close(asked)
    os.close(told)
    with suppress(OSError):
        os.setpgid(pid, pid)
    return Child(pid, asks, tells, time.monotonic())


def _try_database() -> None:
    """Come through the library's own locks; what the database says to it is not the question here."""
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    connections.close_all()


def _be_child(asked: int, told: int, limits: Limits) -> None:
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


def do(task: str, params: dict[str, Any], limits: Limits) -> dict[str, Any]:
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
