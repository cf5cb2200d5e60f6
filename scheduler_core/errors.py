"""Errors a caller is meant to catch. Rejections of pods are values, never exceptions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final


class CannotAnswer(LookupError):
    """A question has no answer here; the message says why."""


class ClusterError(Exception):
    """Base of what is refused on purpose, in one family that every surface maps to its own shape.

    Attributes
    ----------
    message : str
        One sentence for a person.
    reason, status
        Kubernetes' word for it, and the HTTP status that goes with it.
    """

    status = 400
    reason = "BadRequest"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def as_dict(self) -> dict[str, Any]:
        """Every known fact as JSON data; keys without a value are left out."""
        return {"reason": self.reason, "message": self.message}


_STATUS: Final = {"Forbidden": 403, "RequestEntityTooLarge": 413}


class InvalidManifest(ClusterError):
    """Text or an object that is not what it should be, with every place that is known.

    Attributes
    ----------
    reason : str
        ``Invalid``; ``Forbidden`` for a whole sentence of admission, ``BadRequest`` for fields that a kind does not
        have, ``RequestEntityTooLarge`` for a text of which nothing was read.
    document : int or None
        Position in the text, from 0.
    line, column : int or None
        From 1, in the whole text.
    path : str
        Field path from the root of the object (of its list, if it came in one); empty at its top or if unknown.
    value : object
        The value at fault, or None.
    kind, name : str
        The object at fault, where already known.
    type : str
        Kubernetes' type of the field's error (`FieldValueForbidden`); empty for what is no error of validation.
    causes : tuple of InvalidManifest
        Further problems, of the same object and of others of the request.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "Invalid",
        document: int | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str = "",
        value: object = None,
        kind: str = "",
        name: str = "",
        type_: str = "",
        causes: tuple[InvalidManifest, ...] = (),
    ) -> None:
        super().__init__(_sayable(message))
        self.reason = reason
        self.status = _STATUS.get(reason, 400)
        self.document = document
        self.line = line
        self.column = column
        self.path: str = _sayable(path)
        self.value = _sayable(value)
        self.kind = kind
        self.name = name
        self.type = type_
        self.causes = causes

    @classmethod
    def of(cls, problems: list[InvalidManifest]) -> InvalidManifest:
        """The first of some problems, the next ones (19 at most) among its causes."""
        first, *others = problems
        rest = [*first.causes, *(each for other in others for each in (other, *other.causes))]
        first.causes = tuple(rest[:19])
        return first

    @property
    def words(self) -> str:
        """What is wrong, without the place."""
        return self.message.removeprefix(f"{self.path}: ")

    @property
    def in_text(self) -> str:
        """What is wrong, with its line."""
        return self.message if self.line is None else f"line {self.line}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        facts = {
            "document": self.document,
            "line": self.line,
            "column": self.column,
            "field": self.path or None,
            "value": self.value if isinstance(self.value, (str, int, float, bool)) else None,
            "kind": self.kind or None,
            "name": self.name or None,
        }
        body = super().as_dict() | {key: value for key, value in facts.items() if value is not None}
        if self.causes:
            body["causes"] = [cause.as_dict() for cause in self.causes]
        return body


def _sayable(value: Any) -> Any:
    """The value as JSON and UTF-8 can hold it: a number beyond floats as a word, half of a surrogate pair escaped."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()
    return value


class InvalidObject(ValueError):
    """A manifest says something that cannot be: names the field and the value.

    Attributes
    ----------
    path : str
        Field path inside the object, e.g. `spec.containers[0].resources.requests.cpu`.
    value : object
        The value found there.
    reason : str
        What is wrong with it, in words.
    errors : tuple of FieldError
        Everything that validation found, this one first; empty where a value has not even the right form.
    words : str
        What every surface says after the path.
    """

    def __init__(self, path: str, value: Any, reason: str, errors: tuple[FieldError, ...] = ()) -> None:
        self.path = path
        self.value = value
        self.reason = reason
        self.errors = errors
        super().__init__(path, value, reason)

    @classmethod
    def of(cls, *errors: FieldError) -> InvalidObject:
        """What validation found of one object: at least one error."""
        return cls(errors[0].field, errors[0].value, errors[0].body, errors)

    def in_kubernetes_form(self) -> InvalidObject:
        """The same as an error of validation, as every surface says it; what admission says stays."""
        if self.errors or isinstance(self, ForbiddenObject):
            return self
        type_ = "FieldValueRequired" if self.value is None else "FieldValueInvalid"
        detail = "" if self.reason == "is required" else self.reason
        return InvalidObject.of(FieldError(type_, self.path, self.value, detail))

    @property
    def words(self) -> str:
        if self.errors or self.value is None or isinstance(self.value, dict | list):
            return self.reason
        shown = f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)
        return f"{shown[:80]} {self.reason}"

    def __str__(self) -> str:
        return f"{self.path}: {self.words}" if self.path else self.words


class ForbiddenObject(InvalidObject):
    """Admission refuses the object; the reason is a whole sentence, which names the value."""

    @property
    def words(self) -> str:
        return self.reason


FIELD_ERROR_WORDS = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
}
"""Kubernetes' types of field errors, and how each is printed."""
_WITHOUT_VALUE = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"})
_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_JSON_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


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


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of a configuration, in the words of `k8s.io/apimachinery` field errors.

    Attributes
    ----------
    type : str
        Kubernetes' error type: `FieldValueInvalid`, `FieldValueRequired`, ...
    field : str
        Field path, e.g. `profiles[0].plugins.score.enabled[1].weight`.
    value : object
        The rejected value.
    detail : str
        What is wrong with it.
    """

    type: str
    field: str
    value: Any
    detail: str

    @property
    def body(self) -> str:
        """As Kubernetes prints it, without the field.

        Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go ErrorBody, v1.36
        """
        text = FIELD_ERROR_WORDS.get(self.type, self.type)
        if self.type not in _WITHOUT_VALUE:
            text = f"{text}: {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The value is none of the supported ones."""
    shown = ", ".join(quoted(one) for one in supported)
    return FieldError("FieldValueNotSupported", path, value, f"supported values: {shown}" if shown else "")


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, "", detail)


def aggregate(errors: Iterable[object]) -> str:
    """Several errors as one message: each once, in brackets if there are several.

    Source: staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go Error, v1.34
    """
    messages = list(dict.fromkeys(map(str, errors)))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


_MOST_SHOWN = 4096
"""Characters of a value that are shown."""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value[:_MOST_SHOWN])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    # Go tells a missing list (null) from an empty one.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text[:_MOST_SHOWN].translate(_JSON_ESCAPES)


class ConfigurationError(Exception):
    """A configuration that cannot be used; nothing was run.

    Attributes
    ----------
    errors : tuple of FieldError
        Everything that is wrong with it, each with its field path; never empty for a loaded document.
    """

    def __init__(self, message: str, errors: tuple[FieldError, ...] = ()) -> None:
        self.errors = errors
        super().__init__(message)


class DecodeError(ConfigurationError):
    """The text or document does not have the form of a configuration.

    Attributes
    ----------
    kind : str
        `strict` (unknown or duplicate fields), `notRegistered`, `missingKind`, `missingVersion`,
        `wrongType` (another known kind) or `other`.
    """

    def __init__(self, kind: str, message: str, errors: tuple[FieldError, ...] = ()) -> None:
        self.kind = kind
        super().__init__(message, errors)


class ConstructionError(ConfigurationError):
    """A valid configuration from which no scheduler can be built.

    Attributes
    ----------
    panic : bool
        The real program crashes on this document; the message is ours.
    """

    def __init__(self, message: str, errors: tuple[FieldError, ...] = (), *, panic: bool = False) -> None:
        self.panic = panic
        super().__init__(message, errors)


class PluginDeclarationError(ValueError):
    """A plugin's class does not declare itself well; the message names the class and what is wrong."""


def require(of: object, **held: bool) -> None:
    """Say which invariants of an object do not hold, by their names.

    Raises
    ------
    AssertionError
    """
    broken = [name.replace("_", " ") for name, holds in held.items() if not holds]
    if broken:
        raise AssertionError(f"{type(of).__name__}: not so: {'; '.join(broken)}")
