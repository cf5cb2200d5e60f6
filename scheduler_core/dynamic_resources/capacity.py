"""What is left of devices that several claims share.

Source: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go, v1.36
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.dynamic_resources.model import Device, Request
from scheduler_core.objects.quantity import Quantity, read_quantity

Amounts = dict[str, Quantity]


class UndefinedCapacity(Exception):
    """A request names a capacity that the device does not have."""


def consumed(request: Request, device: Device) -> Amounts:
    """What a request takes of each capacity of a shared device, rounded up by the device's policy."""
    asked = request.capacity_requests
    return {name: _consumed(asked.get(name), capacity) for name, capacity in device.capacity.items()}


def has_room(request: Request, device: Device, taken: Mapping[str, Quantity]) -> bool:
    """Whether the device has what the request takes besides what is taken.

    Raises
    ------
    UndefinedCapacity
    """
    asked, capacities = request.capacity_requests, device.capacity
    if any(name not in capacities for name in asked):
        raise UndefinedCapacity
    for name, capacity in capacities.items():
        amount = _consumed(asked.get(name), capacity)
        if _violates(amount, capacity.get("requestPolicy")):
            return False
        if name in taken:
            amount = amount.add(taken[name])
        if amount.cmp(read_quantity(str(capacity["value"]))) > 0:
            return False
    return True


def add(amounts: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts[name].add(amount) if name in amounts else amount


def _consumed(asked: Any, capacity: Mapping[str, Any]) -> Quantity:
    policy = capacity.get("requestPolicy")
    if asked is None:
        default = policy.get("default") if policy else None
        return read_quantity(str(capacity["value"] if default is None else default))
    amount = read_quantity(str(asked))
    if not policy:
        return amount
    valid_range = policy.get("validRange")
    if valid_range and valid_range.get("min") is not None:
        return _rounded_up(amount, valid_range)
    for value in policy.get("validValues") or ():
        if amount.cmp(read_quantity(str(value))) <= 0:
            return read_quantity(str(value))
    return amount


def _rounded_up(amount: Quantity, valid_range: Mapping[str, Any]) -> Quantity:
    least = read_quantity(str(valid_range["min"]))
    if amount.cmp(least) < 0:
        return least
    if valid_range.get("step") is None:
        return amount
    step, start = read_quantity(str(valid_range["step"])).value(), least.value()
    steps = -(-(amount.value() - start) // step)
    return read_quantity(_binary(start + step * steps))


def _binary(value: int) -> str:
    for power, suffix in ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value and value % (1 << power) == 0:
            return f"{value >> power}{suffix}"
    return str(value)


def _violates(amount: Quantity, policy: Mapping[str, Any] | None) -> bool:
    if not policy:
        return False
    default = policy.get("default")
    if default is not None and amount.cmp(read_quantity(str(default))) == 0:
        return False
    valid_range = policy.get("validRange")
    if valid_range is not None:
        most, step = valid_range.get("max"), valid_range.get("step")
        if most is not None and amount.cmp(read_quantity(str(most))) > 0:
            return True
        if step is None:
            return False
        start = read_quantity(str(valid_range["min"])).value() if valid_range.get("min") is not None else 0
        return (amount.value() - start) % read_quantity(str(step)).value() != 0
    values = policy.get("validValues") or ()
    return bool(values) and all(amount.cmp(read_quantity(str(value))) != 0 for value in values)
