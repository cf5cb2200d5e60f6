"""Objects one by one, of every kind: the same services /k8s and the pages call.

Four kinds have paths of their own; all others are under `objects/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial, update_wrapper
from itertools import islice
from typing import Any, Final

from rest_framework.response import Response

from playground.api.errors import PreconditionFailed, bad_query
from playground.api.representations import shown
from playground.api.requests import checked, whole_number
from playground.api.views.base import Call, tags_of
from playground.bodies import warning_header
from playground.clusters import kinds
from playground.clusters.board.overview import counts_by_kind, objects_of_kind
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest, found
from playground.clusters.kinds import Kind
from playground.clusters.objects import write
from playground.clusters.objects.admission import FieldValidation
from playground.clusters.objects.queries import get_object, selected_objects, selection_of
from playground.clusters.row_types import Cluster

CHANGED: Final = "The object was changed since the version in If-Match."
NO_NAMESPACE: Final = "-"


def _of_kind(manifest: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The manifest with apiVersion and kind; admission looks at the rest.

    Raises
    ------
    InvalidManifest
    """
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


def _kind(cluster: Cluster, name: str) -> Kind:
    """A kind of the cluster by the name `objects_kinds` tells.

    Raises
    ------
    NotFound
    """
    kind = table_of(cluster).by_row_kind(name)
    return found(kind, f'kind "{name}"', kind=name)


def _at(cluster: Cluster, kind: str, place: Mapping[str, str]) -> dict[str, Any]:
    """What names one object to selectors and services; `place` is the end of its path."""
    *above, name = place.values()
    namespace = "" if above == [NO_NAMESPACE] else "".join(above)
    return {"cluster": cluster, "kind": _kind(cluster, kind), "namespace": namespace, "name": name}


# ---- kinds with paths of their own


def _typed_list(call: Call, kind: str, cluster: Cluster) -> Any:
    """By namespace and name. `next` is the path of the next page, or null."""
    known = kinds.named(kind)
    selection = selection_of(known, call.query("labelSelector"), call.query("fieldSelector"))
    limit, after = call.query("limit", 50), call.query("after")
    namespace, slash, name = after.rpartition("/")
    if after and bool(slash) != known.namespaced:
        form = "namespace/name" if known.namespaced else "a name"
        raise bad_query("after", f"is {form}, the last one of the page before")
    rows = selected_objects(
        cluster,
        known,
        selection,
        namespace=call.request.GET.get("namespace") or None,
        after=(namespace, name) if after else None,
    )
    found = list(islice(rows, limit + 1))
    last = _place(known, found[limit - 1]) if len(found) > limit else None
    return {"items": found[:limit], "next": call.next(after=last)}


def _typed_create(call: Call, kind: str, cluster: Cluster) -> Any:
    """A manifest; what it leaves out is defaulted, what an API server refuses is refused in its words."""
    if not call.request.data:
        raise InvalidInput(f"a {kind} is expected in the body")
    fields, known = FieldValidation(call.field_validation), kinds.named(kind)
    stored = write.create_object(
        cluster=cluster, manifest=_of_kind(dict(call.request.data), known), fields=fields
    )
    response = _answer(stored, 201, fields)
    response["Location"] = f"{call.request.path.rstrip('/')}/{_place(known, stored)}/"
    return response


def objects_read(call: Call, cluster: Cluster, kind: str, **place: str) -> Any:
    """As stored; its ETag is its resourceVersion. A namespace of `-` is none."""
    return _answer(get_object(**_at(cluster, kind, place)))


def objects_patch(call: Call, cluster: Cluster, kind: str, **place: str) -> Any:
    """A merge patch (RFC 7386): null removes, objects merge, everything else replaces.

    With If-Match, or a `metadata.resourceVersion` in the patch, only if the object is still that one.
    """
    at, patch = _at(cluster, kind, place), checked(call.request.data, "MergePatch")
    version = _asked_version(call, get_object(**at))
    fields = FieldValidation(call.field_validation)
    with _precondition(version):
        stored = write.patch_object(**at, patch=patch, resource_version=version, fields=fields)
    return _answer(stored, fields=fields)


def objects_delete(call: Call, cluster: Cluster, kind: str, **place: str) -> Any:
    """Its last state. A pod on a node is there, terminating, until its grace period is over."""
    at = _at(cluster, kind, place)
    version = _asked_version(call, get_object(**at))
    grace_s = whole_number(call.request, "gracePeriodSeconds", most=2**31 - 1)
    with _precondition(version):
        return write.delete_object(**at, grace_s=grace_s, resource_version=version)


MORE: Final = {
    f"{kinds.named(kind).plural}_{name}": update_wrapper(partial(does, kind=kind), does)
    for kind in ("Node", "Pod", "PriorityClass", "PodDisruptionBudget")
    for name, does in (
        ("list", _typed_list),
        ("create", _typed_create),
        ("read", objects_read),
        ("patch", objects_patch),
        ("delete", objects_delete),
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


def objects_replace(call: Call, cluster: Cluster, kind: str, namespace: str, name: str) -> Any:
    """With If-Match, or a `metadata.resourceVersion`, only if the object is still that one."""
    at = _at(cluster, kind, {"namespace": namespace, "name": name})
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
