"""Preemption one node at a time, as upstream's Go is written: the twin lock-step is compared with.

Of the filter plugins NodePorts, NodeResourcesFit, PodTopologySpread and InterPodAffinity have a say.

Source: pkg/scheduler/framework/preemption/preemption.go,
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, v1.34
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler_core.cluster.nominator import Nominator
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import PodDisruptionBudget
from tests.scheduler_core.plugins import oracle_inter_pod_affinity, oracle_pod_topology_spread
from tests.scheduler_core.plugins.shared_domain_clusters import NodeInfo

Status = tuple[str, tuple[str, ...]]
"""(code, reasons)."""

MAX_INT32 = 2**31 - 1
NEVER_STARTED = 2**63 - 1


@dataclass
class World:
    """A copy of a node and of the cycle state."""

    node: Node
    pods: list[Pod]
    ports: set[tuple[str, str, int]] = field(default_factory=set)
    spread: oracle_pod_topology_spread.FilterTwin | None = None
    affinity: oracle_inter_pod_affinity.FilterTwin | None = None

    def __post_init__(self) -> None:
        for pod in self.pods:
            self.ports |= _ports(pod)

    def copy(self) -> World:
        clone = copy.copy(self)
        clone.pods, clone.ports = list(self.pods), set(self.ports)
        clone.spread = self.spread and self.spread.clone()
        clone.affinity = self.affinity and self.affinity.clone()
        return clone

    def add(self, pod: Pod) -> None:
        self.pods.append(pod)
        self.ports |= _ports(pod)
        for twin in (self.spread, self.affinity):
            if twin is not None:
                twin.update(pod, self.node, 1)

    def remove(self, pod: Pod) -> None:
        self.pods = [other for other in self.pods if other is not pod]
        self.ports -= _ports(pod)
        for twin in (self.spread, self.affinity):
            if twin is not None:
                twin.update(pod, self.node, -1)

    def filter(self, pod: Pod) -> Status | None:
        wanted = _ports(pod)
        if wanted & self.ports:
            return "Unschedulable", ("node(s) didn't have free ports for the requested pod ports",)
        fit = self._fit(pod)
        if fit is not None:
            return fit
        for twin in (self.spread, self.affinity):
            rejected = None if twin is None else twin.filter(self.node)
            if rejected is not None:
                return rejected[0], (rejected[1],)
        return None

    def _fit(self, pod: Pod) -> Status | None:
        reasons = []
        code = "Unschedulable"
        if len(self.pods) + 1 > self.node.allocatable["pods"]:
            reasons.append("Too many pods")
        for name, amount in pod.requests.items():
            if not amount:
                continue
            allocatable = self.node.allocatable.get(name, 0)
            if amount > allocatable - sum(other.requests.get(name, 0) for other in self.pods):
                reasons.append(f"Insufficient {name}")
                if amount > allocatable:
                    code = "UnschedulableAndUnresolvable"
        return (code, tuple(reasons)) if reasons else None


def _ports(pod: Pod) -> set[tuple[str, str, int]]:
    return {(port.ip or "0.0.0.0", port.protocol, port.port) for port in pod.host_ports}


@dataclass
class Candidate:
    """One node that would do.

    Attributes
    ----------
    steps : list of (str, list of str, bool)
        Pods in the order they were tried to be given back: name, the budgets violated, whether it stays.
    """

    node: str
    victims: list[Pod]
    n_violations: int
    steps: list[tuple[str, list[str], bool]]


class Oracle:
    """Preemption for one pod.

    Parameters
    ----------
    infos : sequence of NodeInfo
        All nodes in evaluation order.
    """

    def __init__(self, pod: Pod, infos: Sequence[NodeInfo], snapshot: Snapshot, nominator: Nominator) -> None:
        self.pod = pod
        self.nominator = nominator
        self.budgets: list[PodDisruptionBudget] = snapshot.listers.all("PodDisruptionBudget")
        constraints = oracle_pod_topology_spread.constraints_of(
            pod, "DoNotSchedule", snapshot.matching.default_selectors, True
        )
        spread = oracle_pod_topology_spread.FilterTwin(pod, infos, constraints) if constraints else None
        affinity: oracle_inter_pod_affinity.FilterTwin | None = oracle_inter_pod_affinity.FilterTwin(
            pod, infos, snapshot.listers
        )
        if affinity is not None and affinity.skips:
            affinity = None
        self.worlds = [World(info.node, list(info.pods), set(), spread, affinity).copy() for info in infos]

    def filter(self, world: World) -> Status | None:
        """RunFilterPluginsWithNominatedPods."""
        nominated = [
            other
            for other in self.nominator.pods_for(world.node.name)
            if other.priority >= self.pod.priority and other.uid != self.pod.uid
        ]
        if nominated:
            with_them = world.copy()
            for other in nominated:
                with_them.add(other)
            rejected = with_them.filter(self.pod)
            if rejected is not None:
                return rejected
        return world.filter(self.pod)

    def verdicts(self) -> dict[str, Status | None]:
        return {world.node.name: self.filter(world) for world in self.worlds}

    def dry_run(self) -> tuple[list[Candidate], dict[str, Status]]:
        """Candidates, and the statuses of the other nodes where preemption might have helped."""
        candidates, statuses = [], {}
        for world in self.worlds:
            verdict = self.filter(world)
            if verdict is None or verdict[0] != "Unschedulable":
                continue
            found = self.select_victims(world.copy())
            if isinstance(found, Candidate):
                candidates.append(found)
            else:
                statuses[world.node.name] = found
        return candidates, statuses

    def select_victims(self, world: World) -> Candidate | Status:
        potential = [pod for pod in world.pods if pod.priority < self.pod.priority]
        for pod in potential:
            world.remove(pod)
        if not potential:
            return "UnschedulableAndUnresolvable", ("No preemption victims found for incoming pod",)
        rejected = self.filter(world)
        if rejected is not None:
            return rejected
        _sort(potential)
        violating, others = self.split_by_budget(potential)
        victims, n_violations, steps = [], 0, []
        for pod, names in (*violating, *others):
            world.add(pod)
            fits = self.filter(world) is None
            steps.append((pod.key, sorted(names), fits))
            if not fits:
                world.remove(pod)
                victims.append(pod)
                n_violations += bool(names)
        if not victims:
            return "Error", (f'expected at least one victim pod on node "{world.node.name}"',)
        if violating and others:
            _sort(victims)
        return Candidate(world.node.name, victims, n_violations, steps)

    def split_by_budget(
        self, pods: Sequence[Pod]
    ) -> tuple[list[tuple[Pod, list[str]]], list[tuple[Pod, list[str]]]]:
        allowed = [budget.disruptions_allowed for budget in self.budgets]
        violating: list[tuple[Pod, list[str]]] = []
        others: list[tuple[Pod, list[str]]] = []
        for pod in pods:
            violated = []
            for index, budget in enumerate(self.budgets):
                if not pod.labels or budget.meta.namespace != pod.namespace:
                    continue
                if budget.selector.is_everything or not budget.selector.matches(pod.labels):
                    continue
                if pod.name in budget.disrupted_pods:
                    continue
                allowed[index] -= 1
                if allowed[index] < 0:
                    violated.append(f"{budget.meta.namespace}/{budget.meta.name}")
            (violating if violated else others).append((pod, violated))
        return violating, others

    def pick(self, candidates: Sequence[Candidate]) -> list[str]:
        """Nodes that no criterion tells apart."""
        left = list(candidates)
        for score in (
            lambda item: -item.n_violations,
            lambda item: -item.victims[0].priority,
            lambda item: -sum(pod.priority + MAX_INT32 + 1 for pod in item.victims),
            lambda item: -len(item.victims),
            lambda item: _earliest_start(item.victims),
        ):
            best = max(map(score, left))
            left = [item for item in left if score(item) == best]
            if len(left) == 1:
                break
        return sorted(item.node for item in left)


def message(n_nodes: int, statuses: dict[str, Status]) -> str:
    """The FitError of a preemption without candidates."""
    counts: dict[str, int] = {}
    for _, reasons in statuses.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    if len(statuses) < n_nodes:
        counts["Preemption is not helpful for scheduling"] = n_nodes - len(statuses)
    reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"preemption: 0/{n_nodes} nodes are available: {', '.join(reasons)}."


def _start(pod: Pod) -> int:
    return NEVER_STARTED if pod.start_ns is None else pod.start_ns


def _sort(pods: list[Pod]) -> None:
    """By importance, in place, as Go sorts few elements: by insertion."""
    for end in range(1, len(pods)):
        place = end
        while place and _is_more_important(pods[place], pods[place - 1]):
            pods[place - 1], pods[place] = pods[place], pods[place - 1]
            place -= 1


def _is_more_important(first: Pod, second: Pod) -> bool:
    if first.priority != second.priority:
        return first.priority > second.priority
    if first.start_ns is None and second.start_ns is None:
        return True  # now is taken for the start of both, and was taken earlier for the first
    return _start(first) < _start(second)


def _earliest_start(victims: Sequence[Pod]) -> int:
    highest = max(pod.priority for pod in victims)
    return min(_start(pod) for pod in victims if pod.priority == highest)
