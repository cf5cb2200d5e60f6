"""The OpenAPI document, and a page made of it."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from rest_framework.request import Request

from playground.api.documentation import METHODS, TAGS, document
from playground.api.views.base import PREFIX, Call
from scheduler_core.objects.reading import dump_yaml


class DocumentJSON(Call):
    path = f"{PREFIX}openapi"

    def get(self, request: Request) -> HttpResponse:
        """The document as JSON."""
        return HttpResponse(json.dumps(document(), indent=1), content_type="application/json")


class DocumentYAML(Call):
    path = f"{PREFIX}openapi"

    def get(self, request: Request) -> HttpResponse:
        """The document as YAML."""
        return HttpResponse(dump_yaml([document()]), content_type="application/yaml; charset=utf-8")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The document as a page, from this site's own files."""
    server = f"{request.scheme}://{request.get_host()}"
    groups: dict[str, list[dict[str, Any]]] = {tag: [] for tag in TAGS}
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                shown = _operation(path, method, item[method], server)
                groups.setdefault(item[method]["tags"][0], []).append(shown)
    context = {
        "groups": [(name, TAGS[name], operations) for name, operations in groups.items()],
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
