"""The FGD paper's experiment once more, one node and one device at a time, in plain Python.

Twin of `examples/gpu_sharing`: written from the description of workload, policies and measure, and shares no code with
the package.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Kind = tuple[int, int, int, str]
"""(cpu milli, gpu milli, devices, models)"""


@dataclass
class Node:
    """One node's free room, and the kinds of GPU pods on it."""

    name: str
    cpu: int
    memory: int
    gpus: list[int]
    model: str
    tags: set[Any] = field(default_factory=set)


def typical(kinds: Sequence[Kind]) -> list[tuple[float, Kind]]:
    """(frequency, kind) of the most frequent kinds that cover 95 % of the pods."""
    ranked = sorted(Counter(kinds).items(), key=lambda item: (item[1], item[0]), reverse=True)
    taken: list[tuple[Kind, int]] = []
    while sum(count for _, count in taken) < 0.95 * len(kinds):
        taken.append(ranked[len(taken)])
    # Both divisions, in this order: the last bit decides whether a pod that changes nothing scores 50 or 49.
    part = sum(count for _, count in taken) / len(kinds)
    return [(count / len(kinds) / part, kind) for kind, count in taken]


def fragmentation(cpu: int, gpus: list[int], model: str, pods: list[tuple[float, Kind]]) -> float:
    """F of one node: per reason in the order of typical pods, then reason by reason."""
    names = ("both", "gpu", "cpu", "cpuOnlyFits", "cpuOnlyDoesNot", "noAccess")
    sums = dict.fromkeys(names, 0.0)
    idle = sum(gpus)
    for share, (pod_cpu, milli, count, models) in pods:
        too_little_cpu = cpu < pod_cpu
        if count == 0:
            sums["cpuOnlyDoesNot" if too_little_cpu else "cpuOnlyFits"] += share * idle
            continue
        if models and model not in models.split("|"):
            sums["noAccess"] += share * idle
            continue
        too_few = sum(free >= milli for free in gpus) < count
        if too_few or too_little_cpu:
            sums["both" if too_few and too_little_cpu else "gpu" if too_few else "cpu"] += share * idle
        else:
            sums["gpu"] += share * sum(free for free in gpus if free < milli)
    total = 0.0
    for name in names:
        total += sums[name]
    return total


def fullest(gpus: list[int], milli: int, count: int) -> list[int]:
    """Devices with room, fullest first."""
    return sorted((one for one in range(len(gpus)) if gpus[one] >= milli), key=lambda one: gpus[one])[:count]


def taking(gpus: list[int], milli: int, devices: Sequence[int]) -> list[int]:
    return [free - milli * (one in devices) for one, free in enumerate(gpus)]


def fgd(pod: Any, node: Node, pods: list[tuple[float, Kind]]) -> tuple[int, tuple[int, ...]]:
    """Score and devices."""
    ways: list[tuple[int, ...]] = [()]
    if pod.n_gpus == 1 and pod.gpu_milli < 1000:
        ways = [(one,) for one, free in enumerate(node.gpus) if free >= pod.gpu_milli]
    elif pod.n_gpus:
        ways = [tuple(fullest(node.gpus, pod.gpu_milli, pod.n_gpus))]
    best: tuple[int, tuple[int, ...]] = (-1, ())
    now = fragmentation(node.cpu, node.gpus, node.model, pods)
    for way in ways:
        after = taking(node.gpus, pod.gpu_milli, way)
        gain = (now - fragmentation(node.cpu - pod.cpu_milli, after, node.model, pods)) / 1000
        score = int(100 * (1 / (1 + math.exp(-gain))))
        if score > best[0]:
            best = score, way
    return best


def tag(pod: Any) -> Any:
    return "share" if pod.gpu_milli < 1000 else pod.n_gpus


def score(policy: str, pod: Any, node: Node, pods: list[tuple[float, Kind]]) -> int:
    """The score of a feasible node."""
    c, g, r = node.cpu, sum(node.gpus), pod.cpu_milli
    asked = pod.n_gpus * pod.gpu_milli
    if policy == "FGD":
        return fgd(pod, node, pods)[0]
    if policy == "DotProd":
        return int(100 * (1 - (c / 128000 * (r / 128000) + g / 8000 * (asked / 8000)) / 2))
    if policy == "BestFit":
        return int(100 * (1 - 0.5 * (c - r) / 128000 - 0.5 * (g - asked) / 8000))
    if not pod.n_gpus:
        return 0
    if policy == "GpuClustering":
        base = 25 * (8000 - g) // 8000
        if tag(pod) in node.tags:
            return base + (75 if len(node.tags) == 1 else 50)
        return base + (0 if node.tags else 25)
    n_whole = sum(free == 1000 for free in node.gpus)
    if n_whole == len(node.gpus):
        return max(33 - n_whole, n_whole)
    chosen = [node.gpus[one] for one in fullest(node.gpus, pod.gpu_milli, pod.n_gpus)]
    opened = sum(free == 1000 for free in chosen)
    return max(50 - opened, 33) if opened else max(100 - sum(free * 100 // 1000 for free in chosen) // 10, 50)


def placements(trace: Any, policy: str, seed: int) -> list[tuple[str, tuple[int, ...]] | None]:
    """Where each arrival goes, the first name of equals; None for none."""
    order = trace.arrivals[seed]
    nodes = sorted(
        (
            Node(f"{rank:04d}-{one.name}", one.cpu_milli, one.memory_mib, [1000] * one.n_gpus, one.model)
            for one, rank in zip(trace.nodes, order.node_ranks, strict=True)
        ),
        key=lambda node: node.name,
    )
    known = typical([(pod.cpu_milli, pod.gpu_milli, pod.n_gpus, pod.models) for pod in trace.pods])
    found: list[tuple[str, tuple[int, ...]] | None] = []
    for place in order.pods:
        pod = trace.pods[place]
        feasible = [node for node in nodes if _fits(pod, node)]
        if not feasible:
            found.append(None)
            continue
        scores = [score(policy, pod, node, known) for node in feasible]
        node = feasible[scores.index(max(scores))]
        devices = tuple(sorted(fullest(node.gpus, pod.gpu_milli, pod.n_gpus)))
        if policy == "FGD":
            devices = fgd(pod, node, known)[1]
        node.cpu, node.memory = node.cpu - pod.cpu_milli, node.memory - pod.memory_mib
        node.gpus = taking(node.gpus, pod.gpu_milli, devices)
        if pod.n_gpus:
            node.tags.add(tag(pod))
        found.append((node.name, devices))
    return found


def _fits(pod: Any, node: Node) -> bool:
    if pod.cpu_milli > node.cpu or pod.memory_mib > node.memory:
        return False
    if pod.n_gpus and pod.models and node.model not in pod.models.split("|"):
        return False
    return sum(free >= pod.gpu_milli for free in node.gpus) >= pod.n_gpus
