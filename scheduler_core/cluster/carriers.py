"""Pods that carry (anti-)affinity terms, counted by term: what existing pods say of an incoming one."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import grown
from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.selection import Anchor, DomainCounts, PodClasses, anchors_of
from scheduler_core.cluster.topology import Topology
from scheduler_core.cluster.vocabulary import Interner
from scheduler_core.objects.pod import AffinityTerm, Pod

_LOOK_FROM = 512
"""From so many terms on, those no pod carries any more are looked for, and again when they have doubled."""
_MAX_ANSWERS = 4096


class Stance(Enum):
    """What a pod's term says."""

    REQUIRES_ABSENCE = "required anti-affinity"
    REQUIRES_PRESENCE = "required affinity"
    PREFERS = "preferred affinity, or anti-affinity with a negative weight"


class TermCarriers:
    """All pods that carry one term.

    Attributes
    ----------
    stance : Stance
    term : AffinityTerm
    weight : int
        Negative for preferred anti-affinity, 0 for required terms.
    rows : dict of int to int
        How many times the term is carried on each row.
    """

    __slots__ = ("_counter", "_topology", "rows", "stance", "term", "weight")

    def __init__(self, stance: Stance, term: AffinityTerm, weight: int, topology: Topology) -> None:
        self.stance = stance
        self.term = term
        self.weight = weight
        self.rows: dict[int, int] = {}
        self._topology = topology
        self._counter: DomainCounts | None = None

    def counts(self) -> DomainCounts:
        """Carriers by domain of the term's own topology key."""
        domains = self._topology.domains(self.term.topology_key)
        counter = self._counter
        if counter is None or counter.domains is not domains:
            counter = self._counter = DomainCounts(domains)
        if counter.version != domains.version:
            n_rows = len(self.rows)
            counter.fill(
                np.fromiter(self.rows.keys(), np.intp, n_rows),
                np.fromiter(self.rows.values(), np.int64, n_rows),
            )
        return counter

    def move(self, row: int, change: int) -> None:
        left = self.rows.get(row, 0) + change
        if left:
            self.rows[row] = left
        else:
            del self.rows[row]
        counter = self._counter
        if counter is not None and self._topology.is_fresh(counter.domains):
            counter.move(row, change)


class Carriers:
    """Carried terms of all pods on rows, found by the pods they are about.

    Attributes
    ----------
    absence_terms : Interner of tuple of AffinityTerm
        Lists of required anti-affinity terms, as pods carry them.
    """

    def __init__(self, listers: Listers, classes: PodClasses, topology: Topology) -> None:
        self._listers = listers
        self._classes = classes
        self._topology = topology
        self._all: dict[tuple[Stance, AffinityTerm, int], TermCarriers] = {}
        self._of_pod: dict[int, tuple[TermCarriers, ...]] = {}
        self._of_terms: dict[Hashable, tuple[TermCarriers, ...]] = {}
        self._by_anchor: dict[Stance, dict[Anchor, dict[TermCarriers, None]]] = {
            stance: {} for stance in Stance
        }
        self._unanchored: dict[Stance, dict[TermCarriers, None]] = {stance: {} for stance in Stance}
        self._answers: dict[tuple[Stance, int], tuple[TermCarriers, ...]] = {}
        self._namespace_version = -1
        self._look_at = _LOOK_FROM
        self.absence_terms: Interner[tuple[AffinityTerm, ...]] = Interner()
        self._absence_ids: NDArray[np.intp] = np.zeros(0, np.intp)

    def about(self, stance: Stance, class_id: int) -> list[TermCarriers]:
        """Terms carried by at least one pod that match pods of a class."""
        if not self._all:
            return []
        version = self._listers.version("Namespace")
        if version != self._namespace_version:
            self._answers.clear()
            self._namespace_version = version
        found = self._answers.get((stance, class_id))
        if found is None:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            found = self._answers[(stance, class_id)] = self._matching(stance, class_id)
        return [carriers for carriers in found if carriers.rows]

    def term_matches(self, term: AffinityTerm, class_id: int) -> bool:
        """Whether an existing pod's term is about pods of a class.

        Source: staging/src/k8s.io/kube-scheduler/framework/types.go AffinityTerm.Matches, v1.34
        """
        namespace = self._classes.namespace(class_id)
        if namespace not in term.namespaces:
            # No Namespace object reads as a namespace without labels.
            labels = self._listers.namespace_labels(namespace) or {}
            if not term.namespace_selector.matches(labels):
                return False
        return term.selector.matches(self._classes.labels(class_id))

    def add(self, pod_id: int, pod: Pod, row: int) -> None:
        """A pod with terms came to a row."""
        carried = self._of_pod[pod_id] = self._carried(pod)
        if pod.required_anti_affinity:
            if pod_id >= len(self._absence_ids):
                self._absence_ids = grown(self._absence_ids, 2 * pod_id + 64, -1)  # type: ignore[assignment]
            self._absence_ids[pod_id] = self.absence_terms.id(pod.required_anti_affinity)
        for carriers in carried:
            carriers.move(row, 1)

    def pods(self) -> list[int]:
        """Pods that carry terms, as they came."""
        return list(self._of_pod)

    def remove(self, pod_id: int, row: int) -> None:
        """A pod left a row; nothing happens if it carried no terms."""
        for carriers in self._of_pod.pop(pod_id, ()):
            carriers.move(row, -1)
        if pod_id < len(self._absence_ids):
            self._absence_ids[pod_id] = -1

    def absence_ids(self, pod_ids: NDArray[np.intp]) -> NDArray[np.intp]:
        """Which of `absence_terms` each pod carries, -1 for none and for pods on no row (nominated ones)."""
        known = pod_ids < len(self._absence_ids)
        ids = np.full(len(pod_ids), -1, np.intp)
        ids[known] = self._absence_ids[pod_ids[known]]
        return ids

    def _matching(self, stance: Stance, class_id: int) -> tuple[TermCarriers, ...]:
        by_anchor = self._by_anchor[stance]
        found = []
        for item in self._classes.labels(class_id).items():
            found += [
                carriers for carriers in by_anchor.get(item, ()) if self.term_matches(carriers.term, class_id)
            ]
        found += [
            carriers for carriers in self._unanchored[stance] if self.term_matches(carriers.term, class_id)
        ]
        return tuple(found)

    def _carried(self, pod: Pod) -> tuple[TermCarriers, ...]:
        """The carriers of each of a pod's terms."""
        terms = (
            pod.required_anti_affinity, pod.required_affinity,
            pod.preferred_affinity, pod.preferred_anti_affinity,
        )  # fmt: skip
        found = self._of_terms.get(terms)
        if found is None:
            # Before, not between two terms of one pod: the first, on no row yet, would be dropped.
            if len(self._all) >= self._look_at:
                self._drop_empty()
            if len(self._of_terms) >= _MAX_ANSWERS:
                self._of_terms.clear()
            found = self._of_terms[terms] = tuple([self._carriers(*item) for item in _terms_of(pod)])
        return found

    def _carriers(self, stance: Stance, term: AffinityTerm, weight: int) -> TermCarriers:
        key = (stance, term, weight)
        found = self._all.get(key)
        if found is None:
            found = self._all[key] = TermCarriers(stance, term, weight, self._topology)
            self._answers.clear()
            for index in self._indexes(found):
                index[found] = None
        return found

    def _indexes(self, carriers: TermCarriers) -> list[dict[TermCarriers, None]]:
        anchors = anchors_of(carriers.term.selector)
        if anchors is None:
            return [self._unanchored[carriers.stance]]
        by_anchor = self._by_anchor[carriers.stance]
        return [by_anchor.setdefault(anchor, {}) for anchor in anchors]

    def _drop_empty(self) -> None:
        self._all = {key: carriers for key, carriers in self._all.items() if carriers.rows}
        self._of_terms.clear()
        self._by_anchor = {stance: {} for stance in Stance}
        self._unanchored = {stance: {} for stance in Stance}
        for carriers in self._all.values():
            for index in self._indexes(carriers):
                index[carriers] = None
        self._answers.clear()
        self._look_at = max(_LOOK_FROM, 2 * len(self._all))


def _terms_of(pod: Pod) -> list[tuple[Stance, AffinityTerm, int]]:
    return [
        *((Stance.REQUIRES_ABSENCE, term, 0) for term in pod.required_anti_affinity),
        *((Stance.REQUIRES_PRESENCE, term, 0) for term in pod.required_affinity),
        *((Stance.PREFERS, item.term, item.weight) for item in pod.preferred_affinity),
        *((Stance.PREFERS, item.term, -item.weight) for item in pod.preferred_anti_affinity),
    ]
