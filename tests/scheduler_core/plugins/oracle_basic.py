"""The node-local plugins, one node at a time, written straight from upstream's Go."""

from __future__ import annotations

from scheduler_core.objects.node import Node, Taint
from scheduler_core.objects.pod import HostPort, Pod
from scheduler_core.releases import Release

Verdict = tuple[str, tuple[str, ...]]


def node_unschedulable(pod: Pod, node: Node) -> Verdict | None:
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if not node.unschedulable or any(item.tolerates(cordon) for item in pod.tolerations):
        return None
    return "UnschedulableAndUnresolvable", ("node(s) were unschedulable",)


def taint_toleration(pod: Pod, node: Node, release: Release) -> Verdict | None:
    for taint in node.taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(item.tolerates(taint) for item in pod.tolerations):
            words = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
            if release.name != "1.34":
                words = "node(s) had untolerated taint(s)"
            return "UnschedulableAndUnresolvable", (words,)
    return None


def node_affinity(pod: Pod, node: Node) -> Verdict | None:
    if pod.required_node_affinity.match(node.labels, node.name):
        return None
    return "UnschedulableAndUnresolvable", ("node(s) didn't match Pod's node affinity/selector",)


def node_ports(pod: Pod, others: list[Pod]) -> Verdict | None:
    def address(port: HostPort) -> str:
        return port.ip or "0.0.0.0"

    for wanted in pod.host_ports:
        for other in others:
            for used in other.host_ports:
                same = (wanted.protocol, wanted.port) == (used.protocol, used.port)
                both = {address(wanted), address(used)}
                if same and (len(both) == 1 or "0.0.0.0" in both):
                    return "Unschedulable", ("node(s) didn't have free ports for the requested pod ports",)
    return None


def node_resources_fit(pod: Pod, node: Node, others: list[Pod]) -> Verdict | None:
    reasons = []
    code = "Unschedulable"
    if len(others) + 1 > node.allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, amount in pod.requests.items():
        if amount == 0:
            continue
        allocatable = node.allocatable.get(name, 0)
        used = sum(other.requests.get(name, 0) for other in others)
        if amount > allocatable - used:
            reasons.append(f"Insufficient {name}")
            if amount > allocatable:
                code = "UnschedulableAndUnresolvable"
    return (code, tuple(sorted(reasons))) if reasons else None


def least_allocated(pod: Pod, node: Node, others: list[Pod]) -> int:
    total = weights = 0
    for name, asked, used in (
        ("cpu", pod.scoring[0], sum(other.non_zero[0] for other in others)),
        ("memory", pod.scoring[1], sum(other.non_zero[1] for other in others)),
    ):
        allocatable = node.allocatable.get(name, 0)
        if allocatable == 0:
            continue
        requested = used + asked
        total += 0 if requested > allocatable else (allocatable - requested) * 100 // allocatable
        weights += 1
    return total // weights if weights else 0


def balanced(pod: Pod, node: Node, others: list[Pod], release: Release) -> int:
    if release.has("BalancedAllocationByChange"):
        return 50 + (50 + _balance([pod, *others], node) - _balance(others, node)) // 2
    return _balance([pod, *others], node)


def _balance(pods: list[Pod], node: Node) -> int:
    fractions = []
    for name in ("cpu", "memory"):
        allocatable = node.allocatable.get(name, 0)
        if allocatable == 0:
            continue
        requested = sum(pod.requests.get(name, 0) for pod in pods)
        fractions.append(min(requested / allocatable, 1.0))
    deviation = abs((fractions[0] - fractions[1]) / 2) if len(fractions) == 2 else 0.0
    return int((1 - deviation) * 100)


def image_locality(pod: Pod, node: Node, nodes: list[Node]) -> int:
    """Sizes as the first node told, which in these clusters is the first in the list."""
    total = 0
    for image in pod.images:
        name = image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"
        holders = [other for other in nodes if any(name in item.names for item in other.images)]
        if node not in holders:
            continue
        size = next(item.size_bytes for item in holders[0].images if name in item.names)
        total += int(float(size) * (float(len(holders)) / float(len(nodes))))
    low, high = 23 << 20, (1000 << 20) * len(pod.images)
    total = min(max(total, low), high)
    return 100 * (total - low) // (high - low)


def untolerated_preferences(pod: Pod, node: Node) -> int:
    concerned = [item for item in pod.tolerations if item.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(item.tolerates(taint) for item in concerned)
        for taint in node.taints
    )
