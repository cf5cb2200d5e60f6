"""The one view of the Kubernetes API: from a path and a method to reading, writing or watching."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from playground.accounts.authentication import AlwaysJSON, Surface
from playground.accounts.choices import Role
from playground.bodies import warning_header
from playground.clusters import kinds
from playground.clusters.access import get_cluster, role_in
from playground.clusters.choices import ClockMode
from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import table_of
from playground.clusters.drive.config import offer_clock
from playground.clusters.kinds import Kind, KindTable
from playground.clusters.log.changes import written_by
from playground.clusters.objects.queries import get_object
from playground.clusters.row_types import Cluster
from playground.kube_api import discovery, openapi, writing
from playground.kube_api.built_in import COMPONENTS_WARNING, built_in_object, component_statuses
from playground.kube_api.discovery import PATHS, health
from playground.kube_api.metrics import metrics_of, with_metrics
from playground.kube_api.reading import form_of, list_of, switched
from playground.kube_api.requests import Target, check_write_options, target_of, unknown_parameters
from playground.kube_api.reviews import review, review_path
from playground.kube_api.status import Refusal, status_of
from playground.kube_api.tables import scale_table
from playground.kube_api.watch import bounded, stream, watch_of
from playground.kube_api.writing import scale_of
from scheduler_core.releases import release_from
from scheduler_core.schema.tables import table_beside

_TABLES: Final = table_beside(__package__, "protocol.yaml")
_NOT_HERE: Final[list[tuple[str, str, str]]] = _TABLES["not_here"]
_WAITED_FOR: Final[list[str]] = _TABLES["waited_for"]
_WRITES: Final[dict[str, Callable[[HttpRequest, Cluster, Target], writing.WriteAnswer]]] = {
    "": writing.create,
    "binding": writing.bind,
    "eviction": writing.evict,
    "update": writing.replace,
    "patch": writing.patch,
    "delete": writing.delete,
    "deletecollection": writing.delete_collection,
}
"""By verb; a create by what is created below an object."""


class _Bodies(AlwaysJSON):
    """Bodies are read as what they are."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return None


class KubernetesAPI(Surface):
    """Everything under `/k8s/{id}`."""

    content_negotiation_class = _Bodies
    asked: Kind | None = None

    def only_reads(self, request: Request) -> bool:
        """Reviews ask what one may do, by POST."""
        return request.method == "POST" and bool(review_path(self.kwargs.get("path", "").strip("/")))

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], HttpResponse | None]:
        return lambda error, _: _refused(error, self.asked)

    # The stubs know of Django REST framework's own responses alone; Django's go through as they are.
    def finalize_response(  # type: ignore[override]
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        final: HttpResponseBase = super().finalize_response(request, response, *args, **kwargs)
        final.headers["Cache-Control"] = "no-cache, private"
        return final

    def _answer(self, request: Request, cluster_id: str, path: str = "") -> HttpResponseBase:
        inner: HttpRequest = request._request
        if "\0" in inner.get_full_path() or "%00" in inner.get_full_path():
            raise Refusal("BadRequest", "the request holds the character U+0000")
        user = request.user
        person = user if not settings.EMBEDDED and user and user.is_authenticated else None
        path = path.strip("/")
        asked = review_path(path)
        asks_only = inner.method in SAFE_METHODS or (inner.method == "POST" and bool(asked))
        cluster = get_cluster(cluster_id, person, at_least=Role.VIEWER if asks_only else Role.EDITOR)
        table = table_of(cluster)
        if asked:
            if inner.method != "POST":
                raise _no_method()
            own_role = role_in(cluster, person) or Role.VIEWER
            return _json(review(inner, cluster, asked, person=person, role=own_role), 201)
        if (
            inner.method in ("GET", "HEAD")
            and (told := _told(inner, table, path, release_from(cluster.release).patch)) is not None
        ):
            return told
        if inner.method in ("GET", "HEAD") and (found := metrics_of(inner, cluster, path)) is not None:
            return _json(found)
        if inner.method in ("GET", "HEAD") and (components := _components(inner, cluster, path)) is not None:
            return components
        target = target_of(table, path)
        if target is None or (target.earlier and inner.method not in ("GET", "HEAD")):
            _say_why_not(cluster, path)
            raise Refusal("NotFound", "the server could not find the requested resource")
        self.asked = target.kind
        strange = unknown_parameters(inner.GET)
        if inner.method in ("GET", "HEAD"):
            response = _read(inner, cluster, target)
        else:
            with written_by(inner.headers.get("User-Agent", "")):
                response = _written(inner, cluster, target)
        if strange:
            _warn(response, strange)
        return response

    get = head = post = put = patch = delete = _answer


def _say_why_not(cluster: Cluster, path: str) -> None:
    """Explain why what a path asks of an object is not to be had in a playground, if that is known.

    Raises
    ------
    Refusal, NotFound
    """
    people = "none is needed" if settings.EMBEDDED else "people have their own tokens, on their account page"
    for pattern, kind_name, sentence in _NOT_HERE:
        match, kind = re.fullmatch(pattern, path), kinds.by_kind(kind_name)
        if match is not None and kind is not None:
            of_path = Target(kind, match["namespace"], match["name"])
            if built_in_object(cluster, of_path) is None:
                get_object(cluster, kind, match["namespace"], match["name"])
            raise Refusal("BadRequest", sentence.format(name=match["name"], people=people))


def _components(request: HttpRequest, cluster: Cluster, path: str) -> HttpResponse | None:
    """What a path of ComponentStatuses, which no client writes, is answered; None if it is none."""
    collection, _, name = path.partition("componentstatuses")
    if collection != "api/v1/" or name.count("/") != bool(name):
        return None
    kind = kinds.by_resource("v1", "componentstatuses")
    assert kind is not None
    form, found = form_of(request), component_statuses()
    if name:
        found = [item for item in found if item["metadata"]["name"] == name[1:]]
        if not found:
            raise Refusal("NotFound", f'componentstatuses "{name[1:]}" not found')
    response = _json(form.one(cluster, kind, found[0]) if name else form.many(cluster, kind, found, {}))
    _warn(response, [COMPONENTS_WARNING])
    return response


def _read(request: HttpRequest, cluster: Cluster, target: Target) -> HttpResponseBase:
    if target.subresource in ("binding", "eviction"):
        raise _no_method()
    if switched(request, "watch"):
        return _watched(request, cluster, target)
    if not target.name:
        return _json(list_of(request, cluster, target))
    manifest = built_in_object(cluster, target) or get_object(
        cluster, target.kind, target.namespace, target.name
    )
    if target.subresource == "scale":
        scale, form = scale_of(target.kind, manifest), form_of(request)
        if form.shape == "Table":
            now_ns = virtual_now_ns(cluster)
            scale = scale_table(scale, now_ns, api_version=form.api_version, include=form.include)
        return _json(scale)
    body = form_of(request).one(cluster, target.kind, manifest)
    earlier = target.earlier and body.get("kind") == target.kind.kind
    return _json({**body, "apiVersion": target.earlier} if earlier else body)


def _watched(request: HttpRequest, cluster: Cluster, target: Target) -> HttpResponseBase:
    watch = watch_of(request, cluster, target)
    if isinstance(request, ASGIRequest):
        response: HttpResponseBase = StreamingHttpResponse(stream(watch), content_type="application/json")
    else:
        response = HttpResponse(b"".join(bounded(watch)), content_type="application/json")
    _warn_if_paused(response, request, cluster, target)
    return response


def _written(request: HttpRequest, cluster: Cluster, target: Target) -> HttpResponse:
    verb = _verb(str(request.method), target)
    check_write_options(request)
    if target.subresource == "" and verb not in target.kind.verbs:
        raise _no_method()
    answer = _WRITES[target.subresource if verb == "create" else verb](request, cluster, target)
    body = answer.body
    if answer.is_object:
        body = form_of(request).one(cluster, target.kind, body)
    response = _json(body, answer.code)
    if request.headers.get("User-Agent", "").startswith("kubectl") and not request.GET.get("dryRun"):
        offer_clock(cluster=cluster)
    _warn_if_paused(response, request, cluster, target)
    _warn(response, answer.warnings)
    return response


def _verb(method: str, target: Target) -> str:
    """The API verb of a method on a target.

    Raises
    ------
    Refusal
        MethodNotAllowed.
    """
    part = target.subresource
    if not target.name and target.kind.namespaced and not target.namespace:
        raise _no_method()  # what all namespaces have is only read
    if method == "POST" and (not target.name if not part else part in ("binding", "eviction")):
        return "create"
    if method in ("PUT", "PATCH") and target.name and part in ("", "status", "scale", "resize"):
        return "update" if method == "PUT" else "patch"
    if method == "DELETE" and not part:
        return "delete" if target.name else "deletecollection"
    raise _no_method()


def _no_method() -> Refusal:
    return Refusal("MethodNotAllowed", "the server does not allow this method on the requested resource")


def _told(request: HttpRequest, table: KindTable, path: str, patch: str) -> HttpResponse | None:
    """Discovery, version, health; None if the path is none of these."""
    if (well := health(path, request.GET)) is not None:
        return HttpResponse(well, content_type="text/plain; charset=utf-8")
    if path == "openapi/v2":
        return HttpResponse(openapi.v2_document(table, patch), content_type="application/octet-stream")
    discovered = with_metrics(table)
    if path in ("api", "apis") and (version := _aggregated(request)):
        body = json.dumps(discovery.aggregated(discovered, path == "api", version))
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return HttpResponse(body, content_type=media)
    parts = path.split("/")
    found: dict[str, Any] | None = None
    if path == "":
        found = {"paths": sorted([*_TABLES["root"], *PATHS])}
    elif path == "version":
        found = discovery.version(patch)
    elif path == "openapi/v3":
        found = openapi.v3_index(table)
    elif path.startswith("openapi/v3/"):
        found = openapi.v3_document(table, path.removeprefix("openapi/v3/"), patch)
    elif path == "api":
        found = discovery.api_versions()
    elif path == "apis":
        found = discovery.groups(discovered)
    elif parts[0] == "api" and len(parts) == 2:
        found = discovery.resources(discovered, parts[1])
    elif parts[0] == "apis" and len(parts) == 2:
        found = discovery.group(discovered, parts[1])
    elif parts[0] == "apis" and len(parts) == 3:
        found = discovery.resources(discovered, f"{parts[1]}/{parts[2]}")
    return None if found is None else _json(found)


def _aggregated(request: HttpRequest) -> str:
    for part in request.headers.get("Accept", "").split(","):
        if "as=APIGroupDiscoveryList" in part and "g=apidiscovery.k8s.io" in part and "json" in part:
            return "v2beta1" if "v=v2beta1" in part else "v2"
    return ""


def _warn_if_paused(
    response: HttpResponseBase, request: HttpRequest, cluster: Cluster, target: Target
) -> None:
    """kubectl prints warnings, so a delete, drain or -w that waits is explained, with the command that ends it.

    Only where something is waited for: not of a ConfigMap, and not to a scheduler that binds and writes statuses.
    """
    waits = target.kind.row_kind in _WAITED_FOR and target.subresource in ("", "eviction", "scale")
    if cluster.clock_mode != ClockMode.PAUSED or not waits or request.GET.get("dryRun"):
        return
    site = f"{request.scheme}://{request.get_host()}"
    token = "" if settings.EMBEDDED else " -H 'Authorization: Bearer YOUR-TOKEN'"
    command = (
        f"curl -X PUT -H 'Content-Type: application/json'{token} -d '{{\\\"mode\\\":\\\"1x\\\"}}'"
        f" {site}/api/v1/clusters/{cluster.public_id}/clock"
    )
    response.headers["Warning"] = (
        f'299 - "cluster is paused: nothing is scheduled or terminated; let it run at 1x: {command}'
        f' (or by hand at {site}/c/{cluster.public_id}/)"'
    )


def _warn(response: HttpResponseBase, sentences: Iterable[str]) -> None:
    said = [warning_header([*sentences]), response.headers.get("Warning", "")]
    if any(said):
        response.headers["Warning"] = ", ".join(filter(None, said))


def _json(body: dict[str, Any], code: int = 200) -> HttpResponse:
    text = json.dumps(body, separators=(",", ":"))
    return HttpResponse(text, status=code, content_type="application/json")


def _refused(error: Exception, asked: Kind | None) -> HttpResponse | None:
    found = status_of(error, asked)
    if found is None:
        return None
    status, headers = found
    response = _json(status, status["code"])
    for name, value in headers.items():
        response.headers[name] = value
    return response
