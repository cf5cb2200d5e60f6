"""A Celery worker that dies, or fails, where it is told to."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Orders:
    """What a worker is to suffer.

    Attributes
    ----------
    at
        One of `POINTS` with ``before`` or ``after``, e.g. ``before LogWriter.flush``; empty for nowhere.
    nth
        At which passage.
    how
        ``kill`` (SIGKILL, as kill -9 sends it) or ``cut`` (the database connection is gone).
    ahead_s
        How far the wall clock is ahead of the true one; below zero it went back.
    max_cycles
        Bound of a batch.
    """

    at: str = ""
    nth: int = 1
    how: str = "kill"
    ahead_s: float = 0.0
    max_cycles: int = 3

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


POINTS = (
    "leases.claim",
    "advance.load",
    "Engine.drive",
    "advance.commit_batch",
    "commit.locked",
    "commit._fold",
    "LogWriter.flush",
    "commit._keep_checkpoint",
    "commit._keep_queue",
    "commit._move_run",
    "leases.release",
    "wake.send",
)
"""Every step between taking a task and being done with it."""


def run(orders: Orders) -> None:
    """Be a worker until killed."""
    from django.db import connections

    from playground.celery import app

    connections.close_all()
    logging.disable(logging.NOTSET)
    obey(orders)
    # A pool of its own would make this process the parent of the one that works.
    app.Worker(
        pool="solo",
        concurrency=1,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="ERROR",
        hostname=f"faults-{os.getpid()}@localhost",
    ).start()


def obey(orders: Orders) -> None:
    """Change this process so that it suffers what is ordered."""
    from playground.clusters import clock, services, wake
    from playground.clusters.services import commit, lease, turns
    from playground.clusters.services.writer import LogWriter
    from playground.engine import Budget, Engine

    advance = import_module("playground.clusters.services.advance")  # the package exports its function
    places = {
        "leases": lease,
        "advance": advance,
        "commit": commit,
        "LogWriter": LogWriter,
        "Engine": Engine,
        "wake": wake,
    }
    if orders.ahead_s:
        true_now = clock.wall_now
        services.take_turn = partial(  # type: ignore[assignment]
            services.take_turn, now=lambda: true_now() + timedelta(seconds=orders.ahead_s)
        )
    # A visit of few batches, each of few cycles: many commits to be killed in.
    visit = advance.Visit(wall_s=0.2, batch=Budget(wall_s=10, max_cycles=orders.max_cycles))
    turns.fair_visit = lambda n_busy: visit  # type: ignore[assignment]
    if not orders.at:
        return
    when, _, point = orders.at.partition(" ")
    place, _, name = point.partition(".")
    owner: Any = places[place]
    suffer = _Suffer(orders)
    setattr(owner, name, _wrapped(getattr(owner, name), when, suffer))


class _Suffer:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._passages = 0

    def __call__(self) -> None:
        self._passages += 1
        if self._passages != self._orders.nth:
            return
        if self._orders.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        from django.db import OperationalError, connection

        if connection.vendor == "sqlite":
            connection.close()  # a file cannot be cut off, and nobody would notice that its handle is closed
        elif connection.connection is not None:
            connection.connection.close()
        raise OperationalError("server closed the connection unexpectedly")


def _wrapped(call: Callable[..., Any], when: str, suffer: Callable[[], None]) -> Callable[..., Any]:
    def wrapped(*given: Any, **named: Any) -> Any:
        if when == "before":
            suffer()
        result = call(*given, **named)
        if when == "after":
            suffer()
        return result

    return wrapped
