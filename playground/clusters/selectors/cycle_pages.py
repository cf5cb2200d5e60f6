"""Cycles for the feed, the list and the page of one cycle."""

from collections.abc import Collection
from dataclasses import dataclass

from playground.clusters.models import Cluster, Cycle, Pod

PAGE_SIZE = 50
FEED_SIZE = 30


@dataclass(frozen=True)
class CyclePage:
    """One page of the list, newest first; `next_before` asks for the older ones."""

    cycles: list[Cycle]
    next_before: int | None


def recent_cycles(cluster: Cluster, *, limit: int = FEED_SIZE) -> list[Cycle]:
    """The newest cycles, newest first, without their traces."""
    return [*Cycle.objects.filter(cluster=cluster).defer("trace").order_by("-number")[:limit]]


def cycle_page(
    cluster: Cluster,
    *,
    outcome: str = "",
    pod: str = "",
    node: str = "",
    before: int | None = None,
    limit: int = PAGE_SIZE,
) -> CyclePage:
    """A page of cycles, newest first.

    Parameters
    ----------
    outcome
        One of the five outcomes; anything else filters nothing.
    pod
        ``namespace/name`` for exactly that pod, otherwise a part of the pod's name.
    node
        Exact name of the node it was placed on.
    before
        Only cycles with a lower number.
    """
    found = Cycle.objects.filter(cluster=cluster).defer("trace").order_by("-number")
    if outcome in Cycle.Outcome.values:
        found = found.filter(outcome=outcome)
    namespace, slash, name = pod.partition("/")
    if slash:
        found = found.filter(pod_namespace=namespace, pod_name=name)
    elif pod:
        found = found.filter(pod_name__contains=pod)
    if node:
        found = found.filter(node=node)
    if before is not None:
        found = found.filter(number__lt=before)
    cycles = [*found[: limit + 1]]
    more = len(cycles) > limit
    return CyclePage(cycles[:limit], cycles[limit - 1].number if more else None)


def last_cycle_of(pod: Pod) -> Cycle | None:
    """The last cycle about a pod (not about an earlier one of its name), without its trace."""
    found = Cycle.objects.filter(
        cluster=pod.cluster_id, pod_namespace=pod.namespace, pod_name=pod.name, pod_uid=pod.uid
    )
    return found.defer("trace").order_by("-number").first()


def placed_by(cluster: Cluster, node: str, pods: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the cycle that put each of these pods (namespace, name) on the node, as far as there was one."""
    found = Cycle.objects.filter(
        cluster=cluster,
        node=node,
        pod_namespace__in={namespace for namespace, _ in pods},
        pod_name__in={name for _, name in pods},
    )
    rows = found.order_by("number").values_list("pod_namespace", "pod_name", "number")
    return {(namespace, name): number for namespace, name, number in rows}
