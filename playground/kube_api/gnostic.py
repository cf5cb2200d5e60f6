"""OpenAPI v2 as the protobuf that kubectl reads.

Source: gnostic's openapiv2/OpenAPIv2.proto
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def document(
    version: str,
    definitions: Mapping[str, Mapping[str, Any]],
    patches: Mapping[str, tuple[str, Mapping[str, str]]],
    parameters: Sequence[str],
) -> bytes:
    """A document of schemas and of what PATCH knows at some paths.

    Parameters
    ----------
    definitions
        JSON schemas by name; `$ref` without a prefix.
    patches
        Path -> name and value of the extension that says which kind it is.
    parameters
        What each PATCH takes in its query.
    """
    known = b"".join(
        _part(8, _part(1, _part(2, _part(3, _text(2, "query") + _text(4, name) + _text(6, "string")))))
        for name in parameters
    )
    paths = b"".join(
        _part(2, _text(1, path) + _part(2, _part(8, known + _part(13, _any(*said)))))
        for path, said in patches.items()
    )
    schemas = b"".join(
        _part(1, _text(1, name) + _part(2, _schema(found))) for name, found in definitions.items()
    )
    info = _text(1, "Kubernetes") + _text(2, version)
    return _text(1, "2.0") + _part(2, info) + _part(8, paths) + _part(9, schemas)


def _schema(found: Mapping[str, Any]) -> bytes:
    """`required` stays out: what is missing is for the server to judge."""
    return b"".join(_parts(found))


def _parts(found: Mapping[str, Any]) -> Iterator[bytes]:
    if isinstance(found.get("$ref"), str):
        yield _text(1, f"#/definitions/{found['$ref']}")
    for number, key in ((2, "format"), (4, "description")):
        if isinstance(found.get(key), str):
            yield _text(number, found[key])
    if isinstance(found.get("additionalProperties"), Mapping):
        yield _part(21, _part(1, _schema(found["additionalProperties"])))
    if isinstance(found.get("type"), str):
        yield _part(22, _text(1, found["type"]))
    if isinstance(found.get("items"), Mapping):
        yield _part(23, _part(1, _schema(found["items"])))
    if isinstance(found.get("properties"), Mapping):
        properties = (
            _part(1, _text(1, name) + _part(2, _schema(value if isinstance(value, Mapping) else {})))
            for name, value in found["properties"].items()
        )
        yield _part(25, b"".join(properties))
    for key, value in found.items():
        if key.startswith("x-"):
            yield _part(31, _any(key, value))


def _any(name: str, value: Any) -> bytes:
    # JSON is YAML.
    return _text(1, name) + _part(2, _text(2, json.dumps(value)))


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, body: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
