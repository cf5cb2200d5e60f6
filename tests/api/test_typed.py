"""Nothing of the OpenAPI document is `{"type": "object"}` and no more, and its examples are what it says."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from playground.api.documentation import METHODS, document

ANY_VALUE = {"Cause.value", "ConfigChange.value", "Problem.value"}
"""What was written where something else should be: any JSON."""
OPEN_PARTS = {
    "Manifest.*",
    "Manifest.metadata.*",
    "Payload.*",
    *(f"MergePatch.{part}.*" for part in ("metadata", "spec", "status")),
}
"""Objects and protocols of Kubernetes, and RFC 7386: another reference says what they hold."""


def untyped(schema: dict[str, Any], place: str) -> Iterator[str]:
    """Places of a schema at which anything may stand."""
    if "$ref" in schema or "enum" in schema:
        return
    parts = [schema[name] for name in ("allOf", "anyOf", "oneOf") if name in schema]
    if "type" not in schema and not parts:
        yield place
    if schema.get("type") == "object" and not schema.get("properties"):
        named = schema.get("additionalProperties")
        if not isinstance(named, dict) or not named:
            yield f"{place}.*"
            return
    for name, of in schema.get("properties", {}).items():
        yield from untyped(of, f"{place}.{name}")
    named = schema.get("additionalProperties")
    if isinstance(named, dict):
        yield from untyped(named, f"{place}.*")
    if "array" in (schema.get("type") or ()):
        yield from untyped(schema.get("items", {}), f"{place}[]")
    for part in parts:
        for one in part:
            yield from untyped(one, place)


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    for place, operation in operations():
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{place} request {media}", content
        for code, answer in operation["responses"].items():
            for media, content in answer.get("content", {}).items():
                yield f"{place} {code} {media}", content


def test_nothing_of_the_document_is_untyped() -> None:
    found = [place for where, content in contents() for place in untyped(content["schema"], where)]
    for name, schema in document()["components"]["schemas"].items():
        found += untyped(schema, name)
    assert set(found) == ANY_VALUE | OPEN_PARTS


@pytest.mark.parametrize(
    "schema", [{"type": "object"}, {}, {"type": "object", "additionalProperties": {}}, {"type": "array"},
               {"type": "object", "properties": {"a": {}}}, {"oneOf": [{"type": "string"}, {"type": "object"}]}]
)  # fmt: skip
def test_what_is_untyped_is_found(schema: dict[str, Any]) -> None:
    assert list(untyped(schema, "here"))


def test_each_shape_is_there_and_used() -> None:
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document())))
    assert named == set(document()["components"]["schemas"])


def test_examples_are_what_the_document_says() -> None:
    components = document()["components"]
    n_examples = 0
    for place, content in contents():
        for example in content.get("examples", {}).values():
            if isinstance(example["value"], str) and "json" not in place:
                continue
            schema = {**content["schema"], "components": components}
            errors = list(Draft202012Validator(schema).iter_errors(example["value"]))
            assert not errors, (place, list(errors[0].absolute_path), errors[0].message[:500])
            n_examples += 1
    assert n_examples > 100
