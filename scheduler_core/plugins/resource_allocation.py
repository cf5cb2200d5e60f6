"""How full a node would be with the pod on it: shared by NodeResourcesFit and NodeResourcesBalancedAllocation.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.vocabulary import CPU_ID, MEMORY_ID
from scheduler_core.config.types import ResourceSpec
from scheduler_core.framework.interface import MAX_NODE_SCORE, Scores
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY, is_scalar_resource

Amounts = NDArray[np.int64]
"""Of n_resources resources on n rows: shape (n_resources, n_rows), whole units."""


@dataclass(frozen=True, slots=True)
class Allocations:
    """How full each row would be.

    Attributes
    ----------
    weights : ndarray of shape (n_resources,), int64
    total_weight : int
    requested : ndarray of shape (n_resources, n_rows), int64
        The pod included.
    allocatable : ndarray of shape (n_resources, n_rows), int64
        0 where a row has none of a resource: it does not count there.
    """

    weights: NDArray[np.int64]
    total_weight: int
    requested: Amounts
    allocatable: Amounts


def pod_requests_for(pod: Pod, resources: Sequence[ResourceSpec], *, real: bool) -> tuple[int, ...]:
    """What the pod asks of each resource; with `real` false, 100m and 200Mi stand in for what is not named."""
    amounts = []
    for resource in resources:
        if resource.name == CPU and not real:
            amounts.append(pod.scoring[0])
        elif resource.name == MEMORY and not real:
            amounts.append(pod.scoring[1])
        else:
            amounts.append(pod.requests.get(resource.name, 0))
    return tuple(amounts)


def counted(
    nodes: NodeColumns, resources: Sequence[ResourceSpec], amounts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(ids, amounts asked for, weights) of the resources that count for a pod."""
    ids: list[int] = []
    weights: list[int] = []
    asked: list[int] = []
    for resource, amount in zip(resources, amounts, strict=True):
        # A scalar resource the pod does not ask for says nothing about the node.
        if amount == 0 and is_scalar_resource(resource.name):
            continue
        resource_id = nodes.vocabulary.resources.find(resource.name)
        if 0 <= resource_id < nodes.allocatable.shape[0]:
            ids.append(resource_id)
            weights.append(resource.weight)
            asked.append(amount)
    return tuple(ids), tuple(asked), tuple(weights)


def allocations(
    nodes: NodeColumns,
    rows: Rows,
    resources: Sequence[ResourceSpec],
    amounts: Sequence[int],
    *,
    real: bool,
) -> Allocations:
    """Requested (the pod included) and allocatable of each resource on each row."""
    ids, asked, weights = counted(nodes, resources, amounts)
    # All resources in one step: for a single row that changed, the number of steps is what costs.
    lines, more, shares = _columns(ids, asked, weights)
    if real or not ids:
        requested = nodes.requested[lines, rows]
    elif max(ids) <= MEMORY_ID:
        requested = nodes.non_zero[lines, rows]
    else:
        requested = nodes.requested[lines, rows]
        for index, resource_id in enumerate(ids):
            if resource_id in (CPU_ID, MEMORY_ID):
                requested[index] = nodes.non_zero[resource_id, rows]
    requested += more
    return Allocations(shares, sum(weights), requested, nodes.allocatable[lines, rows])


@lru_cache(maxsize=4096)
def _columns(
    ids: tuple[int, ...], amounts: tuple[int, ...], weights: tuple[int, ...]
) -> tuple[Amounts, Amounts, NDArray[np.int64]]:
    """Ids and amounts as columns, weights as an array; not to be written to."""
    lines, asked, shares = (np.array(values, np.int64) for values in (ids, amounts, weights))
    return lines[:, None], asked[:, None], shares


def weighted_mean(parts: Allocations, score: Callable[[Amounts, Amounts], Scores]) -> Scores:
    """The mean of `score` over the resources a row has, weighted; rows that have none of them score 0."""
    there = parts.allocatable != 0
    total: Scores
    if len(parts.weights) and np.count_nonzero(there) == there.size:
        total = parts.weights @ score(parts.requested, parts.allocatable)
        mean: Scores = total // max(parts.total_weight, 1)
        return mean
    scores = np.where(there, score(parts.requested, np.where(there, parts.allocatable, 1)), 0)
    total = parts.weights @ scores
    mean = total // np.maximum(parts.weights @ there.astype(np.int64), 1)
    return mean


def least_allocated(requested: Amounts, allocatable: Amounts) -> Scores:
    """The share that stays free, 0..100. Source: noderesources/least_allocated.go, v1.34."""
    free: Amounts = np.maximum(allocatable - requested, 0)
    shares: Scores = free * MAX_NODE_SCORE // allocatable
    return shares


def least_allocated_of_few(
    nodes: NodeColumns, rows: Rows, resources: Sequence[ResourceSpec], amounts: Sequence[int]
) -> Scores:
    """The weighted mean of `least_allocated`, row by row.

    Between two cycles few rows change, and array steps cost more than these.
    """
    parts = list(zip(*counted(nodes, resources, amounts), strict=True))
    means = []
    for row in rows.tolist():
        total = total_weight = 0
        for resource_id, asked, weight in parts:
            allocatable = nodes.allocatable.item(resource_id, row)
            if not allocatable:
                continue
            used = nodes.non_zero if resource_id in (CPU_ID, MEMORY_ID) else nodes.requested
            free = max(allocatable - used.item(resource_id, row) - asked, 0)
            total += weight * (_wrapped(free * MAX_NODE_SCORE) // allocatable)
            total_weight += weight
        means.append(total // max(total_weight, 1))
    return np.array(means, np.int64)


def _wrapped(value: int) -> int:
    """As 64 bits hold it: upstream's arithmetic and that of arrays wraps for nodes of 90 petabytes."""
    return value if value < 2**63 else (value + 2**63) % 2**64 - 2**63


def most_allocated(requested: Amounts, allocatable: Amounts) -> Scores:
    """The share in use, 0..100. Source: noderesources/most_allocated.go, v1.34."""
    used: Amounts = np.minimum(requested, allocatable)
    shares: Scores = used * MAX_NODE_SCORE // allocatable
    return shares


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


def requested_to_capacity_ratio(parts: Allocations, curve: NDArray[np.int64]) -> Scores:
    """Scores by utilization along `curve`; resources that score 0 drop out of the mean.

    Source: noderesources/requested_to_capacity_ratio.go, v1.34
    """
    there = parts.allocatable != 0
    capacity = np.where(there, parts.allocatable, 1)
    utilization = np.minimum(parts.requested, capacity) * MAX_NODE_SCORE // capacity
    score = np.where(there, curve[utilization], 0)
    mean = (parts.weights @ score) / np.maximum(parts.weights @ (score > 0).astype(np.int64), 1)
    return np.floor(mean + 0.5).astype(np.int64)


def default_resources(holder: dict[str, Any]) -> None:
    """Write cpu and memory, each of weight 1, where a document names no resources or no weight."""
    if not holder.get("resources"):
        holder["resources"] = [{"name": CPU}, {"name": MEMORY}]
    for resource in holder["resources"]:
        resource.setdefault("weight", 1)
