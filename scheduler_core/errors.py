"""Errors a caller is meant to catch. Rejections of pods are values, never exceptions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


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
    type : str
        Kubernetes' type of such an error (`FieldValueForbidden`), where the words alone do not tell it.
    """

    def __init__(self, path: str, value: Any, reason: str, type_: str = "") -> None:
        self.path = path
        self.value = value
        self.reason = reason
        self.type = type_
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        super().__init__(f"{path}: {shown} {reason}" if value is not None else f"{path}: {reason}")


class ForbiddenObject(InvalidObject):
    """Admission refuses the object as it stands; the reason is a sentence of its own, which names the value."""

    def __init__(self, path: str, value: Any, reason: str) -> None:
        super().__init__(path, None, reason)
        self.value = value


_FIELD_ERROR_WORDS = {
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
_WITHOUT_VALUE = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"})


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

    def __str__(self) -> str:
        """As Kubernetes prints it.

        Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go Error.Error, v1.34
        """
        text = _FIELD_ERROR_WORDS.get(self.type, self.type)
        if self.type not in _WITHOUT_VALUE:
            shown = self.value
            if not isinstance(shown, int | float) or isinstance(shown, bool):
                shown = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
            text = f"{text}: {shown}"
        if self.detail:
            text = f"{text}: {self.detail}"
        return f"{self.field}: {text}"


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
