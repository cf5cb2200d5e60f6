"""Nodes and the pods on them, as the board shows them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Q, Sum

from playground.clusters.models import Cluster, Node, Pod

_DIGITS = re.compile(r"([0-9]+)")
FINISHED = ("Succeeded", "Failed")
KEPT_S = 600


@dataclass(frozen=True)
class NodeUse:
    """A node and what is requested on it. Amounts: millicores, bytes, counts."""

    name: str
    labels: dict[str, str]
    taints: list[dict[str, Any]]
    unschedulable: bool
    ready: bool
    cpu_milli: int
    memory_bytes: int
    max_pods: int
    extended: dict[str, int]
    used_cpu_milli: int
    used_memory_bytes: int
    n_pods: int
    used_extended: dict[str, int] = field(default_factory=dict)

    @property
    def cpu_percent(self) -> int:
        """Requested share of the allocatable cpu, 0 to 100."""
        return min(100, round(100 * self.used_cpu_milli / self.cpu_milli)) if self.cpu_milli else 0

    @property
    def memory_percent(self) -> int:
        """Requested share of the allocatable memory, 0 to 100."""
        return min(100, round(100 * self.used_memory_bytes / self.memory_bytes)) if self.memory_bytes else 0


@dataclass(frozen=True)
class PodUse:
    """A pod that takes room on a node, or will: bound, reserved at Permit, or nominated."""

    namespace: str
    name: str
    node: str
    priority: int
    priority_class: str
    cpu_milli: int
    memory_bytes: int
    extended: dict[str, int]
    terminating: bool
    nominated: bool
    reserved: bool
    phase: str


_POD_FIELDS = (
    "namespace", "name", "node_name", "nominated_node", "priority", "priority_class", "cpu_milli",
    "memory_bytes", "extended", "terminating", "lane", "phase",
)  # fmt: skip


def node_uses(cluster: Cluster) -> list[NodeUse]:
    """Every node in natural name order with what is requested on it: three queries, or none for a known version."""
    key = f"board-nodes:{cluster.pk}:{cluster.generation}:{cluster.version}"
    known: list[NodeUse] | None = cache.get(key)
    if known is not None:
        return known
    placed = Pod.objects.filter(cluster=cluster).exclude(node_name="").exclude(phase__in=FINISHED)
    used = {
        row["node_name"]: row
        for row in placed.values("node_name").annotate(
            cpu=Sum("cpu_milli"), memory=Sum("memory_bytes"), n=Count("pk")
        )
    }
    extended: dict[str, dict[str, int]] = {}
    for node, amounts in placed.filter(has_extended=True).values_list("node_name", "extended"):
        sums = extended.setdefault(node, {})
        for resource, amount in amounts.items():
            sums[resource] = sums.get(resource, 0) + amount
    uses = [
        NodeUse(
            name=node.name,
            labels=node.labels,
            taints=node.taints,
            unschedulable=node.unschedulable,
            ready=node.ready,
            cpu_milli=node.cpu_milli,
            memory_bytes=node.memory_bytes,
            max_pods=node.max_pods,
            extended=node.extended,
            used_cpu_milli=used.get(node.name, {}).get("cpu", 0),
            used_memory_bytes=used.get(node.name, {}).get("memory", 0),
            n_pods=used.get(node.name, {}).get("n", 0),
            used_extended=extended.get(node.name, {}),
        )
        for node in Node.objects.filter(cluster=cluster).defer("manifest")
    ]
    uses.sort(key=lambda use: natural(use.name))
    cache.set(key, uses, KEPT_S)
    return uses


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort key that puts node-2 before node-10."""
    return tuple(
        (part.isdigit(), int(part) if part.isdigit() else 0, part) for part in _DIGITS.split(name) if part
    )


def pods_on(
    cluster: Cluster, nodes: Sequence[str] | None = None, *, reserved: Mapping[str, str] | None = None
) -> dict[str, list[PodUse]]:
    """Return the pods on each node, higher priority first, nominated ones last. Two queries.

    Parameters
    ----------
    nodes
        Only these; None = every node.
    reserved
        ``namespace/name`` of a pod waiting at Permit -> the node held for it.
    """
    held = reserved or {}
    placed = Pod.objects.filter(cluster=cluster).exclude(node_name="").exclude(phase__in=FINISHED)
    coming = Pod.objects.filter(
        Q(lane=Pod.Lane.PERMIT) | ~Q(nominated_node=""), cluster=cluster, node_name=""
    )
    if nodes is not None:
        placed = placed.filter(node_name__in=nodes)
    order = ("-priority", "created_ns", "namespace", "name")
    found = [_use(row, held) for row in placed.order_by(*order).values(*_POD_FIELDS)]
    waiting = [_use(row, held) for row in coming.order_by(*order).values(*_POD_FIELDS)]
    wanted = None if nodes is None else set(nodes)
    result: dict[str, list[PodUse]] = {}
    for pod in (*found, *sorted(waiting, key=lambda pod: pod.nominated)):
        if pod.node and (wanted is None or pod.node in wanted):
            result.setdefault(pod.node, []).append(pod)
    return result


def _use(row: Mapping[str, Any], reserved: Mapping[str, str]) -> PodUse:
    held = "" if row["node_name"] else reserved.get(f"{row['namespace']}/{row['name']}", "")
    return PodUse(
        namespace=row["namespace"],
        name=row["name"],
        node=row["node_name"] or held or row["nominated_node"],
        priority=row["priority"],
        priority_class=row["priority_class"],
        cpu_milli=row["cpu_milli"],
        memory_bytes=row["memory_bytes"],
        extended=row["extended"],
        terminating=row["terminating"],
        nominated=not row["node_name"] and not held,
        reserved=bool(held),
        phase=row["phase"],
    )
