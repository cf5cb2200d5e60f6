"""How full a node would be with the pod on it: shared by NodeResourcesFit and NodeResourcesBalancedAllocation.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.vocabulary import CPU_ID, MEMORY_ID
from scheduler_core.framework.interface import MAX_NODE_SCORE, Scores
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY, is_scalar_resource

Allocation = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(requested, allocatable) of one resource on the rows asked about, whole units; allocatable 0 = does not count."""
Scorer = Callable[[Sequence[tuple[int, Allocation]]], Scores]
"""(weight, allocation) of each resource -> raw scores."""


@dataclass(frozen=True, slots=True)
class WeightedResource:
    """One entry of `scoringStrategy.resources`."""

    name: str
    weight: int


def pod_requests_for(pod: Pod, resources: Sequence[WeightedResource], *, real: bool) -> tuple[int, ...]:
    """What the pod asks of each resource; with `real` false, 100m and 200Mi stand in for what is not named."""
    amounts = []
    for resource in resources:
        if resource.name == CPU and not real:
            amounts.append(pod.scoring_cpu)
        elif resource.name == MEMORY and not real:
            amounts.append(pod.scoring_memory)
        else:
            amounts.append(pod.requests.get(resource.name, 0))
    return tuple(amounts)


def allocations(
    nodes: NodeColumns, rows: Rows, resources: Sequence[WeightedResource], amounts: Sequence[int], *, real: bool
) -> list[tuple[int, Allocation]]:
    """Requested (the pod included) and allocatable of each resource on each row."""
    result = []
    for resource, amount in zip(resources, amounts, strict=True):
        # A scalar resource the pod does not ask for says nothing about the node.
        if amount == 0 and is_scalar_resource(resource.name):
            continue
        resource_id = nodes.vocabulary.resources.find(resource.name)
        if resource_id < 0 or resource_id >= nodes.allocatable.shape[0]:
            continue
        if real or resource_id not in (CPU_ID, MEMORY_ID):
            used = nodes.requested[resource_id, rows]
        else:
            used = nodes.non_zero[resource_id, rows]
        result.append((resource.weight, (used + amount, nodes.allocatable[resource_id, rows])))
    return result


def weighted_mean(
    n_rows: int, parts: Sequence[tuple[int, Allocation]], score: Callable[[Allocation], Scores]
) -> Scores:
    """The mean of `score` over the resources a row has, weighted; rows that have none of them score 0."""
    total = np.zeros(n_rows, np.int64)
    weights = np.zeros(n_rows, np.int64)
    for weight, (requested, allocatable) in parts:
        there = allocatable != 0
        total += weight * np.where(there, score((requested, np.where(there, allocatable, 1))), 0)
        weights += weight * there
    return total // np.maximum(weights, 1)


def least_allocated(allocation: Allocation) -> Scores:
    """The share that stays free, 0..100. Source: noderesources/least_allocated.go, v1.34."""
    requested, allocatable = allocation
    return np.where(requested > allocatable, 0, (allocatable - requested) * MAX_NODE_SCORE // allocatable)


def most_allocated(allocation: Allocation) -> Scores:
    """The share in use, 0..100. Source: noderesources/most_allocated.go, v1.34."""
    requested, allocatable = allocation
    return np.minimum(requested, allocatable) * MAX_NODE_SCORE // allocatable


def broken_linear(shape: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Scores at utilizations 0..100 of a function given by (utilization, score) points, Go's truncation included.

    Source: pkg/scheduler/framework/plugins/helper/shape_score.go BuildBrokenLinearFunction, v1.34
    """

    def at(utilization: int) -> int:
        for index, (limit, score) in enumerate(shape):
            if utilization <= limit:
                if index == 0:
                    return score
                before, base = shape[index - 1]
                rise = (score - base) * (utilization - before)
                quotient = abs(rise) // (limit - before)
                return base + (quotient if rise >= 0 else -quotient)
        return shape[-1][1]

    return np.array([at(utilization) for utilization in range(MAX_NODE_SCORE + 1)], np.int64)


def requested_to_capacity_ratio(
    n_rows: int, parts: Sequence[tuple[int, Allocation]], curve: NDArray[np.int64]
) -> Scores:
    """Scores by utilization along `curve`; resources that score 0 drop out of the mean.

    Source: noderesources/requested_to_capacity_ratio.go, v1.34
    """
    total = np.zeros(n_rows, np.int64)
    weights = np.zeros(n_rows, np.int64)
    for weight, (requested, allocatable) in parts:
        capacity = np.where(allocatable == 0, 1, allocatable)
        utilization = np.where(requested > capacity, MAX_NODE_SCORE, requested * MAX_NODE_SCORE // capacity)
        score = np.where(allocatable == 0, 0, curve[utilization])
        total += weight * score
        weights += weight * (score > 0)
    mean = total / np.maximum(weights, 1)
    return np.floor(mean + 0.5).astype(np.int64)
