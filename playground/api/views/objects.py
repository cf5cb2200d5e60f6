"""Nodes, pods, PriorityClasses and PodDisruptionBudgets, one by one: the same services /k8s and the pages call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_view
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples
from playground.api.documentation import FIELD_VALIDATION, number, operation, query
from playground.api.errors import PreconditionFailed, bad_query
from playground.api.pages import next_page
from playground.api.parsers import MergePatchParser, StrictJSONParser, YAMLParser
from playground.api.queries import one_of, whole_number
from playground.api.serializers import objects
from playground.api.views.base import PlaygroundView, tags_of
from playground.bodies import warning_header
from playground.clusters import kinds
from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest
from playground.clusters.kinds import Kind
from playground.clusters.objects.admission import MODES, FieldValidation
from playground.clusters.objects.queries import get_object, selected_objects, selection_of
from playground.clusters.objects.write import create_object, delete_object, merge_patch, patch_object

IF_MATCH: Final = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="Only if the object still has this ETag, else 412."
)
View = TypeVar("View", bound=type[PlaygroundView])


class ObjectView(PlaygroundView):
    """What both paths of a kind share."""

    kind: ClassVar[Kind]
    shape: ClassVar[type[serializers.Serializer[Any]]]
    parser_classes: list[type[BaseParser]] = [StrictJSONParser, YAMLParser]

    def checked(self, manifest: Any) -> dict[str, Any]:
        """The manifest, its types looked at, with apiVersion and kind.

        Raises
        ------
        ValidationError, InvalidManifest
        """
        self.shape(data=manifest).is_valid(raise_exception=True)
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
    ValidationError
        It is no object.
    """
    objects.MergePatch(data=request.data).is_valid(raise_exception=True)
    assert isinstance(request.data, dict)
    return request.data


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


def documented(
    kind_name: str,
    plural: str,
    shape: type[serializers.Serializer[Any]],
    page: type[serializers.Serializer[Any]],
    example: dict[str, Any],
    patch: dict[str, Any],
) -> Callable[[View], View]:
    """The kind of a view and what the OpenAPI document says of its methods."""
    kind = kinds.by_kind(kind_name)
    assert kind is not None
    stored = examples.stored_object(example)
    conflicts = (400, 404, 409, 412, 413, 415)
    where = [query("namespace", "Only those in it.")] if kind.namespaced else []
    after = "`namespace/name`" if kind.namespaced else "The name"
    grace = [number("gracePeriodSeconds", "0 = at once.", most=2**31 - 1)] if kind_name == "Pod" else []

    def of_list(view: View) -> View:
        return extend_schema_view(
            get=operation(
                f"List {plural}",
                id=f"{kind.plural}_list",
                answers_={200: page},
                errors=(400, 404),
                parameters=[
                    number("limit", "How many at most.", least=1, most=500),
                    query("after", f"{after} of the last one of the page before."),
                    query("labelSelector", "As kubectl's -l: `app=web,tier!=db`."),
                    query("fieldSelector", "As kubectl's --field-selector: `metadata.name=web-1`."),
                    *where,
                ],
                answer_example={"items": [stored], "next": None},
                tag="objects",
                reads=True,
            ),
            post=operation(
                f"Create a {kind_name}",
                id=f"{kind.plural}_create",
                request={"application/json": shape, "application/yaml": OpenApiTypes.STR},
                answers_={201: shape},
                errors=(400, 404, 409, 413, 415),
                parameters=[FIELD_VALIDATION],
                example=example,
                answer_example=stored,
                tag="objects",
            ),
        )(view)

    def of_one(view: View) -> View:
        return extend_schema_view(
            get=operation(
                f"Read a {kind_name}",
                id=f"{kind.plural}_read",
                answers_={200: shape},
                errors=(400, 404),
                answer_example=stored,
                tag="objects",
                reads=True,
            ),
            patch=operation(
                f"Change a {kind_name}",
                id=f"{kind.plural}_patch",
                request={"application/merge-patch+json": objects.MergePatch},
                answers_={200: shape},
                errors=conflicts,
                parameters=[IF_MATCH, FIELD_VALIDATION],
                example=patch,
                example_media_type="application/merge-patch+json",
                answer_example=stored,
                tag="objects",
            ),
            delete=operation(
                f"Delete a {kind_name}",
                id=f"{kind.plural}_delete",
                answers_={200: shape},
                errors=(400, 404, 409, 412),
                parameters=[IF_MATCH, *grace],
                answer_example=stored,
                tag="objects",
            ),
        )(view)

    def set_up(view: View) -> View:
        view.kind, view.shape = kind, shape  # type: ignore[attr-defined]
        return of_list(view) if issubclass(view, ObjectList) else of_one(view)

    return set_up


_LABEL: Final = {"metadata": {"labels": {"tier": "web"}}}
_NODE: Final = documented(
    "Node",
    "nodes",
    objects.NodeObject,
    objects.NodePage,
    examples.NODE_JSON,
    {"spec": {"unschedulable": True}},
)
_POD: Final = documented("Pod", "pods", objects.PodObject, objects.PodPage, examples.POD_JSON, _LABEL)
_CLASS: Final = documented(
    "PriorityClass",
    "priority classes",
    objects.PriorityClassObject,
    objects.PriorityClassPage,
    examples.CLASS_JSON,
    {"description": "Orders of customers"},
)
_BUDGET: Final = documented(
    "PodDisruptionBudget",
    "disruption budgets",
    objects.PodDisruptionBudgetObject,
    objects.PodDisruptionBudgetPage,
    examples.BUDGET_JSON,
    {"spec": {"minAvailable": None, "maxUnavailable": "25%"}},
)


@_NODE
class Nodes(ObjectList):
    pass


@_NODE
class OneNode(OneObject):
    pass


@_POD
class Pods(ObjectList):
    pass


@_POD
class OnePod(OneObject):
    pass


@_CLASS
class PriorityClasses(ObjectList):
    pass


@_CLASS
class OnePriorityClass(OneObject):
    pass


@_BUDGET
class PodDisruptionBudgets(ObjectList):
    pass


@_BUDGET
class OnePodDisruptionBudget(OneObject):
    pass
