"""Whether an answer is what the OpenAPI document says of it, to the last field."""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from playground.api.serializers.answers import OPEN
from playground.api.views.openapi import METHODS, document


@cache
def _closed() -> dict[str, Any]:
    """The document's components, without room for undocumented fields."""
    components = copy.deepcopy(document()["components"])
    for name, shape in components["schemas"].items():
        # Objects of Kubernetes have the fields Kubernetes gives them.
        of_kubernetes = name in OPEN or name in KUBERNETES
        if shape.get("type") == "object" and not of_kubernetes:
            shape.setdefault("additionalProperties", False)
    return components  # type: ignore[no-any-return]


@cache
def _operations() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    found = []
    for path, item in document()["paths"].items():
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)).rstrip("/") + "/?")
        found += [(method, pattern, item[method]) for method in METHODS if method in item]
    # /pods/{namespace}/{pod}/story before /{kind}/{namespace}/{name}: the one with more words of its own.
    return sorted(found, key=lambda one: -len(re.sub(r"\[\^/\]\+", "", one[1].pattern)))


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """The operation that answers a request; None where the document has none."""
    bare = path.partition("?")[0]
    for name, pattern, operation in _operations():
        if name == method.lower() and pattern.fullmatch(bare):
            return operation
    return None


@cache
def _validator(operation_id: str, status: str, media: str) -> Draft202012Validator | None:
    for _, _, operation in _operations():
        if operation["operationId"] == operation_id:
            answer = operation["responses"].get(status)
            assert answer is not None, f"{operation_id} answers {status}, which is not documented"
            if "$ref" in answer:
                answer = _closed()["responses"][answer["$ref"].rpartition("/")[2]]
            content = answer.get("content", {})
            assert media in content, f"{operation_id} {status}: {media} is none of {list(content)}"
            schema = {**content[media]["schema"], "components": _closed()}
            return Draft202012Validator(schema)
    return None


def check(method: str, path: str, response: Any) -> None:
    """Hold an answer against the document; fails with the place that is not as told."""
    assert response["X-Request-Id"]
    if response.status_code == 202:
        assert response["Location"].startswith("/api/v1/") and response["Retry-After"].isdecimal()
    operation = operation_of(method, path)
    if operation is None or response.get("Content-Type", "") not in (
        "application/json",
        "application/problem+json",
    ):
        return
    if not response.content:
        return
    validator = _validator(operation["operationId"], str(response.status_code), response["Content-Type"])
    assert validator is not None
    for error in validator.iter_errors(response.json()):
        place = "/".join(map(str, error.absolute_path))
        raise AssertionError(f"{method} {path} {response.status_code}: {place}: {error.message[:600]}")


def _kubernetes() -> frozenset[str]:
    from playground.api.serializers import objects

    def below(shape: type[Any]) -> list[str]:
        return [shape.__name__, *(name for sub in shape.__subclasses__() for name in below(sub))]

    return frozenset(below(objects.Part))


KUBERNETES = _kubernetes()
