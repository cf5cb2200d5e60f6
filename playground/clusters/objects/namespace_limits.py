"""What a namespace may hold: LimitRanges and ResourceQuotas of its objects."""

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from playground.clusters import kinds
from playground.clusters.kinds import Kind
from playground.clusters.log.writer import LogWriter, key_of
from playground.clusters.models import Cluster, Manifest, Pod
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.quantity import QuantityError
from scheduler_core.objects.reading import Posted
from scheduler_core.sim.admission import (
    Amounts,
    check_limit_ranges,
    check_quota,
    matches,
    status_of,
    usage_of,
    used_of,
    with_limit_range_defaults,
)

Document = Mapping[str, Any]


class NamespaceLimits:
    """What holds in one namespace.

    Parameters
    ----------
    limit_ranges, quotas
        Its objects of these kinds, by name.
    charged
        Every object of it, with resource and group of its kind; read only where there is a quota.
    """

    def __init__(
        self,
        limit_ranges: Iterable[Document],
        quotas: Iterable[Document],
        charged: Iterable[tuple[Document, str, str]],
    ) -> None:
        self._limit_ranges = list(limit_ranges)
        self._quotas = list(quotas)
        self._used: list[Amounts] = []
        if self._quotas:
            usages = [
                (manifest, usage_of(manifest, resource, group)) for manifest, resource, group in charged
            ]
            self._used = [used_of(quota, usages) for quota in self._quotas]

    def admitted(self, manifest: Document, resource: str, group: str) -> dict[str, Any]:
        """The object with the defaults of the namespace, which counts from now on.

        Raises
        ------
        InvalidManifest
            In an API server's words.
        """
        result = dict(manifest)
        try:
            if self._limit_ranges and manifest.get("kind") == "Pod":
                result = with_limit_range_defaults(result, self._limit_ranges)
            check_limit_ranges(result, self._limit_ranges)
            usage = usage_of(result, resource, group) if self._quotas else {}
            concerned = [place for place, quota in enumerate(self._quotas) if matches(quota, result)]
            for place in concerned:
                check_quota(self._quotas[place], self._used[place], result, usage)
        except InvalidObject as error:
            raise Posted(result).problem(error.reason, path=error.path, reason="Forbidden") from None
        for place in concerned:
            used = self._used[place]
            for key, amount in usage.items():
                if key in used:
                    used[key] = used[key].add(amount)
        return result


def quota_status(quota: Document, charged: Iterable[tuple[Document, str, str]]) -> dict[str, Any]:
    """What a quota's status says, hard and used; empty where it cannot be read."""
    try:
        usages = [(manifest, usage_of(manifest, resource, group)) for manifest, resource, group in charged]
        return status_of(quota, used_of(quota, usages))
    except (QuantityError, InvalidObject):
        return {}


# ---- What a namespace holds, as quotas count it

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


# ---- LimitRanges and ResourceQuotas at work: on what is created over any surface

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
        name: [manifest for (kind, _), manifest in sorted(found.items(), key=itemgetter(0)) if kind == name]
        for name in KINDS
    }
    return NamespaceLimits(by_kind["LimitRange"], by_kind["ResourceQuota"], _charged(writer, namespace))


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
