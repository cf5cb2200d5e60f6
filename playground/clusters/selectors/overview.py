"""The list of clusters."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from playground.clusters.access import clusters_of
from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Cycle, Node, Pod, Run


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One line of the home page.

    Attributes
    ----------
    cluster
        Its row.
    n_nodes, n_pods, n_bound, n_pending, n_cycles
        Counts; pending = no node, not finished.
    running
        Whether a run is open.
    """

    cluster: Cluster
    n_nodes: int
    n_pods: int
    n_bound: int
    n_pending: int
    n_cycles: int
    running: bool


def clusters_overview(
    user: Any = None, *, limit: int = 100, before: Cluster | None = None
) -> list[ClusterSummary]:
    """The user's clusters, newest first. One query.

    Parameters
    ----------
    before
        Only clusters older than this one: the next page.
    """
    rows = clusters_of(user)
    if before is not None:
        rows = rows.filter(Q(created__lt=before.created) | Q(created=before.created, pk__lt=before.pk))
    return _summaries(rows.order_by("-created", "-pk")[:limit])


def branches_overview(cluster: Cluster, user: Any = None, *, limit: int = 100) -> list[ClusterSummary]:
    """The clusters made of this one that the user may see, newest first. One query."""
    return _summaries(clusters_of(user).filter(parent=cluster).order_by("-created", "-pk")[:limit])


def cluster_summary(cluster: Cluster) -> ClusterSummary:
    """One cluster with its counts. One query.

    Raises
    ------
    NotFound
        It is gone.
    """
    found = _summaries(Cluster.objects.filter(pk=cluster.pk))
    if not found:
        raise NotFound(f'cluster "{cluster.public_id}" not found', kind="Cluster", name=cluster.public_id)
    return found[0]


def _summaries(rows: QuerySet[Cluster]) -> list[ClusterSummary]:
    counted = rows.annotate(
        n_nodes=_count(Node.objects.all()),
        n_pods=_count(Pod.objects.all()),
        n_bound=_count(Pod.objects.exclude(node_name="")),
        n_pending=_count(Pod.objects.pending()),
        n_cycles=_count(Cycle.objects.all()),
        n_open=_count(Run.objects.filter(state__in=Run.OPEN)),
    )
    return [
        ClusterSummary(
            cluster=row,
            n_nodes=row.n_nodes,
            n_pods=row.n_pods,
            n_bound=row.n_bound,
            n_pending=row.n_pending,
            n_cycles=row.n_cycles,
            running=row.n_open > 0,
        )
        for row in counted
    ]


def _count(rows: QuerySet[Any]) -> Coalesce:
    counted = (
        rows.filter(cluster=OuterRef("pk")).order_by().values("cluster").annotate(n=Count("pk")).values("n")
    )
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def version_token(cluster_id: int) -> str:
    """Changes with every visible change of a cluster; for ETags and live pages. One query, one row.

    The empty string means the cluster is gone.
    """
    row = Cluster.objects.filter(pk=cluster_id).values_list("generation", "version").first()
    return "" if row is None else f"{row[0]}-{row[1]}"
