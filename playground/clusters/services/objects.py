"""One object at a time, as the Kubernetes API does it: create, replace, delete, bind, evict."""

from collections.abc import Mapping
from typing import Any

from playground.clusters import kinds, wake
from playground.clusters.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InvalidManifest,
    NotFound,
    TooManyRequests,
    Unsupported,
)
from playground.clusters.kinds import Kind
from playground.clusters.merging import merge_patch
from playground.clusters.models import Cluster, LogEntry, PodDisruptionBudget, PriorityClass
from playground.clusters.rows import row_of, rows_of
from playground.clusters.services.apply import clean_posted, new_object
from playground.clusters.services.changes import same, updated
from playground.clusters.services.posted import as_error
from playground.clusters.services.writer import LogWriter, key_of, writing
from playground.engine import admission
from playground.engine.admission import ManifestProblem, Posted
from playground.engine.selectors import selector_matches
from playground.engine.times import format_seconds

DEFAULT_GRACE_S = 30
MAX_TRIES = 5


def create_object(
    *,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    namespace: str | None = None,
    managed_fields: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Create one object and return it as stored.

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

    Raises
    ------
    InvalidManifest, AlreadyExists, Unsupported
    NotFound
        The namespace does not exist.
    """
    kind = known_kind(manifest)
    posted = _in_namespace(kind, Posted(dict(manifest)), namespace)
    with writing(cluster) as writer:
        admitted = _admit(writer.cluster, kind, posted)
        _, in_namespace, name = key_of(kind, admitted)
        if kind.namespaced and not _namespace_exists(writer.cluster, in_namespace):
            raise NotFound(f'namespaces "{in_namespace}" not found', kind="Namespace", name=in_namespace)
        if row_of(writer.cluster, kind, in_namespace, name) is not None:
            raise AlreadyExists(
                f'{kind.resource} "{name}" already exists', kind=kind.kind, namespace=in_namespace, name=name
            )
        new = _managed(new_object(writer, kind, admitted), managed_fields)
        stored = writer.write(LogEntry.Source.API, kind, new, created=True)
        wake.cluster_on_commit(writer.cluster)
    return stored


def replace_object(
    *,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    namespace: str | None = None,
    subresource: str = "",
    managed_fields: list[dict[str, Any]] | None = None,
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
        ``""`` = everything but the status; ``"status"`` = the status alone.
    managed_fields
        Who applied which field; None = as before.

    Raises
    ------
    InvalidManifest, NotFound, Unsupported
    Conflict
        It was changed since the given resourceVersion.
    """
    kind = known_kind(manifest)
    posted = _in_namespace(kind, Posted(dict(manifest)), namespace)
    seen = (manifest.get("metadata") or {}).get("resourceVersion") or ""
    with writing(cluster) as writer:
        _, in_namespace, name = key_of(kind, posted.manifest)
        row = _existing(writer.cluster, kind, in_namespace, name)
        if seen and str(seen) != str(row.resource_version):
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; '
                "please apply your changes to the latest version and try again",
                kind=kind.kind,
                namespace=in_namespace,
                name=name,
            )
        try:
            if subresource == "status":
                new = dict(row.manifest) | {"status": manifest.get("status") or {}}
                _admit(writer.cluster, kind, Posted(new), row.manifest)  # for what it refuses
            else:
                admitted = _admit(writer.cluster, kind, posted, row.manifest)
                new = updated(kind, posted, row.manifest, admitted)
        except ManifestProblem as problem:
            raise as_error(problem) from None
        before = row.manifest["metadata"].get("managedFields")
        if same(row.manifest, new) and managed_fields in (None, before):
            return dict(row.manifest)
        new = _managed(new, managed_fields)
        stored = writer.write(LogEntry.Source.API, kind, new, created=False)
        wake.cluster_on_commit(writer.cluster)
    return stored


def patch_object(
    *,
    cluster: Cluster,
    kind: Kind,
    namespace: str,
    name: str,
    patch: Mapping[str, Any],
    resource_version: str | None = None,
) -> dict[str, Any]:
    """Change one object by a merge patch (RFC 7386) and return it as stored.

    Parameters
    ----------
    patch
        Of the whole manifest; one that names `metadata.resourceVersion` is about that version alone.
    resource_version
        The version it is about, else the newest: it is then merged anew when the object moves on meanwhile.

    Raises
    ------
    InvalidManifest, NotFound, Conflict
    """
    for attempt in range(MAX_TRIES):
        live = _existing(cluster, kind, namespace, name).manifest
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
            return replace_object(cluster=cluster, manifest=merged)
        except Conflict:
            if bound or attempt == MAX_TRIES - 1:
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
) -> dict[str, Any]:
    """Delete one object; returns its last state.

    A pod on a node terminates for its grace period on the cluster's clock and is there until then, with a
    deletionTimestamp; everything else is gone at once.

    Parameters
    ----------
    grace_s
        Seconds; None = the pod's own terminationGracePeriodSeconds; 0 = at once.
    uid, resource_version
        Preconditions.

    Raises
    ------
    NotFound, Conflict
    Forbidden
        Every cluster has it: a system namespace or PriorityClass.
    """
    with writing(cluster) as writer:
        row = _existing(writer.cluster, kind, namespace, name)
        for given, has, word, likely in (
            (uid, row.uid, "UID", "deleted and then recreated"),
            (resource_version, row.resource_version, "ResourceVersion", "modified"),
        ):
            if given and str(given) != str(has):
                raise Conflict(
                    f'Operation cannot be fulfilled on {kind.resource} "{name}": the {word} in the precondition'
                    f" ({given}) does not match the {word} in record ({has}). The object might have been {likely}",
                    kind=kind.kind,
                    namespace=namespace,
                    name=name,
                )
        if kind.kind == "Namespace":
            _empty_namespace(writer, name)
        if kind.kind == "PriorityClass" and name.startswith(admission.SYSTEM_PREFIX):
            raise Forbidden(
                f'{kind.resource} "{name}" is forbidden: this is a system priority class and cannot be deleted',
                kind=kind.kind,
                name=name,
            )
        last = delete_in(writer, kind, row.manifest, grace_s)
        wake.cluster_on_commit(writer.cluster)
    return last


def delete_in(
    writer: LogWriter, kind: Kind, manifest: Mapping[str, Any], grace_s: int | None
) -> dict[str, Any]:
    """Delete within a transaction that is open already; see `delete_object`."""
    if kind.kind != "Pod":
        return writer.delete(LogEntry.Source.API, kind, manifest, grace_s=grace_s)
    spec = manifest.get("spec") or {}
    status = manifest.get("status") or {}
    if grace_s is None:
        own = spec.get("terminationGracePeriodSeconds")
        grace_s = DEFAULT_GRACE_S if own is None else int(own)
    finished = status.get("phase") in ("Succeeded", "Failed")
    if not spec.get("nodeName") or finished or grace_s <= 0:
        return writer.delete(LogEntry.Source.API, kind, manifest, grace_s=0)
    meta = manifest["metadata"]
    if meta.get("deletionTimestamp"):
        grace_s = min(grace_s, int(meta.get("deletionGracePeriodSeconds") or grace_s))
    stamp = format_seconds(writer.at_ns + grace_s * 1_000_000_000)
    going = dict(manifest) | {
        "metadata": dict(meta) | {"deletionTimestamp": stamp, "deletionGracePeriodSeconds": grace_s}
    }
    return writer.delete(LogEntry.Source.API, kind, going, gone=False, grace_s=grace_s)


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
    kind = _kind("Pod")
    with writing(cluster) as writer:
        row = _existing(writer.cluster, kind, namespace, name)
        meta = row.manifest["metadata"]
        for word, key, given in (
            ("UID", "uid", uid),
            ("ResourceVersion", "resourceVersion", resource_version),
        ):
            if given and given != meta.get(key):
                raise Conflict(
                    f'Operation cannot be fulfilled on pods "{name}": StorageError: invalid object, Code: 4,'
                    f" Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition"
                    f" failed: {word} in precondition: {given}, {word} in object meta: {meta.get(key, '')}",
                    kind="Pod",
                    namespace=namespace,
                    name=name,
                )
        if row.node_name or row.terminating:
            words = (
                "is being deleted" if row.terminating else f"is already assigned to node {row.node_name!r}"
            )
            raise Conflict(f"pod {name} {words}", kind="Pod", namespace=namespace, name=name)
        if not node:
            raise InvalidManifest("is required", path="target.name", kind="Binding", name=name)
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
        stored = writer.write(LogEntry.Source.API, kind, bound, created=False)
        wake.cluster_on_commit(writer.cluster)
    return stored


def evict_pod(*, cluster: Cluster, namespace: str, name: str, grace_s: int | None = None) -> dict[str, Any]:
    """The eviction subresource: delete a pod unless a PodDisruptionBudget forbids it.

    Raises
    ------
    NotFound
    TooManyRequests
        A budget has no disruption left, or more than one budget covers the pod.
    """
    kind = _kind("Pod")
    with writing(cluster) as writer:
        row = _existing(writer.cluster, kind, namespace, name)
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
                kind="Pod",
                namespace=namespace,
                name=name,
            )
        if counted and budgets:
            budget = budgets[0]
            if budget.disruptions_allowed < 1:
                raise TooManyRequests(
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    kind="Pod",
                    namespace=namespace,
                    name=name,
                )
            status = dict(budget.manifest.get("status") or {})
            status["disruptionsAllowed"] = budget.disruptions_allowed - 1
            disrupted = dict(status.get("disruptedPods") or {})
            status["disruptedPods"] = disrupted | {name: format_seconds(writer.at_ns)}
            writer.write(
                LogEntry.Source.API,
                _kind("PodDisruptionBudget"),
                dict(budget.manifest) | {"status": status},
                created=False,
            )
        last = delete_in(writer, kind, row.manifest, grace_s)
        wake.cluster_on_commit(writer.cluster)
    return last


def set_cordon(*, cluster: Cluster, node: str, unschedulable: bool) -> dict[str, Any]:
    """Cordon or uncordon a node.

    Raises
    ------
    NotFound
    """
    kind = _kind("Node")
    row = _existing(cluster, kind, "", node)
    spec = dict(row.manifest.get("spec") or {})
    spec.pop("unschedulable", None)
    if unschedulable:
        spec["unschedulable"] = True
    return replace_object(cluster=cluster, manifest=dict(row.manifest) | {"spec": spec})


def _managed(manifest: dict[str, Any], managed_fields: list[dict[str, Any]] | None) -> dict[str, Any]:
    if managed_fields is None:
        return manifest
    return manifest | {"metadata": manifest["metadata"] | {"managedFields": managed_fields}}


def known_kind(manifest: Mapping[str, Any]) -> Kind:
    """The kind of a manifest.

    Raises
    ------
    Unsupported
        The playground does not know it, or only the engine writes it.
    """
    api_version, name = str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or "")
    kind = kinds.by_key(api_version, name)
    if kind is None:
        raise Unsupported(f'no kind "{name}" is registered for version "{api_version}"')
    if kind.kind == "Event":
        raise Forbidden("Events are written by the scheduler", kind="Event")
    return kind


def _kind(name: str) -> Kind:
    kind = kinds.by_kind(name)
    assert kind is not None
    return kind


def _existing(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Any:
    row = row_of(cluster, kind, namespace, name)
    if row is None:
        raise NotFound(f'{kind.resource} "{name}" not found', kind=kind.kind, namespace=namespace, name=name)
    return row


def _in_namespace(kind: Kind, posted: Posted, namespace: str | None) -> Posted:
    """The object with its namespace settled between path and body."""
    meta = posted.manifest.get("metadata")
    if not isinstance(meta, dict):
        raise as_error(posted.problem("must be an object with a name", path="metadata", value=meta))
    if not kind.namespaced:
        return Posted(posted.manifest | {"metadata": {k: v for k, v in meta.items() if k != "namespace"}})
    written = meta.get("namespace")
    if written and namespace and written != namespace:
        raise as_error(
            posted.problem(
                "the namespace of the object does not match the namespace of the request",
                path="metadata.namespace",
                value=written,
            )
        )
    settled = written or namespace or "default"
    if not isinstance(settled, str):
        raise as_error(posted.problem("must be a string", path="metadata.namespace", value=written))
    return Posted(posted.manifest | {"metadata": meta | {"namespace": settled}})


def _admit(
    cluster: Cluster, kind: Kind, posted: Posted, old: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    stored: list[dict[str, Any]] = []
    if kind.kind in ("Pod", "PriorityClass"):
        stored += PriorityClass.objects.filter(cluster=cluster).values_list("manifest", flat=True)
    try:
        return admission.admit(
            clean_posted(kind, posted, planned_for=cluster),
            admission.priority_classes(stored),
            others=stored,
            old=old,
        )
    except ManifestProblem as problem:
        raise as_error(problem) from None


def _namespace_exists(cluster: Cluster, name: str) -> bool:
    return rows_of(cluster, _kind("Namespace")).filter(name=name).exists()


def _empty_namespace(writer: LogWriter, name: str) -> None:
    if name in ("default", "kube-system", "kube-public"):
        raise Forbidden(
            f'namespaces "{name}" is forbidden: this namespace may not be deleted', kind="Namespace"
        )
    for kind in kinds.KINDS:
        if not kind.namespaced or kind.kind == "Event":
            continue
        rows = rows_of(writer.cluster, kind).filter(namespace=name).order_by("resource_version")
        for manifest in rows.values_list("manifest", flat=True):
            writer.delete(LogEntry.Source.API, kind, manifest, grace_s=0)
