"""Field errors in Kubernetes' words.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go,
staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go, v1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scheduler_core.errors import FieldError, quoted


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


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as one (`errors.NewAggregate`): each once, in brackets if there are several."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
