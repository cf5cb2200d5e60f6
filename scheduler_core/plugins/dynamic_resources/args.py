"""What DynamicResources is configured with."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.config.args import Errors, PluginArgs, invalid
from scheduler_core.config.duration import format_duration
from scheduler_core.config.wire import OPTIONAL_DURATION, POINTER, wire


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs(PluginArgs):
    """Time limit of Filter for one node, nanoseconds; 0 = none."""

    filter_timeout_ns: int = wire("filterTimeout", OPTIONAL_DURATION, POINTER, 10_000_000_000)

    def problems(self, path: str) -> Errors:
        if self.filter_timeout_ns < 0:
            value = format_duration(self.filter_timeout_ns)
            return [invalid(f"{path}.filterTimeout", value, "must be zero or positive")]
        return []


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgsWithBinding(DynamicResourcesArgs):
    """Time limit of waiting for devices to be bound, too; nanoseconds."""

    binding_timeout_ns: int | None = wire("bindingTimeout", OPTIONAL_DURATION, POINTER, 600_000_000_000)

    def problems(self, path: str) -> Errors:
        # Without arguments: a dataclass with slots is another class than the one super() is in.
        errors = DynamicResourcesArgs.problems(self, path)
        if self.binding_timeout_ns is not None and self.binding_timeout_ns < 1_000_000_000:
            value = format_duration(self.binding_timeout_ns)
            errors.append(invalid(f"{path}.bindingTimeout", value, "must be at least 1 second"))
        return errors
