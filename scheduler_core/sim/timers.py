"""What will happen later in the simulated cluster, in order of time, then of asking."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple

RECURRING = frozenset((
    "autoscaler-syncs", "cluster-autoscaler-loops", "descheduler-cycles", "karpenter-loops",
    "vertical-pod-autoscaler-looks", "node-load", "node-restarts",
))  # fmt: skip
"""Errands that come again and again for as long as their object is there: nothing is ever idle that waits for them."""


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
    """A heap of timers, at most one for the same errand: setting it again replaces it."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._set: dict[tuple[str, ...], Timer] = {}
        self._aside: dict[tuple[str, ...], None] = {}
        """Errands of `_set` that recur: they hold nothing up."""
        self._n_asked = 0

    def __len__(self) -> int:
        return len(self._set)

    @property
    def any_awaited(self) -> bool:
        """Whether one is set that a cluster is not idle before."""
        return len(self._set) > len(self._aside)

    def add(self, at_ns: int, what: str, *subject: str) -> None:
        """Set a timer."""
        self._n_asked += 1
        timer = Timer(at_ns, self._n_asked, what, subject)
        errand = (what, *subject)
        if what in RECURRING:
            self._aside[errand] = None
        replaces = errand in self._set
        self._set[errand] = timer
        heapq.heappush(self._heap, timer)
        if replaces:
            self._drop_cancelled()

    def is_set(self, what: str, *subject: str) -> bool:
        return (what, *subject) in self._set

    def cancel(self, what: str, *subject: str) -> None:
        """It will not come; nothing happens when there is none."""
        if self._set.pop((what, *subject), None) is None:
            return
        self._aside.pop((what, *subject), None)
        if len(self._heap) > 2 * len(self._set) + 64:
            # Cancelled ones stay in the heap until they come up; not so many that it grows without bound.
            self._heap = sorted(self._set.values())
        else:
            self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        """Keep true that the first of the heap is to come: it is looked at several times a cycle."""
        heap = self._heap
        while heap and self._set.get((heap[0].what, *heap[0].subject)) is not heap[0]:
            heapq.heappop(heap)

    def next(self) -> Timer | None:
        return self._heap[0] if self._heap else None

    def pop_due(self, now_ns: int) -> Timer | None:
        """The first timer whose time has come."""
        if not self._heap or self._heap[0].at_ns > now_ns:
            return None
        timer = heapq.heappop(self._heap)
        del self._set[(timer.what, *timer.subject)]
        self._aside.pop((timer.what, *timer.subject), None)
        self._drop_cancelled()
        return timer

    def all(self) -> list[Timer]:
        """In the order in which they come."""
        return sorted(self._set.values())

    def state(self) -> dict[str, Any]:
        timers = [[*timer[:3], list(timer.subject)] for timer in self.all()]
        return {"asked": self._n_asked, "timers": timers}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._n_asked = state["asked"]
        self._heap = [
            Timer(at_ns, order, what, tuple(subject)) for at_ns, order, what, subject in state["timers"]
        ]
        self._set = {(timer.what, *timer.subject): timer for timer in self._heap}
        self._aside = {errand: None for errand in self._set if errand[0] in RECURRING}
