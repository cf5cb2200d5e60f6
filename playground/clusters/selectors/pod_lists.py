"""Pods in lists, and the pod behind a cycle."""

from dataclasses import dataclass

from django.db.models import F

from playground.clusters.models import Cluster, Cycle, Pod

PAGE_SIZE = 100


@dataclass(frozen=True)
class PodPage:
    """A page of pods; `next_after` asks for the next one."""

    pods: list[Pod]
    next_after: int | None


def pod_page(
    cluster: Cluster, *, lane: str = "", after: int | None = None, limit: int = PAGE_SIZE
) -> PodPage:
    """A page of pods in the order they were made; `lane` an empty text = every pod."""
    found = Pod.objects.filter(cluster=cluster).defer("manifest").order_by("pk")
    if lane in Pod.Lane.values and lane:
        # By an expression: for the key itself SQLite would walk all pods of the cluster, not those of the lane.
        found = found.filter(lane=lane).order_by(F("pk") + 0)
    if after is not None:
        found = found.filter(pk__gt=after)
    pods = [*found[: limit + 1]]
    return PodPage(pods[:limit], pods[limit - 1].pk if len(pods) > limit else None)


def pod_of_cycle(cycle: Cycle) -> Pod | None:
    """The pod a cycle was about, if it is still there (not another one of the same name)."""
    return Pod.objects.filter(
        cluster=cycle.cluster_id, namespace=cycle.pod_namespace, name=cycle.pod_name, uid=cycle.pod_uid
    ).first()
