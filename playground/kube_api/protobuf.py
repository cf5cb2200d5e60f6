"""Protobuf bodies: kubectl from 1.32 on sends a few commands so, Go clients nearly all, and none falls back to JSON.

Numbers and types of the fields come from the one table (`scheduler_core.schema`). A field newer than the table is
passed over, as an API server passes over what it does not know.

Source: generated.proto of k8s.io/api and k8s.io/apimachinery, v1.36; the envelope:
staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go
"""

from __future__ import annotations

import base64
import datetime
import json
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from playground.clusters.kinds import BUILT_IN
from playground.kube_api.status import Refusal
from scheduler_core.schema.tables import Field, table_beside, types

MAGIC: Final = b"k8s\x00"
MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAX_DEPTH: Final = 64
_TABLES: Final = table_beside(__package__, "protocol.yaml")
_REQUESTS: Final[Mapping[str, str]] = _TABLES["requests"]
_EITHER: Final[Mapping[str, Mapping[int, str]]] = _TABLES["either"]


def is_protobuf(body: bytes) -> bool:
    """Whether a body says that it is one."""
    return body.startswith(MAGIC)


def decode(body: bytes) -> dict[str, Any]:
    """An object of an envelope: magic, then Unknown {typeMeta, raw}.

    Raises
    ------
    Refusal
        BadRequest (not readable) or UnsupportedMediaType (a kind that is none of Kubernetes' own).
    """
    if not is_protobuf(body):
        raise Refusal("BadRequest", "the body does not begin as a Kubernetes protobuf does")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, text in _fields(value):
                if inner == 1 and isinstance(text, bytes):
                    api_version = _text(text)
                elif inner == 2 and isinstance(text, bytes):
                    kind = _text(text)
        elif number == 2 and isinstance(value, bytes):
            raw = value
    type_name = type_of(api_version, kind)
    if not type_name:
        raise Refusal(
            "UnsupportedMediaType",
            f"a {kind or 'nameless kind'} of {api_version or 'no version'} in protobuf cannot be read here: only kinds"
            " of Kubernetes' own have a protobuf form; send JSON, as kubectl apply -f does",
        )
    return {"apiVersion": api_version, "kind": kind} | _message(type_name, raw, kind, 0)


def type_of(api_version: str, kind: str) -> str:
    """The type of an object in protobuf; empty if there is none."""
    known = BUILT_IN.by_key(api_version, kind)
    return known.type if known is not None else _REQUESTS.get(kind, "")


@cache
def _numbers(type_name: str) -> dict[int, Any]:
    """Number -> field name and field; or another such table, of a struct that JSON writes into the one around it."""
    found: dict[int, Any] = {}
    for name, field in types()[type_name].items():
        level = found
        for number in field.number[:-1]:
            level = level.setdefault(number, {})
        if field.number:
            level[field.number[-1]] = (name, field)
    return found


def _message(type_name: str, data: bytes, path: str, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise Refusal("BadRequest", f"{path}: nested deeper than {MAX_DEPTH} levels")
    if type_name not in types():
        return {}
    result: dict[str, Any] = {}
    _read(_numbers(type_name), data, path, depth, result)
    return result


def _read(known: Mapping[int, Any], data: bytes, path: str, depth: int, result: dict[str, Any]) -> None:
    for number, value in _fields(data):
        entry = known.get(number)
        if entry is None:
            continue
        if isinstance(entry, dict):
            _read(entry, _bytes(value, path), path, depth, result)
            continue
        name, field = entry
        here = f"{path}.{name}"
        if field.type.startswith("[]"):
            result.setdefault(name, []).append(_value(field.item, value, here, depth))
        elif field.type.startswith("{}"):
            pair = dict(_fields(_bytes(value, here)))
            key = _text(_bytes(pair.get(1, b""), here))
            result.setdefault(name, {})[key] = _value(field.item, pair.get(2, b""), here, depth)
        elif (one := _value(field.type, value, here, depth)) is not None and _is_meant(field, one):
            result[name] = one


def _is_meant(field: Field, value: Any) -> bool:
    """Whether the client set this, or Go wrote a field that is not set."""
    return field.pointer or bool(value) or (field.required and not isinstance(value, str | dict))


def _value(kind: str, value: int | bytes, path: str, depth: int) -> Any:
    match kind:
        case "string":
            return _text(_bytes(value, path))
        case "bytes":
            return base64.b64encode(_bytes(value, path)).decode()
        case "int32" | "int64":
            return _signed(_number(value, path))
        case "bool":
            return bool(_number(value, path))
        case "double":
            packed = _bytes(value, path)
            return struct.unpack("<d", packed)[0] if len(packed) == 8 else None
        case "quantity":
            return _text(_bytes(dict(_fields(_bytes(value, path))).get(1, b""), path))
        case "time" | "microtime":
            parts = dict(_fields(_bytes(value, path)))
            if 1 not in parts:
                return None
            nanos = _signed(_number(parts.get(2, 0), path)) if kind == "microtime" else None
            return _time(_signed(_number(parts[1], path)), nanos)
        case "intOrString":
            parts = dict(_fields(_bytes(value, path)))
            if parts.get(1):
                return _text(_bytes(parts.get(3, b""), path))
            return _signed(_number(parts.get(2, 0), path))
        case "raw" | "json" | "fieldsV1":
            return _json(dict(_fields(_bytes(value, path))).get(1, b""), path)
    if kind in _EITHER:
        return _either(_EITHER[kind], _bytes(value, path), path, depth)
    if kind.startswith("[]"):  # a named list has a message of its own
        return [_value(kind[2:], item, path, depth + 1) for _, item in _fields(_bytes(value, path))]
    return _message(kind, _bytes(value, path), path, depth + 1)


def _either(kinds: Mapping[int, str], data: bytes, path: str, depth: int) -> Any:
    flag: Any = None
    items: list[Any] = []
    for number, value in _fields(data):
        kind = kinds.get(number, "")
        if kind.startswith("[]"):
            items.append(_value(kind[2:], value, path, depth + 1))
        elif kind == "bool":
            flag = _value(kind, value, path, depth)
        elif kind:
            return _value(kind, value, path, depth + 1)
    return items or flag


def _json(value: int | bytes, path: str) -> Any:
    text = _text(_bytes(value, path))
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        raise Refusal("BadRequest", f"{path}: the JSON in the protobuf body cannot be read") from None


def _time(seconds: int, nanos: int | None = None) -> str | None:
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, OSError, ValueError):
        return None
    fraction = "" if nanos is None else f".{max(0, nanos) // 1000 % 1_000_000:06d}"
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f"{fraction}Z"


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field: an int of a varint, the bytes of everything else."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            size, position = _varint(data, position)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Refusal("BadRequest", "the protobuf body cannot be read")
        if position + size > len(data):
            raise Refusal("BadRequest", "the protobuf body ends in the middle of a field")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        result |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return result & (2**64 - 1), position
    raise Refusal("BadRequest", "the protobuf body ends in the middle of a number")


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _number(value: int | bytes, path: str) -> int:
    if not isinstance(value, int):
        raise Refusal("BadRequest", f"{path}: a number was expected in the protobuf body")
    return value


def _bytes(value: int | bytes, path: str) -> bytes:
    if not isinstance(value, bytes):
        raise Refusal("BadRequest", f"{path}: text was expected in the protobuf body")
    return value


def _text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise Refusal("BadRequest", "the protobuf body holds text that is not UTF-8") from None
    if "\0" in text:
        raise Refusal("BadRequest", "the protobuf body holds text with the character U+0000")
    return text
