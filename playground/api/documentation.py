"""The OpenAPI document: `openapi.yaml` completed with what every operation has."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.urls import resolve

from scheduler_core.schema.tables import table_beside

METHODS: Final = ("get", "post", "put", "patch", "delete")
MEDIA_TYPE: Final = "application/problem+json"
ALWAYS: Final = (401, 403, 429, 500, 503)
INTEGERS: Final = frozenset({"invitation_id", "number", "seq", "token_id", "user_id"})
"""Parameters of paths that are whole numbers."""


@cache
def declared() -> dict[str, Any]:
    """`openapi.yaml`: paths with their operations, shapes, reasons of refusals."""
    found: dict[str, Any] = table_beside(__package__, "openapi.yaml")
    return found


REASONS: Final[Mapping[str, tuple[int, str, str]]] = declared()["reasons"]
"""Status, title, and what is told of it."""
OF_STATUS: Final = {status: reason for reason, (status, *_) in REASONS.items()} | {409: "Conflict"}
TAGS: Final[Mapping[str, str]] = declared()["tags"]


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document; made once a process."""
    examples = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    paths: dict[str, Any] = {}
    for path, item in declared()["paths"].items():
        # The view that does its operations.
        does = resolve(re.sub(r"{\w+}", "1", path)).func.view_class.operations  # type: ignore[attr-defined]  # a view's
        paths[path] = {
            method: _operation(method, path, operation, does[method].does, examples.get(operation["id"], {}))
            for method, operation in item.items()
        }
    token = {"type": "http", "scheme": "bearer", "description": "A personal token (team mode)."}
    return {
        "openapi": "3.1.0",
        "info": declared()["info"],
        "paths": paths,
        "components": {
            "schemas": {name: _shape(shape) for name, shape in declared()["schemas"].items()},
            "securitySchemes": {"token": token},
        },
        "tags": [{"name": name, "description": words} for name, words in TAGS.items()],
        # A token or nothing, by the site's mode.
        "security": [{"token": []}, {}],
    }


def _operation(
    method: str,
    path: str,
    said: Mapping[str, Any],
    does: Any,
    examples: Mapping[str, Any],
) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "in": "path",
            "name": name,
            "required": True,
            "schema": {"type": "integer" if name in INTEGERS else "string"},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]
    for where in ("query", "header"):
        for name, schema in said.get(where, {}).items():
            required = {"required": True} if schema.get("required") else {}
            kept = {key: value for key, value in schema.items() if key not in ("description", "required")}
            words = {"description": schema["description"]}
            parameters.append({"in": where, "name": name, "schema": kept, **words, **required})
    also = {*said.get("also", ()), *ALWAYS}
    if method == "post":
        parameters.append(declared()["key"])
        also |= {400, 409, 422}
    if method != "get" and "{cluster_id}" in path:
        also.add(409)  # one that follows a live cluster only mirrors it
    made: dict[str, Any] = {
        "operationId": said["id"],
        "summary": said["summary"],
        "description": inspect.getdoc(does) or "",
        "tags": [said["tag"]],
        "parameters": parameters,
        "responses": _answers(said["answers"], also, examples),
    }
    if "request" in said:
        made["requestBody"] = _request(said["request"], examples)
    return made


def _request(said: Any, examples: Mapping[str, Any]) -> dict[str, Any]:
    content = _content(said)
    if "request" in examples:
        by_hand = isinstance(examples["request"], str) and "application/yaml" in content
        media = "application/yaml" if by_hand or "application/json" not in content else "application/json"
        _show(content[media if media in content else next(iter(content))], "Request", examples["request"])
    required = isinstance(said, str) and _shape(declared()["schemas"][said]).get("required")
    return {"content": content, **({"required": True} if required else {})}


def _answers(said: Mapping[int, Any], also: set[int], examples: Mapping[str, Any]) -> dict[str, Any]:
    first = next(iter(said.values()))
    answers: dict[str, Any] = {}
    of_all = declared()["headers"]
    for status, shape in said.items():
        headers = of_all | (declared()["workHeaders"] if status == 202 else {})
        if shape is None:
            answers[str(status)] = {"description": "No response body", "headers": headers}
            continue
        content = _content(shape)
        if "answer" in examples and shape == first:
            _show(next(iter(content.values())), "Answer", examples["answer"])
        answers[str(status)] = {"description": "", "content": content, "headers": headers}
    for status in also:
        if status == 304:
            words = "Not changed since the ETag in If-None-Match."
            answers["304"] = {"description": words, "headers": of_all}
        else:
            problem = {MEDIA_TYPE: {"schema": _ref("Problem")}}
            words = REASONS[OF_STATUS[status]][2]
            answers[str(status)] = {
                "description": words,
                "content": problem,
                "headers": of_all,
            }
    return dict(sorted(answers.items()))


def _show(media: dict[str, Any], name: str, value: Any) -> None:
    media["examples"] = {name: {"value": value}}


def _content(said: Any) -> dict[str, Any]:
    by_media = {"application/json": said} if isinstance(said, str) or "type" in said else said
    return {
        media: {"schema": _ref(shape) if isinstance(shape, str) else shape}
        for media, shape in by_media.items()
    }


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _shape(said: Mapping[str, Any]) -> dict[str, Any]:
    """A shape of `openapi.yaml` as JSON Schema."""
    made = {key: _whole(value) for key, value in said.items() if key not in ("optional", "required")}
    if "properties" in said:
        optional = said.get("optional", ())
        required = said.get("required", [name for name in said["properties"] if name not in optional])
        made = {"type": "object", **made, **({"required": list(required)} if required else {})}
    return made


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: f"#/components/schemas/{item}" if key == "$ref" else _whole(item)
            for key, item in value.items()
            if not (key == "from" and isinstance(item, str))
        }
    return [_whole(item) for item in value] if isinstance(value, list) else value
