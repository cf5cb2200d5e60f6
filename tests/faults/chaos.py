"""Faults that come at any time: what a kernel, a network, a broker and a clock do to a site."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.extender import Extender
from tests.faults.points import STEPS
from tests.faults.site import Site

KINDS = (
    "killed at a step",
    "connection cut",
    "killed at any time",
    "stopped and continued",
    "extender misbehaves",
    "messages lost",
    "messages doubled",
    "broker lost",
    "clocks differ",
)


@dataclass(frozen=True)
class Means:
    """What can be done to the servers of a site.

    Attributes
    ----------
    lose_broker
        End the broker and all its messages; it is there again at once.
    lose_messages
        Drop what waits.
    cut_connections
        Cut every connection to the database from its side; None where there is no server.
    """

    lose_broker: Callable[[], None]
    lose_messages: Callable[[], None]
    cut_connections: Callable[[], None] | None


class Chaos:
    """Does what the kinds of a round say, until it is told to stop."""

    def __init__(
        self,
        site: Site,
        means: Means,
        extender: Extender,
        kinds: set[str],
        dice: random.Random,
        done: Counter[str],
    ) -> None:
        self._site, self._means, self._extender = site, means, extender
        self._kinds, self._dice, self._done = kinds, dice, done
        self._stopped: list[tuple[float, int]] = []
        # Three deaths of a cluster's workers in a row would rightly park it.
        self._left = dict.fromkeys(KINDS, 2) | {"messages doubled": 20, "messages lost": 10}

    def begin(self) -> None:
        dice = self._dice
        self._extender.misbehaves = "extender misbehaves" in self._kinds
        if "clocks differ" in self._kinds:
            self._note("clocks differ")
            self._site.tell("clocks", dice.choice([[0.0, 40.0, -40.0], [-7200.0, 7200.0], [3.0, -3.0, 0.0]]))
        for kind, how in (("killed at a step", "kill"), ("connection cut", "cut")):
            if kind in self._kinds:
                for _ in range(2):
                    self._order(kind, how)

    def go_on(self, cluster_pks: list[int]) -> None:
        """A moment's worth of faults."""
        dice = self._dice
        for due_s, pid in list(self._stopped):
            if time.monotonic() >= due_s:
                self._stopped.remove((due_s, pid))
                _signal(pid, signal.SIGCONT)
        if self._may("killed at any time", 0.06):
            self._kill(signal.SIGKILL)
        if self._may("stopped and continued", 0.06):
            pid = self._kill(signal.SIGSTOP)
            if pid:
                # Longer than a second is taken for an end by the embedded supervisor, and not by a team's.
                self._stopped.append((time.monotonic() + dice.choice([0.2, 0.6, 1.6]), pid))
        if self._may("connection cut", 0.05) and self._means.cut_connections is not None:
            self._means.cut_connections()
        if self._may("broker lost", 0.04):
            self._means.lose_broker()
        if self._may("messages lost", 0.15):
            with contextlib.suppress(Exception):  # the broker may be away as well
                self._means.lose_messages()
        if self._may("messages doubled", 0.4):
            from playground.clusters import wake

            for _ in range(dice.randint(1, 5)):
                countdown_s = dice.choice([None, None, 0.05, 0.3])
                wake.send("advance", countdown_s=countdown_s, cluster_id=dice.choice(cluster_pks))

    def end(self) -> None:
        """No fault is left but those that were done."""
        for _, pid in self._stopped:
            _signal(pid, signal.SIGCONT)
        for step in STEPS:
            self._site.withdraw(f"before.{step}")
            self._site.withdraw(f"after.{step}")
        self._site.tell("clocks", None)
        self._extender.misbehaves = False

    def unheard(self, ask: Callable[[], None]) -> None:
        """Ask for something whose messages are lost, if any may be: those that take them stand still meanwhile."""
        if "messages lost" not in self._kinds:
            ask()
            return
        self._note("messages lost at the end")
        deciding = [pid for pid, name in self._site.processes().items() if name.startswith("decide")]

        def go_on() -> None:
            for pid in deciding:
                _signal(pid, signal.SIGCONT)

        for pid in deciding:
            _signal(pid, signal.SIGSTOP)
        # Not for longer than this: one of them may hold the lock that the request waits for.
        latest = threading.Timer(0.8, go_on)
        latest.start()
        try:
            ask()
            with contextlib.suppress(Exception):
                self._means.lose_messages()
        finally:
            latest.cancel()
            go_on()

    def _may(self, kind: str, chance: float) -> bool:
        if kind not in self._kinds or not self._left[kind] or self._dice.random() > chance:
            return False
        self._left[kind] -= 1
        self._note(kind)
        return True

    def _note(self, kind: str) -> None:
        self._done[kind] += 1

    def _order(self, kind: str, how: str) -> None:
        place = f"{self._dice.choice(['before', 'after'])}.{self._dice.choice(list(STEPS))}"
        self._site.order(place, how)
        self._done[f"{kind}: {place}"] += 1

    def _kill(self, number: signal.Signals) -> int:
        found = sorted(self._site.processes().items())
        if not found:
            return 0
        pid, name = self._dice.choice(found)
        self._done[f"{number.name} {name}"] += 1
        return pid if _signal(pid, number) else 0


def _signal(pid: int, number: Any) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
