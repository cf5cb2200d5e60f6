"""A process of which children are forked: one thread, no connection to a database or broker, ever.

A worker has threads that use the database, and a child that is forked of it while one of them is within a call has
locks whose holders do not exist: SQLite would tell it "database is locked" for as long as it lives, libpq would hang.
So the worker forks one process before it has any, and that one forks all children.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from django.db import connections

from playground.clusters.lanes import LaneLimits
from playground.play.processes import end, end_with_parent_alone, fork, name_process

ANSWER_S: Final = 15.0
"""A fork takes milliseconds; a server that does not answer for so long was stopped."""

Body = Callable[[int, int, LaneLimits], None]
"""What a child does, with the descriptors that it is asked and tells on, and its limits."""


class ServerGone(Exception):
    """Nothing can be forked any more: the worker has to begin anew."""


@dataclass(slots=True)
class Child:
    """A process that works; both pipes end with either of us."""

    pid: int
    asks: int
    """Descriptor we write jobs to, one JSON document a line."""
    tells: int
    """Descriptor it answers on."""
    idle_since_s: float = 0.0

    def tells_within(self, seconds: float) -> bool:
        """Whether it has something to tell by then, if only its end."""
        return bool(select.select([self.tells], [], [], seconds)[0])


class ForkServer:
    """Our end of the process that forks, which begins at once and ends with us.

    Parameters
    ----------
    name
        Of its children, as `ps` shows them.
    body
        What a child does; it ends when this returns.
    """

    def __init__(self, name: str, body: Body) -> None:
        connections.close_all()
        self._link, its_end = socket.socketpair()
        self.pid = fork(lambda: _serve(its_end, self._link, name, body))
        its_end.close()
        self._link.settimeout(ANSWER_S)

    def start(self, limits: LaneLimits) -> Child:
        """Fork a child.

        Raises
        ------
        ServerGone
            The server ended or stands still.
        """
        asked, asks = os.pipe()
        tells, told = os.pipe()
        try:
            answer = self._ask({"limits": asdict(limits)}, [asked, told])
        except ServerGone:
            os.close(asks)
            os.close(tells)
            raise
        finally:
            os.close(asked)
            os.close(told)
        return Child(answer["pid"], asks, tells, time.monotonic())

    def end(self, child: Child) -> None:
        """Kill a child, with the processes it started."""
        os.close(child.asks)
        os.close(child.tells)
        # Its parent does it, so that the number cannot be another process's by now.
        with suppress(ServerGone):
            self._ask({"end": child.pid}, [])

    def stop(self) -> None:
        """End the server and its children."""
        self._link.close()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _ask(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        try:
            socket.send_fds(self._link, [json.dumps(request).encode()], descriptors)
            answer = self._link.recv(4096)
        except OSError as error:
            raise ServerGone(str(error)) from error
        if not answer:
            raise ServerGone("the process of which children are forked has ended")
        told: dict[str, Any] = json.loads(answer)
        return told


def _serve(link: socket.socket, workers_end: socket.socket, name: str, body: Body) -> None:
    """Fork and end children until the worker is gone."""
    workers_end.close()
    os.setpgid(0, 0)
    name_process(f"{name}-forks")
    end_with_parent_alone()
    gc.freeze()  # Pages with what is here already stay shared with every child.
    running: set[int] = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(link, 4096, 2)
        if not message:
            break
        request = json.loads(message)
        if "end" in request:
            end(request["end"], group=True)
            running.discard(request["end"])
            link.send(b"{}")
            continue
        asked, told = descriptors
        pid = fork(partial(_work, link, name, partial(body, asked, told, LaneLimits(**request["limits"]))))
        running.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        link.send(json.dumps({"pid": pid}).encode())
    for pid in running:
        end(pid, group=True)


def _work(link: socket.socket, name: str, body: Callable[[], None]) -> None:
    link.close()
    os.setpgid(0, 0)
    name_process(f"{name}-child")
    body()
