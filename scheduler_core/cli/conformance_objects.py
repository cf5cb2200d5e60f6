"""Compare quantities and selectors with what the real Kubernetes packages answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.cli.difference import Difference
from scheduler_core.objects.quantity import Quantity, QuantityError, parse_quantity


def run_quantity_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `quantities`.

    Parameters
    ----------
    case : mapping
        `text`, perhaps `other`, and `expect`.

    Returns
    -------
    list of Difference
        Empty when every key agrees. `value` and `milliValue` of numbers beyond 64 bits and of negative
        fractions are compared too: the computed answer is meant to be the recorded one even there.
    """
    expect = case["expect"]
    try:
        quantity = parse_quantity(case["text"])
    except QuantityError as error:
        return _differences(expect, {"error": True, "message": str(error)})
    got: dict[str, object] = {
        "error": False,
        "value": quantity.value(),
        "milliValue": quantity.milli_value(),
        "string": str(quantity),
        "canonical": quantity.canonical(),
        "format": quantity.format,
        "sign": quantity.sign(),
        "isZero": quantity.is_zero(),
        "float": quantity.as_approximate_float(),
    }
    other = _parsed(case.get("other"))
    if other is not None:
        got["cmp"] = quantity.cmp(other)
        got["sum"] = str(quantity.add(other))
        got["difference"] = str(quantity.sub(other))
    return _differences(_with_float(expect), got)


def _parsed(text: str | None) -> Quantity | None:
    if text is None:
        return None
    try:
        return parse_quantity(text)
    except QuantityError:
        return None


def _with_float(expect: Mapping[str, Any]) -> dict[str, Any]:
    """The expectations with the float as a number; absent means it is not finite."""
    if expect.get("error"):
        return dict(expect)
    text = expect.get("float")
    sign = -1 if expect.get("sign", 1) < 0 else 1
    return {**expect, "float": sign * float("inf") if text is None else float(text)}


def _differences(expect: Mapping[str, Any], got: Mapping[str, object]) -> list[Difference]:
    """Every key of either side whose values differ, in the order of names."""
    return [
        Difference(key, expect.get(key), got.get(key))
        for key in sorted({*expect, *got})
        if expect.get(key) != got.get(key)
    ]
