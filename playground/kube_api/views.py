"""The one view of the Kubernetes API: from a path and a method to reading, writing or watching."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from playground.accounts.authentication import BearerToken, MayEnter, Requests, Session, Writes, may_write
from playground.accounts.models import Role
from playground.clusters import kinds, selectors, services
from playground.clusters.models import Cluster
from playground.engine.releases import patch_of
from playground.kube_api import discovery, openapi, writing
from playground.kube_api.paths import Target, target_of
from playground.kube_api.reading import form_of, list_of, switched
from playground.kube_api.reviews import REVIEWS, review
from playground.kube_api.status import Refusal, status_of
from playground.kube_api.watch import bounded, stream, watch_of

ROOT_PATHS: Final = (
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
)
PLAIN: Final = {"healthz": "ok", "livez": "ok", "readyz": "ok"}
_IN_CONTAINER: Final = re.compile(
    r"api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+)"
    r"/(?P<part>log|exec|attach|portforward|proxy|ephemeralcontainers)(/.*)?"
)
_POSTS: Final[dict[str, Callable[[HttpRequest, Cluster, Target], writing.Answer]]] = {
    "": writing.create,
    "binding": writing.bind,
    "eviction": writing.evict,
}


class _JSON(DefaultContentNegotiation):
    """Answers are JSON: every client lists it, and `Accept` says more than DRF's negotiation can read."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


@extend_schema(exclude=True)
class KubernetesAPI(APIView):
    """Everything under `/k8s/{id}`."""

    authentication_classes = [BearerToken, Session]
    permission_classes = [MayEnter]
    throttle_classes = [Requests, Writes]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = _JSON

    def only_reads(self, request: Request) -> bool:
        """Reviews ask what one may do, by POST."""
        return request.method == "POST" and self.kwargs.get("path", "").strip("/") in REVIEWS

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], HttpResponse | None]:
        return _refused

    def finalize_response(
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers["Cache-Control"] = "no-cache, private"
        return final

    def _answer(self, request: Request, cluster_id: str, path: str = "") -> HttpResponseBase:
        inner: HttpRequest = request._request
        if "\0" in inner.get_full_path() or "%00" in inner.get_full_path():
            raise Refusal("BadRequest", "the request holds the character U+0000")
        user = request.user
        person = user if not settings.EMBEDDED and user and user.is_authenticated else None
        path = path.strip("/")
        asks_only = inner.method in SAFE_METHODS or (inner.method == "POST" and path in REVIEWS)
        cluster = selectors.get_cluster(
            cluster_id, person, at_least=Role.VIEWER if asks_only else Role.EDITOR
        )
        if path in REVIEWS:
            if inner.method != "POST":
                raise _no_method()
            own_role = selectors.role_in(cluster, person) or Role.VIEWER
            if not may_write(request):
                own_role = Role.VIEWER
            return _json(review(inner, path, person=person, role=own_role), 201)
        if (
            inner.method in ("GET", "HEAD")
            and (told := _told(inner, path, patch_of(cluster.release))) is not None
        ):
            return told
        target = target_of(path)
        if target is None:
            _say_there_are_no_containers(cluster, path)
            raise Refusal("NotFound", "the server could not find the requested resource")
        if inner.method in ("GET", "HEAD"):
            return _read(inner, cluster, target)
        return _written(inner, cluster, target)

    get = head = post = put = patch = delete = _answer


def _say_there_are_no_containers(cluster: Cluster, path: str) -> None:
    """Explain why a pod's logs are not there and nothing can be run in it, if that is what a path asks for.

    Raises
    ------
    Refusal, NotFound
    """
    match = _IN_CONTAINER.fullmatch(path)
    pods = kinds.by_kind("Pod")
    if match is None or pods is None:
        return
    selectors.get_object(cluster, pods, match["namespace"], match["name"])
    words = "it has no logs" if match["part"] == "log" else "nothing can be run or reached in it"
    raise Refusal(
        "BadRequest", f'there are no containers in a playground: pod "{match["name"]}" is simulated: {words}'
    )


def _read(request: HttpRequest, cluster: Cluster, target: Target) -> HttpResponseBase:
    if target.subresource in ("binding", "eviction"):
        raise _no_method()
    if switched(request, "watch"):
        return _watched(request, cluster, target)
    if not target.name:
        return _json(list_of(request, cluster, target))
    manifest = selectors.get_object(cluster, target.kind, target.namespace, target.name)
    if target.subresource == "scale":
        return _json(writing.scale_of(manifest))
    return _json(form_of(request).one(cluster, target.kind, manifest))


def _watched(request: HttpRequest, cluster: Cluster, target: Target) -> HttpResponseBase:
    watch = watch_of(request, cluster, target)
    if isinstance(request, ASGIRequest):
        response: HttpResponseBase = StreamingHttpResponse(stream(watch), content_type="application/json")
    else:
        response = HttpResponse(b"".join(bounded(watch)), content_type="application/json")
    _warn_if_paused(response, request, cluster)
    return response


def _written(request: HttpRequest, cluster: Cluster, target: Target) -> HttpResponse:
    verb = _verb(str(request.method), target)
    if target.subresource == "" and verb not in discovery.verbs_of(target.kind):
        raise _no_method()
    match verb:
        case "create":
            answer = _POSTS[target.subresource](request, cluster, target)
        case "update":
            answer = writing.replace(request, cluster, target)
        case "patch":
            answer = writing.patch(request, cluster, target)
        case "delete":
            answer = writing.delete(request, cluster, target)
        case _:
            answer = writing.delete_collection(request, cluster, target)
    body = answer.body
    if answer.is_object:
        body = form_of(request).one(cluster, target.kind, body)
    response = _json(body, answer.code)
    if request.headers.get("User-Agent", "").startswith("kubectl") and not request.GET.get("dryRun"):
        services.offer_clock(cluster=cluster)
    _warn_if_paused(response, request, cluster)
    return response


def _verb(method: str, target: Target) -> str:
    """The API verb of a method on a target.

    Raises
    ------
    Refusal
        MethodNotAllowed.
    """
    part = target.subresource
    if method == "POST" and (not target.name if not part else part in ("binding", "eviction")):
        return "create"
    if method in ("PUT", "PATCH") and target.name and part in ("", "status", "scale"):
        return "update" if method == "PUT" else "patch"
    if method == "DELETE" and not part:
        return "delete" if target.name else "deletecollection"
    raise _no_method()


def _no_method() -> Refusal:
    return Refusal("MethodNotAllowed", "the server does not allow this method on the requested resource")


def _told(request: HttpRequest, path: str, patch: str) -> HttpResponse | None:
    """Discovery, version, health; None if the path is none of these."""
    if path in PLAIN:
        return HttpResponse(PLAIN[path], content_type="text/plain; charset=utf-8")
    if path == "openapi/v2":
        return HttpResponse(openapi.v2_document(patch), content_type="application/octet-stream")
    if path in ("api", "apis") and (version := _aggregated(request)):
        body = json.dumps(discovery.aggregated(path == "api", version))
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return HttpResponse(body, content_type=media)
    parts = path.split("/")
    found: dict[str, Any] | None = None
    if path == "":
        found = {"paths": [*ROOT_PATHS]}
    elif path == "version":
        found = discovery.version(patch)
    elif path == "openapi/v3":
        found = openapi.v3_index()
    elif path.startswith("openapi/v3/"):
        found = openapi.v3_document(path.removeprefix("openapi/v3/"), patch)
    elif path == "api":
        found = discovery.api_versions()
    elif path == "apis":
        found = discovery.groups()
    elif parts[0] == "api" and len(parts) == 2:
        found = discovery.resources(parts[1])
    elif parts[0] == "apis" and len(parts) == 2:
        found = discovery.group(parts[1])
    elif parts[0] == "apis" and len(parts) == 3:
        found = discovery.resources(f"{parts[1]}/{parts[2]}")
    return None if found is None else _json(found)


def _aggregated(request: HttpRequest) -> str:
    for part in request.headers.get("Accept", "").split(","):
        if "as=APIGroupDiscoveryList" in part and "g=apidiscovery.k8s.io" in part and "json" in part:
            return "v2beta1" if "v=v2beta1" in part else "v2"
    return ""


def _warn_if_paused(response: HttpResponseBase, request: HttpRequest, cluster: Cluster) -> None:
    """kubectl prints warnings, so a delete, drain or -w that waits is explained, with the command that ends it."""
    if cluster.clock_mode != Cluster.ClockMode.PAUSED:
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


def _json(body: dict[str, Any], code: int = 200) -> HttpResponse:
    text = json.dumps(body, separators=(",", ":"))
    return HttpResponse(text, status=code, content_type="application/json")


def _refused(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    found = status_of(error)
    if found is None:
        return None
    status, headers = found
    response = _json(status, status["code"])
    for name, value in headers.items():
        response.headers[name] = value
    return response
