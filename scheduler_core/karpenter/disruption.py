"""Which nodes may go by Karpenter: empty ones, several at once for at most one cheaper, one for a cheaper.

Source: pkg/controllers/disruption/{helpers,types,emptiness,consolidation,multinodeconsolidation,
singlenodeconsolidation}.go of kubernetes-sigs/karpenter 2266468
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from scheduler_core.karpenter.node_pools import (
    DO_NOT_DISRUPT,
    EMPTY,
    UNDERUTILIZED,
    WHEN_EMPTY,
    NodePool,
    Offering,
)
from scheduler_core.karpenter.provisioning import PlannedNode, Provisioning, options_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

MOST_AT_ONCE: Final = 100
"""Nodes that are looked at together."""
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

Simulate = Callable[["Sequence[DisruptionCandidate]"], Provisioning]
"""Where the pods of these nodes would go, those that wait anyway beside them; nodes that start are no place."""


@dataclass(frozen=True, slots=True)
class DisruptionCandidate:
    """A node that may be asked to go.

    Attributes
    ----------
    type, price
        Of its machine; the price is None where the list has none.
    pods : tuple of Pod
        That would be made again elsewhere.
    cost : float
        1, and for each pod what its eviction costs.
    """

    node: Node
    pool: NodePool
    type: str
    price: float | None
    pods: tuple[Pod, ...]
    cost: float

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        return self.cost <= 1.0

    @property
    def worth(self) -> float:
        return (self.price or 0.0) / self.cost


@dataclass(frozen=True, slots=True)
class Disruption:
    """Nodes that go together, and the one that comes for them first."""

    reason: str
    nodes: tuple[str, ...]
    replacement: PlannedNode | None = None


@dataclass(slots=True)
class Judged:
    """What was decided, and of each node that stays why."""

    command: Disruption | None = None
    stays: dict[str, str] = field(default_factory=dict)


def eviction_cost(pod: Pod) -> float:
    """What evicting a pod costs: 1, more by its priority and its pod-deletion-cost, from -10 to 10."""
    cost = 1.0
    with suppress(ValueError):
        cost += float(pod.annotations.get(_DELETION_COST, 0)) / 2**27
    return min(max(cost + pod.priority / 2**25, -10.0), 10.0)


def is_rescheduled(pod: Pod) -> bool:
    """Whether a pod on a node that goes wants another one."""
    return not (pod.is_terminal or pod.is_terminating or pod.is_of_daemon_set or pod.is_mirror)


def candidate_of(
    node: Node, pool: NodePool, offered: Sequence[Offering], pods: Iterable[Pod]
) -> DisruptionCandidate:
    """A node as something that may go.

    Parameters
    ----------
    offered : sequence of Offering
        What its NodePool may launch.
    """
    moving = tuple(pod for pod in pods if is_rescheduled(pod))
    kind = node.labels.get("node.kubernetes.io/instance-type", "")
    price = next((one.price for one in offered if one.type == kind), None)
    cost = 1.0 + sum(max(eviction_cost(pod), 0.0) for pod in moving)
    return DisruptionCandidate(node, pool, kind, price, moving, cost)


def blocked_by(node: Node, pods: Iterable[Pod], budgets: Mapping[str, Callable[[Pod], int | None]]) -> str:
    """What forbids that a node goes, empty if nothing does.

    Parameters
    ----------
    budgets : mapping of str to callable
        PodDisruptionBudget -> evictions that it allows of a pod, None where it does not select it.
    """
    if node.manifest["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT) == "true":
        return f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation'
    for pod in pods:
        if pod.is_terminal or pod.is_terminating:
            continue
        if pod.annotations.get(DO_NOT_DISRUPT) == "true":
            return f'pod has "{DO_NOT_DISRUPT}" annotation (Pod={pod.key})'
        if not is_rescheduled(pod):
            continue
        mine = {name: left for name, allows in budgets.items() if (left := allows(pod)) is not None}
        if len(mine) > 1:
            return f"eviction does not support multiple PDBs (PodDisruptionBudget(s)={sorted(mine)})"
        if any(left <= 0 for left in mine.values()):
            return f"pdb prevents pod evictions (PodDisruptionBudget={sorted(mine)})"
    return ""


def judge(
    candidates: Sequence[DisruptionCandidate],
    allowed: Callable[[str], Counter[str]],
    simulate: Simulate,
    offerings: Mapping[str, Sequence[Offering]],
) -> Judged:
    """Find what goes now: the first of the three ways that finds anything.

    Parameters
    ----------
    allowed : callable
        Given a reason: NodePool -> how many of its nodes may go for it.
    """
    found = Judged()
    able = [one for one in candidates if one.pool.consolidate_after_ns is not None]
    found.stays |= {
        one.name: f'NodePool "{one.pool.name}" has consolidation disabled'
        for one in candidates
        if one.pool.consolidate_after_ns is None
    }
    able.sort(key=lambda one: (-one.worth, one.name))
    empty = _within_budget([one for one in able if one.is_empty], allowed(EMPTY), found)
    if empty:
        found.command = Disruption(EMPTY, tuple(one.name for one in empty))
        return found
    used = [one for one in able if not one.is_empty]
    for one in used:
        if one.price is None:
            found.stays[one.name] = f'Instance Type "{one.type}" not found'
        elif one.pool.policy == WHEN_EMPTY:
            found.stays[one.name] = (
                f'NodePool "{one.pool.name}" has consolidation policy WhenEmpty, but node is not empty'
            )
    used = [one for one in used if one.name not in found.stays]
    budget = allowed(UNDERUTILIZED)
    many = _within_budget(used, Counter(budget), found)[:MOST_AT_ONCE]
    found.command = _several(many, simulate, offerings) or _single(used, budget, simulate, offerings, found)
    return found


def _within_budget(
    candidates: Iterable[DisruptionCandidate], budget: Counter[str], found: Judged
) -> list[DisruptionCandidate]:
    taken = []
    for one in candidates:
        if budget[one.pool.name] > 0:
            budget[one.pool.name] -= 1
            taken.append(one)
        else:
            found.stays[one.name] = f'NodePool "{one.pool.name}" allows no more disruptions now'
    return taken


def _several(
    candidates: Sequence[DisruptionCandidate], simulate: Simulate, offerings: Mapping[str, Sequence[Offering]]
) -> Disruption | None:
    """The most of the first ones, two at least, that can go for at most one node."""
    found, least, most = None, 1, len(candidates) - 1
    while least <= most:
        middle = (least + most) // 2
        command, _ = consolidation(candidates[: middle + 1], simulate, offerings)
        if command is None:
            most = middle - 1
        else:
            found, least = command, middle + 1
    return found


def _single(
    candidates: Sequence[DisruptionCandidate],
    budget: Counter[str],
    simulate: Simulate,
    offerings: Mapping[str, Sequence[Offering]],
    found: Judged,
) -> Disruption | None:
    """The first that can go alone, NodePools in turn."""
    pools: dict[str, list[DisruptionCandidate]] = {}
    for one in candidates:
        pools.setdefault(one.pool.name, []).append(one)
    in_turn = zip_longest(*(pools[name] for name in sorted(pools)))
    for one in (one for turn in in_turn for one in turn if one is not None):
        if budget[one.pool.name] <= 0:
            continue
        command, why = consolidation([one], simulate, offerings)
        if command is not None:
            found.stays.pop(one.name, None)
            return command
        found.stays[one.name] = why
    return None


def consolidation(
    candidates: Sequence[DisruptionCandidate], simulate: Simulate, offerings: Mapping[str, Sequence[Offering]]
) -> tuple[Disruption | None, str]:
    """Whether nodes can go together: their pods on others, or on one new node that is cheaper; else why not."""
    names = tuple(one.name for one in candidates)
    result, keys = simulate(candidates), {pod.key for one in candidates for pod in one.pods}
    refused = {key: why for key, why in result.refused.items() if key in keys}
    if refused:
        words = " ".join(f"{key} => {why}" for key, why in sorted(refused.items())[:5])
        more = f" and {len(refused) - 5} other(s)" if len(refused) > 5 else ""
        return None, f"not all pods would schedule, {words}{more}"
    if not result.planned:
        return Disruption(UNDERUTILIZED, names), ""
    if len(result.planned) > 1:
        return None, f"Can't remove without creating {len(result.planned)} candidates"
    planned = result.planned[0]
    below = sum(one.price or 0.0 for one in candidates)
    offered = offerings[planned.offering.pool.name]
    if planned.offering.is_spot and all(
        one.node.labels.get("karpenter.sh/capacity-type") == "spot" for one in candidates
    ):
        return None, "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
    options = options_of(planned, offered, below)
    if len(candidates) > 1:
        # One of the same type as one that goes is worse than letting that one stay.
        types = {one.type: one.price or 0.0 for one in candidates}
        dearest = min((types[one.type] for one in options if one.type in types), default=below)
        options = [one for one in options if one.price < dearest]
    if not options:
        return None, "Can't replace with a cheaper node"
    planned.offering = options[0]
    return Disruption(UNDERUTILIZED, names, planned), ""
