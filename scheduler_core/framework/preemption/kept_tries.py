"""What came of trying preemption on each node, kept as long as neither the node nor its pods change.

A pod that evicts others from one node finds all other nodes as the pod before it did. What is kept is exactly what
trying all nodes afresh would give; `tests/scheduler_core/preemption/test_kept_tries.py` holds the two together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import JournalReader
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.interface import FilteredCycle
from scheduler_core.framework.preemption.budgets import Budgets
from scheduler_core.framework.preemption.candidates import Candidates
from scheduler_core.framework.preemption.choice import CRITERIA
from scheduler_core.framework.preemption.potential import Int64
from scheduler_core.framework.preemption.reprieve import (
    CANDIDATE,
    NO_VICTIMS,
    NOTHING_TRIED,
    Tried,
    try_nodes,
)
from scheduler_core.framework.status import Status

_KEPT = 8
"""For how many kinds of preemptors; the least recently used goes."""
_UNKNOWN = -2
"""In `_Kept.verdict`: to be tried (again)."""


@dataclass(slots=True)
class DryRun:
    """What came of trying preemption on n nodes.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        Rows of the cluster, in the order they were tried.
    verdict : ndarray of shape (n,), int64
        `CANDIDATE`, or an index into `statuses`.
    statuses : list of Status
    values : ndarray of shape (5, capacity), int64
        What candidates are compared by (`choice.criteria`), by row of the cluster.
    tried : sequence of Tried
        By row of the cluster.
    """

    rows: Rows
    verdict: Int64
    statuses: list[Status]
    values: Int64
    tried: Sequence[Tried]

    @property
    def is_candidate(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.verdict == CANDIDATE
        return found

    def candidates(self, places: Int64, nodes: NodeColumns) -> Candidates:
        """The nodes at some places."""
        rows, tried = self.rows[places], self.tried
        return Candidates(nodes, rows, lambda row: tried[row].victims, self.values[:, rows])


class _Kept:
    """Columns by row of the cluster for one kind of preemptors, as in `reprieve.Tries`."""

    def __init__(self) -> None:
        self.reader = JournalReader()
        self.budgets_version = -1
        self.forget(0)

    def forget(self, capacity: int) -> None:
        self.verdict: Int64 = np.full(capacity, _UNKNOWN, np.int64)
        self.values: Int64 = np.zeros((len(CRITERIA), capacity), np.int64)
        self.tried: list[Tried] = [NOTHING_TRIED] * capacity
        self.statuses: list[Status] = []
        self.status_ids: dict[Status, int] = {}


class KeptTries:
    """The tries of one profile over one cluster."""

    def __init__(self) -> None:
        self._budgets = Budgets()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._now = self._in_vain = _Kept()
        self._cycle: FilteredCycle | None = None

    @property
    def is_in_vain(self) -> bool:
        """Whether no node has any pod that might go: all verdicts are known without a try."""
        return self._now is self._in_vain

    def refresh(self, cycle: FilteredCycle) -> None:
        """Take up the pod of `cycle`, and forget what has changed since a pod of its kind was here last."""
        self._cycle, snapshot = cycle, cycle.snapshot
        if not snapshot.pods.has_below(cycle.pod.priority):
            self._now = self._in_vain
            if len(self._now.tried) != snapshot.nodes.capacity:
                self._now.forget(snapshot.nodes.capacity)
                self._now.verdict[:] = self._status_id(NO_VICTIMS)
            return
        self._budgets.refresh(snapshot.listers)
        self._now = kept = self._kept_for(cycle.row_key())
        changed = cycle.rows_changed(kept.reader)
        capacity = snapshot.nodes.capacity
        if changed is None or len(kept.tried) != capacity or kept.budgets_version != self._budgets.version:
            kept.forget(capacity)
            kept.budgets_version = self._budgets.version
        else:
            kept.verdict[changed] = _UNKNOWN

    def verdicts(self, rows: Rows) -> tuple[Int64, Int64]:
        """(verdict, victims that violate a budget) of each of `rows`; those not known yet are tried."""
        kept, cycle = self._now, self._cycle
        assert cycle is not None
        verdict = kept.verdict[rows]
        unknown = rows[(verdict == _UNKNOWN).nonzero()[0]]
        if len(unknown):
            tries = try_nodes(cycle, unknown, self._budgets)
            # The last place serves the verdict -1.
            ids = np.array([*(self._status_id(status) for status in tries.statuses), -1], np.int64)
            kept.verdict[unknown] = ids[tries.verdict]
            kept.values[:, unknown] = tries.values
            for row, tried in zip(unknown.tolist(), tries.tried, strict=True):
                kept.tried[row] = tried
            verdict = kept.verdict[rows]
        return verdict, kept.values[0, rows]

    def dry_run(self, rows: Rows) -> DryRun:
        """What is known of `rows`, all of which were tried."""
        kept = self._now
        return DryRun(rows, kept.verdict[rows], kept.statuses, kept.values, kept.tried)

    def _kept_for(self, key: Hashable | None) -> _Kept:
        if key is None:
            return _Kept()
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept()
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return kept

    def _status_id(self, status: Status) -> int:
        kept = self._now
        found = kept.status_ids.get(status)
        if found is None:
            found = kept.status_ids[status] = len(kept.statuses)
            kept.statuses.append(status)
        return found
