"""Which pods match which selectors, kept up to date as pods come and go: pods are never rescanned.

The cost of a pod that comes or goes is the number of selections its class is in, plus the terms it carries.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import grown
from scheduler_core.cluster.listers import DefaultSelectors, Listers
from scheduler_core.cluster.node_table import NodeTable
from scheduler_core.cluster.pod_table import PodTable
from scheduler_core.cluster.selection import (
    Anchor,
    DomainCounts,
    PodClasses,
    PodSelector,
    Selection,
    anchors_of,
)
from scheduler_core.cluster.topology import Topology
from scheduler_core.cluster.vocabulary import Interner
from scheduler_core.errors import require
from scheduler_core.objects.pod import AffinityTerm, Pod
from scheduler_core.thresholds import thresholds

# ---- Pods that carry (anti-)affinity terms, counted by term: what existing pods say of an incoming one

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


_COLUMN_BYTES = 64 * 2**20
"""About how much memory the columns of all selections may take."""
_MIN_SELECTIONS = 64


class Matching:
    """Counts of pods by selector and row, and of pods that carry affinity terms.

    Attributes
    ----------
    topology : Topology
        Domains to count by.
    carriers : Carriers
        What pods on rows say of others.
    default_selectors : DefaultSelectors
        Selectors deduced from Services and owners.

    Examples
    --------
    >>> from scheduler_core.cluster.cache import Cache
    >>> from scheduler_core.objects.labels import selector_from_labels
    >>> from scheduler_core.objects.node import node_from
    >>> from scheduler_core.objects.pod import pod_from
    >>> cache = Cache()
    >>> for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
    ...     cache.set_node(node_from({"metadata": {"name": name, "labels": {"zone": zone}}}))
    >>> web = PodSelector(selector_from_labels({"app": "web"}), ("default",))
    >>> selection = cache.matching.selection((web,))
    >>> for name, node in (("p1", "n1"), ("p2", "n2"), ("p3", "n2")):
    ...     cache.add_pod(pod_from({"metadata": {"name": name, "uid": name, "namespace": "default",
    ...         "labels": {"app": "web"}}, "spec": {"nodeName": node}}))
    >>> selection.column[:3].tolist()
    [1, 2, 0]
    >>> selection.counts(cache.matching.topology.domains("zone")).by_domain.tolist()
    [3, 0]
    """

    def __init__(self, nodes: NodeTable, pods: PodTable, listers: Listers) -> None:
        self.nodes = nodes
        self.pods = pods
        self.listers = listers
        self.topology = Topology(nodes)
        self.classes = PodClasses(pods.vocabulary)
        self.carriers = Carriers(listers, self.classes, self.topology)
        self.default_selectors = DefaultSelectors(listers)
        self._selections: dict[tuple[tuple[PodSelector, ...], bool], Selection] = {}
        """The one asked for last stands last."""
        self._by_anchor: dict[Anchor, list[Selection]] = {}
        self._unanchored: list[Selection] = []
        self._of_class: dict[int, list[Selection]] = {}
        self._pods_of_class: dict[int, dict[int, None]] = {}

    def take_over(self, other: Matching) -> None:
        """Know the pods another one knows, of whose tables this one's are copies; selections are counted anew."""
        self._pods_of_class = {class_id: ids.copy() for class_id, ids in other._pods_of_class.items()}
        for pod_id in other.carriers.pods():
            self.carry(pod_id, int(self.pods.row[pod_id]))

    def selection(self, parts: tuple[PodSelector, ...], *, live_only: bool = False) -> Selection:
        """The pods all of `parts` select, counted by row; counted along from now on."""
        key = (parts, live_only)
        found = self._selections.pop(key, None)
        if found is None:
            self._make_room()
            found = Selection(parts, live_only, self.classes)
            self._index(found, self._count(found))
        elif found.namespace_version >= 0 and found.namespace_version != self.listers.version("Namespace"):
            if self._namespaces_of(found) != found.namespaces:
                self._count(found)
                self._of_class.clear()
            found.namespace_version = self.listers.version("Namespace")
        self._selections[key] = found
        if len(found.column) < self.nodes.capacity:
            found.column = grown(found.column, self.nodes.capacity)  # type: ignore[assignment]
        return found

    @property
    def has_selections(self) -> bool:
        """Whether any pods are being counted by selector."""
        return bool(self._selections)

    def pod_added(self, pod_id: int, row: int) -> None:
        """A pod came to a row (the tables say so already)."""
        class_id = int(self.pods.class_id[pod_id])
        pods_of_class = self._pods_of_class.get(class_id)
        if pods_of_class is None:
            pods_of_class = self._pods_of_class[class_id] = {}
        pods_of_class[pod_id] = None
        self._move(pod_id, class_id, row, 1)
        self.carry(pod_id, row)

    def carry(self, pod_id: int, row: int) -> None:
        """Add the pod's affinity terms to the counts."""
        if self.pods.asks(pod_id).has_affinity:
            self.carriers.add(pod_id, self.pods[pod_id], row)

    def pods_added(self, pod_ids: NDArray[np.intp], rows: NDArray[np.intp]) -> None:
        """Count many pods on rows; their affinity terms are counted by `carry`."""
        classes = self.pods.class_id[pod_ids]
        for class_id in np.unique(classes).tolist():
            came = dict.fromkeys(pod_ids[classes == class_id].tolist())
            if class_id in self._pods_of_class:
                self._pods_of_class[class_id].update(came)
            else:
                self._pods_of_class[class_id] = came
        if self._selections:
            for pod_id, class_id, row in zip(pod_ids.tolist(), classes.tolist(), rows.tolist(), strict=True):
                self._move(pod_id, class_id, row, 1)

    def pod_removed(self, pod_id: int, row: int) -> None:
        """A pod is about to leave a row (the tables still hold it)."""
        class_id = int(self.pods.class_id[pod_id])
        pods_of_class = self._pods_of_class[class_id]
        del pods_of_class[pod_id]
        if not pods_of_class:
            del self._pods_of_class[class_id]
        self._move(pod_id, class_id, row, -1)
        self.carriers.remove(pod_id, row)

    def validate(self) -> None:
        """Check that what was counted along is what counting the pods on rows afresh gives."""
        pods = self.pods
        pod_ids = np.array(sorted(pods.id_of.values()), np.intp)
        of_class: dict[int, dict[int, None]] = {}
        for pod_id, class_id in zip(pod_ids.tolist(), pods.class_id[pod_ids].tolist(), strict=True):
            of_class.setdefault(class_id, {})[pod_id] = None
        wrong = []
        for selection in self._selections.values():
            if selection.namespace_version in (-1, self.listers.version("Namespace")):
                counted = pod_ids[selection.selects_classes(pods.class_id[pod_ids])]
                if selection.live_only:
                    counted = counted[~pods.terminating[counted]]
                column = np.bincount(pods.row[counted], minlength=len(selection.column))
                wrong += [selection.parts] if (column != selection.column).any() else []
        require(
            self,
            pods_are_found_by_class=of_class == self._pods_of_class,
            pods_are_counted_by_selector=not wrong,
            carriers_are_those_with_terms=sorted(self.carriers.pods())
            == [pod_id for pod_id in pod_ids.tolist() if pods.asks(pod_id).has_affinity],
        )

    # ---- inside

    def _move(self, pod_id: int, class_id: int, row: int, change: int) -> None:
        if not self._selections:
            return
        selections = self._of_class.get(class_id)
        if selections is None:
            selections = self._of_class[class_id] = self._selecting(class_id)
        if not selections:
            return
        terminating = bool(self.pods.terminating[pod_id])
        position = self.nodes.spec_journal.position
        for selection in selections:
            if selection.live_only and terminating:
                continue
            if row >= len(selection.column):
                selection.column = grown(selection.column, self.nodes.capacity)  # type: ignore[assignment]
            selection.move(row, change, position)

    def _selecting(self, class_id: int) -> list[Selection]:
        """Selections a class is in."""
        found = []
        for item in self.classes.labels(class_id).items():
            found += [
                selection for selection in self._by_anchor.get(item, ()) if selection.selects_class(class_id)
            ]
        found += [selection for selection in self._unanchored if selection.selects_class(class_id)]
        return found

    def _count(self, selection: Selection) -> list[int]:
        """Count a selection afresh; returns the classes in it."""
        selection.namespaces = self._namespaces_of(selection)
        if selection.reads_namespaces:
            selection.namespace_version = self.listers.version("Namespace")
        selected = selection.answer_all()
        pods = self.pods
        groups = [self._pods_of_class[class_id] for class_id in selected if class_id in self._pods_of_class]
        if sum(map(len, groups)) <= thresholds().matched_pods:
            pod_ids = np.array([pod_id for group in groups for pod_id in group], np.intp)
        else:
            pod_ids = np.flatnonzero(pods.row >= 0)
            pod_ids = pod_ids[selection.selects_classes(pods.class_id[pod_ids])]
        if selection.live_only:
            pod_ids = pod_ids[~pods.terminating[pod_ids]]
        selection.column = np.bincount(pods.row[pod_ids], minlength=self.nodes.capacity).astype(np.int32)
        selection.forget_counts()
        return selected

    def _namespaces_of(self, selection: Selection) -> tuple[frozenset[str] | None, ...]:
        return tuple(part.namespaces_now(self.listers) for part in selection.parts)

    def _index(self, selection: Selection, class_ids: list[int]) -> None:
        if selection.anchors is None:
            self._unanchored.append(selection)
        else:
            for anchor in selection.anchors:
                self._by_anchor.setdefault(anchor, []).append(selection)
        for class_id in class_ids:
            if class_id in self._of_class:
                self._of_class[class_id].append(selection)

    def _make_room(self) -> None:
        """Drop the selections that were asked for longest ago; a cycle that holds one may go on reading it."""
        limit = max(_MIN_SELECTIONS, _COLUMN_BYTES // (16 * max(1, self.nodes.capacity)))
        if len(self._selections) < limit:
            return
        for key in list(self._selections)[: limit // 4]:
            del self._selections[key]
        self._by_anchor.clear()
        self._unanchored.clear()
        self._of_class.clear()
        for selection in self._selections.values():
            self._index(selection, [])
