"""What will happen later in the simulated cluster, in order of time, then of asking."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple


class Timer(NamedTuple):
    """One thing to come.

    Attributes
    ----------
    at_ns : int
    order : int
        Breaks ties: first asked, first done.
    what : str
        Who is to be called: `pod-starts`, `pod-ends`, ... (`sim.kubelet`, `sim.controllers`).
    subject : tuple of str
        JSON-able arguments.
    """

    at_ns: int
    order: int
    what: str
    subject: tuple[str, ...]


class Timers:
    """A heap of timers. They are not cancelled: whoever is called looks whether it still matters."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._n_asked = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at_ns: int, what: str, *subject: str) -> None:
        self._n_asked += 1
        heapq.heappush(self._heap, Timer(at_ns, self._n_asked, what, subject))

    def next(self) -> Timer | None:
        return self._heap[0] if self._heap else None

    def pop_due(self, now_ns: int) -> Timer | None:
        """The first timer whose time has come."""
        if self._heap and self._heap[0].at_ns <= now_ns:
            return heapq.heappop(self._heap)
        return None

    def state(self) -> dict[str, Any]:
        return {"asked": self._n_asked, "timers": [[*timer[:3], list(timer.subject)] for timer in sorted(self._heap)]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._n_asked = state["asked"]
        self._heap = [
            Timer(at_ns, order, what, tuple(subject)) for at_ns, order, what, subject in state["timers"]
        ]
        heapq.heapify(self._heap)
