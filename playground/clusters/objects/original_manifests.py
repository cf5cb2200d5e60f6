"""The objects of a cluster as people wrote them, without what the engine made of them; what a reset begins with."""

from collections.abc import Mapping
from typing import Any

from playground.clusters.kinds import KindTable
from playground.clusters.log.rows import rows_of
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.queries import entry_before
from playground.engine.batch import merged_changes

Key = tuple[str, str, str]


def written_objects(cluster: Cluster, table: KindTable) -> dict[Key, dict[str, Any]]:
    """Row kind, namespace and name -> manifest, of every object people wrote and did not delete, in the log's order.

    Of kinds the simulation does not read they are as they are now, and stand first: only clients write them.

    A later write by a person holds the whole object, with what the engine had written into it by then (a pod's node,
    its conditions, a claim's volume). So only what that write changed is taken over. A Binding is a decision and not
    a change of what was written: a pod has the node here that it was created with, if any.
    """
    kept = _kept_objects(cluster, table)
    inputs = LogEntry.objects.filter(
        cluster=cluster,
        source=LogEntry.Source.API,
        kind__in=[LogEntry.Kind.WRITE, LogEntry.Kind.DELETE],
    )
    for entry in inputs.order_by("seq").iterator(2000):
        key = (entry.object_kind, entry.object_namespace, entry.object_name)
        if entry.kind == LogEntry.Kind.DELETE:
            kept.pop(key, None)
        elif entry.created:
            kept[key] = entry.payload["manifest"]
        elif key in kept:
            before, after = before_write(entry), entry.payload["manifest"]
            if not is_binding(before, after):
                kept[key] = merged_changes(before, after, kept[key])
    return kept


def _kept_objects(cluster: Cluster, table: KindTable) -> dict[Key, dict[str, Any]]:
    found: dict[Key, dict[str, Any]] = {}
    for kind in sorted(table.kinds, key=lambda item: item.apply_rank):
        if kind.interpreted or kind.row_kind == "Event":
            continue
        for manifest in (
            rows_of(cluster, kind).order_by("resource_version").values_list("manifest", flat=True)
        ):
            meta = manifest["metadata"]
            found[kind.row_kind, meta.get("namespace", "") if kind.namespaced else "", meta["name"]] = (
                manifest
            )
    return found


def before_write(entry: LogEntry) -> Mapping[str, Any]:
    """The object as this write found it. Compaction keeps the entry that says so (`compaction.py`)."""
    found = entry_before(entry)
    assert found is not None, f"{entry}: an object is changed that was not written"
    manifest: Mapping[str, Any] = found.payload["manifest"]
    return manifest


def is_binding(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a write put a pod on a node."""
    if after["kind"] != "Pod":
        return False
    return not before["spec"].get("nodeName") and bool(after["spec"].get("nodeName"))
