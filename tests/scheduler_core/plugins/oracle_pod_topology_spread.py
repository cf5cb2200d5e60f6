"""PodTopologySpread one node at a time, as upstream's Go is written: the twin the columns are compared with.

Source: pkg/scheduler/framework/plugins/podtopologyspread, v1.34
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_core.cluster.default_selectors import DefaultSelectors
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, TopologySpreadConstraint
from tests.scheduler_core.plugins.shared_domain_clusters import NodeInfo

MAX_INT32 = 2**31 - 1
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SKEW = ("Unschedulable", "node(s) didn't match pod topology spread constraints")
LABEL = (
    "UnschedulableAndUnresolvable",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)


@dataclass
class Constraint:
    max_skew: int
    key: str
    selector: LabelSelector
    min_domains: int
    affinity_policy: str
    taints_policy: str

    def includes(self, pod: Pod, node: Node) -> bool:
        if self.affinity_policy == "Honor":
            try:
                if not pod.required_node_affinity.match(node.labels, node.name):
                    return False
            except SelectorError:
                return False
        if self.taints_policy == "Honor":
            for taint in node.taints:
                if taint.effect in ("NoSchedule", "NoExecute") and not pod.tolerates(taint):
                    return False
        return True


def constraints_of(
    pod: Pod, action: str, selectors: DefaultSelectors, system_defaults: bool
) -> list[Constraint]:
    if pod.topology_spread:
        return [
            _internal(item, item.selector)
            for item in pod.topology_spread
            if item.when_unsatisfiable == action
        ]
    if not system_defaults or action != "ScheduleAnyway":
        return []
    selector = selectors.of(pod)
    if selector.is_everything:
        return []
    return [
        Constraint(3, HOSTNAME, selector, 1, "Honor", "Ignore"),
        Constraint(5, ZONE, selector, 1, "Honor", "Ignore"),
    ]


def _internal(item: TopologySpreadConstraint, selector: LabelSelector) -> Constraint:
    return Constraint(
        item.max_skew,
        item.topology_key,
        selector,
        1 if item.min_domains is None else item.min_domains,
        item.node_affinity_policy,
        item.node_taints_policy,
    )


def has_all_keys(node: Node, constraints: Sequence[Constraint]) -> bool:
    return all(constraint.key in node.labels for constraint in constraints)


def count_pods(pods: Sequence[Pod], selector: LabelSelector, namespace: str) -> int:
    if selector.is_everything:
        return 0
    return sum(
        not pod.is_terminating and pod.namespace == namespace and selector.matches(pod.labels) for pod in pods
    )


class CriticalPaths:
    """The two smallest counts, kept as upstream keeps them."""

    def __init__(self) -> None:
        self.paths: list[tuple[str, int]] = [("", MAX_INT32), ("", MAX_INT32)]

    def update(self, value: str, number: int) -> None:
        first, second = self.paths
        if value in (first[0], second[0]):
            self.paths[0 if value == first[0] else 1] = (value, number)
            if self.paths[0][1] > self.paths[1][1]:
                self.paths.reverse()
        elif number < first[1]:
            self.paths = [(value, number), first]
        elif number < second[1]:
            self.paths[1] = (value, number)


class FilterTwin:
    """PreFilter's state, and Filter, AddPod and RemovePod on it."""

    def __init__(self, pod: Pod, infos: Sequence[NodeInfo], constraints: list[Constraint]) -> None:
        self.pod = pod
        self.constraints = constraints
        self.counts: list[dict[str, int]] = [{} for _ in constraints]
        self.paths = [CriticalPaths() for _ in constraints]
        for info in infos:
            if not has_all_keys(info.node, constraints):
                continue
            for constraint, counts in zip(constraints, self.counts, strict=True):
                if constraint.includes(pod, info.node):
                    value = info.node.labels[constraint.key]
                    number = count_pods(info.pods, constraint.selector, pod.namespace)
                    counts[value] = counts.get(value, 0) + number
        for counts, paths in zip(self.counts, self.paths, strict=True):
            for value, number in counts.items():
                paths.update(value, number)

    def clone(self) -> FilterTwin:
        clone = copy.copy(self)
        clone.counts = [dict(counts) for counts in self.counts]
        clone.paths = copy.deepcopy(self.paths)
        return clone

    def update(self, pod: Pod, node: Node, change: int) -> None:
        if pod.namespace != self.pod.namespace or not has_all_keys(node, self.constraints):
            return
        for constraint, counts, paths in zip(self.constraints, self.counts, self.paths, strict=True):
            if constraint.selector.matches(pod.labels) and constraint.includes(self.pod, node):
                value = node.labels[constraint.key]
                counts[value] = counts.get(value, 0) + change
                paths.update(value, counts[value])

    def filter(self, node: Node) -> tuple[str, str] | None:
        for constraint, counts, paths in zip(self.constraints, self.counts, self.paths, strict=True):
            value = node.labels.get(constraint.key)
            if value is None:
                return LABEL
            minimum = paths.paths[0][1]
            if len(counts) < constraint.min_domains:
                minimum = 0
            self_match = int(constraint.selector.matches(self.pod.labels))
            if counts.get(value, 0) + self_match - minimum > constraint.max_skew:
                return SKEW
        return None


class ScoreTwin:
    """PreScore's state, Score and NormalizeScore."""

    def __init__(
        self,
        pod: Pod,
        infos: Sequence[NodeInfo],
        candidates: Sequence[NodeInfo],
        constraints: list[Constraint],
        require_all: bool,
    ) -> None:
        self.pod = pod
        self.constraints = constraints
        self.ignored = {
            info.node.name for info in candidates if require_all and not has_all_keys(info.node, constraints)
        }
        self.counts: list[dict[str, int]] = [{} for _ in constraints]
        for info in candidates:
            if info.node.name in self.ignored:
                continue
            for constraint, counts in zip(constraints, self.counts, strict=True):
                if constraint.key != HOSTNAME:
                    counts[info.node.labels.get(constraint.key, "")] = 0
        self.weights = [
            math.log((len(candidates) - len(self.ignored) if constraint.key == HOSTNAME else len(counts)) + 2)
            for constraint, counts in zip(constraints, self.counts, strict=True)
        ]
        for info in infos:
            if require_all and not has_all_keys(info.node, constraints):
                continue
            for constraint, counts in zip(constraints, self.counts, strict=True):
                value = info.node.labels.get(constraint.key, "")
                if constraint.includes(pod, info.node) and value in counts:
                    counts[value] += count_pods(info.pods, constraint.selector, pod.namespace)

    def score(self, info: NodeInfo) -> int:
        if info.node.name in self.ignored:
            return 0
        score = 0.0
        for constraint, counts, weight in zip(self.constraints, self.counts, self.weights, strict=True):
            value = info.node.labels.get(constraint.key)
            if value is None:
                continue
            if constraint.key == HOSTNAME:
                number = count_pods(info.pods, constraint.selector, self.pod.namespace)
            else:
                number = counts[value]
            score += number * weight + (constraint.max_skew - 1)
        return math.floor(score + 0.5)

    def normalize(self, scores: dict[str, int]) -> dict[str, int]:
        scored = [score for name, score in scores.items() if name not in self.ignored]
        least, most = min(scored, default=0), max(scored, default=0)
        result = {}
        for name, score in scores.items():
            if name in self.ignored:
                result[name] = 0
            else:
                result[name] = 100 * (most + least - score) // most if most else 100
        return result
