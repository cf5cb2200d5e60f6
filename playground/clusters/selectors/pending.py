"""Pods of a queue lane that are alike: of one workload, and there for one reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from playground.clusters.models import Cluster, Pod
from playground.clusters.selectors.memo import Memo
from playground.clusters.selectors.queue import QueueItem, lanes_of

MOST_GROUPED = 5000
"""Pods of a lane that are looked at; a longer lane is not grouped."""
HASH_LABEL = "pod-template-hash"

Owner = tuple[str, str]


@dataclass(frozen=True)
class PendingGroup:
    """Pods of one workload with one reason.

    Attributes
    ----------
    kind, namespace, name
        Of the workload; of pods without an owner ``Pod`` and what their names have in common.
    reason
        Why they are there, as the queue says it.
    items
        In the lane's order.
    owner
        Name of the controlling owner the pods name, a ReplicaSet's for a Deployment's; empty without one.
    """

    kind: str
    namespace: str
    name: str
    reason: str
    owner: str
    items: tuple[QueueItem, ...]


_GROUPS: Memo[tuple[PendingGroup, ...]] = Memo(16)


def pending_groups(cluster: Cluster, lane: str, count: int) -> tuple[PendingGroup, ...]:
    """The pods of a lane in groups, in the order of their first ones; empty for a lane of too many. Five queries."""
    if count > MOST_GROUPED:
        return ()
    key = (cluster.public_id, cluster.generation, cluster.version, lane)
    return _GROUPS.get(key, lambda: _grouped(cluster, lane))


def _grouped(cluster: Cluster, lane: str) -> tuple[PendingGroup, ...]:
    lanes, _ = lanes_of(cluster, full=True)
    items = lanes[lane]
    owners = _owners(cluster, items)
    found: dict[tuple[str, str, str, str, str], list[QueueItem]] = {}
    for item in items:
        kind, name = owners.get(item.pod, ("", ""))
        stem = name or _stem(item.name)
        found.setdefault((kind or "Pod", item.namespace, stem, item.priority_class, item.reason), []).append(
            item
        )
    titles = _deployments(cluster, found)
    return tuple(
        PendingGroup(
            *titles.get((namespace, name), (kind, namespace, name)),
            reason=reason,
            owner="" if kind == "Pod" else name,
            items=tuple(members),
        )
        for (kind, namespace, name, _, reason), members in found.items()
    )


def _owners(cluster: Cluster, items: Sequence[QueueItem]) -> dict[str, Owner]:
    """(kind, name) of the controlling owner by ``namespace/name`` of the pod."""
    lanes = {item.lane for item in items if item.read}
    unread = [item.name for item in items if not item.read]
    rows = Pod.objects.filter(Q(lane__in=lanes) | Q(lane="", name__in=unread), cluster=cluster, node_name="")
    return {
        f"{namespace}/{name}": (kind, owner)
        for namespace, name, kind, owner in rows.order_by().values_list(
            "namespace", "name", "owner_kind", "owner_name"
        )
    }


def _stem(name: str) -> str:
    """What names of pods without an owner have in common: ``train`` of train-0, train-1."""
    stem, dash, number = name.rpartition("-")
    return stem if dash and number.isdecimal() else name


def _deployments(
    cluster: Cluster, groups: Mapping[tuple[str, str, str, str, str], Sequence[QueueItem]]
) -> dict[tuple[str, str], tuple[str, str, str]]:
    """(namespace, name of a ReplicaSet) -> (kind, namespace, name) of the Deployment it is of.

    Known by the label its pods carry, so that the ReplicaSet itself may be missing, as in a dump of pods alone.
    """
    firsts = {members[0].pod: key for key, members in groups.items() if key[0] == "ReplicaSet"}
    rows = Pod.objects.filter(cluster=cluster, name__in={pod.partition("/")[2] for pod in firsts})
    found = {}
    for namespace, name, labels in rows.order_by().values_list("namespace", "name", "labels"):
        _, _, owner, _, _ = firsts.get(f"{namespace}/{name}", ("", "", "", "", ""))
        suffix = f"-{labels.get(HASH_LABEL, '')}"
        if len(suffix) > 1 and owner.endswith(suffix):
            found[namespace, owner] = ("Deployment", namespace, owner.removesuffix(suffix))
    return found
