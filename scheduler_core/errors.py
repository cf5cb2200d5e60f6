"""Errors a caller is meant to catch. Rejections of pods are values, never exceptions."""

from __future__ import annotations

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
    """

    def __init__(self, path: str, value: Any, reason: str) -> None:
        self.path = path
        self.value = value
        self.reason = reason
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        super().__init__(f"{path}: {shown} {reason}" if value is not None else f"{path}: {reason}")


@dataclass(frozen=True, slots=True)
class FieldError:
    """One validation error of a configuration, in the words of `k8s.io/apimachinery` field errors."""

    type: str
    field: str
    value: Any
    detail: str


class ConfigurationError(Exception):
    """A configuration that cannot be used; nothing was run."""

    def __init__(self, message: str, errors: tuple[FieldError, ...] = ()) -> None:
        self.errors = errors
        super().__init__(message)
