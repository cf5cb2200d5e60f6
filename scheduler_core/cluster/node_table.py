"""Nodes as columns.

A *row* is a node's stable place in the table: it keeps it for life, whatever comes and goes, and a freed row
is used again. The order nodes are evaluated in is a separate array of rows (`Snapshot.order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import Journal, grown
from scheduler_core.cluster.pod_table import AsksFor, PodTable
from scheduler_core.cluster.vocabulary import Interner, Vocabulary
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import HostPort
from scheduler_core.objects.resources import PODS

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]
Index = NDArray[np.intp]
"""Places of another array: NumPy takes no other type everywhere, and on some machines it has 32 bits."""
Rows = Index

_GROWN = (
    *("allocatable", "requested", "non_zero", "allowed_pods", "n_pods"),
    *("taint_list_id", "feature_list_id"),
)
ALL_ADDRESSES = "0.0.0.0"


class NodeColumns:
    """What plugins read of nodes. `NodeTable` is the cluster as it is; `WhatIf` is it with pods moved about.

    Attributes
    ----------
    allocatable, requested : ndarray of shape (n_resources, capacity), int64
        Whole units (`objects.resources`) on the axis `vocabulary.resources`.
    allowed_pods, n_pods : ndarray of shape (capacity,), int64
    non_zero : ndarray of shape (2, capacity), int64
        cpu (millicores) and memory (bytes) in use, counting 100m / 200Mi for containers that request none. Only
        scores read it, and a `WhatIf`, which is never scored, has none.
    taint_list_id : ndarray of shape (capacity,), int32
        Ids of `vocabulary.taint_lists`.
    feature_list_id : ndarray of shape (capacity,), int32
        Ids of `vocabulary.feature_lists`.
    unschedulable, alive : ndarray of shape (capacity,), bool
    """

    vocabulary: Vocabulary
    pods: PodTable
    allocatable: Int64
    requested: Int64
    allowed_pods: Int64
    n_pods: Int64
    non_zero: Int64
    taint_list_id: Int32
    feature_list_id: Int32
    unschedulable: Bool
    alive: Bool

    def label_column(self, key: str) -> Int32:
        """Value ids of label `key` for every row (`vocabulary.label_values[key]`), -1 where a node lacks it."""
        raise NotImplementedError

    def port_in_use(self, port_id: int) -> Bool:
        """Which rows' pods use host port `port_id` (`vocabulary.ports`).

        As upstream a node keeps a set of ports, not a count: once one of two pods with the same port has left,
        the port counts as free.
        """
        raise NotImplementedError

    def name(self, row: int) -> str:
        raise NotImplementedError

    def node(self, row: int) -> Node:
        raise NotImplementedError

    def is_named(self, name: str, rows: Rows) -> Bool:
        """Which of `rows` is the node of that name."""
        raise NotImplementedError

    def pods_on(self, row: int) -> Sequence[int]:
        """Pod ids (`pods`) on a row, in order of arrival."""
        raise NotImplementedError


class Usage(NamedTuple):
    """What is counted of the pods of a row.

    Attributes
    ----------
    pod_ids : dict of int to None
        In order of arrival.
    requested : ndarray of shape (n_resources,), int64
    non_zero : ndarray of shape (2,), int64
    n_pods : int
    ports : list of int
        Ids of the host ports in use.
    """

    pod_ids: dict[int, None]
    requested: Int64
    non_zero: Int64
    n_pods: int
    ports: list[int]


class NodeTable(NodeColumns):
    """The nodes of a cluster and what runs on them.

    Attributes
    ----------
    spec_journal : Journal
        Rows whose node object changed.
    usage_journal : Journal
        Rows whose node object or pods changed.
    """

    def __init__(self, vocabulary: Vocabulary, pods: PodTable) -> None:
        self.vocabulary = vocabulary
        self.pods = pods
        self.capacity = 0
        self.n_rows = 0
        self.row_of: dict[str, int] = {}
        self._nodes: list[Node | None] = []
        self._free: list[int] = []
        self._pods_on: list[dict[int, None]] = []
        self._label_columns: dict[str, Int32] = {}
        self._ports_in_use: dict[int, Bool] = {}
        self.image_nodes: dict[str, dict[int, None]] = {}
        """Image name -> rows of the nodes that hold it."""
        self.image_size_bytes: dict[str, int] = {}
        """Image name -> its size as the first node that held it told: upstream keeps one size for all nodes."""
        self.spec_journal = Journal()
        self.usage_journal = Journal()
        n_resources = len(vocabulary.resources)
        self.allocatable = np.zeros((n_resources, 0), np.int64)
        self.requested = np.zeros((n_resources, 0), np.int64)
        self.non_zero = np.zeros((2, 0), np.int64)
        self.allowed_pods = np.zeros(0, np.int64)
        self.n_pods = np.zeros(0, np.int64)
        self.taint_list_id = np.zeros(0, np.int32)
        self.feature_list_id = np.zeros(0, np.int32)
        self.unschedulable = np.zeros(0, np.bool_)
        self.alive = np.zeros(0, np.bool_)

    def copy(self, pods: PodTable) -> NodeTable:
        """Another table with the same nodes by the same rows; its journals begin anew.

        Parameters
        ----------
        pods : PodTable
            A copy of this one's.
        """
        other = NodeTable(pods.vocabulary, pods)
        other.capacity, other.n_rows = self.capacity, self.n_rows
        for name in ("row_of", "_nodes", "_free", "image_size_bytes", *_GROWN, "unschedulable", "alive"):
            setattr(other, name, getattr(self, name).copy())
        other._pods_on = [ids.copy() for ids in self._pods_on]
        for name in ("image_nodes", "_label_columns", "_ports_in_use"):
            setattr(other, name, {key: value.copy() for key, value in getattr(self, name).items()})
        return other

    def __len__(self) -> int:
        return len(self.row_of)

    def name(self, row: int) -> str:
        return self.node(row).meta.name

    def node(self, row: int) -> Node:
        node = self._nodes[row]
        if node is None:
            raise KeyError(f"row {row} holds no node")
        return node

    def is_named(self, name: str, rows: Rows) -> Bool:
        named: Bool = rows == self.row_of.get(name, -1)
        return named

    def pods_on(self, row: int) -> Sequence[int]:
        return list(self._pods_on[row])

    def rows_of(self, names: Iterable[str]) -> Rows:
        """Rows of the named nodes, unknown names left out."""
        return np.fromiter((self.row_of[name] for name in names if name in self.row_of), np.intp)

    # ---- nodes

    def set_node(self, node: Node) -> int:
        """Add a node, or replace the object of a known one; its pods stay."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self.row_of[node.name] = self._free_row()
        else:
            self._drop_images(row)
        self._write(row, node)
        return row

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        """`set_node` for nodes of which none is known."""
        if self._free:
            for node in nodes:
                self.set_node(node)
            return
        rows = np.arange(self.n_rows, self.n_rows + len(nodes))
        self.n_rows += len(nodes)
        self.row_of.update(zip([node.name for node in nodes], rows.tolist(), strict=True))
        self._nodes += nodes
        self._pods_on += [{} for _ in nodes]
        while self.n_rows > self.capacity:
            self._grow_rows()
        self.alive[rows] = True
        self.unschedulable[rows] = [node.unschedulable for node in nodes]
        taint_lists, feature_lists = self.vocabulary.taint_lists, self.vocabulary.feature_lists
        self.taint_list_id[rows] = [taint_lists.id(node.taints) for node in nodes]
        self.feature_list_id[rows] = [feature_lists.id(node.declared_features) for node in nodes]
        resource_id = self.vocabulary.resources.id
        amounts = [
            (resource_id(name), row, amount)
            for row, node in zip(rows.tolist(), nodes, strict=True)
            for name, amount in node.allocatable.items()
            if name != PODS
        ]
        self._grow_resources()
        resources, of_rows, wholes = np.array(amounts, np.int64).reshape(-1, 3).T
        self.allocatable[resources.astype(np.intp), of_rows.astype(np.intp)] = wholes
        self.allowed_pods[rows] = [node.allocatable.get(PODS, 0) for node in nodes]
        for key, column in self._label_columns.items():
            column[rows] = [self._label_value_id(key, node) for node in nodes]
        for row, node in zip(rows.tolist(), nodes, strict=True):
            if node.images:
                self._take_images(row, node)
        self.usage_journal.record_all(rows.tolist())
        self.spec_journal.record_all(rows.tolist())

    def add_guest(self, node: Node) -> int:
        """Give a row to a node that is not one of the cluster: it has no pods and is not found by its name.

        Plugins can be asked about it until `remove_guest`; no other change may come in between.
        """
        row = self._free_row()
        self._write(row, node)
        return row

    def remove_guest(self, row: int) -> None:
        """Take a guest's row back."""
        self._clear(row)

    def _free_row(self) -> int:
        if self._free:
            return self._free.pop()
        row = self.n_rows
        self.n_rows += 1
        self._nodes.append(None)
        self._pods_on.append({})
        if self.n_rows > self.capacity:
            self._grow_rows()
        return row

    def _write(self, row: int, node: Node) -> None:
        self._nodes[row] = node
        self.alive[row] = True
        self.unschedulable[row] = node.unschedulable
        self.taint_list_id[row] = self.vocabulary.taint_lists.id(node.taints)
        self.feature_list_id[row] = self.vocabulary.feature_lists.id(node.declared_features)
        resources = self.vocabulary.resources
        ids = {resources.id(name): amount for name, amount in node.allocatable.items() if name != PODS}
        self._grow_resources()
        self.allocatable[:, row] = 0
        for resource_id, amount in ids.items():
            self.allocatable[resource_id, row] = amount
        self.allowed_pods[row] = node.allocatable.get(PODS, 0)
        for key, column in self._label_columns.items():
            column[row] = self._label_value_id(key, node)
        self._take_images(row, node)
        self._changed(row, spec=True)

    def remove_node(self, name: str) -> None:
        """Forget a node; it must hold no pods any more."""
        self._clear(self.row_of.pop(name))

    def _clear(self, row: int) -> None:
        self._drop_images(row)
        self._nodes[row] = None
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        for column in self._label_columns.values():
            column[row] = -1
        self._free.append(row)
        self._changed(row, spec=True)

    # ---- pods

    def add_pod(self, row: int, pod_id: int) -> None:
        self._account(row, pod_id, 1)
        self._pods_on[row][pod_id] = None
        self._changed(row)

    def add_pods(self, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        """`add_pod` for each of many pods, in their order."""
        pods = [self.pods.asks(pod_id) for pod_id in pod_ids.tolist()]
        self.add_columns(rows, pod_ids, np.array([pod.non_zero for pod in pods], np.int64).reshape(-1, 2).T)
        for row, pod in zip(rows.tolist(), pods, strict=True):
            self.take_ports(row, pod)

    def add_columns(self, rows: Rows, pod_ids: NDArray[np.intp], non_zero: Int64) -> None:
        """`add_pods` for pods that are not read for it (`PodColumns`): what they use without their host ports."""
        self._grow_resources()
        # Numbers of two bytes are sorted in a tenth of the time.
        order = np.argsort(rows.astype(np.uint16) if self.capacity <= 1 << 16 else rows, kind="stable")
        begins = np.flatnonzero(np.diff(rows[order], prepend=-1)).tolist()
        of_rows, ids = rows[order[begins]].tolist(), pod_ids[order].tolist()
        for row, begin, end in zip(of_rows, begins, [*begins, len(ids)][1:], strict=True):
            came = dict.fromkeys(ids[begin:end])
            if self._pods_on[row]:
                self._pods_on[row].update(came)
            else:
                self._pods_on[row] = came
        for column, amounts in zip(self.non_zero, non_zero, strict=True):
            np.add.at(column, rows, amounts)
        for column, amounts in zip(self.requested, self.pods.requests[:, pod_ids], strict=True):
            np.add.at(column, rows, amounts)
        np.add.at(self.n_pods, rows, 1)
        self.usage_journal.record_all(np.unique(rows).tolist())

    def take_ports(self, row: int, pod: AsksFor) -> None:
        """The host ports of a pod that came to a row are in use."""
        for port in pod.host_ports:
            self._port_column(self.vocabulary.ports.id(normal_port(port)))[row] = True

    def remove_pod(self, row: int, pod_id: int) -> None:
        self._account(row, pod_id, -1)
        del self._pods_on[row][pod_id]
        self._changed(row)

    def pod_came_again(self, row: int, pod_id: int) -> None:
        """A pod of the row has another version that counts as the one before: it is now the last to have come."""
        pods = self._pods_on[row]
        del pods[pod_id]
        pods[pod_id] = None
        self._changed(row)

    def usage(self, row: int) -> Usage:
        """What is counted of a row now."""
        ports = [port_id for port_id, in_use in self._ports_in_use.items() if in_use[row]]
        pod_ids, n_pods = self._pods_on[row], int(self.n_pods[row])
        return Usage(
            pod_ids.copy(), self.requested[:, row].copy(), self.non_zero[:, row].copy(), n_pods, ports
        )

    def set_usage(self, row: int, usage: Usage | None) -> None:
        """Count again what was counted of a row then; None for a row without pods."""
        self._pods_on[row] = {} if usage is None else usage.pod_ids
        self.requested[:, row] = 0
        self.non_zero[:, row] = 0 if usage is None else usage.non_zero
        self.n_pods[row] = 0 if usage is None else usage.n_pods
        for in_use in self._ports_in_use.values():
            in_use[row] = False
        if usage is not None:
            self.requested[: len(usage.requested), row] = usage.requested
            for port_id in usage.ports:
                self._ports_in_use[port_id][row] = True
        self._changed(row)

    def holds_pods(self, row: int) -> bool:
        return bool(self._pods_on[row])

    def _account(self, row: int, pod_id: int, sign: int) -> None:
        self._grow_resources()
        pods = self.pods
        for resource_id, amount in pods.request_items[pod_id]:
            self.requested[resource_id, row] += sign * amount
        pod = pods.asks(pod_id)
        cpu, memory = pod.non_zero
        self.non_zero[0, row] += sign * cpu
        self.non_zero[1, row] += sign * memory
        self.n_pods[row] += sign
        for port in pod.host_ports:
            self._port_column(self.vocabulary.ports.id(normal_port(port)))[row] = sign > 0

    def forgotten_ports(self, row: int) -> list[HostPort]:
        """Ports that pods of a row hold while the row counts them as free (`port_in_use` says why), each once."""
        if not self._ports_in_use:
            return []
        held = [normal_port(port) for pod_id in self._pods_on[row] for port in self.pods[pod_id].host_ports]
        ids = {self.vocabulary.ports.id(port): port for port in held}
        return [port for port_id, port in ids.items() if not self._port_column(port_id)[row]]

    def forget_port(self, row: int, port: HostPort) -> None:
        """Count a port of a row as free, whichever pod holds it."""
        self._port_column(self.vocabulary.ports.id(port))[row] = False
        self._changed(row)

    # ---- columns made when first asked for

    def label_column(self, key: str) -> Int32:
        column = self._label_columns.get(key)
        if column is None:
            self.vocabulary.label_values.setdefault(key, Interner())
            column = np.full(self.capacity, -1, np.int32)
            for row, node in enumerate(self._nodes):
                if node is not None:
                    column[row] = self._label_value_id(key, node)
            self._label_columns[key] = column
        return column

    def port_in_use(self, port_id: int) -> Bool:
        return self._port_column(port_id)

    def _port_column(self, port_id: int) -> Bool:
        column = self._ports_in_use.get(port_id)
        if column is None:
            column = self._ports_in_use[port_id] = np.zeros(self.capacity, np.bool_)
        return column

    def _label_value_id(self, key: str, node: Node) -> int:
        value = node.meta.labels.get(key)
        return -1 if value is None else self.vocabulary.label_values[key].id(value)

    def _take_images(self, row: int, node: Node) -> None:
        for image in node.images:
            for name in image.names:
                self.image_nodes.setdefault(name, {})[row] = None
                self.image_size_bytes.setdefault(name, image.size_bytes)

    def _drop_images(self, row: int) -> None:
        node = self._nodes[row]
        for image in node.images if node else ():
            for name in image.names:
                rows = self.image_nodes.get(name)
                if rows is not None and rows.pop(row, 0) is None and not rows:
                    del self.image_nodes[name], self.image_size_bytes[name]

    def _changed(self, row: int, spec: bool = False) -> None:
        self.usage_journal.record(row)
        if spec:
            self.spec_journal.record(row)

    def _grow_rows(self) -> None:
        self.capacity = max(64, 2 * self.capacity)
        for name in _GROWN:
            setattr(self, name, grown(getattr(self, name), self.capacity))
        self.unschedulable = grown(self.unschedulable, self.capacity)  # type: ignore[assignment]
        self.alive = grown(self.alive, self.capacity)  # type: ignore[assignment]
        for key, column in self._label_columns.items():
            self._label_columns[key] = grown(column, self.capacity, -1)  # type: ignore[assignment]
        for port_id, in_use in self._ports_in_use.items():
            self._ports_in_use[port_id] = grown(in_use, self.capacity)  # type: ignore[assignment]

    def _grow_resources(self) -> None:
        missing = len(self.vocabulary.resources) - self.allocatable.shape[0]
        if missing > 0:
            more = np.zeros((missing, self.capacity), np.int64)
            self.allocatable = np.concatenate([self.allocatable, more])
            self.requested = np.concatenate([self.requested, more])


def normal_port(port: HostPort) -> HostPort:
    """A host port with the wildcard address written out."""
    return port if port.ip else HostPort(ALL_ADDRESSES, port.protocol, port.port)
