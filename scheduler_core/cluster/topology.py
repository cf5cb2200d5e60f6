"""Topology domains: which rows share a value of a node label, among those that count.

A domain is named by the id of its label value (`vocabulary.label_values[key]`): counts by domain are arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_matching import matching_required_affinity
from scheduler_core.cluster.node_table import Bool, Int32, NodeTable
from scheduler_core.objects.node import Taint
from scheduler_core.objects.node_selector import RequiredNodeAffinity
from scheduler_core.objects.pod import Toleration

_MAX_KEPT = 256


@dataclass(frozen=True, slots=True)
class Among:
    """Which nodes count.

    Attributes
    ----------
    keys : tuple of str
        Labels a node must carry.
    affinity : RequiredNodeAffinity or None
        What a node must match; None asks nothing.
    tolerations : tuple of Toleration or None
        All NoSchedule and NoExecute taints of a node must be tolerated by these; None asks nothing.
    missing_is_empty : bool
        A node without the topology label belongs to the domain of the empty value.
    """

    keys: tuple[str, ...] = ()
    affinity: RequiredNodeAffinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    missing_is_empty: bool = False


EVERY_NODE = Among()


class Domains:
    """Rows by domain of one topology key.

    Attributes
    ----------
    of_row : ndarray of shape (capacity,), int32
        Domain of each row; -1 for a row that does not count or lacks the label.
    present : ndarray of shape (n_present,), intp
        Domains with at least one row, ascending.
    is_present : ndarray of shape (n_values,), bool
    n_values : int
        Length of an array by domain.
    version : int
        Changes when any of this does; 0 before the first look.
    """

    __slots__ = ("among", "is_present", "key", "n_values", "of_row", "position", "present", "version")

    def __init__(self, key: str, among: Among) -> None:
        self.key = key
        self.among = among
        self.position = -1
        self.version = 0
        self.n_values = 0
        self.of_row: Int32 = np.zeros(0, np.int32)
        self.is_present: Bool = np.zeros(0, np.bool_)
        self.present: NDArray[np.intp] = np.zeros(0, np.intp)


class Topology:
    """Domains of a node table, brought up to date when they are asked for."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._kept: dict[tuple[str, Among], Domains] = {}

    def domains(self, key: str, among: Among = EVERY_NODE) -> Domains:
        """The domains of `key` as the nodes are now."""
        found = self._kept.get((key, among))
        if found is None:
            if len(self._kept) >= _MAX_KEPT:
                for old in list(self._kept)[: _MAX_KEPT // 4]:
                    del self._kept[old]
            found = self._kept[(key, among)] = Domains(key, among)
        if found.position != self.nodes.spec_journal.position:
            self._renew(found)
        return found

    def is_fresh(self, domains: Domains) -> bool:
        """No node changed since these domains were last asked for."""
        return domains.position == self.nodes.spec_journal.position

    def _renew(self, domains: Domains) -> None:
        nodes = self.nodes
        among = domains.among
        column = nodes.label_column(domains.key)
        values = nodes.vocabulary.label_values[domains.key]
        of_row = column.copy()
        if among.missing_is_empty:
            of_row[(column < 0) & nodes.alive] = values.find("")
        for key in among.keys:
            if key != domains.key:
                of_row[nodes.label_column(key) < 0] = -1
        if among.affinity is not None or among.tolerations is not None:
            rows = np.flatnonzero(of_row >= 0)
            counted = np.ones(len(rows), np.bool_)
            if among.affinity is not None:
                counted &= matching_required_affinity(among.affinity, nodes, rows)
            if among.tolerations is not None:
                tolerated = _tolerated_lists(nodes.vocabulary.taint_lists.values, among.tolerations)
                counted &= tolerated[nodes.taint_list_id[rows]]
            of_row[rows[~counted]] = -1
        domains.n_values = len(values)
        domains.is_present = np.bincount(of_row + 1, minlength=len(values) + 1)[1:] > 0
        domains.present = np.flatnonzero(domains.is_present)
        domains.of_row = of_row
        domains.position = nodes.spec_journal.position
        domains.version += 1


def _tolerated_lists(taint_lists: list[tuple[Taint, ...]], tolerations: tuple[Toleration, ...]) -> Bool:
    return np.array(
        [
            all(
                taint.effect not in ("NoSchedule", "NoExecute")
                or any(item.tolerates(taint) for item in tolerations)
                for taint in taints
            )
            for taints in taint_lists
        ],
        np.bool_,
    )
