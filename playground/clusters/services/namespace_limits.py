"""LimitRanges and ResourceQuotas at work: on what is created over any surface."""

from collections.abc import Iterator
from typing import Any

from playground.clusters import kinds
from playground.clusters.kinds import Kind
from playground.clusters.models import Manifest
from playground.clusters.namespace_objects import Charged, stored_objects
from playground.clusters.services.writer import LogWriter, key_of
from playground.engine.namespace_limits import NamespaceLimits

KINDS = ("LimitRange", "ResourceQuota")


def with_namespace_limits(writer: LogWriter, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """An object that is about to be created, as its namespace's LimitRanges complete it.

    Raises
    ------
    InvalidManifest
        They do not allow it, or a quota has no room.
    """
    if not kind.namespaced or kind.row_kind == "Event":
        return manifest
    namespace = key_of(kind, manifest)[1]
    if kind.row_kind in KINDS:
        # It holds from the next object on.
        writer.namespace_limits.pop(namespace, None)
        return manifest
    if namespace not in writer.namespace_limits:
        writer.namespace_limits[namespace] = _limits_of(writer, namespace)
    limits: NamespaceLimits | None = writer.namespace_limits[namespace]
    if limits is None:
        return manifest
    return limits.admitted(manifest, kind.plural, kind.group)


def _limits_of(writer: LogWriter, namespace: str) -> NamespaceLimits | None:
    stored = Manifest.objects.filter(cluster=writer.cluster, namespace=namespace, kind__in=KINDS)
    found = {(row.kind, row.name): row.manifest for row in stored.order_by("kind", "name")}
    for name in KINDS:
        for key, manifest in writer.pending(name, namespace):
            if manifest is None:
                found.pop((name, key), None)
            else:
                found[name, key] = manifest
    if not found:
        return None
    by_kind = {
        name: [manifest for (kind, _), manifest in sorted(found.items(), key=_by_key) if kind == name]
        for name in KINDS
    }
    return NamespaceLimits(by_kind["LimitRange"], by_kind["ResourceQuota"], _charged(writer, namespace))


def _by_key(item: tuple[tuple[str, str], Any]) -> tuple[str, str]:
    return item[0]


def _charged(writer: LogWriter, namespace: str) -> Iterator[Charged]:
    """Every object of a namespace, those of this transaction as they are now."""
    pending = {
        (kind, name): manifest
        for kind in writer.pending_kinds(namespace)
        for name, manifest in writer.pending(kind, namespace)
    }
    for manifest, resource, group, kind in stored_objects(writer.cluster, namespace):
        if (kind, manifest["metadata"]["name"]) not in pending:
            yield manifest, resource, group
    for (name, _), written in pending.items():
        kind_of = kinds.by_kind(name)
        if written is not None and kind_of is not None:
            yield written, kind_of.plural, kind_of.group
