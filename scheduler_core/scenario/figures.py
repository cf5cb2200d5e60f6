"""What a run comes to in numbers: how many pods have a place, and how well the nodes are used.

utilisation
    Requested over allocatable, over all nodes.
imbalance
    Standard deviation of the nodes' own utilisation, over nodes that have the resource.
fragmentation
    The share of what is free that the workload cannot use: averaged over all pods there are, the part of the free
    amount that lies on nodes where such a pod would not fit (for want of any resource or a place).
spread
    `nodesUsed`: the share of nodes with a pod; `largestShare`: the share of all placed pods on the fullest node.

All numbers are rounded to six digits, so that they are the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeTable
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY

Columns = NDArray[np.int64]
MAX_AMOUNT = 2**62
MAX_SHAPES = 2_000
"""Distinct request shapes looked at for fragmentation; the most frequent ones."""


def node_figures(nodes: NodeTable, pods: Iterable[Pod]) -> dict[str, float]:
    """Utilisation, imbalance, fragmentation and spread.

    Parameters
    ----------
    nodes : NodeTable
        The scheduler's own columns, assumed pods included.
    pods : iterable of Pod
        All pods that are not over, placed or not: the workload fragmentation is measured by.
    """
    rows = np.flatnonzero(nodes.alive)
    allocatable, requested = nodes.allocatable[:, rows], nodes.requested[:, rows]
    names = nodes.vocabulary.resources.values
    axes = {
        "cpu": [names.index(CPU)],
        "memory": [names.index(MEMORY)],
        "gpu": [
            place for place, name in enumerate(names) if "/" in name and "gpu" in name.rpartition("/")[2]
        ],
    }
    n_pods, allowed = nodes.n_pods[rows], nodes.allowed_pods[rows]
    shapes = _shapes(pods, names)
    figures: dict[str, float] = {}
    for word, places in axes.items():
        have, used = allocatable[places].sum(axis=0), requested[places].sum(axis=0)
        figures[f"{word}Utilisation"] = _ratio(int(used.sum()), int(have.sum()))
        with_it = have > 0
        shares = used[with_it] / have[with_it]
        figures[f"{word}Imbalance"] = _rounded(float(shares.std())) if len(shares) else 0.0
        figures[f"{word}Fragmentation"] = _fragmentation(
            np.maximum(have - used, 0), allocatable - requested, n_pods < allowed, shapes
        )
    n_placed = int(n_pods.sum())
    figures["nodesUsed"] = _ratio(int((n_pods > 0).sum()), len(rows))
    figures["largestShare"] = _ratio(int(n_pods.max()) if len(rows) else 0, n_placed)
    return figures


def _shapes(pods: Iterable[Pod], names: list[str]) -> list[tuple[Columns, int]]:
    """Distinct requests on the resource axis, with how many pods ask so."""
    alike: Counter[int] = Counter()
    requested: dict[int, Mapping[str, int]] = {}
    for pod in pods:
        # Pods of one spec have one and the same.
        alike[id(pod.requests)] += 1
        requested[id(pod.requests)] = pod.requests
    counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    for key, count in alike.items():
        counts[tuple(sorted(item for item in requested[key].items() if item[1]))] += count
    result = []
    place_of = {name: place for place, name in enumerate(names)}
    for requests, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_SHAPES]:
        column = np.zeros(len(names), np.int64)
        for name, amount in requests:
            if name in place_of:
                # A pod may ask for more than any node could have.
                column[place_of[name]] = min(amount, MAX_AMOUNT)
        result.append((column, count))
    return result


def _fragmentation(
    free_of_it: Columns, free: Columns, has_place: NDArray[np.bool_], shapes: list[tuple[Columns, int]]
) -> float:
    total = int(free_of_it.sum())
    n_pods = sum(count for _, count in shapes)
    if not total or not n_pods:
        return 0.0
    unusable = 0
    for column, count in shapes:
        # What a pod does not ask for never keeps it off a node, however overcommitted.
        fits = ((column[:, None] <= free) | (column[:, None] == 0)).all(axis=0) & has_place
        unusable += count * int(free_of_it[~fits].sum())
    return _ratio(unusable, total * n_pods)


def _ratio(part: int, whole: int) -> float:
    return _rounded(part / whole) if whole else 0.0


def _rounded(number: float) -> float:
    return round(number, 6)
