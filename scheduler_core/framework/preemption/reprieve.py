"""Who has to go: all lower pods of a node go at first, then as many as possible come back.

All nodes advance together: the k-th pod of every node comes back in one step, each in a world of its own.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.pod_table import NO_START_NS, PodTable
from scheduler_core.framework.interface import FilteredCycle
from scheduler_core.framework.preemption.budgets import Budgets, Violations
from scheduler_core.framework.preemption.choice import CRITERIA, criteria
from scheduler_core.framework.preemption.potential import Int64, PodsOfPlaces, potential_victims, starts_of
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
    verdict : ndarray of shape (n,), int64
        `CANDIDATE`, or an index into `statuses`.
    statuses : list of Status
    values : ndarray of shape (5, n), int64
        What candidates are compared by (`choice.CRITERIA`); 0 for a node that is none.
    tried : list of Tried
    """

    verdict: Int64
    statuses: list[Status]
    values: Int64
    tried: list[Tried]


def try_nodes(cycle: FilteredCycle, rows: Rows, budgets: Budgets) -> Tries:
    """Find the victims on each of `rows`."""
    nodes, pods = cycle.snapshot.nodes, cycle.snapshot.pods
    n_rows = len(rows)
    potential = potential_victims(nodes, rows, cycle.pod.priority)
    result = Tries(
        np.zeros(n_rows, np.int64),
        [NO_VICTIMS],
        np.zeros((len(CRITERIA), n_rows), np.int64),
        [NOTHING_TRIED] * n_rows,
    )
    counts = potential.counts
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
    result: Tries, potential: PodsOfPlaces, violations: Violations, kept: Bool, order: Int64, pods: PodTable
) -> None:
    """Fill `tried`, node by node, and `values`."""
    violates, of_pod = violations.violates, potential.places
    is_candidate = result.verdict == CANDIDATE
    candidates = is_candidate.nonzero()[0]
    victims = PodsOfPlaces(np.zeros(len(is_candidate) + 1, np.int64), potential.pod_ids[:0])
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
