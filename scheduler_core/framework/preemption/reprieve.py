"""Who has to go: all lower pods of a node go at first, then as many as possible come back.

All nodes advance together: the k-th pod of every node comes back in one step, each in a world of its own.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.pod_table import PodTable
from scheduler_core.framework.interface import FilteredCycle
from scheduler_core.framework.preemption.budgets import Budgets
from scheduler_core.framework.preemption.potential import Int64, PodsOfPlaces, potential_victims, starts_of
from scheduler_core.framework.status import Code, Status

Bool = NDArray[np.bool_]

NO_VICTIMS = Status(Code.UnschedulableAndUnresolvable, ("No preemption victims found for incoming pod",))
CANDIDATE = -1
"""In `DryRun.verdict`: the pod fits once the victims are gone."""


@dataclass(slots=True)
class DryRun:
    """What came of trying preemption on n nodes.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        Rows of the cluster, in the order they were tried.
    verdict : ndarray of shape (n,), int64
        `CANDIDATE`, or an index into `statuses`.
    statuses : list of Status
    potential : PodsOfPlaces
        Lower pods of each node, in order of importance.
    violates : ndarray of shape (m,), bool
        Whether the eviction of each of them would violate a budget.
    steps : ndarray of shape (m,), int64
        Indices into `potential.pod_ids`, node by node in the order the pods were tried to be given back.
    kept : ndarray of shape (m,), bool
        Aligned with `potential.pod_ids`: the pod can stay.
    """

    rows: Rows
    verdict: Int64
    statuses: list[Status] = field(default_factory=list)
    potential: PodsOfPlaces = field(
        default_factory=lambda: PodsOfPlaces(np.zeros(1, np.int64), np.zeros(0, np.int64))
    )
    violates: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    steps: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    kept: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def is_candidate(self) -> Bool:
        found: Bool = self.verdict == CANDIDATE
        return found

    def victims(self, pods: PodTable) -> PodsOfPlaces:
        """Pods that have to go, node by node in order of importance; none where a node is no candidate."""
        places = self.potential.places
        gone = self.steps[(~self.kept & self.is_candidate[places])[self.steps]]
        pod_ids = self.potential.pod_ids[gone]
        # As upstream's, this sort begins with the protected pods, which tells among equals.
        order = np.lexsort((pods.start_ns[pod_ids], -pods.priority[pod_ids], places[gone]))
        counts = np.bincount(places[gone], minlength=len(self.rows))
        return PodsOfPlaces(starts_of(counts), pod_ids[order])

    def n_violations(self) -> Int64:
        """Victims of each node whose eviction violates a budget."""
        gone = self.violates & ~self.kept
        return np.bincount(self.potential.places[gone], minlength=len(self.rows)).astype(np.int64)


def try_nodes(cycle: FilteredCycle, rows: Rows, budgets: Budgets) -> DryRun:
    """Find the victims on each of `rows`.

    Returns
    -------
    DryRun
        Its `rows` are the given ones.
    """
    nodes, pods = cycle.snapshot.nodes, cycle.snapshot.pods
    potential = potential_victims(pods, rows, nodes.capacity, cycle.pod.priority)
    counts = potential.counts
    result = DryRun(rows, np.zeros(len(rows), np.int64), [NO_VICTIMS], potential)
    result.violates = budgets.violated_by(potential, pods)
    # Protected pods are given back first, however unimportant.
    result.steps = np.argsort(potential.places * 2 + ~result.violates, kind="stable")
    result.kept = np.zeros(len(potential.pod_ids), np.bool_)
    occupied = np.flatnonzero(counts)
    if not len(occupied):
        return result
    begins, counts = potential.starts[:-1][occupied], counts[occupied]
    world = cycle.what_if(rows[occupied])
    for turn in range(int(counts.max())):
        places = np.flatnonzero(counts > turn)
        world.remove_pods(places, potential.pod_ids[begins[places] + turn])
    verdict, statuses = world.rejections(np.arange(len(occupied)))
    # Index 0 is taken by nodes without potential victims.
    result.verdict[occupied] = np.where(verdict < 0, CANDIDATE, verdict + 1)
    result.statuses += statuses
    fitting = np.flatnonzero(verdict < 0)
    for turn in range(int(counts[fitting].max()) if len(fitting) else 0):
        places = fitting[counts[fitting] > turn]
        steps = result.steps[begins[places] + turn]
        pod_ids = potential.pod_ids[steps]
        world.add_pods(places, pod_ids)
        fits = world.feasible(places)
        result.kept[steps] = fits
        world.remove_pods(places[~fits], pod_ids[~fits])
    _refuse_without_victims(result, cycle)
    return result


def _refuse_without_victims(result: DryRun, cycle: FilteredCycle) -> None:
    """A node where everybody can stay is no candidate, but an error: Filter rejected it for nothing."""
    n_victims = np.bincount(result.potential.places[~result.kept], minlength=len(result.rows))
    for place in np.flatnonzero(result.is_candidate & (n_victims == 0)).tolist():
        name = cycle.snapshot.nodes.name(int(result.rows[place]))
        result.verdict[place] = len(result.statuses)
        result.statuses.append(Status(Code.Error, (f'expected at least one victim pod on node "{name}"',)))
