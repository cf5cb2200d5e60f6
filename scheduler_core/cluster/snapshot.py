"""The cluster as one scheduling cycle sees it.

Upstream copies the cache into a snapshot because binding goes on beside the cycle. Here nothing changes during a
cycle (the scheduler is one function of events), so the snapshot is a view of the live columns: it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.node_table import NodeTable, Rows
from scheduler_core.cluster.pod_table import PodTable
from scheduler_core.cluster.vocabulary import Vocabulary


@dataclass(slots=True)
class Snapshot:
    """What PreFilter, PreScore and PostFilter may look at.

    Attributes
    ----------
    order : ndarray of shape (n_nodes,), intp
        Rows of all nodes in evaluation order (zones take turns).
    rows : ndarray of shape (n_nodes,), intp
        The same rows ascending; the same array where that is the evaluation order, as it is without zones.
    take : slice or ndarray
        Index that picks `rows` out of a column; a slice (no copy) when the table has no holes.
    rank : ndarray of shape (capacity,), int64
        Place of a row in `order`.
    generation : int
        Changes when nodes come, go or change (not when pods do).
    """

    vocabulary: Vocabulary
    nodes: NodeTable
    pods: PodTable
    matching: Matching
    listers: Listers
    order: Rows
    rows: Rows
    take: slice | Rows
    rank: Rows
    generation: int
    _names: list[str] = field(default_factory=list)
    _name_rank: Rows | None = None

    def names(self) -> list[str]:
        """Names of all nodes in evaluation order; the caller's own list."""
        if not self._names:
            self._names = [self.nodes.name(row) for row in self.order.tolist()]
        return self._names.copy()

    def first_name(self, rows: Rows) -> int:
        """The one of some rows whose node's name comes first."""
        rank = self._name_rank
        if rank is None:
            rank = self._name_rank = np.full(self.nodes.capacity, len(self.rows), np.intp)
            rank[sorted(self.rows.tolist(), key=self.nodes.name)] = np.arange(len(self.rows))
        return int(rows[rank[rows].argmin()])
