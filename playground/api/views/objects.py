"""Objects one by one, of every kind: the same services /k8s and the pages call.

The kinds with paths of their own have their bodies held against their shapes first; all others are under `objects/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from itertools import islice
from typing import Any, Final

from rest_framework.response import Response

from playground.api.errors import PreconditionFailed, bad_query
from playground.api.representations import shown
from playground.api.requests import checked
from playground.api.views.base import Call, tags_of
from playground.bodies import warning_header
from playground.clusters import kinds
from playground.clusters.board.overview import counts_by_kind, objects_of_kind
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest, NotFound
from playground.clusters.kinds import Kind
from playground.clusters.objects import write
from playground.clusters.objects.admission import FieldValidation
from playground.clusters.objects.queries import get_object, selected_objects, selection_of
from playground.clusters.row_types import Cluster
from scheduler_core.objects.merge import merge_patch

CHANGED: Final = "The object was changed since the version in If-Match."
NO_NAMESPACE: Final = "-"


def _checked(manifest: Any, kind: Kind) -> dict[str, Any]:
    """The manifest, its types looked at, with apiVersion and kind.

    Raises
    ------
    InvalidManifest
    """
    checked(manifest, f"{kind.kind}Object")
    named = {"apiVersion": kind.api_version, "kind": kind.kind}
    for key, wanted in named.items():
        if manifest.get(key) not in (None, "", wanted):
            raise InvalidManifest(f"{key}: must be {wanted} here", path=key, value=manifest[key])
    return {**named, **manifest, **named, "metadata": manifest.get("metadata") or {}}


def _answer(manifest: dict[str, Any], status: int = 200, fields: FieldValidation | None = None) -> Response:
    """An object with its ETag, and a Warning for each field that was dropped."""
    headers = {"ETag": f'"{_version(manifest)}"'}
    if fields is not None and fields.warnings:
        headers["Warning"] = warning_header(fields.warnings)
    return Response(manifest, status=status, headers=headers)


def _version(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("resourceVersion") or "")


def _place(kind: Kind, manifest: Mapping[str, Any]) -> str:
    meta = manifest["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if kind.namespaced else str(meta["name"])


@contextmanager
def _precondition(version: str | None) -> Iterator[None]:
    """A write of an object that is no longer the one of `version`, which the request named, fails with 412."""
    try:
        yield
    except Conflict:
        if version is None:
            raise
        raise PreconditionFailed(CHANGED) from None


def _asked_version(call: Call, live: Mapping[str, Any]) -> str | None:
    """The version If-Match names; None if it may be any.

    Raises
    ------
    PreconditionFailed
    """
    wanted = tags_of(call.request)
    if not wanted or "*" in wanted:
        return None
    version = _version(live)
    if f'"{version}"' not in wanted:
        raise PreconditionFailed(CHANGED)
    return version


# ---- what is done with an object, of whatever kind


def _at(cluster: Cluster, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    """What names one object to selectors and services."""
    return {"cluster": cluster, "kind": kind, "namespace": namespace, "name": name}


def _read(at: Mapping[str, Any]) -> Response:
    return _answer(get_object(**at))


def _patch(call: Call, at: Mapping[str, Any], *, is_typed: bool = False) -> Response:
    checked(call.request.data, "MergePatch")
    patch = dict(call.request.data)
    live = get_object(**at)
    if is_typed:
        _checked(merge_patch(live, patch), at["kind"])
    version = _asked_version(call, live)
    fields = FieldValidation(call.field_validation)
    with _precondition(version):
        stored = write.patch_object(**at, patch=patch, resource_version=version, fields=fields)
    return _answer(stored, fields=fields)


def _delete(call: Call, at: Mapping[str, Any], grace_s: int | None = None) -> Any:
    version = _asked_version(call, get_object(**at))
    with _precondition(version):
        return write.delete_object(**at, grace_s=grace_s, resource_version=version)


# ---- kinds with paths of their own


def _typed_list(call: Call, kind: Kind, cluster: Cluster) -> Any:
    """By namespace and name. `next` is the path of the next page, or null."""
    selection = selection_of(kind, call.query("labelSelector"), call.query("fieldSelector"))
    limit, after = call.query("limit", 50), call.query("after")
    namespace, slash, name = after.rpartition("/")
    if after and bool(slash) != kind.namespaced:
        form = "namespace/name" if kind.namespaced else "a name"
        raise bad_query("after", f"is {form}, the last one of the page before")
    rows = selected_objects(
        cluster,
        kind,
        selection,
        namespace=call.request.GET.get("namespace") or None,
        after=(namespace, name) if after else None,
    )
    found = list(islice(rows, limit + 1))
    last = _place(kind, found[limit - 1]) if len(found) > limit else None
    return {"items": found[:limit], "next": call.next(after=last)}


def _typed_create(call: Call, kind: Kind, cluster: Cluster) -> Any:
    """A manifest; what it leaves out is defaulted, what an API server refuses is refused in its words."""
    if not call.request.data:
        raise InvalidInput(f"a {kind.kind} is expected in the body")
    fields = FieldValidation(call.field_validation)
    stored = write.create_object(cluster=cluster, manifest=_checked(call.request.data, kind), fields=fields)
    response = _answer(stored, 201, fields)
    response["Location"] = f"{call.request.path.rstrip('/')}/{_place(kind, stored)}/"
    return response


def _typed_read(call: Call, kind: Kind, cluster: Cluster, namespace: str = "", **names: str) -> Any:
    """The object as stored; its ETag is its resourceVersion."""
    return _read(_at(cluster, kind, namespace, *names.values()))


def _typed_patch(call: Call, kind: Kind, cluster: Cluster, namespace: str = "", **names: str) -> Any:
    """A merge patch (RFC 7386): null removes, objects merge, everything else replaces.

    With If-Match, or a `metadata.resourceVersion` in the patch, only if the object is still that one.
    """
    return _patch(call, _at(cluster, kind, namespace, *names.values()), is_typed=True)


def _typed_delete(call: Call, kind: Kind, cluster: Cluster, namespace: str = "", **names: str) -> Any:
    """Its last state. A pod on a node is there, terminating, until its grace period is over."""
    grace_s = call.query("gracePeriodSeconds") if kind.kind == "Pod" else None
    return _delete(call, _at(cluster, kind, namespace, *names.values()), grace_s)


def _of(does: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    return update_wrapper(partial(does, kind=kind), does)


MORE: Final = {
    f"{kind.plural}_{name}": _of(does, kind)
    for kind in map(kinds.BUILT_IN.by_row_kind, ("Node", "Pod", "PriorityClass", "PodDisruptionBudget"))
    if kind is not None
    for name, does in (
        ("list", _typed_list),
        ("create", _typed_create),
        ("read", _typed_read),
        ("patch", _typed_patch),
        ("delete", _typed_delete),
    )
}
"""Their operations, by id."""


# ---- all others


def objects_kinds(call: Call, cluster: Cluster) -> Any:
    """Every kind there is, custom ones too, and how many objects it has."""
    base = f"/api/v1/clusters/{cluster.public_id}/objects"
    return [
        shown("HeldKind", kind, objects=n_objects, url=f"{base}/{kind.row_kind}/")
        for kind, n_objects in counts_by_kind(cluster)
    ]


def _kind(cluster: Cluster, name: str) -> Kind:
    """A kind of the cluster by the name `objects_kinds` tells.

    Raises
    ------
    NotFound
    """
    kind = table_of(cluster).by_row_kind(name)
    if kind is None:
        raise NotFound(f'there is no kind "{name}" here', kind=name)
    return kind


def _named(cluster: Cluster, kind: str, namespace: str, name: str) -> dict[str, Any]:
    return _at(cluster, _kind(cluster, kind), "" if namespace == NO_NAMESPACE else namespace, name)


def objects_list(call: Call, cluster: Cluster, kind: str) -> Any:
    """By namespace and name."""
    known = _kind(cluster, kind)
    limit, after = call.query("limit", 50), call.query("after")
    namespace, _, name = after.rpartition("/")
    place = (namespace, name) if after else None
    named = call.query("named")
    found = list(objects_of_kind(cluster, known, named=named, after=place, limit=limit + 1))
    last = found[limit - 1]["metadata"] if len(found) > limit else None
    more = last and f"{last.get('namespace', '')}/{last['name']}"
    return {"items": found[:limit], "next": call.next(after=more)}


def objects_read(call: Call, cluster: Cluster, kind: str, namespace: str, name: str) -> Any:
    """As stored; its ETag is its resourceVersion. A namespace of `-` is none."""
    return _read(_named(cluster, kind, namespace, name))


def objects_replace(call: Call, cluster: Cluster, kind: str, namespace: str, name: str) -> Any:
    """With If-Match, or a `metadata.resourceVersion`, only if the object is still that one."""
    at = _named(cluster, kind, namespace, name)
    live, known, namespace = get_object(**at), at["kind"], at["namespace"]
    manifest = dict(call.request.data)
    meta = dict(manifest.get("metadata") or {})
    same = (meta.get("namespace") or namespace) == namespace or not known.namespaced
    if manifest.get("kind") != known.kind or meta.get("name") != name or not same:
        words = "kind, namespace and name stay as they are"
        raise InvalidManifest(words, path="metadata.name", value=meta.get("name"))
    version = _asked_version(call, live)
    if version is not None:
        meta["resourceVersion"] = version
    if known.namespaced:
        meta["namespace"] = namespace
    fields = FieldValidation(call.field_validation)
    with _precondition(version):
        stored = write.replace_object(cluster=cluster, manifest={**manifest, "metadata": meta}, fields=fields)
    return _answer(stored, fields=fields)


def objects_patch(call: Call, cluster: Cluster, kind: str, namespace: str, name: str) -> Any:
    """A merge patch (RFC 7386): null removes, objects merge, everything else replaces."""
    return _patch(call, _named(cluster, kind, namespace, name))


def objects_delete(call: Call, cluster: Cluster, kind: str, namespace: str, name: str) -> Any:
    """Its last state."""
    return _delete(call, _named(cluster, kind, namespace, name))
