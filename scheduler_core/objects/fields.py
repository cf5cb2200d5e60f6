"""Read typed values out of a manifest, naming the field when one is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from scheduler_core.errors import InvalidObject


class SelectorError(ValueError):
    """A selector that cannot be, in Kubernetes' words.

    Attributes
    ----------
    path : str
        The broken field relative to the selector, e.g. `matchExpressions[0].values`; empty: all of it.
    """

    def __init__(self, message: str, path: str = "") -> None:
        self.path = path
        super().__init__(message)


Document = Mapping[str, Any]

_EMPTY: Mapping[str, Any] = {}


def child(path: str, key: str) -> str:
    """Path of field `key` below `path`; label-like keys are quoted as Kubernetes does."""
    if "/" in key or "." in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def mapping(document: Document, key: str, path: str) -> Document:
    """The object under `key`; absent or null reads as empty."""
    value = document.get(key)
    if value is None:
        return _EMPTY
    # Asking a plain dict whether it is a Mapping takes longer than reading it.
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidObject(child(path, key), value, "must be an object")
    return value


def known_fields(document: Any, fields: Sequence[str], path: str) -> None:
    """Check that a document is a mapping with none but some fields.

    Raises
    ------
    InvalidObject
        Names the first field that is another one, or the document where it is no mapping.
    """
    if not isinstance(document, Mapping):
        raise InvalidObject(path, document, f"must be a mapping with {', '.join(fields)}")
    for key in document:
        if key not in fields:
            raise InvalidObject(child(path, str(key)), None, f"is not known: {', '.join(fields)} are")


def sequence(document: Document, key: str, path: str) -> Sequence[Any]:
    """The list under `key`; absent or null reads as empty."""
    value = document.get(key)
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InvalidObject(child(path, key), value, "must be a list")
    return value


def mappings(document: Document, key: str, path: str) -> list[tuple[str, Document]]:
    """The list of objects under `key`, each with its own path."""
    items = sequence(document, key, path)
    if not items:
        return []
    base = child(path, key)
    result = []
    for index, item in enumerate(items):
        item_path = f"{base}[{index}]"
        if type(item) is not dict and not isinstance(item, Mapping):
            raise InvalidObject(item_path, item, "must be an object")
        result.append((item_path, item))
    return result


def string(document: Document, key: str, path: str, default: str = "") -> str:
    value = document.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise InvalidObject(child(path, key), value, "must be a string")
    return value


def optional_string(document: Document, key: str, path: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidObject(child(path, key), value, "must be a string")
    return value


def boolean(document: Document, key: str, path: str, default: bool = False) -> bool:
    value = document.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidObject(child(path, key), value, "must be true or false")
    return value


def integer(document: Document, key: str, path: str, default: int = 0) -> int:
    value = document.get(key)
    if type(value) is not int:  # a call takes longer than looking
        value = optional_integer(document, key, path)
    return default if value is None else value


def optional_integer(document: Document, key: str, path: str) -> int | None:
    value = document.get(key)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidObject(child(path, key), value, "must be an integer")
    return value


def strings(document: Document, key: str, path: str) -> tuple[str, ...]:
    items = sequence(document, key, path)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise InvalidObject(f"{child(path, key)}[{index}]", item, "must be a string")
    return tuple(items)


def string_map(document: Document, key: str, path: str) -> dict[str, str]:
    """A map of strings to strings (labels, selectors); sorted by key, so equal maps are equal in bytes."""
    items = mapping(document, key, path)
    if not items:
        return {}
    for name, value in items.items():
        if not isinstance(name, str):
            raise InvalidObject(child(path, key), name, "keys must be strings")
        if not isinstance(value, str):
            if value is None:
                continue
            raise InvalidObject(f"{child(path, key)}[{name}]", value, "must be a string (quote it in YAML)")
    return {name: items[name] or "" for name in sorted(items)}


def timestamp_ns(document: Document, key: str, path: str) -> int | None:
    """An RFC 3339 time in nanoseconds since the Unix epoch."""
    text = optional_string(document, key, path)
    if text is None:
        return None
    try:
        return parse_time_ns(text)
    except ValueError:
        raise InvalidObject(child(path, key), text, "is not an RFC 3339 time") from None


@lru_cache(maxsize=65536)
def parse_time_ns(text: str) -> int:
    """RFC 3339 text in nanoseconds since the Unix epoch; digits below nanoseconds are dropped."""
    head, dot, rest = text.partition(".")
    fraction_ns = 0
    if dot:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if not digits:
            raise ValueError(f"{text!r} is not an RFC 3339 time")
        fraction_ns = int(digits[:9].ljust(9, "0"))
        head += rest[len(digits) :]
    moment = datetime.fromisoformat(head)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    seconds = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    return seconds * 1_000_000_000 + fraction_ns


@lru_cache(maxsize=1024)
def format_time_ns(at_ns: int) -> str:
    """RFC 3339 in UTC; a fraction only where there is one."""
    seconds, fraction_ns = divmod(at_ns, 1_000_000_000)
    text = datetime.fromtimestamp(seconds, UTC).isoformat()[:19]
    return f"{text}.{fraction_ns:09d}".rstrip("0") + "Z" if fraction_ns else f"{text}Z"


def format_seconds(at_ns: int) -> str:
    """RFC 3339 in UTC, whole seconds, the rest cut off: as every time of an API object but an Event's is written.

    Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go MarshalJSON, v1.34
    """
    return format_time_ns(at_ns - at_ns % 1_000_000_000)


@lru_cache(maxsize=1024)
def format_micro_time(at_ns: int) -> str:
    """RFC 3339 in UTC with exactly six digits of a second: clients refuse an eventTime with any other number.

    Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go RFC3339Micro, v1.34
    """
    return f"{format_seconds(at_ns)[:-1]}.{at_ns % 1_000_000_000 // 1000:06d}Z"
