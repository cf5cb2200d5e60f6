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
    groups: dict[str, list[dict[str, Any]]] = {tag: [] for tag in TAGS}
    for path, item in document()["paths"].items():
        for method, operation in ((method, item[method]) for method in METHODS if method in item):
            answers = [
                (code, answer["description"], ", ".join(answer.get("content", ())), _example(answer))
                for code, answer in operation["responses"].items()
            ]
            request_example = _example(operation.get("requestBody", {}))
            shown = {"method": method.upper(), "path": path, "request": request_example, "answers": answers}
            groups[operation["tags"][0]].append(operation | shown)
    context = {
        "groups": [(name, TAGS[name], operations) for name, operations in groups.items()],
        "server": f"{request.scheme}://{request.get_host()}",
        "wants_token": not settings.EMBEDDED,
    }
    return render(request, "api/docs.html", context)


def _example(said: dict[str, Any]) -> tuple[str, str] | None:
    """Media type and text of the first example."""
    for media, content in said.get("content", {}).items():
        for example in content.get("examples", {}).values():
            value = example["value"]
            return media, value if isinstance(value, str) else json.dumps(value, indent=2)
    return None
