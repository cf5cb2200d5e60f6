"""Objects of every kind, one by one, custom resources included: through the services /k8s calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.types import OpenApiTypes
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.documentation import FIELD_VALIDATION, number, operation, query
from playground.api.pages import next_page
from playground.api.parsers import MergePatchParser, StrictJSONParser, YAMLParser
from playground.api.queries import one_of, whole_number
from playground.api.serializers import objects
from playground.api.serializers.answers import MANIFEST, Answer
from playground.api.serializers.shapes import Manifest, flag, many, text, whole
from playground.api.views.base import PlaygroundView
from playground.api.views.objects import IF_MATCH, asked_version, checked_patch, precondition
from playground.bodies import warning_header
from playground.clusters.board.overview import counts_by_kind, objects_of_kind
from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import InvalidManifest, NotFound
from playground.clusters.kinds import Kind
from playground.clusters.objects.admission import MODES, FieldValidation
from playground.clusters.objects.queries import get_object
from playground.clusters.objects.write import delete_object, patch_object, replace_object

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

NO_NAMESPACE: Final = "-"


class HeldKind(Answer):
    kind = text()
    apiVersion = text()
    namespaced = flag()
    objects = whole()
    url = text("Its objects.")


class HeldKinds(Answer):
    items = HeldKind(many=True)


class ManifestPage(Answer):
    items = many(Manifest())
    next = text("Path of the next page.", allow_null=True)


_SERVICE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default", "resourceVersion": "43"},
    "spec": {"selector": {"app": "web"}},
}
_PLACE: Final = f"A namespace of `{NO_NAMESPACE}` is none."


class Kinds(PlaygroundView):
    @operation(
        "List the kinds a cluster holds",
        id="objects_kinds",
        answers_={200: HeldKinds},
        errors=(400, 404),
        answer_example={
            "items": [
                {
                    "kind": "Service",
                    "apiVersion": "v1",
                    "namespaced": True,
                    "objects": 1,
                    "url": "/api/v1/clusters/k7m2qw9xtr/objects/Service/",
                }
            ]
        },
        tag="objects",
        reads=True,
    )
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
    @operation(
        "List the objects of a kind",
        id="objects_list",
        answers_={200: ManifestPage},
        errors=(400, 404),
        parameters=[
            number("limit", "How many at most.", least=1, most=500),
            query("named", "Only those whose name holds this."),
            query("after", "`namespace/name` of the last one of the page before."),
        ],
        answer_example={"items": [_SERVICE], "next": None},
        tag="objects",
        reads=True,
    )
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

    @operation(
        "Read an object",
        id="objects_read",
        answers_={200: MANIFEST},
        errors=(400, 404),
        answer_example=_SERVICE,
        tag="objects",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, kind: str, namespace: str, name: str) -> Response:
        """As stored; its ETag is its resourceVersion. A namespace of `-` is none."""
        cluster, known, namespace = self.place(cluster_id, kind, namespace)
        return self.told(get_object(cluster, known, namespace, name))

    @operation(
        "Replace an object",
        id="objects_replace",
        request={"application/json": MANIFEST, "application/yaml": OpenApiTypes.STR},
        answers_={200: MANIFEST},
        errors=(400, 404, 409, 412, 413, 415),
        parameters=[IF_MATCH, FIELD_VALIDATION],
        example=_SERVICE,
        answer_example=_SERVICE,
        tag="objects",
    )
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

    @operation(
        "Change an object",
        id="objects_patch",
        request={"application/merge-patch+json": objects.MergePatch},
        answers_={200: MANIFEST},
        errors=(400, 404, 409, 412, 413, 415),
        parameters=[IF_MATCH, FIELD_VALIDATION],
        example={"metadata": {"labels": {"tier": "web"}}},
        example_media_type="application/merge-patch+json",
        answer_example=_SERVICE,
        tag="objects",
    )
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

    @operation(
        "Delete an object",
        id="objects_delete",
        answers_={200: MANIFEST},
        errors=(400, 404, 409, 412),
        parameters=[IF_MATCH],
        answer_example=_SERVICE,
        tag="objects",
    )
    def delete(self, request: Request, cluster_id: str, kind: str, namespace: str, name: str) -> Response:
        """Its last state."""
        cluster, known, namespace = self.place(cluster_id, kind, namespace)
        version = asked_version(request, get_object(cluster, known, namespace, name))
        with precondition(version):
            last = delete_object(
                cluster=cluster, kind=known, namespace=namespace, name=name, resource_version=version
            )
        return Response(last)
