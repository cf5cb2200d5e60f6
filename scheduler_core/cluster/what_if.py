"""Hypothetical nodes: each row is one world, in which pods came or went on one node.

Preemption drops and reprieves the j-th victim of all candidate nodes in lock-step, and nodes with nominated pods
are filtered as if those pods ran. Both are this table: row k is one candidate node, and changing row k says
nothing about any other row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import Bool, Int32, NodeColumns, NodeTable, Rows, normal_port
from scheduler_core.objects.node import Node


class WhatIf(NodeColumns):
    """A compact copy of some rows of a node table.

    Parameters
    ----------
    base : NodeTable
    rows : ndarray of shape (n,), intp
        Rows of `base`; position k becomes row k here. A row may occur twice.
    """

    def __init__(self, base: NodeTable, rows: Rows) -> None:
        self.base = base
        self.base_rows = rows
        self.vocabulary = base.vocabulary
        self.pods = base.pods
        self.allocatable = base.allocatable[:, rows]
        self.requested = base.requested[:, rows]
        self.allowed_pods = base.allowed_pods[rows]
        self.n_pods = base.n_pods[rows]
        self.taint_list_id = base.taint_list_id[rows]
        self.feature_list_id = base.feature_list_id[rows]
        self.unschedulable = base.unschedulable[rows]
        self.alive = base.alive[rows]
        self._labels: dict[str, Int32] = {}
        self._ports: dict[int, Bool] = {}
        self._changes: list[tuple[Rows, NDArray[np.intp], bool]] = []
        """(rows, pod ids, whether they came) since `_gone` and `_come` were last asked for."""
        self._gone: dict[int, dict[int, None]] = {}
        self._come: dict[int, dict[int, None]] = {}

    def label_column(self, key: str) -> Int32:
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = self.base.label_column(key)[self.base_rows]
        return column

    def port_in_use(self, port_id: int) -> Bool:
        column = self._ports.get(port_id)
        if column is None:
            column = self._ports[port_id] = self.base.port_in_use(port_id)[self.base_rows]
        return column

    def name(self, row: int) -> str:
        return self.base.name(int(self.base_rows[row]))

    def node(self, row: int) -> Node:
        return self.base.node(int(self.base_rows[row]))

    def is_named(self, name: str, rows: Rows) -> Bool:
        return self.base.is_named(name, self.base_rows[rows])

    def pods_on(self, row: int) -> Sequence[int]:
        self._catch_up()
        gone = self._gone.get(row, {})
        there = [pod_id for pod_id in self.base.pods_on(int(self.base_rows[row])) if pod_id not in gone]
        return there + list(self._come.get(row, ()))

    def add_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """Pod `pod_ids[i]` comes to row `rows[i]`; no row twice in one call."""
        self._account(rows, pod_ids, 1)
        self._changes.append((rows, pod_ids, True))

    def remove_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """Pod `pod_ids[i]` leaves row `rows[i]`; no row twice in one call."""
        self._account(rows, pod_ids, -1)
        self._changes.append((rows, pod_ids, False))

    def remove_all(self, starts: NDArray[np.intp], pod_ids: NDArray[np.intp]) -> None:
        """Pods `pod_ids[starts[k] : starts[k + 1]]` leave row k, every row at least one; none of them holds a port."""
        counts = starts[1:] - starts[:-1]
        known = min(len(self.requested), len(self.pods.requests))
        self.requested[:known] -= np.add.reduceat(self.pods.requests[:known, pod_ids], starts[:-1], axis=1)
        self.n_pods -= counts
        self._changes.append((np.arange(len(counts)).repeat(counts), pod_ids, False))

    def ports_in_use(self) -> dict[int, Bool]:
        """A copy of the port columns, for `restore_ports`."""
        return {port_id: column.copy() for port_id, column in self._ports.items()}

    def restore_ports(self, columns: dict[int, Bool]) -> None:
        """Undo what pods that came and left again did to ports: a set forgets who else has them."""
        self._ports = columns

    def _account(self, rows: Rows, pod_ids: NDArray[np.intp], sign: int) -> None:
        pods = self.pods
        missing = len(self.vocabulary.resources) - self.requested.shape[0]
        if missing > 0:
            more = np.zeros((missing, self.requested.shape[1]), np.int64)
            self.allocatable = np.concatenate([self.allocatable, more])
            self.requested = np.concatenate([self.requested, more])
        # A nominated pod may ask for a resource no node has had yet.
        known = min(len(self.requested), len(pods.requests))
        self.requested[:known, rows] += sign * pods.requests[:known, pod_ids]
        self.n_pods[rows] += sign
        for index in pods.has_ports[pod_ids].nonzero()[0].tolist():
            for port in pods[int(pod_ids[index])].host_ports:
                self.port_in_use(self.vocabulary.ports.id(normal_port(port)))[rows[index]] = sign > 0

    def _catch_up(self) -> None:
        """Who came and went is sorted out by row only when a plugin asks for it: most never do."""
        for rows, pod_ids, came in self._changes:
            undone, done = (self._gone, self._come) if came else (self._come, self._gone)
            for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
                if undone.get(row, {}).pop(pod_id, 0) is not None:
                    done.setdefault(row, {})[pod_id] = None
        self._changes.clear()
