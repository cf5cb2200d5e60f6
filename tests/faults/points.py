"""In the site's processes: one that passes a step it was told of suffers there what the order says.

An order is a file named ``before.<step>`` or ``after.<step>``, which the first process that comes by takes away. So any
process may be hit, also those that did not live yet when the order was given, and nothing in the code knows of it.
"""

import faulthandler
import json
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.tables import table

LONGEST_STALL_S = 40.0
WHERE = signal.SIGRTMIN + 5
"""Has a process write to its log where it stands."""
_CLUSTERS = "playground.clusters."
STEPS = table(__file__, "STEPS")
"""Every step between a request and the rows that come of it: of the web process, of those that decide, and of work."""


def install(folder: Path) -> None:
    """Watch the steps of this process and of those it forks; orders lie in the folder."""
    faulthandler.register(WHERE, all_threads=True)
    for step, path in STEPS.items():
        place, _, name = path.rpartition(".")
        owner = _owner(place)
        setattr(owner, name, _watched(getattr(owner, name), step, folder))
    _small_visits(folder)
    _wrong_clocks(folder)
    # A lease that was lost is noticed by the next call, not by the first one five seconds later.
    import_module(f"{_CLUSTERS}drive.extender_calls").RENEW_EVERY_S = 0.0  # type: ignore[attr-defined]


def _owner(place: str) -> Any:
    try:
        return import_module(place)
    except ModuleNotFoundError:
        module, _, name = place.rpartition(".")
        return getattr(import_module(module), name)


def _watched(call: Callable[..., Any], step: str, folder: Path) -> Callable[..., Any]:
    before, after = folder / f"before.{step}", folder / f"after.{step}"

    def watched(*given: Any, **named: Any) -> Any:
        stalled = _pass(before, given)
        try:
            result = call(*given, **named)
        except BaseException as error:
            if stalled is not None:
                stalled.write_text(type(error).__name__)
            raise
        if stalled is not None:
            stalled.write_text("returned")
        _pass(after, given)
        return result

    return watched


def _pass(order: Path, given: tuple[Any, ...]) -> Path | None:
    """Obey the order if there is one for this call; where to say how the call ended, if it was stalled before it."""
    if not order.exists():
        return None
    taken = order.with_name(f"taken.{order.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        wanted = json.loads(order.read_text())
        if wanted.get("cluster") and wanted["cluster"] not in _clusters(given):
            return None
        order.rename(taken)
    except (OSError, ValueError):
        return None  # another process took it
    if wanted["how"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if wanted["how"] == "cut":
        _cut()
    until_s = time.monotonic() + LONGEST_STALL_S
    while taken.exists() and time.monotonic() < until_s:
        time.sleep(0.01)
    return taken.with_name(taken.name.replace("taken.", "ended.", 1))


def _clusters(given: tuple[Any, ...]) -> list[int]:
    return [item.cluster_id for item in given[:1] if hasattr(item, "cluster_id")]


def _cut() -> None:
    from django.db import OperationalError, connection

    if connection.vendor == "sqlite":
        connection.close()  # a file cannot be cut off, and no process would notice that its handle is closed
    elif connection.connection is not None:
        connection.connection.close()
    raise OperationalError("server closed the connection unexpectedly")


def _small_visits(folder: Path) -> None:
    """Visits of few batches, each of few cycles, where the folder says so: many commits to be hit in."""
    from playground.clusters.drive import turns
    from playground.clusters.drive.advance import Visit
    from playground.engine.batch import Budget

    usual = turns.fair_visit

    def fair_visit(n_busy: int) -> Visit:
        try:
            max_cycles = int((folder / "max-cycles").read_text())
        except (OSError, ValueError):
            return usual(n_busy)
        return Visit(wall_s=0.3, batch=Budget(wall_s=10, max_cycles=max_cycles))

    turns.fair_visit = fair_visit


def _wrong_clocks(folder: Path) -> None:
    """Processes whose wall clocks are ahead or behind by as many seconds as the folder says, each by its own."""
    from playground.clusters import clock

    true_now = clock.wall_now

    def wall_now() -> Any:
        try:
            ahead_s = json.loads((folder / "clocks").read_text())
        except (OSError, ValueError):
            return true_now()
        return true_now() + timedelta(seconds=ahead_s[os.getpid() % len(ahead_s)])

    rooms = import_module("playground.play.rooms")
    rooms.take_turn = partial(rooms.take_turn, now=wall_now)  # type: ignore[attr-defined]
