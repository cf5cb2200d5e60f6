"""The OpenAPI document: `openapi.yaml` completed with what every operation has."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from django.urls import resolve

from playground.api.errors import MEDIA_TYPE, REASONS

METHODS: Final = ("get", "post", "put", "patch", "delete")
ALWAYS: Final = (401, 403, 429, 500, 503)
OF_STATUS: Final = {
    400: "Invalid",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "IdempotencyKeyReused",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
TAGS: Final = {
    "clusters": "Clusters, and many objects at once.",
    "objects": "Nodes, pods, priority classes and disruption budgets, one by one.",
    "scheduling": "Running the scheduler, and what it did.",
    "settings": "A cluster's configuration and clock.",
    "scenarios": "Runs to share and to prove anew, and comparisons.",
    "tokens": "Personal tokens for tools (team mode).",
    "teams": "The people who own clusters together (team mode).",
    "about": "What this site is.",
}
_INFO: Final = {
    "title": "Kubernetes scheduling playground",
    "version": "v1",
    "description": "Build clusters, submit pods, run the scheduler and read why each pod landed, waits or evicted"
    " others. Refusals are problem details (RFC 9457). Bodies may be packed (`Content-Encoding: gzip`); manifests may"
    " have eight times as much unpacked as one request carries. The Kubernetes API of a cluster is at /k8s/{id}.",
}
_TEXT: Final = {"type": "string"}
_OF_ALL: Final = {"X-Request-Id": {"description": "The request's name, as logs have it.", "schema": _TEXT}}
_OF_WORK: Final = {
    "Location": {"description": "Where it stands; DELETE there cancels it.", "schema": _TEXT},
    "Retry-After": {"description": "Seconds after which to ask there.", "schema": _TEXT},
}
_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "description": "The same key and request again within a day is answered as before, and nothing is done twice.",
}
INTEGERS: Final = frozenset({"invitation_id", "number", "seq", "token_id", "user_id"})
"""Parameters of paths that are whole numbers."""


@cache
def declared() -> dict[str, Any]:
    """`openapi.yaml`: paths with their operations, and shapes."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, Any] = yaml.load(_beside("openapi.yaml"), loader)  # a safe one
    return found


def _beside(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document; made once a process."""
    examples = json.loads(_beside("examples.json"))
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
        "info": _INFO,
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
        {"in": "path", "name": name, "required": True, "schema": {"type": _type(name in INTEGERS)}}
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
        parameters.append(_KEY)
        also |= {400, 409, 422}
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


def _type(is_integer: bool) -> str:
    return "integer" if is_integer else "string"


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
    for status, shape in said.items():
        headers = _OF_ALL | (_OF_WORK if status == 202 else {})
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
            answers["304"] = {"description": words, "headers": _OF_ALL}
        else:
            problem = {MEDIA_TYPE: {"schema": _ref("Problem")}}
            words = REASONS[OF_STATUS[status]][2]
            answers[str(status)] = {"description": words, "content": problem, "headers": _OF_ALL}
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
