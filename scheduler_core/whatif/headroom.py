"""How many more of a pod fit, one after the other, and what stops the next one.

The same question as kubernetes-sigs/cluster-capacity's: copies are scheduled until one finds no node; preemption does
not count. Copies that concern no node but their own (no affinity between pods, no spread, no volumes and no
claims) are counted node by node at once; that each node really takes them is then shown by Filter in one step, and
the cycle of the copy that finds no node is a whole one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler_core.fork import Fork, PlacedPod, Report, silent
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.interface import Reads
from scheduler_core.objects.pod import Pod, pod_from

MAX_COPIES = 250_000
"""More than this are not placed: "at least so many" is said instead."""


@dataclass(slots=True)
class Headroom:
    """The answer.

    Attributes
    ----------
    pod : str
        `namespace/name` of what was copied.
    replicas : int
        Copies that found a node.
    by_node : dict of str to int
        Node name -> copies there, for nodes with at least one, in evaluation order.
    stop : str
        What the scheduler says of the copy that found none; empty when `limit` was met.
    limit : int or None
        The bound that ended the count, if one did: at least so many fit.
    n_decisions : int
        Scheduling cycles that were run; copies that are counted node by node need none.
    """

    pod: str
    n_nodes: int
    replicas: int = 0
    by_node: dict[str, int] = field(default_factory=dict)
    stop: str = ""
    limit: int | None = None
    n_decisions: int = 0


def headroom(fork: Fork, pod: Pod, *, max_copies: int = MAX_COPIES, report: Report = silent) -> Headroom:
    """Count the copies of `pod` that fit.

    Parameters
    ----------
    fork : Fork
        As it was afterwards.
    pod : Pod
        The template; on no node.

    Raises
    ------
    KeyError
        No profile has the pod's schedulerName.
    """
    result = Headroom(pod.key, len(fork.snapshot.order))
    began = fork.n_decisions
    with fork.changes():
        counts, stopped = place_copies(fork, pod, max_copies, report=report)
        result.replicas = counts.total()
        if stopped is None:
            result.limit = max_copies
        else:
            result.stop = fork.decide(stopped.pod, preempt=True).message or stopped.message
    result.n_decisions = fork.n_decisions - began
    result.by_node = {name: counts[name] for name in fork.nodes_in_order() if counts[name]}
    return result


def place_copies(
    fork: Fork, pod: Pod, max_copies: int, *, most_decisions: int | None = None, report: Report = silent
) -> tuple[Counter[str], PlacedPod | None]:
    """Place copies of a pod until one finds no node, so many have one, or so many decisions were run.

    Returns
    -------
    (Counter, PlacedPod or None)
        Node name -> copies there; and the copy that found none.
    """
    counts: Counter[str] = Counter()
    if not _fill(fork, pod, counts, max_copies):
        return Counter({"": max_copies}), None
    most = fork.n_decisions + (MAX_COPIES if most_decisions is None else most_decisions)
    while (done := counts.total()) < max_copies and fork.n_decisions < most:
        if done % 100 == 0:
            report(done, 0, f"{done} copies placed")
        made = copy_of(pod, done)
        placed = fork.place(fork.anew(made) if made.resource_claims else made, preempt=False)
        if placed.node is None:
            return counts, placed
        counts[placed.node] += 1
    return counts, None


def copy_of(pod: Pod, number: int) -> Pod:
    """The pod under another name and uid."""
    meta = pod.manifest["metadata"]
    name = f"{meta['name']}-{number}"
    return pod_from(
        {**pod.manifest, "metadata": {**meta, "name": name, "uid": f"copy-{number}-of-{pod.uid}"}}
    )


def _fill(fork: Fork, pod: Pod, counts: Counter[str], max_copies: int) -> bool:
    """Fill all nodes at once, if each can be filled by itself; otherwise nothing is done.

    It can where every plugin that looks at the pod (PreFilter, Filter, Reserve) reads no more than a node and the
    pods on it, and no extender is asked. The nodes take one copy each per step until Filter says no. Filter then
    answers for the last copy of every node once more, with all copies in their places. The copies are one object:
    plugins that read no further than a node do not ask for their names.

    Returns
    -------
    bool
        False when more than `max_copies` fit.
    """
    framework, cache = fork.framework(pod), fork.cache
    attempt = fork.attempt(pod)
    if not len(attempt.feasible):
        return True
    asked = [
        plugin
        for plugin in (*framework.pre_filter, *framework.filter, *framework.reserve)
        if plugin.name not in attempt.skipped_filters
    ]
    if fork.scheduler.extenders or any(
        getattr(plugin, "filter_reads", Reads.CLUSTER) is Reads.CLUSTER for plugin in asked
    ):
        return True
    room = room_of(fork, pod, attempt, max_copies)
    if room is None:
        return False
    rows = attempt.feasible
    pod_ids = fork.put_copies(pod, np.repeat(rows, room))
    for row, count in zip(rows.tolist(), room.tolist(), strict=True):
        counts[cache.nodes.name(row)] += count
    again = fork.attempt(copy_of(pod, counts.total()))
    world = again.what_if(rows)
    places = np.arange(len(rows))
    world.remove_pods(places, pod_ids[np.cumsum(room) - 1])
    if not world.feasible(places).all():
        raise AssertionError(f"{pod.key}: a node was filled with more copies than it takes")
    return True


def room_of(fork: Fork, pod: Pod, attempt: Attempt, max_copies: int) -> NDArray[np.int64] | None:
    """Copies that each feasible row takes; None when they are more than `max_copies`."""
    rows = attempt.feasible
    room = np.zeros(len(rows), np.int64)
    places = np.arange(len(rows))
    world = attempt.what_if(rows)
    copies: list[int] = []
    pods = fork.cache.pods
    try:
        while len(places):
            room[places] += 1
            if room.sum() > max_copies:
                return None
            copies.append(pods.add(copy_of(pod, len(copies)), findable=False))
            world.add_pods(places, np.full(len(places), copies[-1], np.int64))
            places = places[world.feasible(places)]
    finally:
        for pod_id in reversed(copies):
            pods.remove(pod_id)
    return room
