"""What a namespace holds, as quotas count it."""

from collections.abc import Iterator, Mapping
from typing import Any

from playground.clusters import kinds
from playground.clusters.models import Cluster, Manifest, Pod
from playground.engine.namespace_limits import quota_status

Charged = tuple[Mapping[str, Any], str, str]
"""Manifest, resource and group of its kind."""


def stored_objects(cluster: Cluster, namespace: str) -> Iterator[tuple[Mapping[str, Any], str, str, str]]:
    """Manifest, resource, group and kind of all that a namespace holds."""
    for manifest in Pod.objects.filter(cluster=cluster, namespace=namespace).values_list(
        "manifest", flat=True
    ):
        yield manifest, "pods", "", "Pod"
    rows = Manifest.objects.filter(cluster=cluster, namespace=namespace)
    for name, manifest in rows.values_list("kind", "manifest"):
        kind = kinds.by_kind(name)
        if kind is not None:
            yield manifest, kind.plural, kind.group, name


def with_usage(cluster: Cluster, quota: Mapping[str, Any]) -> dict[str, Any]:
    """A ResourceQuota with what is used of it at this moment in its status."""
    namespace = quota["metadata"].get("namespace") or "default"
    charged = (
        (manifest, resource, group) for manifest, resource, group, _ in stored_objects(cluster, namespace)
    )
    return dict(quota) | {"status": quota_status(quota, charged)}
