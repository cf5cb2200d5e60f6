"""What belongs to objects that are gone goes with them, as far as the engine does not see to it itself.

The engine sees to what belongs to workloads and their like. Here are all others (a ConfigMap of a Deployment), and
whatever belongs to an object the engine does not know (a Deployment of a custom resource).

Source: pkg/controller/garbagecollector/garbagecollector.go, v1.34
Differs: the object of an owner the engine does not know goes in the background, whatever was asked for.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.db.models import Q

from playground.clusters import kinds
from playground.clusters.custom_kinds import table_of
from playground.clusters.kinds import Kind
from playground.clusters.models import LogEntry, Manifest, Pod
from playground.clusters.rows import row_of, uid_of
from playground.clusters.services.writer import LogWriter
from playground.engine.owners import WAITING_KINDS

MAX_DEPTH: Final = 20
Gone = tuple[Kind, str, str]
"""Kind, namespace and uid of an owner."""
OWNS_NOTHING: Final = ("Pod", "Event", "Lease", "Namespace")


def collect(writer: LogWriter, gone: list[Gone], delete: Any) -> None:
    """Delete the dependents of objects that have gone in this transaction, and theirs in turn.

    Parameters
    ----------
    delete
        `(writer, kind, manifest)`; deletes one object, or marks it where finalizers keep it.
    """
    for _ in range(MAX_DEPTH):
        owners = {uid: (kind, namespace) for kind, namespace, uid in gone if uid}
        gone = []
        if not owners:
            return
        for kind, manifest in list(_candidates(writer, owners)):
            meta = manifest["metadata"]
            references = meta.get("ownerReferences") or ()
            left = [item for item in references if item.get("uid") not in owners]
            if len(left) == len(references):
                continue
            namespace = (meta.get("namespace") or "default") if kind.namespaced else ""
            if any(_is_there(writer, item, namespace) for item in left):
                kept = dict(manifest) | {"metadata": dict(meta) | {"ownerReferences": left}}
                writer.write(LogEntry.Source.API, kind, kept, created=False)
                continue
            delete(writer, kind, manifest)
            gone.append((kind, namespace, str(meta.get("uid") or "")))


def _candidates(
    writer: LogWriter, owners: Mapping[str, tuple[Kind, str]]
) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Objects that may belong to some owners, as this transaction leaves them."""
    table = table_of(writer.cluster)
    unknown = [kind for kind, _ in owners.values() if kind.row_kind not in WAITING_KINDS]
    namespaces = {namespace for _, namespace in owners.values()}
    place = Q() if "" in namespaces else Q(namespace__in=sorted(namespaces))
    rows = Manifest.objects.filter(place, cluster=writer.cluster)
    if not unknown:
        rows = rows.exclude(kind__in=WAITING_KINDS)
    for row in rows.order_by("resource_version").iterator():
        kind = table.by_row_kind(row.kind)
        if kind is not None and (row.manifest["metadata"].get("ownerReferences")):
            pending = dict(writer.pending(row.kind, row.namespace or ""))
            manifest = pending.get(row.name, row.manifest)
            if manifest is not None:
                yield kind, manifest
    if not unknown:
        return
    pods = kinds.by_kind("Pod")
    assert pods is not None
    owned = Pod.objects.filter(place, cluster=writer.cluster, owner_kind__in=[kind.kind for kind in unknown])
    for pod in owned.order_by("resource_version").iterator():
        yield pods, pod.manifest


def _is_there(writer: LogWriter, reference: Mapping[str, Any], namespace: str) -> bool:
    kind = table_of(writer.cluster).by_key(str(reference.get("apiVersion")), str(reference.get("kind")))
    if kind is None or not kind.is_stored:
        return False
    row = row_of(writer.cluster, kind, namespace if kind.namespaced else "", str(reference.get("name")))
    return row is not None and uid_of(row) == reference.get("uid")
