"""Objects one by one, of every kind: the same services /k8s and the pages call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.errors import PreconditionFailed, bad_query
from playground.api.requests import (
    MergePatchParser,
    StrictJSONParser,
    YAMLParser,
    checked,
    next_page,
    one_of,
    whole_number,
)
from playground.api.views.base import PlaygroundView, tags_of
from playground.bodies import warning_header
from playground.clusters import kinds
from playground.clusters.board.overview import counts_by_kind, objects_of_kind
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest, NotFound
from playground.clusters.kinds import Kind
from playground.clusters.objects.admission import MODES, FieldValidation
from playground.clusters.objects.queries import get_object, selected_objects, selection_of
from playground.clusters.objects.write import (
    create_object,
    delete_object,
    merge_patch,
    patch_object,
    replace_object,
)

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


class ObjectView(PlaygroundView):
    """What both paths of a kind share."""

    kind: Kind = kinds.BUILT_IN.by_row_kind("Pod")  # type: ignore[assignment]  # there is one; `urls.py` says which
    parser_classes: list[type[BaseParser]] = [StrictJSONParser, YAMLParser]

    def checked(self, manifest: Any) -> dict[str, Any]:
        """The manifest, its types looked at, with apiVersion and kind.

        Raises
        ------
        InvalidManifest
        """
        checked(manifest, f"{self.kind.kind}Object")
        for key, wanted in (("apiVersion", self.kind.api_version), ("kind", self.kind.kind)):
            if manifest.get(key) not in (None, "", wanted):
                raise InvalidManifest(f"{key}: must be {wanted} here", path=key, value=manifest[key])
        named = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        return {**named, **manifest, **named, "metadata": manifest.get("metadata") or {}}

    def answer(
        self, manifest: dict[str, Any], status: int = 200, fields: FieldValidation | None = None
    ) -> Response:
        """An object with its ETag, and a Warning for each field that was dropped."""
        headers = {"ETag": f'"{_version(manifest)}"'}
        if fields is not None and fields.warnings:
            headers["Warning"] = warning_header(fields.warnings)
        return Response(manifest, status=status, headers=headers)


class ObjectList(ObjectView):
    """List and create."""

    def get(self, request: Request, cluster_id: str) -> Response:
        """By namespace and name. `next` is the path of the next page, or null."""
        cluster = self.cluster(cluster_id)
        selection = selection_of(
            self.kind, request.GET.get("labelSelector", ""), request.GET.get("fieldSelector", "")
        )
        limit = whole_number(request, "limit", default=50, least=1, most=500) or 50
        after = request.GET.get("after", "")
        namespace, slash, name = after.rpartition("/")
        if after and bool(slash) != self.kind.namespaced:
            form = "namespace/name" if self.kind.namespaced else "a name"
            raise bad_query("after", f"is {form}, the last one of the page before")
        found: list[dict[str, Any]] = []
        more = False
        for manifest in selected_objects(
            cluster,
            self.kind,
            selection,
            namespace=request.GET.get("namespace") or None,
            after=(namespace, name) if after else None,
        ):
            if len(found) == limit:
                more = True
                break
            found.append(manifest)
        last = "/".join(self._place(found[-1])) if more else None
        return Response({"items": found, "next": next_page(request, after=last)})

    def post(self, request: Request, cluster_id: str) -> Response:
        """A manifest; what it leaves out is defaulted, what an API server refuses is refused in its words."""
        cluster = self.cluster(cluster_id)
        if not request.data:
            raise InvalidInput(f"a {self.kind.kind} is expected in the body")
        fields = FieldValidation(one_of(request, "fieldValidation", MODES, default="Warn"))
        stored = create_object(cluster=cluster, manifest=self.checked(request.data), fields=fields)
        response = self.answer(stored, 201, fields)
        response["Location"] = f"{request.path.rstrip('/')}/{'/'.join(self._place(stored))}/"
        return response

    def _place(self, manifest: Mapping[str, Any]) -> tuple[str, ...]:
        meta = manifest["metadata"]
        return (meta["namespace"], meta["name"]) if self.kind.namespaced else (meta["name"],)


class OneObject(ObjectView):
    """Get, patch, delete."""

    parser_classes = [MergePatchParser, StrictJSONParser]

    def get(self, request: Request, cluster_id: str, namespace: str = "", **names: str) -> Response:
        """The object as stored; its ETag is its resourceVersion."""
        cluster = self.cluster(cluster_id)
        return self.answer(get_object(cluster, self.kind, namespace, _only(names)))

    def patch(self, request: Request, cluster_id: str, namespace: str = "", **names: str) -> Response:
        """A merge patch (RFC 7386): null removes, objects merge, everything else replaces.

        With If-Match, or a `metadata.resourceVersion` in the patch, only if the object is still that one.
        """
        cluster = self.cluster(cluster_id)
        name = _only(names)
        patch = checked_patch(request)
        live = get_object(cluster, self.kind, namespace, name)
        self.checked(merge_patch(live, patch))
        version = asked_version(request, live)
        fields = FieldValidation(one_of(request, "fieldValidation", MODES, default="Warn"))
        with precondition(version):
            stored = patch_object(
                cluster=cluster,
                kind=self.kind,
                namespace=namespace,
                name=name,
                patch=patch,
                resource_version=version,
                fields=fields,
            )
        return self.answer(stored, fields=fields)

    def delete(self, request: Request, cluster_id: str, namespace: str = "", **names: str) -> Response:
        """Its last state. A pod on a node is there, terminating, until its grace period is over."""
        cluster = self.cluster(cluster_id)
        name = _only(names)
        version = asked_version(request, get_object(cluster, self.kind, namespace, name))
        grace_s = whole_number(request, "gracePeriodSeconds", most=2**31 - 1)
        with precondition(version):
            last = delete_object(
                cluster=cluster,
                kind=self.kind,
                namespace=namespace,
                name=name,
                grace_s=grace_s,
                resource_version=version,
            )
        return Response(last)


@contextmanager
def precondition(version: str | None) -> Iterator[None]:
    """A write of an object that is no longer the one of `version`, which the request named, fails with 412."""
    try:
        yield
    except Conflict:
        if version is None:
            raise
        raise PreconditionFailed(CHANGED) from None


def checked_patch(request: Request) -> dict[str, Any]:
    """The merge patch that came.

    Raises
    ------
    InvalidManifest
    """
    checked(request.data, "MergePatch")
    return dict(request.data)


def asked_version(request: Request, live: Mapping[str, Any]) -> str | None:
    """The version If-Match names; None if it may be any.

    Raises
    ------
    PreconditionFailed
    """
    wanted = tags_of(request)
    if not wanted or "*" in wanted:
        return None
    version = _version(live)
    if f'"{version}"' not in wanted:
        raise PreconditionFailed(CHANGED)
    return version


CHANGED: Final = "The object was changed since the version in If-Match."


def _version(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("resourceVersion") or "")


def _only(names: Mapping[str, str]) -> str:
    (name,) = names.values()
    return name


NO_NAMESPACE: Final = "-"


class Kinds(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Every kind there is, custom ones too, and how many objects it has."""
        cluster = self.cluster(cluster_id)
        return Response(
            {
                "items": [
                    {
                        "kind": kind.row_kind,
                        "apiVersion": kind.api_version,
                        "namespaced": kind.namespaced,
                        "objects": n_objects,
                        "url": f"/api/v1/clusters/{cluster.public_id}/objects/{kind.row_kind}/",
                    }
                    for kind, n_objects in counts_by_kind(cluster)
                ]
            }
        )


def kind_of(cluster: Cluster, name: str) -> Kind:
    """A kind of the cluster by the name `objects_kinds` tells.

    Raises
    ------
    NotFound
    """
    kind = table_of(cluster).by_row_kind(name)
    if kind is None:
        raise NotFound(f'there is no kind "{name}" here', kind=name)
    return kind


class OfKind(PlaygroundView):
    def get(self, request: Request, cluster_id: str, kind: str) -> Response:
        """By namespace and name."""
        cluster = self.cluster(cluster_id)
        known = kind_of(cluster, kind)
        limit = whole_number(request, "limit", default=50, least=1, most=500) or 50
        after = request.GET.get("after", "")
        namespace, _, name = after.rpartition("/")
        found = list(
            objects_of_kind(
                cluster,
                known,
                named=request.GET.get("named", ""),
                after=(namespace, name) if after else None,
                limit=limit + 1,
            )
        )
        last = None
        if len(found) > limit:
            meta = found[limit - 1]["metadata"]
            last = f"{meta.get('namespace', '')}/{meta['name']}"
        return Response({"items": found[:limit], "next": next_page(request, after=last)})


class AnyObject(PlaygroundView):
    parser_classes: list[type[BaseParser]] = [MergePatchParser, StrictJSONParser, YAMLParser]

    def place(self, cluster_id: str, kind: str, namespace: str) -> tuple[Cluster, Kind, str]:
        cluster = self.cluster(cluster_id)
        return cluster, kind_of(cluster, kind), "" if namespace == NO_NAMESPACE else namespace

    @staticmethod
    def told(manifest: dict[str, Any], fields: FieldValidation | None = None) -> Response:
        headers = {"ETag": f'"{manifest["metadata"].get("resourceVersion", "")}"'}
        if fields is not None and fields.warnings:
            headers["Warning"] = warning_header(fields.warnings)
        return Response(manifest, headers=headers)

    def get(self, request: Request, cluster_id: str, kind: str, namespace: str, name: str) -> Response:
        """As stored; its ETag is its resourceVersion. A namespace of `-` is none."""
        cluster, known, namespace = self.place(cluster_id, kind, namespace)
        return self.told(get_object(cluster, known, namespace, name))

    def put(self, request: Request, cluster_id: str, kind: str, namespace: str, name: str) -> Response:
        """With If-Match, or a `metadata.resourceVersion`, only if the object is still that one."""
        cluster, known, namespace = self.place(cluster_id, kind, namespace)
        live = get_object(cluster, known, namespace, name)
        manifest = dict(request.data)
        meta = dict(manifest.get("metadata") or {})
        same = (meta.get("namespace") or namespace) == namespace or not known.namespaced
        if manifest.get("kind") != known.kind or meta.get("name") != name or not same:
            raise InvalidManifest(
                "kind, namespace and name stay as they are", path="metadata.name", value=meta.get("name")
            )
        version = asked_version(request, live)
        if version is not None:
            meta["resourceVersion"] = version
        if known.namespaced:
            meta["namespace"] = namespace
        fields = FieldValidation(one_of(request, "fieldValidation", MODES, default="Warn"))
        with precondition(version):
            stored = replace_object(cluster=cluster, manifest={**manifest, "metadata": meta}, fields=fields)
        return self.told(stored, fields)

    def patch(self, request: Request, cluster_id: str, kind: str, namespace: str, name: str) -> Response:
        """A merge patch (RFC 7386): null removes, objects merge, everything else replaces."""
        cluster, known, namespace = self.place(cluster_id, kind, namespace)
        patch = checked_patch(request)
        version = asked_version(request, get_object(cluster, known, namespace, name))
        fields = FieldValidation(one_of(request, "fieldValidation", MODES, default="Warn"))
        with precondition(version):
            stored = patch_object(
                cluster=cluster,
                kind=known,
                namespace=namespace,
                name=name,
                patch=patch,
                resource_version=version,
                fields=fields,
            )
        return self.told(stored, fields)

    def delete(self, request: Request, cluster_id: str, kind: str, namespace: str, name: str) -> Response:
        """Its last state."""
        cluster, known, namespace = self.place(cluster_id, kind, namespace)
        version = asked_version(request, get_object(cluster, known, namespace, name))
        with precondition(version):
            last = delete_object(
                cluster=cluster, kind=known, namespace=namespace, name=name, resource_version=version
            )
        return Response(last)
