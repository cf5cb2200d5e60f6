"""Kubernetes' own CEL functions (`quantity`, `semver`, their methods), and `size`, which counts bytes in the library.

Source: staging/src/k8s.io/apiserver/pkg/cel/library (quantity.go, semverlib.go), v1.36
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler_core.objects.quantity import Quantity, QuantityError, read_quantity

_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


def _size(*given: Any) -> int:
    """Code points of a text, elements of a list, entries of a map."""
    if len(given) != 1 or not isinstance(given[0], str | bytes | Sequence | Mapping):
        raise ValueError("no such overload")
    return len(given[0])


def quantity_value(text: str) -> dict[str, Any]:
    return _written(read_quantity(text))


def _to_quantity(text: Any) -> dict[str, Any]:
    try:
        return quantity_value(text)
    except QuantityError as error:
        raise ValueError(str(error)) from None


def _is_quantity(text: Any) -> bool:
    try:
        read_quantity(text)
    except QuantityError:
        return False
    return True


def semver_value(text: Any) -> dict[str, Any]:
    if not isinstance(text, str) or not _SEMVER.fullmatch(text):
        raise ValueError(f"Invalid semantic version {text!r}")
    return {"semver": text.partition("+")[0]}


def _is_semver(text: Any) -> bool:
    return isinstance(text, str) and bool(_SEMVER.fullmatch(text))


def _precedence(text: str) -> tuple[Any, ...]:
    """Source: semver.org, 11."""
    match = _SEMVER.fullmatch(text)
    assert match is not None
    parts = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in (match[4] or "").split(".") if part
    )
    return int(match[1]), int(match[2]), int(match[3]), not parts, parts


def _compare(left: Any, right: Any) -> int:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if "quantity" in left and "quantity" in right:
            return read_quantity(left["quantity"]).cmp(read_quantity(right["quantity"]))
        if "semver" in left and "semver" in right:
            one, other = _precedence(left["semver"]), _precedence(right["semver"])
            return (one > other) - (one < other)
    raise ValueError("no such overload")


def _amount(value: Any) -> Quantity:
    return read_quantity(value["quantity"])


def _addend(value: Any) -> Quantity:
    return _amount(value) if isinstance(value, Mapping) else read_quantity(str(value))


def _written(amount: Quantity) -> dict[str, Any]:
    return {"quantity": str(amount.canonical())}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": _size,
    "quantity": _to_quantity,
    "isQuantity": _is_quantity,
    "semver": semver_value,
    "isSemver": _is_semver,
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "add": lambda left, right: _written(_amount(left).add(_addend(right))),
    "sub": lambda left, right: _written(_amount(left).sub(_addend(right))),
    "sign": lambda value: _amount(value).sign(),
    "isInteger": lambda value: _amount(value).as_approximate_float().is_integer(),
    "asInteger": lambda value: _amount(value).value(),
    "asApproximateFloat": lambda value: _amount(value).as_approximate_float(),
    "major": lambda value: int(value["semver"].split(".")[0]),
    "minor": lambda value: int(value["semver"].split(".")[1]),
    "patch": lambda value: int(re.split(r"[.-]", value["semver"])[2]),
}
