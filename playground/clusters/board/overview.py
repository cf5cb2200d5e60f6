"""The list of clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from playground.clusters.access import clusters_of
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import found
from playground.clusters.kinds import Kind, as_served
from playground.clusters.log.rows import MODELS, rows_after, rows_of
from playground.clusters.models import Cluster, Cycle, Manifest, Node, Pod, Run


def clusters_overview(user: Any = None, *, limit: int = 100, before: Cluster | None = None) -> list[Cluster]:
    """The user's clusters with their counts, newest first. One query.

    Parameters
    ----------
    before
        Only clusters older than this one: the next page.
    """
    rows = clusters_of(user)
    if before is not None:
        rows = rows.filter(Q(created__lt=before.created) | Q(created=before.created, pk__lt=before.pk))
    return list(_counted(rows).order_by("-created", "-pk")[:limit])


def branches_overview(cluster: Cluster, user: Any = None, *, limit: int = 100) -> list[Cluster]:
    """The clusters made of this one that the user may see, newest first. One query."""
    return list(_counted(clusters_of(user).filter(parent=cluster)).order_by("-created", "-pk")[:limit])


def with_counts(cluster: Cluster) -> Cluster:
    """The cluster with its counts. One query.

    Raises
    ------
    NotFound
        It is gone.
    """
    row = _counted(Cluster.objects.filter(pk=cluster.pk)).first()
    return found(row, f'cluster "{cluster.public_id}"', kind="Cluster", name=cluster.public_id)


def _counted(rows: QuerySet[Cluster]) -> QuerySet[Cluster]:
    """Clusters with how many nodes, pods, bound and pending ones (no node, not finished) and cycles they have."""
    return rows.annotate(
        n_nodes=_count(Node.objects.all()),
        n_pods=_count(Pod.objects.all()),
        n_bound=_count(Pod.objects.exclude(node_name="")),
        n_pending=_count(Pod.objects.pending()),
        n_cycles=_count(Cycle.objects.all()),
        is_running=Exists(Run.objects.filter(cluster=OuterRef("pk"), state__in=Run.OPEN)),
    )


def _count(rows: QuerySet[Any]) -> Coalesce:
    counted = (
        rows.filter(cluster=OuterRef("pk")).order_by().values("cluster").annotate(n=Count("pk")).values("n")
    )
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


# ---- Figures of a cluster's card on the home page
#
# Counting 60,000 pods on every visit would be waste: the figures of one version of a cluster never change, so
# they are kept in the cache under (cluster, generation, version).

SPARK_BARS = 44
KEPT_S = 3600


@dataclass(frozen=True)
class ClusterFigures:
    """What a card says; amounts in millicores, `usage` in percent of requested cpu a node, at most 44."""

    n_nodes: int
    n_pods: int
    n_pending: int
    cpu_milli: int
    cpu_requested_milli: int
    usage: tuple[int, ...]
    last_cycle: Cycle | None

    @property
    def cpu_percent(self) -> int:
        """Requested share of the allocatable cpu."""
        return round(100 * self.cpu_requested_milli / self.cpu_milli) if self.cpu_milli else 0


def figures_of(clusters: Sequence[Cluster]) -> dict[int, ClusterFigures]:
    """Return figures by primary key: no query for those known, four for all the others together."""
    keys = {_key(cluster): cluster for cluster in clusters}
    known = cache.get_many(keys)
    figures = {keys[key].pk: value for key, value in known.items()}
    missing = [cluster for key, cluster in keys.items() if key not in known]
    if missing:
        counted = _figures_of([cluster.pk for cluster in missing])
        cache.set_many({_key(cluster): counted[cluster.pk] for cluster in missing}, KEPT_S)
        figures |= counted
    return figures


def _key(cluster: Cluster) -> str:
    return f"home-card:{cluster.public_id}:{cluster.generation}:{cluster.version}"


def _figures_of(ids: list[int]) -> dict[int, ClusterFigures]:
    waiting = Pod.objects.pending().filter(cluster__in=ids)
    n_pending = dict(waiting.order_by().values_list("cluster").annotate(n=Count("*")))
    n_placed = Counter[int]()
    used: dict[tuple[int, str], int] = {}
    placed = Pod.objects.placed().filter(cluster__in=ids).order_by()
    rows = placed.values_list("cluster", "node_name").annotate(cpu=Sum("cpu_milli"), n=Count("*"))
    for pk, node, cpu_milli, n in rows:
        n_placed[pk] += n
        used[pk, node] = cpu_milli
    nodes: dict[int, list[tuple[int, int]]] = {pk: [] for pk in ids}
    there = Node.objects.filter(cluster__in=ids).order_by("name").values_list("cluster", "name", "cpu_milli")
    for pk, name, cpu_milli in there:
        nodes[pk].append((cpu_milli, used.get((pk, name), 0)))
    last = {cycle.cluster_id: cycle for cycle in _last_cycles(ids)}
    return {
        pk: ClusterFigures(
            n_nodes=len(nodes[pk]),
            n_pods=n_placed[pk] + n_pending.get(pk, 0),
            n_pending=n_pending.get(pk, 0),
            cpu_milli=sum(cpu for cpu, _ in nodes[pk]),
            cpu_requested_milli=sum(requested for _, requested in nodes[pk]),
            usage=_spark(nodes[pk]),
            last_cycle=last.get(pk),
        )
        for pk in ids
    }


def _last_cycles(ids: list[int]) -> Iterable[Cycle]:
    newest = Q()
    for pk, number in Cluster.objects.filter(pk__in=ids).values_list("pk", "next_cycle"):
        newest |= Q(cluster=pk, number=number - 1)
    return Cycle.objects.filter(newest).defer("trace") if newest else ()


def _spark(nodes: list[tuple[int, int]]) -> tuple[int, ...]:
    """At most `SPARK_BARS` nodes, evenly picked in name order."""
    step = max(1, -(-len(nodes) // SPARK_BARS))
    return tuple(min(100, round(100 * requested / cpu)) if cpu else 0 for cpu, requested in nodes[::step])


# ---- What a cluster holds, by kind


def counts_by_kind(cluster: Cluster) -> list[tuple[Kind, int]]:
    """Every kind of the cluster, in table order, and how many objects it has of it. One query a model."""
    held = Manifest.objects.filter(cluster=cluster).values_list("kind").annotate(n=Count("pk"))
    numbers = dict(held.order_by())
    for name, model in MODELS.items():
        if name != "Manifest":
            numbers[name] = model._default_manager.filter(cluster=cluster).count()
    return [(kind, numbers.get(kind.row_kind, 0)) for kind in table_of(cluster).kinds]


def objects_of_kind(
    cluster: Cluster, kind: Kind, *, named: str = "", after: tuple[str, str] | None = None, limit: int
) -> Iterator[dict[str, Any]]:
    """Objects of one kind by namespace and name, those whose name holds a text; `limit` at most. One query."""
    place = ("namespace", "name") if kind.namespaced else ("name",)
    rows = rows_of(cluster, kind).order_by(*place)
    if named:
        rows = rows.filter(name__icontains=named)
    rows = rows_after(rows, kind, after)
    for manifest in rows.values_list("manifest", flat=True)[:limit]:
        yield as_served(kind, manifest)


# ---- What there is to plan with


@dataclass(frozen=True, slots=True)
class PlanSubject:
    """What a cluster has that questions about all of it are asked of.

    Attributes
    ----------
    n_pods, n_pending
        With a node, and without.
    nodes
        The first names.
    """

    n_nodes: int
    has_zones: bool
    n_pods: int
    n_pending: int
    nodes: list[str]


def plan_subject(cluster: Cluster, *, limit: int) -> PlanSubject:
    """Three queries; at most `limit` names of nodes."""
    nodes = Node.objects.filter(cluster=cluster)
    count = nodes.aggregate(n=Count("pk"), zoned=Count("pk", filter=~Q(zone="")))
    pods = Pod.objects.filter(cluster=cluster).aggregate(
        placed=Count("pk", filter=~Q(node_name="")), pending=Count("pk", filter=Q(node_name=""))
    )
    names = [*nodes.order_by("name").values_list("name", flat=True)[:limit]]
    return PlanSubject(count["n"], bool(count["zoned"]), pods["placed"], pods["pending"], names)
