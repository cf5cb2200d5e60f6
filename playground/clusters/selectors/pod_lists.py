"""Pods in lists, found and sorted by the database, and the pod behind a cycle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import F, OrderBy, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Length

from playground.clusters.models import Cluster, Cycle, Pod

PAGE_SIZE = 100
RUNS: Final = "running"
PENDING: Final = "pending"
STATES: Final = (PENDING, RUNS, *(lane for lane in Pod.Lane.values if lane))
"""What pods are looked for by: with and without a node, and the lanes of the queue."""
SORTS: Final[Mapping[str, str]] = {
    "name": "name",
    "namespace": "namespace",
    "lane": "lane",
    "priority": "priority",
    "cpu": "cpu_milli",
    "memory": "memory_bytes",
    "node": "node_name",
}


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


@dataclass(frozen=True)
class PodPage:
    """A page of pods, from 1, and how many were found."""

    pods: list[Pod]
    n_found: int
    page: int
    n_pages: int


def pod_page(cluster: Cluster, search: PodSearch, *, page: int = 1, limit: int = PAGE_SIZE) -> PodPage:
    """One page of what is looked for. Three queries."""
    found = _found(cluster, search)
    n_found = found.count()
    n_pages = max(1, -(-n_found // limit))
    page = min(max(1, page), n_pages)
    ids = [
        *found.order_by(*_order(search.sort)).values_list("pk", flat=True)[(page - 1) * limit : page * limit]
    ]
    by_id = Pod.objects.defer("manifest", "labels").in_bulk(ids)
    return PodPage([by_id[pk] for pk in ids if pk in by_id], n_found, page, n_pages)


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


def _order(sort: str) -> list[str | Combinable | OrderBy]:
    """By expressions: for a column itself SQLite would walk an index of all pods instead of the few that are meant."""
    column = SORTS.get(sort.removeprefix("-"))
    if column is None:
        return [F("pk") + 0]
    if column in ("name", "namespace"):
        other = "namespace" if column == "name" else "name"
        return [f"-{column}" if sort.startswith("-") else column, other]
    by = F(column)
    return [by.desc() if sort.startswith("-") else by.asc(), "namespace", "name"]


def pod_of_cycle(cycle: Cycle) -> Pod | None:
    """The pod a cycle was about, if it is still there (not another one of the same name)."""
    return Pod.objects.filter(
        cluster=cycle.cluster_id, namespace=cycle.pod_namespace, name=cycle.pod_name, uid=cycle.pod_uid
    ).first()
