"""Whom a pod may preempt, node by node, the most important first.

Source: pkg/scheduler/util/utils.go MoreImportantPod, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeTable, Rows
from scheduler_core.cluster.pod_table import NO_START_NS
from scheduler_core.thresholds import thresholds

Int64 = NDArray[np.int64]


@dataclass(slots=True)
class PodsOfPlaces:
    """Some pods of each of n nodes, as one column: those of node k stand at `starts[k]` to `starts[k + 1]`.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), int64
    pod_ids : ndarray of shape (m,), int64
    """

    starts: Int64
    pod_ids: Int64

    @property
    def counts(self) -> Int64:
        """Pods of each node."""
        return self.starts[1:] - self.starts[:-1]

    @property
    def places(self) -> Int64:
        """The node of each pod."""
        return np.repeat(np.arange(len(self.starts) - 1), self.counts)

    def of(self, place: int) -> list[int]:
        """Pods of one node."""
        found: list[int] = self.pod_ids[self.starts[place] : self.starts[place + 1]].tolist()
        return found

    def taken(self, places: Int64) -> PodsOfPlaces:
        """The pods of some nodes, in that order."""
        counts = self.counts[places]
        starts = starts_of(counts)
        indices = np.repeat(self.starts[places] - starts[:-1], counts) + np.arange(starts[-1])
        return PodsOfPlaces(starts, self.pod_ids[indices])


def starts_of(counts: NDArray[np.integer]) -> Int64:
    """Where groups of these sizes begin, and where the last one ends."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def potential_victims(nodes: NodeTable, rows: Rows, priority: int) -> PodsOfPlaces:
    """Pods below `priority` on each of `rows`, in order of importance.

    Of two pods the one of higher priority is more important, then the one that started earlier; a pod that has not
    started stands behind those that have. Among these the last to come wins: upstream takes the moment at which it
    looks for their start, and looks at the later one first. Other ties it leaves open; here the first to come wins.
    """
    pods = nodes.pods
    if len(rows) <= thresholds().victim_rows:
        found = [nodes.pods_on(row) for row in rows.tolist()]
        pod_ids = np.array([pod_id for ids in found for pod_id in ids], np.int64)
        places = np.repeat(np.arange(len(rows)), [len(ids) for ids in found])
        lower = pods.priority[pod_ids] < priority
        pod_ids, places = pod_ids[lower], places[lower]
    else:
        # The last place stands for "no row": a pod on none has row -1.
        place_of_row = np.full(nodes.capacity + 1, -1, np.int64)
        place_of_row[rows] = np.arange(len(rows))
        place_of_pod = place_of_row[pods.row]
        pod_ids = np.flatnonzero((place_of_pod >= 0) & (pods.priority < priority))
        places = place_of_pod[pod_ids]
    arrival, start_ns = pods.arrival[pod_ids], pods.start_ns[pod_ids]
    last = np.where(start_ns == NO_START_NS, -arrival, arrival)
    order = np.lexsort((last, start_ns, -pods.priority[pod_ids], places))
    return PodsOfPlaces(starts_of(np.bincount(places, minlength=len(rows))), pod_ids[order])
