"""Preferred terms both ways, and required affinity of existing pods: what each domain is worth.

Source: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.carriers import Stance
from scheduler_core.cluster.matching import Matching
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.selection import DomainCounts
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.inter_pod_affinity.filtering import pod_selector

MAX_SCORE = 100
Scores = NDArray[np.int64]


@dataclass(slots=True)
class DomainScores:
    """What pods in a domain make it worth to the incoming pod.

    Attributes
    ----------
    by_key : dict of str to ndarray of shape (n_values + 1,), int64
        By domain of each topology key; the last place, 0, is for rows without the label.
    """

    by_key: dict[str, Scores]

    @classmethod
    def of(cls, pod: Pod, matching: Matching, hard_weight: int) -> DomainScores | None:
        """Sum up for an incoming pod; None when no term of anybody matches anybody."""
        found = cls({})
        for weighted, sign in (
            *((item, 1) for item in pod.preferred_affinity),
            *((item, -1) for item in pod.preferred_anti_affinity),
        ):
            key = weighted.term.topology_key
            selection = matching.selection((pod_selector(weighted.term),))
            found._add(key, selection.counts(matching.topology.domains(key)), sign * weighted.weight)
        pod_class = matching.pods.class_of(pod)
        if hard_weight > 0:
            for carriers in matching.carriers.about(Stance.REQUIRES_PRESENCE, pod_class):
                found._add(carriers.term.topology_key, carriers.counts(), hard_weight)
        for carriers in matching.carriers.about(Stance.PREFERS, pod_class):
            found._add(carriers.term.topology_key, carriers.counts(), carriers.weight)
        return found if found.by_key else None

    def _add(self, key: str, counts: DomainCounts, weight: int) -> None:
        if not counts.total:
            return
        scores = self.by_key.get(key)
        if scores is None:
            scores = self.by_key[key] = np.zeros(len(counts.by_domain) + 1, np.int64)
        scores[:-1] += weight * counts.by_domain

    def scores(self, nodes: NodeColumns, rows: Rows) -> Scores:
        """Raw scores: the sum over the domains of each row."""
        total: Scores | None = None
        for key, by_domain in self.by_key.items():
            scores: Scores = by_domain.take(nodes.label_column(key).take(rows))
            total = scores if total is None else total + scores
        return np.zeros(len(rows), np.int64) if total is None else total


def normalized(scores: Scores) -> Scores:
    """Scores spread out from 0 to 100, the lowest at 0."""
    if not len(scores):
        return scores
    least = int(scores.min())
    spread = int(scores.max()) - least
    if spread == 0:
        return np.zeros_like(scores)
    return (MAX_SCORE * ((scores - least) / spread)).astype(np.int64)
