"""Pods in lists, found and sorted by the database, and the pod behind a cycle."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db.models import Case, Count, F, Min, Q, QuerySet, When, Window
from django.db.models.functions import Length

from playground.clusters.log.rows import PageOfRows
from playground.clusters.memo import Memo
from playground.clusters.models import Cluster, Cycle, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.objects.queries import matcher

PAGE_SIZE = 25
RUNS: Final = "running"
PENDING: Final = "pending"
STATES: Final = (PENDING, RUNS, *(lane for lane in Pod.Lane.values if lane))
"""What pods are looked for by: with and without a node, and the lanes of the queue."""
SORTS: Final[Mapping[str, F | Min]] = {
    "name": Min("name"),
    "namespace": F("namespace"),
    "lane": F("lane"),
    "priority": F("priority"),
    "cpu": F("cpu_milli"),
    "memory": F("memory_bytes"),
    "node": Min("node_name"),
}
_ALIKE: Final = ("namespace", "owner_name", "lane", "phase", "priority", "cpu_milli", "memory_bytes")
"""What pods of one owner have in common that are one row."""


@dataclass(frozen=True)
class PodSearch:
    """Which pods, and in which order; an empty text asks nothing.

    Attributes
    ----------
    q
        Words, each a part of the name; with a slash ``namespace/part of the name``.
    namespace, node, owner
        Exactly; the owner is the controlling one a pod names, as a ReplicaSet.
    lane
        One of `STATES`.
    sort
        One of `SORTS`, ``-`` before it for descending; else the order in which pods were made.
    """

    q: str = ""
    namespace: str = ""
    node: str = ""
    owner: str = ""
    lane: str = ""
    sort: str = ""


class PodRow(NamedTuple):
    """A pod, or the first of `n` pods that are alike, on `n_nodes` nodes."""

    pod: Pod
    n: int
    n_nodes: int


def pod_page(
    cluster: Cluster, search: PodSearch, *, page: int = 1, limit: int = PAGE_SIZE
) -> PageOfRows[PodRow]:
    """One page of what is looked for, and how many pods were found. Three queries.

    Alike pods of one owner are a row, until a name, a node or an owner is asked for.
    """
    found = _found(cluster, search)
    one_by_one = search.q or search.node or search.owner
    single = F("name") if one_by_one else Case(When(owner_name="", then=F("name")))
    groups = found.order_by().values(*_ALIKE, single=single)
    counted = groups.annotate(
        first=Min("pk"),
        n=Count("*"),
        n_nodes=Count("node_name", distinct=True),
        n_rows=Window(Count("*")),
        column=SORTS.get(search.sort.removeprefix("-"), Min("pk")),
    ).order_by("-column" if search.sort.startswith("-") else "column", "namespace", "first")

    def read(page: int) -> list[tuple[int, int, int, int]]:
        return [*counted.values_list("first", "n", "n_nodes", "n_rows")[(page - 1) * limit : page * limit]]

    page = max(1, page)
    rows = read(page)
    if not rows and page > 1:  # beyond the last
        page = max(1, -(-next((n_rows for *_, n_rows in read(1)), 0) // limit))
        rows = read(page)
    by_id = Pod.objects.defer("manifest").in_bulk([row[0] for row in rows])
    return PageOfRows(
        [PodRow(by_id[pk], n, n_nodes) for pk, n, n_nodes, _ in rows if pk in by_id],
        n_found=found.count(),
        page=page,
        n_pages=max(1, -(-max((n_rows for *_, n_rows in rows), default=0) // limit)),
    )


def namespaces_of(cluster: Cluster) -> list[str]:
    """Namespaces that have pods, by name."""
    rows = Pod.objects.filter(cluster=cluster).order_by("namespace")
    return [*rows.values_list("namespace", flat=True).distinct()]


def pods_named(cluster: Cluster, words: str, *, limit: int) -> list[tuple[str, str]]:
    """(namespace, name) of the first pods with all the words in their names; the shorter names first."""
    found = _found(cluster, PodSearch(q=words)).order_by(Length("name"), "name", "namespace")
    return [*found.values_list("namespace", "name")[:limit]]


def owners_named(cluster: Cluster, words: str, *, limit: int) -> list[tuple[str, str, str]]:
    """Owners of pods whose name has all of the words: kind, namespace, name; short names first. One query."""
    owners = Pod.objects.filter(cluster=cluster).exclude(owner_name="")
    for word in words.split():
        owners = owners.filter(owner_name__contains=word)
    rows = owners.order_by(Length("owner_name"), "owner_name", "namespace")
    return [*rows.values_list("owner_kind", "namespace", "owner_name").distinct()[:limit]]


def names_beginning(cluster: Cluster, namespace: str, prefix: str) -> set[str]:
    """The names that pods of a namespace have and that begin so. One query."""
    rows = Pod.objects.filter(cluster=cluster, namespace=namespace, name__startswith=prefix)
    return set(rows.values_list("name", flat=True))


def assumed_pods(cluster: Cluster, *, limit: int) -> list[str]:
    """``namespace/name`` of pods that are assumed on a node and whose Binding was not heard of yet. One query."""
    rows = Pod.objects.filter(cluster=cluster, lane=Pod.Lane.BINDING).order_by("namespace", "name")
    return [f"{namespace}/{name}" for namespace, name in rows.values_list("namespace", "name")[:limit]]


def running_by_node(cluster: Cluster) -> dict[str, list[str]]:
    """``namespace/name`` of the pods on each node that are not finished. One query."""
    rows = Pod.objects.placed().filter(cluster=cluster)
    by_node: dict[str, list[str]] = {}
    for namespace, name, node in rows.order_by("namespace", "name").values_list(
        "namespace", "name", "node_name"
    ):
        by_node.setdefault(node, []).append(f"{namespace}/{name}")
    return by_node


def count_pods(cluster: Cluster) -> int:
    """All pods, finished ones included. One query."""
    return Pod.objects.filter(cluster=cluster).count()


def _found(cluster: Cluster, search: PodSearch) -> QuerySet[Pod]:
    found = Pod.objects.filter(cluster=cluster)
    for word in search.q.split():
        namespace, slash, part = word.rpartition("/")
        found = found.filter(name__contains=part)
        if slash:
            found = found.filter(namespace=namespace)
    exactly = {"namespace": search.namespace, "node_name": search.node, "owner_name": search.owner}
    found = found.filter(**{name: value for name, value in exactly.items() if value})
    if search.lane == PENDING:
        found = found.pending()
    elif search.lane == RUNS:
        found = found.filter(~Q(node_name=""), phase="Running")
    elif search.lane in STATES:
        found = found.filter(lane=search.lane)
    return found


def pod_of_cycle(cycle: Cycle) -> Pod | None:
    """The pod a cycle was about, if it is still there (not another one of the same name)."""
    return Pod.objects.filter(
        cluster=cycle.cluster_id, namespace=cycle.pod_namespace, name=cycle.pod_name, uid=cycle.pod_uid
    ).first()


# ---- PriorityClasses and PodDisruptionBudgets: who uses them, and what they allow now

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
