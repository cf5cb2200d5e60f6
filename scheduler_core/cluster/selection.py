"""How many pods of each row, and of each topology domain, a selector selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import Bool, Int32
from scheduler_core.cluster.topology import Domains
from scheduler_core.cluster.vocabulary import Vocabulary
from scheduler_core.objects.labels import NOTHING, LabelSelector

# ---- classes of pods: a selector cannot tell apart two of one namespace with the same labels

Anchor = tuple[str, str]
"""A (label key, value) a pod must carry to be selected."""


def anchors_of(selector: LabelSelector) -> tuple[Anchor, ...] | None:
    """Labels of which a selected pod carries exactly one; None when the selector asks for no given value."""
    if selector.is_nothing:
        return ()
    for requirement in selector.requirements:
        if requirement.operator in ("in", "=", "=="):
            return tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
    return None


class PodClasses:
    """Pod classes of a vocabulary, found by the labels they carry."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._interned = vocabulary.pod_classes
        self._labels: list[Mapping[str, str]] = []
        self._by_label: dict[Anchor, list[int]] = {}

    def __len__(self) -> int:
        return len(self._interned)

    def namespace(self, class_id: int) -> str:
        return self._interned[class_id][0]

    def labels(self, class_id: int) -> Mapping[str, str]:
        if class_id >= len(self._labels):
            self._catch_up()
        return self._labels[class_id]

    def candidates(self, anchors: tuple[Anchor, ...] | None) -> Iterable[int]:
        """Classes a selector with these anchors may select."""
        self._catch_up()
        if anchors is None:
            return range(len(self._labels))
        return [class_id for anchor in anchors for class_id in self._by_label.get(anchor, ())]

    def _catch_up(self) -> None:
        for class_id in range(len(self._labels), len(self._interned)):
            items = self._interned[class_id][1]
            self._labels.append(dict(items))
            for item in items:
                self._by_label.setdefault(item, []).append(class_id)


# ---- counts

Counts = NDArray[np.int64]

_MAX_COUNTERS = 8


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Pods of some namespaces with some labels.

    Attributes
    ----------
    selector : LabelSelector
    namespaces : tuple of str
    namespace_selector : LabelSelector
        Namespaces whose objects it matches are selected too. One that matches a namespace without labels (of
        `NotIn`, `DoesNotExist`, or the empty one) selects every namespace.
    """

    selector: LabelSelector
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector = NOTHING

    @property
    def reads_namespaces(self) -> bool:
        """Whether Namespace objects matter."""
        return not self.namespace_selector.is_nothing and not self.namespace_selector.matches({})

    def namespaces_now(self, listers: Listers) -> frozenset[str] | None:
        """Names of all namespaces it covers, None for every one.

        Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go
        mergeAffinityTermNamespacesIfNotEmpty, v1.34. It adds the names of these namespaces to the incoming
        pod's term, but takes the selector off a copy of it only; so the selector is still asked about every
        pod, with no namespace labels at hand.
        """
        if self.namespace_selector.matches({}):
            return None
        names = list(self.namespaces)
        if self.reads_namespaces:
            names += [
                namespace.meta.name
                for namespace in listers.all("Namespace")
                if self.namespace_selector.matches(namespace.meta.labels)
            ]
        return frozenset(names)


class DomainCounts:
    """Counts by domain, moved along as pods come and go.

    Attributes
    ----------
    by_domain : ndarray of shape (domains.n_values,), int64
    total : int
        Pods on rows of any domain.
    """

    __slots__ = ("by_domain", "domains", "total", "version")

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.version = 0
        self.total = 0
        self.by_domain: Counts = np.zeros(0, np.int64)

    def fill(self, rows: NDArray[np.intp], counts: NDArray[np.integer]) -> None:
        """Count afresh: `counts[i]` pods stand on `rows[i]`."""
        domain = self.domains.of_row[rows]
        inside = domain >= 0
        weights = counts[inside]
        self.by_domain = np.bincount(domain[inside], weights, minlength=self.domains.n_values).astype(
            np.int64
        )
        self.total = int(weights.sum())
        self.version = self.domains.version

    def move(self, row: int, change: int) -> None:
        """`change` pods came to a row; the domains are fresh."""
        # Counts behind their domains are filled afresh when next asked for.
        if self.version == self.domains.version:
            domain = self.domains.of_row[row]
            if domain >= 0:
                self.by_domain[domain] += change
                self.total += change


class Selection:
    """Pods that all of some selectors select, counted by row.

    Attributes
    ----------
    live_only : bool
        Terminating pods are not counted.
    column : ndarray of shape (at least the node table's capacity,), int32
        Pods of each row.
    """

    __slots__ = (
        "_answers",
        "_classes",
        "_counters",
        "_n_answers",
        "anchors",
        "column",
        "live_only",
        "namespace_version",
        "namespaces",
        "parts",
    )

    def __init__(self, parts: tuple[PodSelector, ...], live_only: bool, classes: PodClasses) -> None:
        self.parts = parts
        self.live_only = live_only
        self.anchors: tuple[Anchor, ...] | None = anchors_of(parts[0].selector)
        self.namespaces: tuple[frozenset[str] | None, ...] = ()
        self.namespace_version = -1
        self.column: Int32 = np.zeros(0, np.int32)
        self._classes = classes
        self._answers: Bool = np.zeros(0, np.bool_)
        self._n_answers = 0
        self._counters: dict[Domains, DomainCounts] = {}

    @property
    def reads_namespaces(self) -> bool:
        """Whether Namespace objects matter."""
        return any(part.reads_namespaces for part in self.parts)

    def selects_class(self, class_id: int) -> bool:
        """Whether pods of a class are selected."""
        if class_id < self._n_answers:
            return bool(self._answers[class_id])
        return self._evaluate(class_id)

    def selects_classes(self, class_ids: NDArray[np.integer]) -> Bool:
        """Whether pods of each of these classes are selected."""
        n_classes = len(self._classes)
        if self._n_answers < n_classes:
            if len(self._answers) < n_classes:
                grown = np.zeros(2 * n_classes, np.bool_)
                grown[: self._n_answers] = self._answers[: self._n_answers]
                self._answers = grown
            for class_id in range(self._n_answers, n_classes):
                self._answers[class_id] = self._evaluate(class_id)
            self._n_answers = n_classes
        answers: Bool = self._answers[class_ids]
        return answers

    def answer_all(self) -> list[int]:
        """Decide about every class there is; returns those selected."""
        n_classes = len(self._classes)
        self._answers = np.zeros(n_classes, np.bool_)
        selected = [
            class_id for class_id in self._classes.candidates(self.anchors) if self._evaluate(class_id)
        ]
        self._answers[selected] = True
        self._n_answers = n_classes
        return selected

    def counts(self, domains: Domains) -> DomainCounts:
        """Selected pods by domain; `domains` has just been asked for."""
        counter = self._counters.get(domains)
        if counter is None:
            if len(self._counters) >= _MAX_COUNTERS:
                del self._counters[next(iter(self._counters))]
            counter = self._counters[domains] = DomainCounts(domains)
        if counter.version != domains.version:
            rows = np.flatnonzero(self.column)
            counter.fill(rows, self.column[rows])
        return counter

    def move(self, row: int, change: int, position: int) -> None:
        """Add `change` selected pods to a row; `position` is that of the node table's spec journal."""
        self.column[row] += change
        for counter in self._counters.values():
            if counter.domains.position == position:
                counter.move(row, change)

    def forget_counts(self) -> None:
        self._counters.clear()

    def _evaluate(self, class_id: int) -> bool:
        namespace = self._classes.namespace(class_id)
        labels = self._classes.labels(class_id)
        for part, names in zip(self.parts, self.namespaces, strict=True):
            if names is not None and namespace not in names:
                return False
            if not part.selector.matches(labels):
                return False
        return True
