"""Who has to go: all lower pods of a node go at first, then as many as possible come back.

All nodes advance together: the k-th pod of every node comes back in one step, each in a world of its own.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode, v1.34
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import JournalReader
from scheduler_core.cluster.node_table import Index, NodeColumns, Rows
from scheduler_core.cluster.pod_table import NO_START_NS, PodTable
from scheduler_core.framework.interface import FilteredCycle
from scheduler_core.framework.preemption.candidates import (
    CRITERIA,
    Budgets,
    Candidates,
    Int64,
    PodsOfPlaces,
    Violations,
    criteria,
    potential_victims,
    starts_of,
)
from scheduler_core.framework.status import Code, Status

Bool = NDArray[np.bool_]

NO_VICTIMS = Status(Code.UnschedulableAndUnresolvable, ("No preemption victims found for incoming pod",))
CANDIDATE = -1
"""In `Tries.verdict`: the pod fits once the victims are gone."""


class Tried(NamedTuple):
    """What came of trying preemption on one node.

    Attributes
    ----------
    pod_ids : list of int
        Its lower pods, in order of importance.
    violates, kept : list of bool
        Whether the eviction of each of them would violate a budget, and whether it can stay.
    steps : list of int
        Places in `pod_ids` in the order the pods were tried to be given back.
    victims : list of int
        Pods that have to go, in order of importance; meant for a candidate only.
    budgets : dict of int to tuple of str
        The budgets each of them would violate (``namespace/name``), by place in `pod_ids`.
    """

    pod_ids: list[int]
    violates: list[bool]
    kept: list[bool]
    steps: list[int]
    victims: list[int]
    budgets: dict[int, tuple[str, ...]]


NOTHING_TRIED = Tried([], [], [], [], [], {})


@dataclass(slots=True)
class Tries:
    """What came of trying preemption on n nodes.

    Attributes
    ----------
    verdict : ndarray of shape (n,), intp
        `CANDIDATE`, or an index into `statuses`.
    statuses : list of Status
    values : ndarray of shape (5, n), int64
        What candidates are compared by (`choice.CRITERIA`); 0 for a node that is none.
    tried : list of Tried
    """

    verdict: Index
    statuses: list[Status]
    values: Int64
    tried: list[Tried]


def try_nodes(cycle: FilteredCycle, rows: Rows, budgets: Budgets) -> Tries:
    """Find the victims on each of `rows`."""
    nodes, pods = cycle.snapshot.nodes, cycle.snapshot.pods
    n_rows = len(rows)
    potential = potential_victims(nodes, rows, cycle.pod.priority)
    result = Tries(
        np.zeros(n_rows, np.intp),
        [NO_VICTIMS],
        np.zeros((len(CRITERIA), n_rows), np.int64),
        [NOTHING_TRIED] * n_rows,
    )
    counts = potential.sizes
    occupied = counts.nonzero()[0]
    if not len(occupied):
        return result
    violations = budgets.violated_by(potential, pods)
    violates = violations.violates
    # Protected pods are given back first, however unimportant.
    order = np.argsort(potential.places * 2 + ~violates, kind="stable")
    kept = np.zeros(len(potential.pod_ids), np.bool_)
    begins, counts = potential.starts[:-1][occupied], counts[occupied]
    world = cycle.what_if(rows[occupied])
    # Nodes without lower pods take no room in the column: what is left begins where it began.
    world.remove_all(np.append(begins, len(potential.pod_ids)), potential.pod_ids)
    verdict, statuses = world.rejections(np.arange(len(occupied)))
    # Index 0 is taken by nodes without potential victims.
    result.verdict[occupied] = np.where(verdict < 0, CANDIDATE, verdict + 1)
    result.statuses += statuses
    fitting = (verdict < 0).nonzero()[0]
    for turn in range(int(counts[fitting].max()) if len(fitting) else 0):
        places = fitting[counts[fitting] > turn]
        steps = order[begins[places] + turn]
        pod_ids = potential.pod_ids[steps]
        world.add_pods(places, pod_ids)
        fits = world.feasible(places)
        kept[steps] = fits
        world.remove_pods(places[~fits], pod_ids[~fits])
    if len(fitting):
        _refuse_without_victims(result, potential, kept, rows, nodes)
    _tell(result, potential, violations, kept, order, pods)
    return result


def _refuse_without_victims(
    result: Tries, potential: PodsOfPlaces, kept: Bool, rows: Rows, nodes: NodeColumns
) -> None:
    """A node where everybody can stay is no candidate, but an error: Filter rejected it for nothing."""
    n_victims = np.bincount(potential.places[~kept], minlength=len(rows))
    for place in ((result.verdict == CANDIDATE) & (n_victims == 0)).nonzero()[0].tolist():
        name = nodes.name(int(rows[place]))
        result.verdict[place] = len(result.statuses)
        result.statuses.append(Status(Code.Error, (f'expected at least one victim pod on node "{name}"',)))


def _tell(
    result: Tries, potential: PodsOfPlaces, violations: Violations, kept: Bool, order: Index, pods: PodTable
) -> None:
    """Fill `tried`, node by node, and `values`."""
    violates, of_pod = violations.violates, potential.places
    is_candidate = result.verdict == CANDIDATE
    candidates = is_candidate.nonzero()[0]
    victims = PodsOfPlaces(np.zeros(len(is_candidate) + 1, np.intp), potential.pod_ids[:0])
    if len(candidates):
        gone = order[(~kept & is_candidate[of_pod])[order]]
        pod_ids, places = potential.pod_ids[gone], of_pod[gone]
        # As upstream's, this sort begins with the protected pods, which tells among equals; is done only where some
        # pods are protected and some are not; and turns the order of those that have not started (`potential`).
        n_places = len(is_candidate)
        is_sorted = np.bincount(of_pod[violates], minlength=n_places) > 0
        is_sorted &= np.bincount(of_pod[~violates], minlength=n_places) > 0
        turn = np.arange(len(pod_ids))
        turn = np.where(is_sorted[places] & (pods.start_ns[pod_ids] == NO_START_NS), -turn, turn)
        pod_ids = pod_ids[np.lexsort((turn, pods.start_ns[pod_ids], -pods.priority[pod_ids], places))]
        victims = PodsOfPlaces(starts_of(np.bincount(places, minlength=len(is_candidate))), pod_ids)
        n_violations = np.bincount(of_pod[violates & ~kept], minlength=len(is_candidate))
        evicted = victims.taken(candidates)
        result.values[:, candidates] = criteria(n_violations[candidates], evicted, pods)
    lower, violating, staying = potential.pod_ids.tolist(), violates.tolist(), kept.tolist()
    steps = (order - potential.starts[of_pod]).tolist()
    starts, first_victims = potential.starts.tolist(), victims.starts.tolist()
    evicted_ids = victims.pod_ids.tolist()
    budgets: dict[int, dict[int, tuple[str, ...]]] = {}
    for index, names in violations.budgets.items():
        place = int(of_pod[index])
        budgets.setdefault(place, {})[index - starts[place]] = names
    result.tried = [
        Tried(
            lower[begin:end],
            violating[begin:end],
            staying[begin:end],
            steps[begin:end],
            evicted_ids[first_victims[place] : first_victims[place + 1]],
            budgets.get(place, {}),
        )
        for place, (begin, end) in enumerate(pairwise(starts))
    ]


# --- What came of trying preemption on each node, kept as long as neither the node nor its pods change.


_KEPT = 8
"""For how many kinds of preemptors; the least recently used goes."""
_UNKNOWN = -2
"""In `_Kept.verdict`: to be tried (again)."""


@dataclass(slots=True)
class DryRun:
    """What came of trying preemption on n nodes.

    Attributes
    ----------
    rows : ndarray of shape (n,), intp
        Rows of the cluster, in the order they were tried.
    verdict : ndarray of shape (n,), intp
        `CANDIDATE`, or an index into `statuses`.
    statuses : list of Status
    values : ndarray of shape (5, capacity), int64
        What candidates are compared by (`choice.criteria`), by row of the cluster.
    tried : sequence of Tried
        By row of the cluster.
    """

    rows: Rows
    verdict: Index
    statuses: list[Status]
    values: Int64
    tried: Sequence[Tried]

    @property
    def is_candidate(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.verdict == CANDIDATE
        return found

    def candidates(self, places: Index, nodes: NodeColumns) -> Candidates:
        """The nodes at some places."""
        rows, tried = self.rows[places], self.tried
        return Candidates(nodes, rows, lambda row: tried[row].victims, self.values[:, rows])


class _Kept:
    """Columns by row of the cluster for one kind of preemptors, as in `reprieve.Tries`."""

    def __init__(self) -> None:
        self.reader = JournalReader()
        self.budgets_version = -1
        self.forget(0)

    def forget(self, capacity: int) -> None:
        self.verdict: Index = np.full(capacity, _UNKNOWN, np.intp)
        self.values: Int64 = np.zeros((len(CRITERIA), capacity), np.int64)
        self.tried: list[Tried] = [NOTHING_TRIED] * capacity
        self.statuses: list[Status] = []
        self.status_ids: dict[Status, int] = {}


class KeptTries:
    """The tries of one profile over one cluster."""

    def __init__(self) -> None:
        self._budgets = Budgets()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._now = self._in_vain = _Kept()
        self._cycle: FilteredCycle | None = None

    @property
    def is_in_vain(self) -> bool:
        """Whether no node has any pod that might go: all verdicts are known without a try."""
        return self._now is self._in_vain

    def refresh(self, cycle: FilteredCycle) -> None:
        """Take up the pod of `cycle`, and forget what has changed since a pod of its kind was here last."""
        self._cycle, snapshot = cycle, cycle.snapshot
        if not snapshot.pods.has_below(cycle.pod.priority):
            self._now = self._in_vain
            if len(self._now.tried) != snapshot.nodes.capacity:
                self._now.forget(snapshot.nodes.capacity)
                self._now.verdict[:] = self._status_id(NO_VICTIMS)
            return
        self._budgets.refresh(snapshot.listers)
        self._now = kept = self._kept_for(cycle.row_key())
        changed = cycle.rows_changed(kept.reader)
        capacity = snapshot.nodes.capacity
        if changed is None or len(kept.tried) != capacity or kept.budgets_version != self._budgets.version:
            kept.forget(capacity)
            kept.budgets_version = self._budgets.version
        else:
            kept.verdict[changed] = _UNKNOWN

    def verdicts(self, rows: Rows) -> tuple[Index, Int64]:
        """(verdict, victims that violate a budget) of each of `rows`; those not known yet are tried."""
        kept, cycle = self._now, self._cycle
        assert cycle is not None
        verdict = kept.verdict[rows]
        unknown = rows[(verdict == _UNKNOWN).nonzero()[0]]
        if len(unknown):
            tries = try_nodes(cycle, unknown, self._budgets)
            # The last place serves the verdict -1.
            ids = np.array([*(self._status_id(status) for status in tries.statuses), -1], np.intp)
            kept.verdict[unknown] = ids[tries.verdict]
            kept.values[:, unknown] = tries.values
            for row, tried in zip(unknown.tolist(), tries.tried, strict=True):
                kept.tried[row] = tried
            verdict = kept.verdict[rows]
        return verdict, kept.values[0, rows]

    def dry_run(self, rows: Rows) -> DryRun:
        """What is known of `rows`, all of which were tried."""
        kept = self._now
        return DryRun(rows, kept.verdict[rows], kept.statuses, kept.values, kept.tried)

    def _kept_for(self, key: Hashable | None) -> _Kept:
        if key is None:
            return _Kept()
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept()
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return kept

    def _status_id(self, status: Status) -> int:
        kept = self._now
        found = kept.status_ids.get(status)
        if found is None:
            found = kept.status_ids[status] = len(kept.statuses)
            kept.statuses.append(status)
        return found


# --- How many candidate nodes are enough.


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which of the nodes where preemption might help are tried.

    Attributes
    ----------
    offset : int
        Place in the evaluation order (among those nodes) to begin at.
    n_wanted : int
        So many candidates are enough, once one of them violates no budget.
    """

    offset: int
    n_wanted: int


def candidates_wanted(n_nodes: int, percentage: int, absolute: int) -> int:
    """How many candidates to look for among `n_nodes` where preemption might help."""
    return min(max(n_nodes * percentage // 100, absolute), n_nodes)


def dry_run(kept: KeptTries, rows: Rows, sampling: Sampling, n_nominated: int = 0) -> tuple[DryRun, Int64]:
    """Try nodes until enough candidates are found.

    Parameters
    ----------
    kept : KeptTries
        Tries them.
    rows : ndarray of shape (n,), intp
        Rows where preemption might help, in evaluation order.
    n_nominated : int
        How many pods are nominated anywhere: a node with a nominated pod is rarely a candidate, so more are tried at
        once. What is found does not depend on it.

    Returns
    -------
    run : DryRun
        The nodes tried.
    candidates : ndarray, int64
        Places of the candidates in it, those that violate no budget first.
    """
    rows = np.concatenate((rows[sampling.offset :], rows[: sampling.offset]))
    n_wanted = sampling.n_wanted
    n_tried = 0
    n_free = max(len(rows) - n_nominated, 1)
    n_expected = len(rows) if kept.is_in_vain else n_wanted * len(rows) // n_free + n_wanted // 10
    harmless = harmful = rows[:0]
    while n_tried < len(rows):
        # As many at a time as it will take, then twice as many: few are tried in vain.
        n_tried = min(n_tried + max(n_expected, n_tried, 1), len(rows))
        verdict, n_violations = kept.verdicts(rows[:n_tried])
        is_candidate = verdict == CANDIDATE
        harmless = (is_candidate & (n_violations == 0)).nonzero()[0]
        harmful = (is_candidate & (n_violations > 0)).nonzero()[0]
        last = _enough(harmless, harmful, n_wanted)
        if last is not None:
            # The nodes after that are left out, as if they had not been tried.
            n_tried = last + 1
            harmless, harmful = harmless[harmless <= last], harmful[harmful <= last]
            break
    run = kept.dry_run(rows[:n_tried])
    return run, np.concatenate([harmless[:n_wanted], harmful[:n_wanted]])


def _enough(harmless: Int64, harmful: Int64, n_wanted: int) -> int | None:
    """The place at which there are enough candidates, one of them harmless; None when there are not.

    Parameters
    ----------
    harmless, harmful : ndarray, int64
        Places of the candidates that violate no budget, and of those that do, ascending.
    """
    # No kind counts for more than are wanted.
    counted = np.sort(np.concatenate([harmless[:n_wanted], harmful[:n_wanted]]))
    if not n_wanted or not len(harmless) or len(counted) < n_wanted:
        return None
    return max(int(counted[n_wanted - 1]), int(harmless[0]))
