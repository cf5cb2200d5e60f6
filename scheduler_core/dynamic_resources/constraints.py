"""Rules between the devices of a claim: an attribute that must match, or be distinct.

Source: as the allocator
"""

from __future__ import annotations

from typing import Any

from scheduler_core.dynamic_resources.model import Device, Request


class Constraint:
    """A rule between the devices of some requests of a claim."""

    def __init__(self, names: tuple[str, ...], attribute: str) -> None:
        self.names = names
        self.attribute = attribute

    def applies_to(self, request: Request) -> bool:
        return not self.names or request.base_name in self.names or request.full_name in self.names

    def add(self, request: Request, device: Device) -> bool:
        raise NotImplementedError

    def words(self, device: Device) -> str:
        """Why it refuses a device."""
        raise NotImplementedError

    def remove(self, request: Request, device: Device) -> None:
        raise NotImplementedError


class MatchAttribute(Constraint):
    def __init__(self, names: tuple[str, ...], attribute: str) -> None:
        super().__init__(names, attribute)
        self.value: tuple[str, Any] | None = None
        self.n_devices = 0

    def add(self, request: Request, device: Device) -> bool:
        if not self.applies_to(request):
            return True
        value = device.attribute(self.attribute)
        if value is None:
            return False
        if self.n_devices and value != self.value:
            return False
        self.value = value
        self.n_devices += 1
        return True

    def words(self, device: Device) -> str:
        value = device.attribute(self.attribute)
        if value is None:
            return f"{self.attribute} must match: this device has none"
        wanted = "" if self.value is None else self.value[1]
        return f"{self.attribute} must match: {value[1]} here, {wanted} for what is chosen already"

    def remove(self, request: Request, device: Device) -> None:
        if self.applies_to(request):
            self.n_devices -= 1


class DistinctAttribute(Constraint):
    """One value is remembered a request, the last one: so upstream."""

    def __init__(self, names: tuple[str, ...], attribute: str) -> None:
        super().__init__(names, attribute)
        self.values: dict[str, tuple[str, Any]] = {}
        self.n_devices = 0

    def add(self, request: Request, device: Device) -> bool:
        if not self.applies_to(request):
            return True
        value = device.attribute(self.attribute)
        if value is None:
            return False
        if self.n_devices and value in self.values.values():
            return False
        self.values[request.base_name] = value
        self.n_devices += 1
        return True

    def words(self, device: Device) -> str:
        value = device.attribute(self.attribute)
        if value is None:
            return f"{self.attribute} must be distinct: this device has none"
        return f"{self.attribute} must be distinct: {value[1]} is chosen already"

    def remove(self, request: Request, device: Device) -> None:
        if self.applies_to(request):
            self.values.pop(request.base_name, None)
            self.n_devices -= 1
