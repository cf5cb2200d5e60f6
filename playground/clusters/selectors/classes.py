"""PriorityClasses and PodDisruptionBudgets: who uses them, and what they allow now."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, Q

from playground.clusters.models import Cluster, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.selectors.memo import Memo
from playground.engine.selectors import matcher

OWNERS_NAMED = 3


class OwnerCount(NamedTuple):
    """How many pods of one owner (``namespace/name``; empty = pods without an owner)."""

    owner: str
    n_pods: int


@dataclass(frozen=True)
class ClassUse:
    """A PriorityClass and the pods that name it.

    Attributes
    ----------
    row : PriorityClass
    n_pods
        Pods that name it.
    owners
        Whose they are, the most first, `OWNERS_NAMED` at most.
    n_below
        Pods on nodes that stand below its value.
    """

    row: PriorityClass
    n_pods: int
    owners: tuple[OwnerCount, ...]
    n_owners: int
    n_below: int

    @property
    def may_evict(self) -> int:
        """Pods on nodes that a pod of it could preempt."""
        return 0 if self.row.preemption_policy == "Never" else self.n_below


@dataclass(frozen=True)
class ClassesView:
    """The classes, highest first; `n_unnamed` pods name none."""

    classes: tuple[ClassUse, ...]
    n_pods: int
    n_unnamed: int


@dataclass(frozen=True)
class BudgetUse:
    """A PodDisruptionBudget and the pods it covers.

    Attributes
    ----------
    row : PodDisruptionBudget
        Without its manifest.
    n_pods, n_nodes
        Pods it selects, and the nodes they are on.
    shared_with
        Other budgets (``name``) that select some of the same pods, and how many pods that is.
    """

    row: PodDisruptionBudget
    n_pods: int
    n_nodes: int
    shared_with: tuple[str, ...]
    n_shared: int


_BUDGETS: Memo[list[BudgetUse]] = Memo(8)


def class_uses(cluster: Cluster) -> ClassesView:
    """Every PriorityClass with its pods. Two queries, whatever the number of pods."""
    rows = list(PriorityClass.objects.filter(cluster=cluster).order_by("-value", "name"))
    groups = (
        Pod.objects.filter(cluster=cluster)
        .order_by()
        .values_list("priority_class", "priority", "namespace", "owner_name")
        .annotate(n=Count("*"), placed=Count("pk", filter=Q(takes_room=True)))
    )
    pods: dict[str, Counter[str]] = {}
    placed: Counter[int] = Counter()
    for name, priority, namespace, owner, n, n_placed in groups:
        pods.setdefault(name, Counter())[f"{namespace}/{owner}" if owner else ""] += n
        placed[priority] += n_placed
    uses = []
    for row in rows:
        of_class = pods.get(row.name, Counter())
        ranked = sorted(of_class.items(), key=lambda item: (-item[1], item[0]))
        uses.append(
            ClassUse(
                row=row,
                n_pods=of_class.total(),
                owners=tuple(OwnerCount(*item) for item in ranked[:OWNERS_NAMED]),
                n_owners=len(ranked),
                n_below=sum(n for priority, n in placed.items() if priority < row.value),
            )
        )
    n_pods = sum(count.total() for count in pods.values())
    return ClassesView(tuple(uses), n_pods, pods.get("", Counter()).total())


def pods_below(cluster: Cluster, value: int) -> int:
    """Pods on nodes that stand below a value. One query."""
    return Pod.objects.placed().filter(cluster=cluster, priority__lt=value).count()


def pods_selected(cluster: Cluster, namespace: str, selector: Mapping[str, Any]) -> tuple[int, int]:
    """Pods that a budget in a namespace would select, and how many nodes they are on. One query."""
    matches = matcher(selector)
    rows = Pod.objects.filter(cluster=cluster, namespace=namespace).order_by()
    nodes = [node for labels, node in rows.values_list("labels", "node_name") if matches(labels)]
    return len(nodes), len({node for node in nodes if node})


def budget_uses(cluster: Cluster) -> list[BudgetUse]:
    """Every budget with the pods it covers, those that allow least first. Two queries; none for a version known."""
    key = (cluster.public_id, cluster.generation, cluster.version)
    return _BUDGETS.get(key, lambda: _count_budgets(cluster))


def _count_budgets(cluster: Cluster) -> list[BudgetUse]:
    rows = list(
        PodDisruptionBudget.objects.filter(cluster=cluster)
        .defer("manifest")
        .order_by("disruptions_allowed", "namespace", "name")
    )
    by_namespace: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        by_namespace.setdefault(row.namespace, []).append(index)
    matches = [matcher(row.selector) for row in rows]
    n_pods: Counter[int] = Counter()
    nodes: dict[int, dict[str, None]] = {}
    shared: dict[int, Counter[str]] = {}
    n_shared: Counter[int] = Counter()
    # Replicas have the same labels: each set of them is matched once.
    known: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[int, ...]] = {}
    pods = Pod.objects.filter(cluster=cluster, namespace__in=list(by_namespace)).order_by()
    listed = pods.values_list("namespace", "labels", "node_name").iterator(chunk_size=2000) if rows else ()
    for namespace, labels, node in listed:
        kind = (namespace, tuple(sorted(labels.items())))
        if kind not in known:
            known[kind] = tuple(index for index in by_namespace[namespace] if matches[index](labels))
        for index in known[kind]:
            n_pods[index] += 1
            if node:
                nodes.setdefault(index, {})[node] = None
            others = [rows[other].name for other in known[kind] if other != index]
            if others:
                shared.setdefault(index, Counter()).update(others)
                n_shared[index] += 1
    return [
        BudgetUse(
            row=row,
            n_pods=n_pods[index],
            n_nodes=len(nodes.get(index, ())),
            shared_with=tuple(sorted(shared.get(index, ()))),
            n_shared=n_shared[index],
        )
        for index, row in enumerate(rows)
    ]


def budgets_of_pod(cluster: Cluster, pod: Pod) -> list[PodDisruptionBudget]:
    """The budgets that cover a pod, by name. One query."""
    rows = (
        PodDisruptionBudget.objects.filter(cluster=cluster, namespace=pod.namespace)
        .defer("manifest")
        .order_by("name")
    )
    return [row for row in rows if matcher(row.selector)(pod.labels)]


def priorities(cluster: Cluster) -> list[tuple[str, int, bool]]:
    """Name, value and whether it is the default of each PriorityClass, the highest first. One query."""
    rows = PriorityClass.objects.filter(cluster=cluster).order_by("-value")
    return [*rows.values_list("name", "value", "global_default")]
