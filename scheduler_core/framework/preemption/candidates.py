"""Nodes a pod could have after the eviction of their victims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, NodeTable, Rows
from scheduler_core.framework.preemption.choice import CandidateChoice, choose, criteria
from scheduler_core.framework.preemption.potential import Int64, PodsOfPlaces, starts_of
from scheduler_core.objects.pod import Pod

Victims = tuple[tuple[Pod, ...], int]
"""(victims in order of importance, how many of them violate a budget)."""


class Candidates:
    """n nodes and their victims.

    Parameters
    ----------
    nodes : NodeColumns
    rows : ndarray of shape (n,), int64
    victims_on : callable
        Pod ids of a row's victims in order of importance: one of many candidates is chosen, so they are asked for late.
    values : ndarray of shape (5, n), int64
        What they are compared by (`choice.criteria`).
    """

    def __init__(
        self, nodes: NodeColumns, rows: Rows, victims_on: Callable[[int], list[int]], values: Int64
    ) -> None:
        self.rows = rows
        self.values = values
        self._nodes = nodes
        self._victims_on = victims_on

    @classmethod
    def of_victims(cls, victims: Mapping[str, Victims], nodes: NodeTable) -> Candidates:
        """What extenders left."""
        pods = nodes.pods
        pod_ids = {
            nodes.row_of[name]: [pods.id_of[pod.uid] for pod in evicted]
            for name, (evicted, _) in victims.items()
        }
        values = np.zeros((0, 0), np.int64)
        if victims:
            counts = np.array([len(ids) for ids in pod_ids.values()], np.int64)
            flat = np.array([pod_id for ids in pod_ids.values() for pod_id in ids], np.int64)
            n_violations = np.array([number for _, number in victims.values()], np.int64)
            values = criteria(n_violations, PodsOfPlaces(starts_of(counts), flat), pods)
        return cls(nodes, np.array(list(pod_ids), np.int64), pod_ids.__getitem__, values)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def names(self) -> list[str]:
        """Node names; usually only that of the chosen one is wanted (`name_of`)."""
        return [self._nodes.name(row) for row in self.rows.tolist()]

    @property
    def n_violations(self) -> Int64:
        """Victims of each candidate that violate a budget, ndarray of shape (n,)."""
        found: Int64 = self.values[0]
        return found

    def name_of(self, place: int) -> str:
        return self._nodes.name(int(self.rows[place]))

    def victim_ids(self, place: int) -> list[int]:
        return self._victims_on(int(self.rows[place]))

    def victims_of(self, place: int) -> tuple[Pod, ...]:
        return tuple([self._nodes.pods[pod_id] for pod_id in self.victim_ids(place)])

    def as_victims(self) -> dict[str, Victims]:
        """All of them by node name, as extenders are asked about them."""
        return {
            name: (self.victims_of(place), number)
            for place, (name, number) in enumerate(zip(self.names, self.n_violations.tolist(), strict=True))
        }

    def compare(self) -> CandidateChoice:
        """Compare the candidates, of which there is one at least."""
        return choose(self.values)
