"""What there is to plan with."""

from dataclasses import dataclass

from django.db.models import Count, Q

from playground.clusters.models import Cluster, Node, Pod


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
