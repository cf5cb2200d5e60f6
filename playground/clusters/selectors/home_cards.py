"""Figures of a cluster's card on the home page.

Counting 60,000 pods on every visit would be waste: the figures of one version of a cluster never change, so
they are kept in the cache under (cluster, generation, version).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Count, Q, Sum

from playground.clusters.models import Cluster, Cycle, Node, Pod

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
        counted = _count([cluster.pk for cluster in missing])
        cache.set_many({_key(cluster): counted[cluster.pk] for cluster in missing}, KEPT_S)
        figures |= counted
    return figures


def _key(cluster: Cluster) -> str:
    return f"home-card:{cluster.public_id}:{cluster.generation}:{cluster.version}"


def _count(ids: list[int]) -> dict[int, ClusterFigures]:
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
