"""What a deletion does besides removing an object: finalizers keep it, dependents may be orphaned first.

Source: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, pkg/controller/garbagecollector, v1.34
Differs: Kubernetes' own finalizers are done with at once, but for that of foreground deletion where the engine sees to
it. Nodes go whatever finalizers they carry: these are for the program that ends the machine, and here there is none.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.db.models import Q

from playground.clusters import kinds
from playground.clusters.custom_kinds import DEFINITION, kinds_of, table_of
from playground.clusters.errors import InvalidManifest, NotAllowed
from playground.clusters.kinds import Kind
from playground.clusters.log.rows import row_of, rows_of, uid_of
from playground.clusters.log.writer import LogWriter, key_of
from playground.clusters.models import Cluster, LogEntry, Manifest, Pod
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.meta import finalizers_of
from scheduler_core.sim.controllers.garbage_collector import FOREGROUND
from scheduler_core.sim.controllers.garbage_collector import KINDS as WAITING_KINDS
from scheduler_core.sim.kubelet import grace_seconds

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
    pods = kinds.named("Pod")
    owned = Pod.objects.filter(place, cluster=writer.cluster, owner_kind__in=[kind.kind for kind in unknown])
    for pod in owned.order_by("resource_version").iterator():
        yield pods, pod.manifest


def _is_there(writer: LogWriter, reference: Mapping[str, Any], namespace: str) -> bool:
    kind = table_of(writer.cluster).by_key(str(reference.get("apiVersion")), str(reference.get("kind")))
    if kind is None or not kind.is_stored:
        return False
    row = row_of(writer.cluster, kind, namespace if kind.namespaced else "", str(reference.get("name")))
    return row is not None and uid_of(row) == reference.get("uid")


POLICIES: Final = ("Orphan", "Background", "Foreground")
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
TERMINATING: Final = "Terminating"
_GO_ANYWAY: Final = ("Node", "Event")


def delete_in(
    writer: LogWriter,
    kind: Kind,
    manifest: Mapping[str, Any],
    grace_s: int | None,
    by: str = "",
    *,
    foreground: bool = False,
) -> dict[str, Any]:
    """Delete within a transaction that is open already; see `objects.delete_object`."""
    if kind.row_kind != "Pod":
        return mark_or_remove(writer, kind, manifest, grace_s, by, foreground=foreground)
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    grace_s = grace_seconds(manifest, grace_s)
    finished = status.get("phase") in ("Succeeded", "Failed")
    meta = manifest["metadata"]
    if not spec.get("nodeName") or finished or grace_s <= 0:
        if blocking(kind, manifest):
            return _mark(writer, kind, manifest, by=by)
        return remove(writer, kind, manifest, grace_s=0, by=by)
    if meta.get("deletionTimestamp"):
        grace_s = min(grace_s, int(meta.get("deletionGracePeriodSeconds") or grace_s))
    stamp = format_seconds(writer.at_ns + grace_s * 1_000_000_000)
    going = dict(manifest) | {
        "metadata": dict(meta) | {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": grace_s}
    }
    return writer.delete(LogEntry.Source.API, kind, going, gone=False, grace_s=grace_s, by=by)


def _mark(
    writer: LogWriter,
    kind: Kind,
    manifest: Mapping[str, Any],
    finalizers: list[str] | None = None,
    by: str = "",
) -> dict[str, Any]:
    """Set the deletionTimestamp of an object that its finalizers keep; a second time changes nothing.

    Parameters
    ----------
    finalizers
        What it has from now on; None = its own.
    """
    meta = dict(manifest["metadata"])
    # A pod that still had time has none left.
    since = None if meta.get("deletionGracePeriodSeconds") else meta.get("deletionTimestamp")
    if since and finalizers in (None, meta.get("finalizers")):
        return dict(manifest)
    if finalizers is not None:
        meta["finalizers"] = finalizers
    meta |= {"deletionTimestamp": since or format_seconds(writer.at_ns), "deletionGracePeriodSeconds": 0}
    marked = dict(manifest) | {"metadata": meta}
    return writer.delete(LogEntry.Source.API, kind, marked, gone=False, grace_s=0, by=by)


def _is_held(kind: Kind) -> bool:
    """Whether finalizers keep objects of the kind."""
    return kind.row_kind not in _GO_ANYWAY


def blocking(kind: Kind, manifest: Mapping[str, Any]) -> bool:
    """Whether finalizers keep an object until a client removes them; Kubernetes' own are removed at once here."""
    return _is_held(kind) and bool(finalizers_of(manifest))


def mark_or_remove(
    writer: LogWriter,
    kind: Kind,
    manifest: Mapping[str, Any],
    grace_s: int | None,
    by: str = "",
    *,
    foreground: bool = False,
) -> dict[str, Any]:
    """Remove an object, or set its deletionTimestamp where finalizers keep it.

    Parameters
    ----------
    foreground
        Let it go after what it owns.
    """
    names = [name for name in manifest["metadata"].get("finalizers") or () if name != FOREGROUND]
    if foreground and kind.row_kind in WAITING_KINDS:
        names.append(FOREGROUND)
    elif not blocking(kind, manifest):
        return remove(writer, kind, manifest, grace_s=grace_s, by=by)
    stored = _mark(writer, kind, manifest, names, by)
    if foreground:
        _collect(writer, kind, manifest)
    return stored


def remove(
    writer: LogWriter, kind: Kind, manifest: Mapping[str, Any], *, grace_s: int | None, by: str = ""
) -> dict[str, Any]:
    """An object goes, and what it owned with it, as far as the engine does not see to that."""
    last = writer.delete(LogEntry.Source.API, kind, manifest, grace_s=grace_s, by=by)
    _collect(writer, kind, manifest)
    if kind.custom is not None:
        _finish_definition(writer, kind)
    return last


def remove_definition(writer: LogWriter, kind: Kind, definition: Mapping[str, Any]) -> dict[str, Any]:
    """A CustomResourceDefinition goes with its objects; while finalizers keep one of these it stays, marked.

    Source: staging/src/k8s.io/apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go, v1.34
    """
    held = False
    for made in kinds_of(definition):
        rows = rows_of(writer.cluster, made).order_by("resource_version") if made.is_main else ()
        for row in rows:
            held = held or blocking(made, row.manifest)
            mark_or_remove(writer, made, row.manifest, 0)
    if not held:
        return remove(writer, kind, definition, grace_s=0)
    if is_going(definition):
        return dict(definition)
    going = {"type": TERMINATING, "status": "True", "reason": "InstanceDeletionInProgress",
             "message": "CustomResource deletion is in progress",
             "lastTransitionTime": format_seconds(writer.at_ns)}  # fmt: skip
    status = dict(definition["status"])
    status["conditions"] = [*(status.get("conditions") or ()), going]
    finalizers = [*(definition["metadata"].get("finalizers") or ()), CLEANUP]
    return _mark(writer, kind, dict(definition) | {"status": status}, finalizers)


def is_going(definition: Mapping[str, Any]) -> bool:
    """Whether a CustomResourceDefinition waits for the last objects of its kind."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == TERMINATING and item.get("status") == "True" for item in conditions)


def check_definition_stays(cluster: Cluster, kind: Kind) -> None:
    """Refuse a new object of a kind that is on its way out.

    Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go serveResource, v1.34

    Raises
    ------
    NotAllowed
    """
    of_definition = kinds.named(DEFINITION)
    row = row_of(cluster, of_definition, "", kind.resource)
    if row is not None and is_going(row.manifest):
        raise NotAllowed("create not allowed while custom resource definition is terminating", kind=kind.kind)


def _finish_definition(writer: LogWriter, kind: Kind) -> None:
    """The last object of a kind whose definition is on its way out takes that along."""
    of_definition = kinds.named(DEFINITION)
    row = row_of(writer.cluster, of_definition, "", kind.resource)
    if row is None or not row.manifest["metadata"].get("deletionTimestamp"):
        return
    left = set(rows_of(writer.cluster, kind).values_list("namespace", "name"))
    for namespace in {namespace for namespace, _ in left}:
        pending = writer.pending(kind.row_kind, namespace)
        left -= {(namespace, name) for name, manifest in pending if manifest is None}
    if not left:
        remove(writer, of_definition, row.manifest, grace_s=0)


def _collect(writer: LogWriter, kind: Kind, manifest: Mapping[str, Any]) -> None:
    # A definition owns nothing, and while its going is not written the table of kinds must not be asked for.
    if kind.row_kind not in (*OWNS_NOTHING, DEFINITION):
        uid = str(manifest["metadata"].get("uid") or "")
        collect(writer, [(kind, key_of(kind, manifest)[1], uid)], delete_dependent)


def delete_dependent(writer: LogWriter, kind: Kind, manifest: Mapping[str, Any]) -> None:
    """Delete an object whose owner is gone; `collect` sees to what it owns itself."""
    if kind.row_kind == "Pod":
        delete_in(writer, kind, manifest, None)
    elif blocking(kind, manifest):
        _mark(writer, kind, manifest)
    else:
        writer.delete(LogEntry.Source.API, kind, manifest, grace_s=None)


def check_finalizers(cluster: Cluster, kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse finalizers that come while an object goes.

    Raises
    ------
    InvalidManifest
    """
    before = old["metadata"]
    if not before.get("deletionTimestamp") or not _is_held(kind):
        return
    known = before.get("finalizers") or ()
    added = [name for name in new["metadata"].get("finalizers") or () if name not in known]
    if added:
        raise InvalidManifest(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers"
            f" {added!r}",
            path="metadata.finalizers",
            kind=kind.kind,
            name=str(before["name"]),
        )


def is_done(cluster: Cluster, kind: Kind, manifest: Mapping[str, Any]) -> bool:
    """Whether nothing keeps an object that is being deleted any more."""
    meta = manifest["metadata"]
    if FOREGROUND in (meta.get("finalizers") or ()) and kind.row_kind in WAITING_KINDS:
        return False
    goes = bool(meta.get("deletionTimestamp")) and _is_held(kind)
    # A pod's kubelet ends it first.
    waits = bool(meta.get("deletionGracePeriodSeconds"))
    if not goes or waits or blocking(kind, manifest):
        return False
    return kind.row_kind != "Namespace" or not any(_content(cluster, str(meta["name"])))


def finish(writer: LogWriter, kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The last finalizer of an object is taken off (`is_done`): it goes, and its namespace if that waits for it."""
    if kind.row_kind == "Pod":
        # The engine would hold what it knows with finalizers.
        writer.write(LogEntry.Source.API, kind, manifest, created=False)
    last = remove(writer, kind, manifest, grace_s=0)
    if kind.namespaced:
        _finish_namespace(writer, key_of(kind, manifest)[1])
    return last


# ---- namespaces


def remove_namespace(writer: LogWriter, kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A Namespace goes with all that is in it; while finalizers keep something of that it stays, Terminating.

    Source: pkg/controller/namespace/deletion/namespaced_resources_deleter.go, v1.34
    """
    held: dict[str, int] = {}
    finalizers: dict[str, int] = {}
    for made, inside in _content(writer.cluster, str(manifest["metadata"]["name"])):
        if blocking(made, inside):
            held[made.resource] = held.get(made.resource, 0) + 1
            for name in inside["metadata"]["finalizers"]:
                finalizers[name] = finalizers.get(name, 0) + 1
            _mark(writer, made, inside)
        else:
            writer.delete(LogEntry.Source.API, made, inside, grace_s=0)
    if not held and not blocking(kind, manifest):
        return remove(writer, kind, manifest, grace_s=0)
    status: dict[str, Any] = {"phase": TERMINATING}
    if held:
        left = ", ".join(f"{name} has {n} resource instances" for name, n in sorted(held.items()))
        waited = ", ".join(f"{name} in {n} resource instances" for name, n in sorted(finalizers.items()))
        stamp = format_seconds(writer.at_ns)
        status["conditions"] = [
            {"type": type_, "status": "True", "reason": reason, "message": said, "lastTransitionTime": stamp}
            for type_, reason, said in (
                ("NamespaceContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {left}"),
                ("NamespaceFinalizersRemaining", "SomeFinalizersRemain",
                 f"Some content in the namespace has finalizers remaining: {waited}"),
            )
        ]  # fmt: skip
    return _mark(writer, kind, dict(manifest) | {"status": status})


def _content(cluster: Cluster, namespace: str) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Whatever is in a namespace but its events."""
    for kind in table_of(cluster).kinds:
        if kind.namespaced and kind.row_kind != "Event":
            rows = rows_of(cluster, kind).filter(namespace=namespace).order_by("resource_version")
            for manifest in rows.values_list("manifest", flat=True):
                yield kind, manifest


def _finish_namespace(writer: LogWriter, namespace: str) -> None:
    """The last object of a namespace that is on its way out takes it along."""
    if not writer.is_ending(namespace):
        return
    kind = kinds.named("Namespace")
    row = row_of(writer.cluster, kind, "", namespace)
    if row is None or blocking(kind, row.manifest):
        return
    for made, inside in _content(writer.cluster, namespace):
        pending = dict(writer.pending(made.row_kind, namespace))
        if pending.get(inside["metadata"]["name"], inside) is not None:
            return
    remove(writer, kind, row.manifest, grace_s=0)


# ---- dependents


def orphan(writer: LogWriter, kind: Kind, owner: Mapping[str, Any]) -> None:
    """Take an object off the owners of its dependents, so that they stay when it goes.

    It is marked first: a controller would take them in again.
    """
    meta = owner["metadata"]
    uid = meta.get("uid")
    namespace = meta.get("namespace") or "default"
    if not uid:
        return
    _mark(writer, kind, owner, [*(meta.get("finalizers") or ()), "orphan"])
    pods = kinds.named("Pod")
    for pod in (
        Pod.objects.filter(cluster=writer.cluster, namespace=namespace).exclude(owner_kind="").iterator()
    ):
        _take_off(writer, pods, pod.manifest, uid)
    table = table_of(writer.cluster)
    rows = Manifest.objects.filter(cluster=writer.cluster, namespace=namespace).order_by("resource_version")
    for row in rows.iterator():
        found = table.by_row_kind(row.kind)
        if found is not None:
            _take_off(writer, found, row.manifest, uid)


def _take_off(writer: LogWriter, kind: Kind, manifest: Mapping[str, Any], uid: str) -> None:
    meta = manifest["metadata"]
    owners = meta.get("ownerReferences") or ()
    left = [item for item in owners if item.get("uid") != uid]
    if len(left) == len(owners):
        return
    changed = {key: value for key, value in meta.items() if key != "ownerReferences"}
    if left:
        changed["ownerReferences"] = left
    writer.write(LogEntry.Source.API, kind, dict(manifest) | {"metadata": changed}, created=False)
