"""What pod groups have been through, from the cycles of their members."""

from collections.abc import Sequence

from playground.clusters.models import Cluster, Cycle

SHOWN = 30


def attempts_of(cluster: Cluster, namespace: str, uids: Sequence[str]) -> list[Cycle]:
    """The newest cycles of the members, newest first. One query; none for no members."""
    if not uids:
        return []
    cycles = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_uid__in=list(uids)[:500])
    return list(cycles.defer("trace").order_by("-number")[:SHOWN])
