"""The OpenAPI document, and a page made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from playground.api.documentation import OF_STATUS
from playground.api.errors import REASONS
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from scheduler_core.objects.reading import dump_yaml

METHODS: Final = ("get", "post", "put", "patch", "delete")
SETTINGS: Final[dict[str, Any]] = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "Kubernetes scheduling playground",
    "VERSION": "v1",
    "DESCRIPTION": "Build clusters, submit pods, run the scheduler and read why each pod landed, waits or evicted"
    " others. Refusals are problem details (RFC 9457). Bodies may be packed (`Content-Encoding: gzip`); manifests may"
    " have eight times as much unpacked as one request carries. The Kubernetes API of a cluster is at /k8s/{id}.",
    "PREPROCESSING_HOOKS": ["playground.api.urls.documented_only"],
    "POSTPROCESSING_HOOKS": ["playground.api.views.openapi.completed"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SORT_OPERATIONS": False,
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "TAGS": [
        {"name": "clusters", "description": "Clusters, and many objects at once."},
        {
            "name": "objects",
            "description": "Nodes, pods, priority classes and disruption budgets, one by one.",
        },
        {"name": "scheduling", "description": "Running the scheduler, and what it did."},
        {"name": "settings", "description": "A cluster's configuration and clock."},
        {"name": "scenarios", "description": "Runs to share and to prove anew, and comparisons."},
        {"name": "tokens", "description": "Personal tokens for tools (team mode)."},
        {"name": "teams", "description": "The people who own clusters together (team mode)."},
        {"name": "about", "description": "What this site is."},
    ],
}


def completed(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """What no view says: how to authenticate (a token or nothing, by mode), and that misspelt keys are refused."""
    result.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A personal token (team mode)."}
    }
    result["security"] = [{"token": []}, {}]
    result["components"]["schemas"].update(answers.OPEN)
    strict = {shape.__name__ for shape in _below(requests.Strict)}
    for name, schema in result["components"].get("schemas", {}).items():
        if name in strict:
            schema["additionalProperties"] = False
    for path in result["paths"].values():
        for operation in path.values():
            operation.pop("security", None)
            _told_everywhere(operation["responses"])
        if "post" in path:
            _repeatable(path["post"])
    return result


_TEXT: Final = {"type": "string"}
_LOCATION: Final = {"description": "Where it stands; DELETE there cancels it.", "schema": _TEXT}
_RETRY: Final = {"description": "Seconds after which to ask there.", "schema": _TEXT}
_KEY_PARAMETER: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "description": "The same key and request again within a day is answered as before, and nothing is done twice.",
}


def _told_everywhere(responses: dict[str, Any]) -> None:
    """Headers of every answer, and those of asynchronous work."""
    for code, answer in responses.items():
        headers = answer.setdefault("headers", {})
        headers["X-Request-Id"] = {"description": "The request's name, as logs have it.", "schema": _TEXT}
        if code == "202":
            headers |= {"Location": _LOCATION, "Retry-After": _RETRY}


def _repeatable(operation: dict[str, Any]) -> None:
    """A POST may be sent again under a key."""
    operation.setdefault("parameters", []).append(_KEY_PARAMETER)
    refused = operation["responses"]["500"]
    for status in (400, 409, 422):
        words = REASONS[OF_STATUS[status]][2]
        operation["responses"].setdefault(str(status), {**refused, "description": words})
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _below(shape: type[Any]) -> Iterator[type[Any]]:
    for sub in shape.__subclasses__():
        yield sub
        yield from _below(sub)


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document; made once a process."""
    with patched_settings(SETTINGS):
        made: dict[str, Any] = SchemaGenerator(urlconf=None, api_version="v1").get_schema(
            request=None, public=True
        )
    plain: dict[str, Any] = json.loads(json.dumps(made), object_hook=_anything_once)
    return plain


def _anything_once(schema: dict[str, Any]) -> dict[str, Any]:
    """Anything or null is anything; said as `oneOf` it would be neither, null being both."""
    return {} if schema.get("oneOf") == [{}, {"type": "null"}] else schema


class DocumentJSON(PlaygroundView):
    one_cluster_reads = True

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """The document as JSON."""
        return HttpResponse(json.dumps(document(), indent=1), content_type="application/json")


class DocumentYAML(PlaygroundView):
    one_cluster_reads = True

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """The document as YAML."""
        return HttpResponse(dump_yaml([document()]), content_type="application/yaml; charset=utf-8")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The document as a page, from this site's own files."""
    server = f"{request.scheme}://{request.get_host()}"
    groups: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in SETTINGS["TAGS"]}
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                shown = _operation(path, method, item[method], server)
                groups.setdefault(item[method]["tags"][0], []).append(shown)
    titles = {tag["name"]: tag["description"] for tag in SETTINGS["TAGS"]}
    context = {
        "groups": [(name, titles.get(name, ""), operations) for name, operations in groups.items()],
        "server": server,
        "wants_token": not settings.EMBEDDED,
    }
    return render(request, "api/docs.html", context)


def _operation(path: str, method: str, item: dict[str, Any], server: str) -> dict[str, Any]:
    request, curl = _request_example(item), ["curl -sS"]
    if method != "get":
        curl.append(f"-X {method.upper()}")
    if request:
        curl.append(f"-H 'Content-Type: {request[0]}' --data-binary @-")
    if not settings.EMBEDDED:
        curl.append('-H "Authorization: Bearer $TOKEN"')
    curl.append(f"{server}{path}")
    return {
        "id": item["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": item["summary"],
        "description": item.get("description", ""),
        "parameters": item.get("parameters", []),
        "request": request,
        "curl": " ".join(curl),
        "answers": [_answer(code, answer) for code, answer in item["responses"].items()],
    }


def _request_example(item: dict[str, Any]) -> tuple[str, str] | None:
    for media, content in item.get("requestBody", {}).get("content", {}).items():
        for example in content.get("examples", {}).values():
            return media, _shown(example["value"])
    return None


def _answer(code: str, answer: dict[str, Any]) -> dict[str, Any]:
    content = answer.get("content", {})
    examples = [
        _shown(example["value"]) for part in content.values() for example in part.get("examples", {}).values()
    ]
    return {
        "code": code,
        "description": answer.get("description", ""),
        "media": ", ".join(content),
        "example": examples[0] if examples else "",
    }


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2)
