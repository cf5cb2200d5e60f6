"""How many pods a cluster's controllers are asked for: they count as objects before they are there."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from playground.clusters.errors import TooLarge
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Manifest, Node, Pod
from playground.engine.demand import is_controlled, pods_asked_for

DEMANDING: Final = (
    "CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "ReplicaSet", "ReplicationController",
    "StatefulSet",
)  # fmt: skip
"""Kinds whose controllers make pods, or have them made."""


def check_demand(
    cluster: Cluster, rows: Mapping[tuple[str, str, str], tuple[Kind, Mapping[str, Any], int] | None]
) -> None:
    """Refuse what makes all workloads of a cluster together ask for more pods than it may have objects.

    A DaemonSet asks for a pod a node. Pods that workloads own already are what was asked for before.

    Parameters
    ----------
    rows
        (kind, namespace, name) -> kind, manifest and number as it will be, None = gone; of what is written now.

    Raises
    ------
    TooLarge
    """
    limit = settings.PLAYGROUND_MAX_OBJECTS
    nodes = set(Node.objects.filter(cluster=cluster).values_list("name", flat=True))
    manifests: dict[tuple[str, str, str], Any] = {
        (kind, namespace, name): manifest
        for kind, namespace, name, manifest in Manifest.objects.filter(
            cluster=cluster, kind__in=DEMANDING
        ).values_list("kind", "namespace", "name", "manifest")
    }
    n_before = sum(count for count, *_ in _asked(manifests, len(nodes)))
    for key, row in rows.items():
        if key[0] == "Node":
            (nodes.discard if row is None else nodes.add)(key[2])
        elif key[0] in DEMANDING:
            manifests.pop(key, None)
            if row is not None:
                manifests[key] = row[1]
    asked = _asked(manifests, len(nodes))
    n_asked = sum(count for count, *_ in asked)
    if n_asked <= n_before:  # what is over the limit already may shrink
        return
    n_others = (
        Manifest.objects.filter(cluster=cluster).exclude(kind__in=DEMANDING).exclude(kind="Event").count()
    )
    n_others += Pod.objects.filter(cluster=cluster, owner_kind="").count()
    total = n_asked + n_others + len(manifests) + len(nodes)
    if total <= limit:
        return
    count, kind, _, name, path = max(asked)
    others = "" if len(asked) == 1 else f"; all workloads together ask for {n_asked:,}"
    raise TooLarge(
        f'{kind} "{name}" asks for {count:,} pods in {path}{others};'
        f" a cluster has at most {limit:,} objects, pods of controllers included"
    )


def _asked(
    manifests: Mapping[tuple[str, str, str], Any], n_nodes: int
) -> list[tuple[int, str, str, str, str]]:
    """(pods, kind, namespace, name, field) of each workload that no other one stands above."""
    return [
        (found[0], *key, found[1])
        for key, manifest in manifests.items()
        if not is_controlled(manifest) and (found := pods_asked_for(manifest, n_nodes)) is not None
    ]
