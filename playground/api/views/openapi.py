"""The OpenAPI document, and a page made of it."""

from __future__ import annotations

import json
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

from playground.api.serializers import requests
from playground.api.views.base import PlaygroundView
from playground.engine.admission import dump_yaml

METHODS: Final = ("get", "post", "put", "patch", "delete")
SETTINGS: Final[dict[str, Any]] = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "Kubernetes scheduling playground",
    "VERSION": "v1",
    "DESCRIPTION": "Build clusters, submit pods, run the scheduler and read why each pod landed, waits or evicted"
    " others. Refusals are problem details (RFC 9457). The Kubernetes API of a cluster is at /k8s/{id}.",
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
    for name, schema in result["components"].get("schemas", {}).items():
        if issubclass(getattr(requests, name, type), requests.Strict):
            schema["additionalProperties"] = False
    for path in result["paths"].values():
        for operation in path.values():
            operation.pop("security", None)
    return result


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
