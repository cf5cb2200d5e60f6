"""One object at a time, as the Kubernetes API does it: create, replace, delete, bind, evict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from playground.clusters import kinds, wake
from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import DEFINITION, table_of
from playground.clusters.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InvalidManifest,
    NotFound,
    TooManyRequests,
    Unsupported,
)
from playground.clusters.foreign import decisions
from playground.clusters.kinds import Kind, as_served, as_stored
from playground.clusters.log.changes import one_change
from playground.clusters.log.rows import existing, row_of, rows_named, rows_of, uid_of
from playground.clusters.log.writer import LogWriter, key_of, writing
from playground.clusters.models import Cluster, LogEntry, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.objects import deletion
from playground.clusters.objects.admission import (
    MOST_TRIES,
    FieldValidation,
    Overtaken,
    Surroundings,
    admitted,
    settled,
)
from playground.clusters.objects.apply import (
    check_may_come,
    class_names,
    clean_posted,
    metadata_of,
    new_object,
    write_over,
)
from playground.clusters.objects.queries import selector_matches
from playground.clusters.objects.updates import same, updated
from playground.engine import admission
from playground.engine.admission import check_quality, resized
from scheduler_core.objects.defaults import PriorityClasses
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.labels import subdomain_errors
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.reading import Posted
from scheduler_core.releases import release_from
from scheduler_core.sim.admission import SYSTEM_PREFIX

_LASTING_NAMESPACES: Final = ("default", "kube-system", "kube-public")


def create_object(
    *,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    namespace: str | None = None,
    managed_fields: list[dict[str, Any]] | None = None,
    fields: FieldValidation | None = None,
) -> dict[str, Any]:
    """Create one object and return it as stored, in the version it was written in.

    Parameters
    ----------
    cluster
        Where to.
    manifest
        With apiVersion and kind; `generateName` works.
    namespace
        Of the request path: the object's own must be absent or the same.
    managed_fields
        Who applied which field; what the manifest itself says of that is not kept.
    fields
        What to do about unknown fields; None = drop them.

    Raises
    ------
    InvalidManifest, AlreadyExists, Unsupported
    NotAllowed
        The definition of its kind is on its way out.
    NotFound
        The namespace does not exist.
    Forbidden
        The namespace is on its way out.
    """
    kind = known_kind(cluster, manifest)
    posted = _in_namespace(kind, Posted(dict(manifest)), namespace)

    def write() -> dict[str, Any]:
        among, ready = _admit(cluster, kind, posted, fields=fields)
        with writing(cluster) as writer:
            among.check(writer.cluster)
            if not posted.name:  # made of the counter, which may have gone on
                named = clean_posted(kind, posted, planned_for=writer.cluster)
                ready["metadata"]["name"] = named.name
            _, in_namespace, name = key_of(kind, ready)
            check_may_come(writer, kind, in_namespace, name)
            if kind.namespaced and not _namespace_exists(writer.cluster, in_namespace):
                raise NotFound(f'namespaces "{in_namespace}" not found', kind="Namespace", name=in_namespace)
            if row_of(writer.cluster, kind, in_namespace, name) is not None:
                raise AlreadyExists(
                    f'{kind.resource} "{name}" already exists', **kind.named(in_namespace, name)
                )
            new = _managed(new_object(writer, kind, ready), managed_fields)
            stored = writer.write(LogEntry.Source.API, kind, new, created=True)
            _wake(writer, kind)
        return as_served(kind, stored)

    return settled(write)


def replace_object(
    *,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    namespace: str | None = None,
    subresource: str = "",
    managed_fields: list[dict[str, Any]] | None = None,
    fields: FieldValidation | None = None,
    uid: str = "",
) -> dict[str, Any]:
    """Replace one object and return it as stored (unchanged if nothing differs).

    Parameters
    ----------
    cluster
        Where.
    manifest
        The whole object. A `metadata.resourceVersion` in it must be the stored one.
    namespace
        Of the request path.
    subresource
        ``""`` = everything but the status; ``"status"`` = the status alone; ``"resize"`` = a pod's resources alone.
    managed_fields
        Who applied which field; None = as before.
    fields
        What to do about unknown fields; None = drop them.
    uid
        Of the object that is meant; empty = whichever has the name.

    Raises
    ------
    InvalidManifest, NotFound, Unsupported
    Conflict
        It was changed since the given resourceVersion, or is another object.
    """
    kind = known_kind(cluster, manifest)
    posted = _in_namespace(kind, Posted(dict(manifest)), namespace)
    _, in_namespace, name = key_of(kind, posted.manifest)
    seen = posted.manifest["metadata"].get("resourceVersion") or ""

    def write() -> dict[str, Any]:
        before = existing(cluster, kind, in_namespace, name)
        among, new, ready = _prepared(cluster, kind, posted, before.manifest, subresource, fields)
        with writing(cluster) as writer:
            row = existing(writer.cluster, kind, in_namespace, name)
            _check_updated(kind, row, uid=uid)
            if seen and str(seen) != str(row.resource_version):
                raise Conflict(
                    f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; '
                    "please apply your changes to the latest version and try again",
                    **kind.named(in_namespace, name),
                )
            among.check(writer.cluster)
            if row.resource_version != before.resource_version:
                raise Overtaken
            if subresource == "resize":
                check_quality(posted, row.manifest, new)
            elif not subresource:
                new = updated(kind, posted, row.manifest, ready, writer.cluster.next_seq)
            managers = row.manifest["metadata"].get("managedFields")
            if same(row.manifest, new) and managed_fields in (None, managers):
                return as_served(kind, dict(row.manifest))
            by = ""
            if kind.row_kind == "Pod" and subresource == "status":
                by = decisions.note_status(writer, row, new)
                if by:
                    new = decisions.on_our_clock(row, new, writer.at_ns)
            stored = write_over(writer, kind, row.manifest, _managed(new, managed_fields), by)
            _wake(writer, kind)
        return as_served(kind, stored)

    return settled(write)


def _prepared(
    cluster: Cluster,
    kind: Kind,
    posted: Posted,
    old: dict[str, Any],
    subresource: str,
    fields: FieldValidation | None,
) -> tuple[_Among, dict[str, Any], dict[str, Any]]:
    """What it was admitted among, the object that replaces `old`, and what was admitted, before the lock is taken."""
    if subresource == "status":
        wanted = as_stored(kind, dict(posted.manifest))
        new = dict(old) | {"status": wanted.get("status") or {}}
        among, ready = _admit(cluster, kind, Posted(new), old, fields=fields)  # for what it refuses
        # A custom resource's status is pruned and has its defaults; its metadata stay as stored.
        return among, new if kind.custom is None else ready | {"metadata": old["metadata"]}, ready
    if subresource == "resize":
        new = resized(posted, old, posted.manifest)
        among, ready = _admit(cluster, kind, Posted(new), None, fields=fields)  # for what it refuses
        return among, new, ready
    among, ready = _admit(cluster, kind, posted, old, fields=fields)
    return among, ready, ready


def patch_object(
    *,
    cluster: Cluster,
    kind: Kind,
    namespace: str,
    name: str,
    patch: Mapping[str, Any],
    resource_version: str | None = None,
    fields: FieldValidation | None = None,
) -> dict[str, Any]:
    """Change one object by a merge patch (RFC 7386) and return it as stored.

    Parameters
    ----------
    patch
        Of the whole manifest; one that names `metadata.resourceVersion` is about that version alone.
    resource_version
        The version it is about, else the newest: it is then merged anew when the object moves on meanwhile.
    fields
        What to do about unknown fields; None = drop them.

    Raises
    ------
    InvalidManifest, NotFound, Conflict
    """
    for attempt in range(MOST_TRIES):
        live = existing(cluster, kind, namespace, name).manifest
        merged = merge_patch(live, patch)
        meta = merged.get("metadata")
        if not isinstance(meta, Mapping):
            raise InvalidManifest("metadata: must be an object", path="metadata", kind=kind.kind, name=name)
        place = {"kind": kind.kind, "apiVersion": kind.api_version}
        fixed = {"name": name} | ({"namespace": namespace} if kind.namespaced else {})
        for where, wanted, there in (("", place, merged), ("metadata.", fixed, meta)):
            for key, value in wanted.items():
                if there.get(key) != value:
                    raise InvalidManifest(
                        f"{where}{key}: may not be changed, it is {value!r}",
                        path=f"{where}{key}",
                        value=there.get(key),
                        kind=kind.kind,
                        name=name,
                    )
        if resource_version is not None:
            merged["metadata"] = dict(meta) | {"resourceVersion": resource_version}
        bound = resource_version is not None or "resourceVersion" in (patch.get("metadata") or {})
        try:
            return replace_object(cluster=cluster, manifest=merged, fields=fields)
        except Conflict:
            if bound or attempt == MOST_TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def delete_object(
    *,
    cluster: Cluster,
    kind: Kind,
    namespace: str,
    name: str,
    grace_s: int | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
    orphans: bool = False,
    foreground: bool = False,
) -> dict[str, Any]:
    """Delete one object; returns its last state.

    A pod on a node terminates for its grace period on the cluster's clock and is there until then, with a
    deletionTimestamp, and so is an object with finalizers until they are taken off; everything else is gone at once.

    Parameters
    ----------
    grace_s
        Seconds; None = the pod's own terminationGracePeriodSeconds; 0 = at once.
    uid, resource_version
        Preconditions.
    orphans
        What it owns stays, and has no owner then.
    foreground
        It goes after what it owns.

    Raises
    ------
    NotFound, Conflict
    Forbidden
        Every cluster has it: a system namespace or PriorityClass.
    """
    with writing(cluster) as writer:
        row = existing(writer.cluster, kind, namespace, name)
        _check_deleted(kind, row, uid, resource_version)
        return _delete(writer, kind, row, grace_s, orphans=orphans, foreground=foreground)


def delete_objects(
    *,
    cluster: Cluster,
    kind: Kind,
    names: Sequence[tuple[str, str]],
    grace_s: int | None = None,
    orphans: bool = False,
    foreground: bool = False,
) -> list[dict[str, Any]]:
    """Delete objects of one kind, all or none of them; returns their last states, without those that were gone.

    Parameters
    ----------
    names
        Namespace and name of each; they are deleted in this order.
    grace_s, orphans, foreground
        As in `delete_object`.

    Raises
    ------
    Forbidden
        Every cluster has one of them.
    """
    gone = []
    with writing(cluster) as writer:
        found = rows_named(writer.cluster, kind, [name for _, name in names])
        for key in names:
            # What went with its owner, earlier in this transaction, is gone.
            if (row := found.get(key)) is not None and not writer.removes(kind, *key):
                gone.append(_delete(writer, kind, row, grace_s, orphans=orphans, foreground=foreground))
    return gone


def _delete(
    writer: LogWriter, kind: Kind, row: Any, grace_s: int | None, *, orphans: bool, foreground: bool
) -> dict[str, Any]:
    """Delete the object of a row within an open transaction; its last state as it is served."""
    if kind.row_kind == "Namespace":
        if row.name in _LASTING_NAMESPACES:
            raise Forbidden(
                f'namespaces "{row.name}" is forbidden: this namespace may not be deleted',
                **kind.named("", row.name),
            )
        last = deletion.remove_namespace(writer, kind, row.manifest)
        _wake(writer, kind)
        return as_served(kind, last)
    if kind.row_kind == DEFINITION:
        return deletion.remove_definition(writer, kind, row.manifest)
    if kind.row_kind == "PriorityClass" and row.name.startswith(SYSTEM_PREFIX):
        raise Forbidden(
            f'{kind.resource} "{row.name}" is forbidden: this is a system priority class and cannot be deleted',
            **kind.named("", row.name),
        )
    if orphans and kind.row_kind != "Pod":
        deletion.orphan(writer, kind, row.manifest)
    by = decisions.note_evicted(writer, row) if kind.row_kind == "Pod" else ""
    last = deletion.delete_in(writer, kind, row.manifest, grace_s, by, foreground=foreground)
    _wake(writer, kind)
    return as_served(kind, last)


def bind_pod(
    *,
    cluster: Cluster,
    namespace: str,
    name: str,
    node: str,
    uid: str = "",
    resource_version: str = "",
) -> dict[str, Any]:
    """The binding subresource: put an unbound pod on a node, whatever the scheduler thinks of it.

    Parameters
    ----------
    uid, resource_version
        Of the pod that is meant, where the Binding's metadata say so.

    Raises
    ------
    NotFound
    Conflict
        It is another pod than is meant, is on a node already, or on its way out.
    """
    kind = kinds.named("Pod")
    with writing(cluster) as writer:
        row = existing(writer.cluster, kind, namespace, name)
        _check_updated(kind, row, uid=uid, resourceVersion=resource_version)
        if row.node_name or row.terminating:
            words = (
                "is being deleted" if row.terminating else f"is already assigned to node {row.node_name!r}"
            )
            raise Conflict(f"pod {name} {words}", **kind.named(namespace, name))
        if not node:
            raise InvalidManifest("is required", path="target.name", kind="Binding", name=name)
        if release_from(cluster.release).has("BindingTargetChecked"):
            for words in subdomain_errors(node):
                raise InvalidManifest(words, path="target.name", value=node, kind="Binding", name=name)
        status = dict(row.manifest.get("status") or {})
        conditions = [item for item in status.get("conditions") or () if item.get("type") != "PodScheduled"]
        status["conditions"] = [
            *conditions,
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_seconds(writer.at_ns)},
        ]
        bound = dict(row.manifest) | {
            "spec": dict(row.manifest["spec"]) | {"nodeName": node},
            "status": status,
        }
        by = decisions.note_bound(writer, row, node)
        # What an extender of ours binds is decided by the scheduler.
        writer.words = None
        if not by and row.lane != Pod.Lane.BINDING:
            writer.words = f"bind Pod {namespace}/{name} to Node {node}"
        stored = writer.write(LogEntry.Source.API, kind, bound, created=False, by=by)
        wake.cluster_on_commit(writer.cluster)
    return stored


def evict_pod(
    *,
    cluster: Cluster,
    namespace: str,
    name: str,
    grace_s: int | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
) -> dict[str, Any]:
    """The eviction subresource: delete a pod unless a PodDisruptionBudget forbids it; arguments as in `delete_object`.

    Raises
    ------
    NotFound, Conflict
    TooManyRequests
        A budget has no disruption left, or more than one budget covers the pod.
    """
    kind = kinds.named("Pod")
    with writing(cluster) as writer:
        row = existing(writer.cluster, kind, namespace, name)
        _check_deleted(kind, row, uid, resource_version)
        writer.words = f"evict Pod {namespace}/{name}"
        budgets = [
            budget
            for budget in PodDisruptionBudget.objects.filter(cluster=cluster, namespace=namespace).order_by(
                "name"
            )
            if selector_matches((budget.manifest.get("spec") or {}).get("selector"), row.labels)
        ]
        counted = row.phase not in ("Pending", "Succeeded", "Failed") and not row.terminating
        if len(budgets) > 1:
            raise TooManyRequests(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource"
                " does not support.",
                **kind.named(namespace, name),
            )
        if counted and budgets:
            budget = budgets[0]
            if budget.disruptions_allowed < 1:
                raise TooManyRequests(
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    **kind.named(namespace, name),
                )
            status = dict(budget.manifest.get("status") or {})
            status["disruptionsAllowed"] = budget.disruptions_allowed - 1
            disrupted = dict(status.get("disruptedPods") or {})
            status["disruptedPods"] = disrupted | {name: format_seconds(writer.at_ns)}
            writer.write(
                LogEntry.Source.API,
                kinds.named("PodDisruptionBudget"),
                dict(budget.manifest) | {"status": status},
                created=False,
            )
        by = decisions.note_evicted(writer, row)
        if by:
            writer.words = None
        last = deletion.delete_in(writer, kind, row.manifest, grace_s, by)
        wake.cluster_on_commit(writer.cluster)
    return last


def _check_updated(kind: Kind, row: Any, **given: str) -> None:
    """Refuse to change another object than is meant, or another version of it.

    Raises
    ------
    Conflict
    """
    meta = row.manifest["metadata"]
    namespace, name = meta.get("namespace", ""), meta["name"]
    for key, value in given.items():
        word = {"uid": "UID", "resourceVersion": "ResourceVersion"}[key]
        if value and value != meta.get(key):
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.resource} "{name}": StorageError: invalid object, Code: 4,'
                f" Key: /registry/{kind.plural}/{namespace}/{name}, ResourceVersion: 0, AdditionalErrorMsg:"
                f" Precondition failed: {word} in precondition: {value}, {word} in object meta: {meta.get(key, '')}",
                **kind.named(namespace, name),
            )


def _check_deleted(kind: Kind, row: Any, uid: str | None, resource_version: str | None) -> None:
    """Refuse to delete another object than is meant, or another version of it.

    Raises
    ------
    Conflict
    """
    name = row.manifest["metadata"]["name"]
    for given, has, word, likely in (
        (uid, uid_of(row), "UID", "deleted and then recreated"),
        (resource_version, row.resource_version, "ResourceVersion", "modified"),
    ):
        if given and str(given) != str(has):
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.resource} "{name}": the {word} in the precondition'
                f" ({given}) does not match the {word} in record ({has}). The object might have been {likely}",
                **kind.named(row.manifest["metadata"].get("namespace", ""), name),
            )


def set_cordon(*, cluster: Cluster, node: str, unschedulable: bool) -> dict[str, Any]:
    """Cordon or uncordon a node.

    Raises
    ------
    NotFound
    """
    patch = {"spec": {"unschedulable": unschedulable or None}}
    with one_change(f"{'cordon' if unschedulable else 'uncordon'} Node {node}"):
        return patch_object(cluster=cluster, kind=kinds.named("Node"), namespace="", name=node, patch=patch)


def _managed(manifest: dict[str, Any], managed_fields: list[dict[str, Any]] | None) -> dict[str, Any]:
    if managed_fields is None:
        return manifest
    return manifest | {"metadata": manifest["metadata"] | {"managedFields": managed_fields}}


def known_kind(cluster: Cluster, manifest: Mapping[str, Any]) -> Kind:
    """The kind of a manifest.

    Raises
    ------
    Unsupported
        The cluster does not know it, or there are no objects of it.
    """
    api_version, name = str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or "")
    kind = table_of(cluster).by_key(api_version, name)
    if kind is None or not kind.is_stored:
        raise Unsupported(f'no kind "{name}" is registered for version "{api_version}"')
    return kind


def _wake(writer: LogWriter, kind: Kind) -> None:
    # A kept object that goes may take others along.
    if kind.interpreted or writer.cluster.last_input_seq > writer.cluster.cursor_seq:
        wake.cluster_on_commit(writer.cluster)


def _in_namespace(kind: Kind, posted: Posted, namespace: str | None) -> Posted:
    """The object with its namespace settled between path and body."""
    meta = metadata_of(posted)
    if not kind.namespaced:
        return Posted(posted.manifest | {"metadata": {k: v for k, v in meta.items() if k != "namespace"}})
    written = meta.get("namespace")
    if written and namespace and written != namespace:
        words = "the namespace of the object does not match the namespace of the request"
        raise posted.problem(words, path="metadata.namespace", value=written)
    settled = written or namespace or "default"
    if not isinstance(settled, str):
        raise posted.problem("must be a string", path="metadata.namespace", value=written)
    return Posted(posted.manifest | {"metadata": meta | {"namespace": settled}})


@dataclass(frozen=True, slots=True)
class _Among:
    """The classes and objects that an object is admitted among, read without a lock."""

    kinds_seq: int
    classes: tuple[tuple[str, int], ...]
    of_kind: Kind

    @classmethod
    def of(cls, cluster: Cluster, kind: Kind) -> _Among:
        matter = kind.row_kind in ("Pod", "PodGroup", "PriorityClass")
        return cls(cluster.kinds_seq, tuple(class_names(cluster)) if matter else (), kind)

    def check(self, cluster: Cluster) -> None:
        if _Among.of(cluster, self.of_kind) != self:
            raise Overtaken


@lru_cache(maxsize=64)
def _classes_of(
    public_id: str, names: tuple[tuple[str, int], ...]
) -> tuple[list[dict[str, Any]], PriorityClasses]:
    """The PriorityClasses of a cluster that have these names and versions, and what pods may name of them."""
    rows = (
        PriorityClass.objects.filter(cluster__public_id=public_id) if names else PriorityClass.objects.none()
    )
    stored = list(rows.values_list("manifest", flat=True))
    return stored, admission.priority_classes(stored)


def _admit(
    cluster: Cluster,
    kind: Kind,
    posted: Posted,
    old: Mapping[str, Any] | None = None,
    *,
    fields: FieldValidation | None,
) -> tuple[_Among, dict[str, Any]]:
    """The object as it will be stored, in the version rows have, and what it was admitted among."""
    now = Cluster.objects.filter(pk=cluster.pk).first()
    if now is None:
        raise NotFound("the cluster is gone", kind="Cluster")
    among = _Among.of(now, kind)
    stored, classes = _classes_of(now.public_id, among.classes)
    stamp = format_seconds(virtual_now_ns(now))
    around = Surroundings(classes, stored, stamp, fields or FieldValidation())
    ready = admitted(kind, clean_posted(kind, posted, planned_for=now), around, old)
    around.fields.refuse()
    return among, ready


def _namespace_exists(cluster: Cluster, name: str) -> bool:
    return rows_of(cluster, kinds.named("Namespace")).filter(name=name).exists()
