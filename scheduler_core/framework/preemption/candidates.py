"""Nodes a pod could have after the eviction of their victims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import Index, NodeColumns, NodeTable, Rows
from scheduler_core.cluster.pod_table import NO_START_NS, PodTable
from scheduler_core.framework.interface import Victims
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import PodDisruptionBudget
from scheduler_core.thresholds import thresholds

# --- Whom a pod may preempt, node by node, the most important first.


Int64 = NDArray[np.int64]


@dataclass(slots=True)
class PodsOfPlaces:
    """Some pods of each of n nodes, as one column: those of node k stand at `starts[k]` to `starts[k + 1]`.

    Attributes
    ----------
    starts : ndarray of shape (n + 1,), intp
    pod_ids : ndarray of shape (m,), intp
    """

    starts: Index
    pod_ids: Index

    @property
    def sizes(self) -> Index:
        """Pods of each node."""
        return self.starts[1:] - self.starts[:-1]

    @property
    def places(self) -> Index:
        """The node of each pod."""
        return np.repeat(np.arange(len(self.starts) - 1), self.sizes)

    def of(self, place: int) -> list[int]:
        """Pods of one node."""
        found: list[int] = self.pod_ids[self.starts[place] : self.starts[place + 1]].tolist()
        return found

    def taken(self, places: Index) -> PodsOfPlaces:
        """The pods of some nodes, in that order."""
        counts = self.sizes[places]
        starts = starts_of(counts)
        indices = np.repeat(self.starts[places] - starts[:-1], counts) + np.arange(starts[-1])
        return PodsOfPlaces(starts, self.pod_ids[indices])


def starts_of(counts: NDArray[np.integer]) -> Index:
    """Where groups of these sizes begin, and where the last one ends."""
    starts = np.zeros(len(counts) + 1, np.intp)
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
        pod_ids = np.array([pod_id for ids in found for pod_id in ids], np.intp)
        places = np.repeat(np.arange(len(rows)), [len(ids) for ids in found])
        lower = pods.priority[pod_ids] < priority
        pod_ids, places = pod_ids[lower], places[lower]
    else:
        # The last place stands for "no row": a pod on none has row -1.
        place_of_row = np.full(nodes.capacity + 1, -1, np.intp)
        place_of_row[rows] = np.arange(len(rows))
        place_of_pod = place_of_row[pods.row]
        pod_ids = np.flatnonzero((place_of_pod >= 0) & (pods.priority < priority))
        places = place_of_pod[pod_ids]
    arrival, start_ns = pods.arrival[pod_ids], pods.start_ns[pod_ids]
    last = np.where(start_ns == NO_START_NS, -arrival, arrival)
    order = np.lexsort((last, start_ns, -pods.priority[pod_ids], places))
    return PodsOfPlaces(starts_of(np.bincount(places, minlength=len(rows))), pod_ids[order])


# --- PodDisruptionBudgets: which victims are one too many for a budget.


KIND = "PodDisruptionBudget"


class Violations(NamedTuple):
    """Which of some victims are one too many for a budget.

    Attributes
    ----------
    violates : ndarray of shape (n_victims,), bool
    budgets : dict of int to tuple of str
        The budgets violated (``namespace/name``), by place of the victim; in no order.
    """

    violates: NDArray[np.bool_]
    budgets: dict[int, tuple[str, ...]]


class Budgets:
    """The cluster's budgets, matched once for each class of pods (namespace and labels)."""

    def __init__(self) -> None:
        self.version = -1
        """Changes when any budget does."""
        self._listers: Listers | None = None
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        self._of_class: dict[int, list[PodDisruptionBudget]] = {}

    def refresh(self, listers: Listers) -> None:
        """Look at the budgets again if they changed."""
        if listers is self._listers and self.version == listers.version(KIND):
            return
        self._listers, self.version = listers, listers.version(KIND)
        self._of_class.clear()
        self._by_namespace.clear()
        for budget in listers.all(KIND):
            # One that selects everything protects nothing.
            if not budget.selector.is_everything and not budget.selector.is_nothing:
                self._by_namespace.setdefault(budget.meta.namespace, []).append(budget)

    def violated_by(self, victims: PodsOfPlaces, pods: PodTable) -> Violations:
        """Whose eviction violates which budget, evictions of one node counted in their order."""
        violates = np.zeros(len(victims.pod_ids), np.bool_)
        budgets: dict[int, tuple[str, ...]] = {}
        if not self._by_namespace or not len(violates):
            return Violations(violates, budgets)
        class_ids = pods.class_id[victims.pod_ids]
        classes_of: dict[int, tuple[PodDisruptionBudget, list[int]]] = {}
        for class_id in np.unique(class_ids).tolist():
            for budget in self._protecting(class_id, pods):
                classes_of.setdefault(id(budget), (budget, []))[1].append(class_id)
        places = victims.places
        for budget, protected in classes_of.values():
            counted = np.isin(class_ids, protected)
            if budget.disrupted_pods:
                # The API server has taken these off the budget already.
                for index in np.flatnonzero(counted).tolist():
                    if pods[int(victims.pod_ids[index])].name in budget.disrupted_pods:
                        counted[index] = False
            so_far = np.cumsum(counted)
            before_node = np.append(0, so_far)[victims.starts[:-1]]
            one_too_many = counted & (so_far - before_node[places] > budget.disruptions_allowed)
            violates |= one_too_many
            name = f"{budget.meta.namespace}/{budget.meta.name}"
            for index in np.flatnonzero(one_too_many).tolist():
                budgets[index] = (*budgets.get(index, ()), name)
        return Violations(violates, budgets)

    def _protecting(self, class_id: int, pods: PodTable) -> list[PodDisruptionBudget]:
        found = self._of_class.get(class_id)
        if found is None:
            namespace, items = pods.vocabulary.pod_classes[class_id]
            labels = dict(items)
            found = self._of_class[class_id] = [
                budget
                for budget in self._by_namespace.get(namespace, ())
                # A pod without labels is not asked about, though `NotIn` would match it.
                if labels and budget.selector.matches(labels)
            ]
        return found


# --- Which candidate: criterion after criterion, the best go on.


CRITERIA = (
    "fewestBudgetViolations",
    "lowestHighestPriority",
    "lowestPrioritySum",
    "fewestVictims",
    "latestEarliestStart",
)
"""What candidates are compared by, in this order; the sixth step takes any of those left."""
LARGEST_WINS = (False, False, False, False, True)

PRIORITY_OFFSET = 2**31
"""Added to every priority of a sum, so that few victims of negative priority beat many of them."""
UNDECIDED = -1


@dataclass(slots=True)
class CandidateChoice:
    """Criterion that decided between the candidates.

    Attributes
    ----------
    values : ndarray of shape (5, n), int64
        Each candidate's value for each of `CRITERIA`; start times in nanoseconds since the epoch.
    eliminated_at : ndarray of shape (n,), int64
        Index of the criterion that eliminated each candidate, `UNDECIDED` for those that are left.
    n_asked : int
        Criteria that were asked: none any more once one candidate is left.
    left : ndarray, intp
        Candidates nothing tells apart, ascending.
    """

    values: Int64
    eliminated_at: Int64
    n_asked: int
    left: Index


def criteria(n_violations: NDArray[np.integer], victims: PodsOfPlaces, pods: PodTable) -> Int64:
    """What n candidates are compared by.

    Parameters
    ----------
    n_violations : ndarray of shape (n,)
        Victims of each candidate that violate a budget.
    victims : PodsOfPlaces
        Each candidate's victims, one at least, the most important first.

    Returns
    -------
    ndarray of shape (5, n), int64
        In the order of `CRITERIA`; start times in nanoseconds since the epoch, `NO_START_NS` for "has not started".
    """
    return _criteria(
        n_violations, victims.starts, pods.priority[victims.pod_ids], pods.start_ns[victims.pod_ids]
    )


def _criteria(n_violations: NDArray[np.integer], starts: Index, priorities: Int64, start_ns: Int64) -> Int64:
    """The same of the victims' columns.

    Examples
    --------
    Three nodes: the first loses two pods of priority 5, the others one each that started at 20 and 30.

    >>> numbers = lambda *values: np.array(values, np.int64)
    >>> starts = np.array([0, 2, 3, 4], np.intp)
    >>> values = _criteria(numbers(0, 0, 0), starts, numbers(5, 5, 5, 5), numbers(10, 40, 20, 30))
    >>> [CRITERIA[index] if index >= 0 else None for index in choose(values).eliminated_at.tolist()]
    ['lowestPrioritySum', 'latestEarliestStart', None]
    """
    firsts = starts[:-1]
    counts = starts[1:] - firsts
    highest = np.maximum.reduceat(priorities, firsts)
    among_highest = priorities == np.repeat(highest, counts)
    return np.stack(
        [
            n_violations,
            # Upstream takes the first victim for the most important one, whatever an extender made of the list.
            priorities[firsts],
            np.add.reduceat(priorities, firsts) + counts.astype(np.int64) * PRIORITY_OFFSET,
            counts,
            np.minimum.reduceat(np.where(among_highest, start_ns, NO_START_NS), firsts),
        ]
    )


def choose(values: Int64) -> CandidateChoice:
    """Compare n candidates by their `criteria`, an ndarray of shape (5, n)."""
    eliminated_at = np.full(values.shape[1], UNDECIDED, np.int64)
    n_asked = 0
    left: NDArray[np.intp] = np.arange(values.shape[1])
    for index, largest_wins in enumerate(LARGEST_WINS):
        if len(left) == 1:
            break
        n_asked += 1
        asked = values[index, left]
        passes = asked == (asked.max() if largest_wins else asked.min())
        if np.count_nonzero(passes) == len(left):
            continue
        eliminated_at[left[~passes]] = index
        left = left[passes]
    return CandidateChoice(values, eliminated_at, n_asked, left)


class Candidates:
    """n nodes and their victims.

    Parameters
    ----------
    nodes : NodeColumns
    rows : ndarray of shape (n,), intp
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
            counts = np.array([len(ids) for ids in pod_ids.values()], np.intp)
            flat = np.array([pod_id for ids in pod_ids.values() for pod_id in ids], np.intp)
            n_violations = np.array([number for _, number in victims.values()], np.int64)
            values = criteria(n_violations, PodsOfPlaces(starts_of(counts), flat), pods)
        return cls(nodes, np.array(list(pod_ids), np.intp), pod_ids.__getitem__, values)

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
        return tuple(self._nodes.pods.all_of(self.victim_ids(place)))

    def as_victims(self) -> dict[str, Victims]:
        """All of them by node name, as extenders are asked about them."""
        return {
            name: (self.victims_of(place), number)
            for place, (name, number) in enumerate(zip(self.names, self.n_violations.tolist(), strict=True))
        }

    def compare(self) -> CandidateChoice:
        """Compare the candidates, of which there is one at least."""
        return choose(self.values)
