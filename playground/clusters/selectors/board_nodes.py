"""Nodes and the pods on them, as the board shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Sum

from playground.clusters.models import Cluster, Node, Pod

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
    """Every node in name order with what is requested on it: three queries, or none for a known version."""
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
        for node in Node.objects.filter(cluster=cluster).defer("manifest").order_by("name")
    ]
    cache.set(key, uses, KEPT_S)
    return uses


def pods_on(cluster: Cluster, nodes: Sequence[str] | None = None) -> dict[str, list[PodUse]]:
    """Return the pods on each node, higher priority first; `nodes` None = on every node. Two queries.

    A nominated pod is listed with the node it is nominated to, a pod waiting at Permit with the node that is
    reserved for it.
    """
    placed = Pod.objects.filter(cluster=cluster).exclude(node_name="").exclude(phase__in=FINISHED)
    coming = Pod.objects.filter(cluster=cluster, node_name="").exclude(nominated_node="")
    if nodes is not None:
        placed = placed.filter(node_name__in=nodes)
        coming = coming.filter(nominated_node__in=nodes)
    order = ("-priority", "created_ns", "namespace", "name")
    result: dict[str, list[PodUse]] = {}
    for pod in _uses(placed.order_by(*order).values_list(*_POD_FIELDS)):
        result.setdefault(pod.node, []).append(pod)
    for pod in _uses(coming.order_by(*order).values_list(*_POD_FIELDS)):
        result.setdefault(pod.node, []).append(pod)
    return result


def _uses(rows: Iterable[tuple[Any, ...]]) -> Iterable[PodUse]:
    for (
        namespace,
        name,
        node,
        nominated,
        priority,
        class_,
        cpu,
        memory,
        ext,
        term,
        lane,
        phase,
        cycle,
    ) in rows:
        yield PodUse(
            namespace=namespace,
            name=name,
            node=node or nominated,
            priority=priority,
            priority_class=class_,
            cpu_milli=cpu,
            memory_bytes=memory,
            extended=ext,
            terminating=term,
            nominated=not node,
            reserved=lane == Pod.Lane.PERMIT,
            phase=phase,
        )
