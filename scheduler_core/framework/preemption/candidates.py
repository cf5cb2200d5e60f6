"""Nodes a pod could have after the eviction of their victims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns
from scheduler_core.cluster.pod_table import PodTable
from scheduler_core.framework.preemption.choice import Choice, choose
from scheduler_core.framework.preemption.potential import Int64, PodsOfPlaces, starts_of
from scheduler_core.framework.preemption.reprieve import DryRun
from scheduler_core.objects.pod import Pod

Victims = tuple[tuple[Pod, ...], int]
"""(victims in order of importance, how many of them violate a budget)."""


@dataclass(slots=True)
class Candidates:
    """n nodes and their victims.

    Attributes
    ----------
    names : list of str
    victims : PodsOfPlaces
    n_violations : ndarray of shape (n,), int64
    """

    pods: PodTable
    names: list[str]
    victims: PodsOfPlaces
    n_violations: Int64

    @classmethod
    def of_run(cls, run: DryRun, places: Int64, nodes: NodeColumns) -> Candidates:
        """The nodes at `places` of a dry run."""
        names = [nodes.name(row) for row in run.rows[places].tolist()]
        return cls(nodes.pods, names, run.victims(nodes.pods).taken(places), run.n_violations()[places])

    @classmethod
    def of_victims(cls, victims: Mapping[str, Victims], pods: PodTable) -> Candidates:
        """What extenders left."""
        pod_ids = [pods.id_of[pod.uid] for evicted, _ in victims.values() for pod in evicted]
        counts = np.array([len(evicted) for evicted, _ in victims.values()], np.int64)
        return cls(
            pods,
            list(victims),
            PodsOfPlaces(starts_of(counts), np.array(pod_ids, np.int64)),
            np.array([number for _, number in victims.values()], np.int64),
        )

    def __len__(self) -> int:
        return len(self.names)

    def victims_of(self, place: int) -> tuple[Pod, ...]:
        return tuple([self.pods[pod_id] for pod_id in self.victims.of(place)])

    def as_victims(self) -> dict[str, Victims]:
        """All of them by node name, as extenders are asked about them."""
        return {
            name: (self.victims_of(place), number)
            for place, (name, number) in enumerate(zip(self.names, self.n_violations.tolist(), strict=True))
        }

    def compare(self) -> Choice:
        """Compare the candidates, of which there is one at least."""
        pod_ids = self.victims.pod_ids
        return choose(
            self.n_violations, self.victims.starts, self.pods.priority[pod_ids], self.pods.start_ns[pod_ids]
        )
