"""Whether an answer is what the OpenAPI document says of it, to the last field."""

import copy
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from playground.api import documentation
from playground.api.documentation import METHODS, document

EXAMPLES = Path(documentation.__file__).with_name("examples.json")
OPEN = frozenset({"Manifest", "Payload"})
"""The shapes that are open: what Kubernetes' reference defines is not defined here again."""


@cache
def of_kubernetes() -> frozenset[str]:
    """The shapes of objects as Kubernetes writes them, which may have fields that are not listed."""
    shapes = document()["components"]["schemas"]
    found: set[str] = set()
    wanted = {name for name in shapes if name.endswith("Object")} - {"AppliedObject", "IgnoredObject"}
    while wanted:
        found |= wanted
        text = json.dumps([shapes[name] for name in wanted])
        wanted = set(re.findall(r"#/components/schemas/(\w+)", text)) - found
    return frozenset(found | OPEN | {"MergePatch"})


@cache
def _closed() -> dict[str, Any]:
    """The document's components, without room for undocumented fields."""
    components = copy.deepcopy(document()["components"])
    for name, shape in components["schemas"].items():
        if shape.get("type") == "object" and name not in of_kubernetes():
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
    if os.environ.get("RECORD_EXAMPLES") and response.status_code < 300:
        record(operation["operationId"], response.json())


def record(operation_id: str, answer: Any) -> None:
    """Keep an answer as the example of an operation that has none."""
    examples = json.loads(EXAMPLES.read_text())
    if "answer" not in examples.get(operation_id, {}):
        examples.setdefault(operation_id, {})["answer"] = answer
        text = json.dumps(dict(sorted(examples.items())), indent=1, ensure_ascii=False)
        EXAMPLES.write_text(f"{text}\n")
