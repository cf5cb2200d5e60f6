"""NodeResourcesBalancedAllocation: nodes whose resources would be equally full."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.types import ResourceSpec
from scheduler_core.config.wire import omit
from scheduler_core.errors import FieldError, invalid
from scheduler_core.framework import interface as fw
from scheduler_core.objects.pod import BySpec, Pod
from scheduler_core.plugins.resource_allocation import (
    Amounts,
    allocations,
    counted,
    default_resources,
    pod_requests_for,
)
from scheduler_core.thresholds import thresholds


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """The resources whose use is to be balanced."""

    resources: tuple[ResourceSpec, ...] = omit(())

    @classmethod
    def set_defaults(cls, document: dict[str, Any]) -> None:
        default_resources(document)

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            here = f"{path}.resources[{index}]"
            if resource.name in seen:
                errors.append(FieldError("FieldValueDuplicate", f"{here}.name", resource.name, ""))
            seen.add(resource.name)
            if resource.weight != 1:
                errors.append(invalid(f"{here}.weight", resource.weight, "must be 1"))
        return errors


class NodeResourcesBalancedAllocation(
    fw.PreScorePlugin[tuple[int, ...]], fw.ScorePlugin[tuple[int, ...] | None]
):
    """Scores rows by how little the used shares of their resources differ (100 = not at all).

    Since 1.36 by how much the pod changes that: 75 for a balance that stays as it is, up to 100 for one that
    becomes better, down to 50 for one that becomes worse.

    Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, v1.34 and v1.36

    Examples
    --------
    >>> from scheduler_core.framework.example import scores
    >>> pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    >>> def node(cpu, memory):
    ...     return {"status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "2"}}}
    >>> scores(NodeResourcesBalancedAllocation, pod, even=node("4", "4Gi"), odd=node("2", "8Gi"))
    {'even': 100, 'odd': 81}
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    draw: ClassVar[tuple[str, int] | None] = ("B", 6)
    Args = NodeResourcesBalancedAllocationArgs
    default_weight: ClassVar[int | None] = 1
    score_reads: ClassVar[fw.Reads] = fw.Reads.USAGE
    score_without_state: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._resources = tuple(args.resources or ())
        self._by_change = handle.release.has("BalancedAllocationByChange")
        self._scored = BySpec(partial(pod_requests_for, resources=self._resources, real=True))

    def sign(self, pod: Pod) -> Hashable:
        return tuple(pod.requests.items())

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[tuple[int, ...]]:
        amounts = self._scored.of(pod)
        return fw.PreScoreResult(state=amounts) if any(amounts) else fw.SKIP_SCORE

    def score(self, state: tuple[int, ...] | None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        if state is None:
            state = self._scored.of(pod)
        if len(rows) <= thresholds().allocated_rows:
            ids, asked, _ = counted(nodes, self._resources, state)
            if len(ids) == 2:
                return np.array(
                    [self._score_of_row(nodes, row, ids, asked) for row in rows.tolist()], np.int64
                )
        parts = allocations(nodes, rows, self._resources, state, real=True)
        if not self._by_change:
            return _balance(parts.requested, parts.allocatable)
        before = parts.requested - np.array(counted(nodes, self._resources, state)[1], np.int64)[:, None]
        return _change(_balance(parts.requested, parts.allocatable), _balance(before, parts.allocatable))

    def _score_of_row(
        self, nodes: NodeColumns, row: int, ids: tuple[int, ...], asked: tuple[int, ...]
    ) -> int:
        """What `score` says of one row and two resources."""
        score = _balance_of_two(nodes, row, ids, asked)
        if not self._by_change:
            return score
        return _change(score, _balance_of_two(nodes, row, ids, (0, 0)))


Balance = TypeVar("Balance", int, fw.Scores)


def _change(after: Balance, before: Balance) -> Balance:
    """The score of a row whose balance (50 to 100) becomes `after` from `before`; numbers or arrays of them."""
    half = fw.MAX_NODE_SCORE // 2
    return half + (half + after - before) // 2


def _balance(requested: Amounts, allocatable: Amounts) -> fw.Scores:
    """100 less the standard deviation of each row's shares, in percent."""
    n_parts, n_rows = requested.shape
    if not n_parts:
        return np.full(n_rows, fw.MAX_NODE_SCORE, np.int64)
    there = allocatable != 0
    if np.count_nonzero(there) == there.size:
        fractions = np.minimum(requested / allocatable, 1.0)
    else:
        fractions = np.minimum(requested / np.where(there, allocatable, 1), 1.0)
        fractions = np.where(there, fractions, 0.0)
    if n_parts == 2:
        # Upstream's short cut for two resources; a row that has fewer deviates by nothing.
        deviation = np.where(there.all(axis=0), np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    else:
        deviation = _deviation(there, fractions)
    return ((1 - deviation) * float(fw.MAX_NODE_SCORE)).astype(np.int64)


def _balance_of_two(nodes: NodeColumns, row: int, ids: tuple[int, ...], asked: tuple[int, ...]) -> int:
    """`_balance` of one row and two resources."""
    fractions = []
    for resource_id, amount in zip(ids, asked, strict=True):
        allocatable = nodes.allocatable.item(resource_id, row)
        if allocatable == 0:
            return fw.MAX_NODE_SCORE
        fractions.append(
            min(float(nodes.requested.item(resource_id, row) + amount) / float(allocatable), 1.0)
        )
    return int((1 - abs((fractions[0] - fractions[1]) / 2)) * float(fw.MAX_NODE_SCORE))


def _deviation(there: np.ndarray, fractions: np.ndarray) -> np.ndarray:
    """Standard deviation of each row's fractions, summed in upstream's order so that the last bit agrees."""
    n_there = there.sum(axis=0)
    count = np.maximum(n_there, 1).astype(np.float64)
    total = np.zeros(len(n_there))
    for fraction in fractions:
        total = total + fraction
    mean = total / count
    squares = np.zeros(len(n_there))
    for exists, fraction in zip(there, fractions, strict=True):
        squares = squares + np.where(exists, (fraction - mean) * (fraction - mean), 0.0)
    deviation = np.sqrt(squares / count)
    if len(fractions) > 2:
        # Rows with exactly two of the resources take upstream's short cut, which rounds differently.
        two = n_there == 2
        if two.any():
            first = np.zeros(len(n_there))
            second = np.zeros(len(n_there))
            seen = np.zeros(len(n_there), np.int64)
            for exists, fraction in zip(there, fractions, strict=True):
                first = np.where(exists & (seen == 0), fraction, first)
                second = np.where(exists & (seen == 1), fraction, second)
                seen += exists
            deviation = np.where(two, np.abs((first - second) / 2), deviation)
    return np.where(n_there >= 2, deviation, 0.0)
