"""JSON as Go's encoding/json prints and reads it, for the types of `core_v1.yaml`.

Source: encoding/json (omitempty, case-insensitive keys, null leaves a value alone), Go 1.24
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from scheduler_core.objects.defaults import in_milli_units
from scheduler_core.objects.fields import format_seconds, parse_time_ns
from scheduler_core.objects.quantity import QuantityError, quantity_from
from scheduler_core.schema.tables import table_beside

Document = Mapping[str, Any]

_SCALAR_ZEROS: dict[str, Any] = {
    "s": "",
    "b": False,
    "i32": 0,
    "i64": 0,
    "q": "0",
    "t": None,
    "is": 0,
    "any": None,
}


class DecodeProblem(ValueError):
    """A text that is not JSON, or not of the expected type. The words are ours, not those of Go's library."""


@cache
def types() -> Mapping[str, str]:
    """Each struct's fields, in the notation that `core_v1.yaml` explains."""
    found: dict[str, str] = table_beside(__package__, "core_v1.yaml")
    return found


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: str
    keep: bool
    pointer: bool

    @property
    def always_printed(self) -> bool:
        """`omitempty` does nothing for structs, which Go never calls empty."""
        return not self.pointer and (self.type in types() or self.type == "q")


@cache
def _fields(struct: str) -> dict[str, _Field]:
    fields = {}
    for text in types()[struct].split():
        name, _, kind = text.partition(":")
        plain = name.rstrip("!*")
        fields[plain] = _Field(plain, kind, "!" in name, "*" in name)
    return fields


@cache
def _folded_names(struct: str) -> dict[str, str]:
    return {_fold(name): name for name in _fields(struct)}


def _fold(name: str) -> str:
    """Letters are compared as Go's simple case folding does."""
    return name.replace("\u017f", "s").lower()


# ---- printing


def encode(struct: str, value: Any) -> Any:
    """What Go prints for a value of this struct.

    Parameters
    ----------
    struct : str
        A key of `types`.
    value : mapping
        A manifest; fields the struct does not have are dropped. Values of a wrong type stay as they are:
        the surface that accepted the manifest answers for them.
    """
    if not isinstance(value, Mapping):
        return value
    result: dict[str, Any] = {}
    for name, field in _fields(struct).items():
        raw = value.get(name)
        if raw is None:
            if field.always_printed:
                result[name] = encode(field.type, {}) if field.type in types() else _SCALAR_ZEROS[field.type]
            elif field.keep:
                result[name] = None if field.pointer else _SCALAR_ZEROS.get(field.type)
            continue
        printed = _printed(field.type, raw)
        if field.keep or field.pointer or field.always_printed or not _is_empty(printed):
            result[name] = printed
    return result


def _is_empty(printed: Any) -> bool:
    return printed is None or printed is False or printed == 0 or printed in ("", [], {})


def _printed(kind: str, raw: Any) -> Any:
    if kind in types():
        return encode(kind, raw)
    if kind[0] == "[" and isinstance(raw, list | tuple):
        return [_item(kind[1:-1], item) for item in raw]
    if kind[0] == "{" and isinstance(raw, Mapping):
        return {str(key): _item(kind[1:-1], item) for key, item in raw.items()}
    if kind == "rl" and isinstance(raw, Mapping):
        return {str(name): _quantity_text(amount) for name, amount in in_milli_units(raw).items()}
    if kind == "q":
        return _quantity_text(raw)
    if kind == "t" and isinstance(raw, str):
        return _time_text(raw)
    if kind in ("i32", "i64") and isinstance(raw, float) and raw.is_integer():
        return int(raw)
    return raw


def _item(kind: str, raw: Any) -> Any:
    if raw is None:
        if kind[0] == "*":
            return None
        return encode(kind, {}) if kind in types() else _SCALAR_ZEROS[kind]
    return _printed(kind.removeprefix("*"), raw)


def _quantity_text(raw: Any) -> Any:
    try:
        return str(quantity_from(raw))
    except QuantityError:
        return raw


def _time_text(text: str) -> str:
    """UTC, whole seconds."""
    try:
        at_ns = parse_time_ns(text)
    except ValueError:
        return text
    return format_seconds(at_ns)


# ---- reading


class _Object(list[tuple[str, Any]]):
    """A JSON object with its keys in written order, duplicates included."""


def read_value(text: str) -> Any:
    """The first JSON value of a text, as Go's `json.Decoder` reads it: what follows is ignored.

    Raises
    ------
    DecodeProblem
    """
    start = len(text) - len(text.lstrip(" \t\r\n"))
    if start == len(text):
        raise DecodeProblem("EOF")
    try:
        value, _ = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise DecodeProblem("exceeded max depth") from None
    except ValueError as error:
        raise DecodeProblem(str(error)) from None
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"invalid character {name[0]!r} looking for beginning of value")


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_constant=_refuse_constant)


def decode(kind: str, value: Any, path: str = "") -> Any:
    """A value read by `read_value`, as the Go type would hold it.

    Keys match in any case, unknown ones are ignored, null leaves a field unset, a key that comes twice
    is set twice. A struct becomes a dict of the fields that were set.

    Parameters
    ----------
    kind : str
        A type in the notation of `core_v1.yaml`.

    Raises
    ------
    DecodeProblem
        A value of a wrong type.
    """
    return _decoded(kind, value, path, None)


def _decoded(kind: str, value: Any, path: str, earlier: Any) -> Any:
    if value is None:
        return earlier
    if kind[0] == "*":
        return _decoded(kind[1:], value, path, earlier)
    if kind in types():
        return _decoded_struct(kind, value, path, earlier)
    if kind[0] == "[":
        if not isinstance(value, list) or isinstance(value, _Object):
            raise _wrong(path, value, "a list")
        return [_element(kind[1:-1], item, f"{path}[{index}]") for index, item in enumerate(value)]
    if kind[0] == "{" or kind == "rl":
        if not isinstance(value, _Object):
            raise _wrong(path, value, "an object")
        inner = "q" if kind == "rl" else kind[1:-1]
        merged: dict[str, Any] = dict(earlier or {})
        for key, item in value:
            merged[key] = _element(inner, item, f"{path}[{key}]")
        return merged
    return _decoded_scalar(kind, value, path)


def _decoded_struct(struct: str, value: Any, path: str, earlier: Any) -> dict[str, Any]:
    if not isinstance(value, _Object):
        raise _wrong(path, value, "an object")
    fields, folded = _fields(struct), _folded_names(struct)
    result: dict[str, Any] = dict(earlier or {})
    for key, item in value:
        name = key if key in fields else folded.get(_fold(key))
        if name is None:
            continue
        if item is None:
            # Null clears a pointer, a list or a map; any other field keeps what it has.
            if fields[name].pointer or fields[name].type[0] in "[{" or fields[name].type == "rl":
                result.pop(name, None)
            continue
        where = f"{path}.{name}" if path else name
        result[name] = _decoded(fields[name].type, item, where, result.get(name))
    return result


def _element(kind: str, item: Any, path: str) -> Any:
    if item is None and kind[0] != "*":
        return {} if kind in types() else _SCALAR_ZEROS.get(kind)
    return _decoded(kind, item, path, None)


def _decoded_scalar(kind: str, value: Any, path: str) -> Any:
    if kind == "any":
        return _plain(value)
    if kind == "s":
        if not isinstance(value, str):
            raise _wrong(path, value, "a string")
        return value
    if kind == "b":
        if not isinstance(value, bool):
            raise _wrong(path, value, "true or false")
        return value
    if kind in ("i32", "i64"):
        return _decoded_integer(kind, value, path)
    if kind == "is":
        return value if isinstance(value, str) else _decoded_integer("i32", value, path)
    if kind == "q":
        if isinstance(value, bool | list):
            raise _wrong(path, value, "a quantity")
        try:
            return str(quantity_from(value))
        except QuantityError as error:
            raise DecodeProblem(f"{path}: {error}") from None
    if not isinstance(value, str):
        raise _wrong(path, value, "a time")
    try:
        parse_time_ns(value)
    except ValueError:
        raise _wrong(path, value, "an RFC 3339 time") from None
    return value


def _decoded_integer(kind: str, value: Any, path: str) -> int:
    bits = int(kind[1:])
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    ):
        raise _wrong(path, value, f"an integer of {bits} bits")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, _Object):
        return {key: _plain(item) for key, item in value}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _wrong(path: str, value: Any, wanted: str) -> DecodeProblem:
    return DecodeProblem(f"{path or 'the answer'}: {json.dumps(_plain(value))[:80]} is not {wanted}")
