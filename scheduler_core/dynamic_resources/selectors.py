"""Whether a CEL expression matches a device.

Source: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go, v1.36
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from scheduler_core.dynamic_resources.model import Device
from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.functions import quantity_value, semver_value
from scheduler_core.expressions.syntax import TOKEN, ExpressionError

LIMITS: Final = ExpressionLimits(length=10 * 1024, steps=1_000_000)
"""Length and cost as the API server has them (CELSelectorExpressionMaxLength, CELSelectorExpressionMaxCost)."""


class DeviceSelectorError(Exception):
    """An expression that cannot be read, or that fails for a device; the message is Kubernetes'."""


class Selector:
    """One compiled expression; `compiled` makes it once a text."""

    def __init__(self, text: str) -> None:
        try:
            self._expression = Expression(text, LIMITS)
        except ExpressionError as error:
            raise DeviceSelectorError(f"CEL compile error: {error}") from None
        self._domains = tuple(
            dict.fromkeys(
                match["string"][1:-1]
                for match in TOKEN.finditer(text)
                if match["string"] and match["string"][0] in "\"'"
            )
        )
        self._answers: dict[Any, bool | str] = {}

    def matches(self, device: Device, *, with_lists: bool = True) -> bool:
        """Whether the device is selected; asked once for all devices that are alike.

        Parameters
        ----------
        with_lists : bool
            Attributes may be lists; where not, a device with one is an error whatever the selector asks for.

        Raises
        ------
        SelectorError
        """
        key = _likeness(device)
        if not with_lists and key[-1]:
            raise DeviceSelectorError(f"CEL runtime error: attribute {key[-1]}: unsupported attribute value")
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._ask(device)
            if len(self._answers) > 100_000:
                self._answers.clear()
        if isinstance(answer, str):
            raise DeviceSelectorError(answer)
        return answer

    def _ask(self, device: Device) -> bool | str:
        try:
            found = self._expression.run({"device": self._document(device)})
        except ExpressionError as error:
            return f"CEL runtime error: {error}"
        if not isinstance(found, bool):
            return "CEL runtime error: result of the expression is not a boolean"
        return found

    def _document(self, device: Device) -> dict[str, Any]:
        driver = device.id[0]
        # A domain that the device does not have reads as an empty one.
        attributes: dict[str, dict[str, Any]] = {domain: {} for domain in self._domains}
        capacity: dict[str, dict[str, Any]] = {domain: {} for domain in self._domains}
        for name, value in device.attributes.items():
            domain, identifier = _qualified(name, driver)
            kind, held = next(iter(value.items()))
            if kind in ("version", "versions"):
                held = [semver_value(one) for one in held] if kind == "versions" else semver_value(held)
            attributes.setdefault(domain, {})[identifier] = held
        for name, value in device.capacity.items():
            domain, identifier = _qualified(name, driver)
            capacity.setdefault(domain, {})[identifier] = quantity_value(str(value["value"]))
        return {
            "driver": driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": device.is_shared,
        }


@lru_cache(maxsize=4096)
def compiled(text: str) -> Selector:
    """Raises SelectorError for a text that is no expression."""
    return Selector(text)


def _likeness(device: Device) -> Any:
    """Devices with equal values are asked about once; last the name of an attribute that is a list."""
    cached = device.__dict__.get("_likeness")
    if cached is None:
        values = {name: next(iter(value.items())) for name, value in sorted(device.attributes.items())}
        lists = [name for name, (_, held) in values.items() if isinstance(held, list)]
        cached = (
            device.id[0],
            tuple((name, kind, repr(held)) for name, (kind, held) in values.items()),
            tuple(sorted((name, str(value["value"])) for name, value in device.capacity.items())),
            device.is_shared,
            lists[0] if lists else "",
        )
        device.__dict__["_likeness"] = cached
    return cached


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.rpartition("/")
    return (domain, identifier) if slash else (driver, name)
