"""What pods and nodes use at this moment, as the load drawn on workloads says."""

from collections.abc import Iterable, Mapping
from typing import Any

from playground.clusters.clock import virtual_now_ns
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Manifest, Pod
from playground.engine.load import FindOwner, Use, carrier_of, use_of


def pods_in_use(cluster: Cluster, *, namespace: str = "") -> list[tuple[Pod, Use]]:
    """Running pods by namespace and name, each with what its containers use, in nano units.

    Parameters
    ----------
    namespace
        Only those there; empty = all.
    """
    return _in_use(cluster, namespace, _finder(cluster))


def sharing(cluster: Cluster, kind: Kind, namespace: str, name: str) -> list[tuple[Pod, Use]]:
    """The running pods whose use is drawn on an object, with it."""
    find = _finder(cluster)
    found = []
    for pod, use in _in_use(cluster, namespace, find):
        carrier = carrier_of(pod.manifest, find)
        if (carrier["kind"], carrier["metadata"]["name"]) == (kind.kind, name):
            found.append((pod, use))
    return found


def _in_use(cluster: Cluster, namespace: str, find: FindOwner) -> list[tuple[Pod, Use]]:
    rows = Pod.objects.filter(cluster=cluster, phase="Running").order_by("namespace", "name")
    if namespace:
        rows = rows.filter(namespace=namespace)
    pods = list(rows)
    used = use_of((row.manifest for row in pods), find, virtual_now_ns(cluster))
    return [(row, used[row.namespace, row.name]) for row in pods if (row.namespace, row.name) in used]


def total(uses: Iterable[Use]) -> dict[str, int]:
    """The sum of what containers use, by resource."""
    found = {"cpu": 0, "memory": 0}
    for use in uses:
        for amounts in use.values():
            for resource, amount in amounts.items():
                found[resource] += amount
    return found


def _finder(cluster: Cluster) -> FindOwner:
    """Looks up owners, each once."""
    known: dict[tuple[str, str, str], Mapping[str, Any] | None] = {}

    def find(kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        key = (kind, namespace or "default", name)
        if key not in known:
            row = Manifest.objects.filter(cluster=cluster, kind=kind, namespace=key[1], name=name).first()
            known[key] = None if row is None else row.manifest
        return known[key]

    return find


def autoscalers_of(cluster: Cluster, kind: Kind, namespace: str, name: str) -> list[Mapping[str, Any]]:
    """The HorizontalPodAutoscalers whose target an object is, by name. One query."""
    rows = Manifest.objects.filter(cluster=cluster, kind="HorizontalPodAutoscaler", namespace=namespace)
    found = []
    for manifest in rows.order_by("name").values_list("manifest", flat=True):
        target = (manifest.get("spec") or {}).get("scaleTargetRef") or {}
        if (target.get("kind"), target.get("name")) == (kind.kind, name):
            found.append(manifest)
    return found
