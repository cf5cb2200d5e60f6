"""Field errors in Kubernetes' words.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go,
staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go, v1.34.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler_core.errors import FieldError

_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_JSON_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_WORDS = {"FieldValueInvalid": "Invalid value", "FieldValueNotSupported": "Unsupported value"}


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


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    """`field.Invalid`."""
    return FieldError("FieldValueInvalid", field, value, detail)


def unsupported_value(field: str, value: str, supported: Sequence[str]) -> FieldError:
    """`field.NotSupported`: the value is none of the supported ones."""
    detail = "supported values: " + ", ".join(quoted(item) for item in supported) if supported else ""
    return FieldError("FieldValueNotSupported", field, value, detail)


def message_of(error: FieldError) -> str:
    """How Kubernetes prints a field error: field, what is wrong, the value, why."""
    value = error.value
    if isinstance(value, str):
        shown = quoted(value)
    elif isinstance(value, list | tuple):
        # Go tells a missing list (null) from an empty one.
        shown = json.dumps(list(value), ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES)
    else:
        shown = "null" if value is None else json.dumps(value)
    message = f"{error.field}: {_WORDS[error.type]}: {shown}"
    return f"{message}: {error.detail}" if error.detail else message


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as one (`errors.NewAggregate`): each once, in brackets if there are several."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(text: str) -> str:
    """The text as Go's `%q` prints it."""
    return '"' + "".join(_quoted_character(character) for character in text) + '"'


def _quoted_character(character: str) -> str:
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    if character.isprintable():
        return character
    number = ord(character)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
