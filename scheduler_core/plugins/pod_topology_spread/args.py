"""What PodTopologySpread is configured with."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.config.args import Errors, PluginArgs, invalid, not_supported, required
from scheduler_core.config.types import LIST_DEFAULTING, label_name_errors
from scheduler_core.config.wire import (
    INT32,
    KEEP,
    POINTER,
    STRING,
    Document,
    Field,
    Fields,
    ListOf,
    MapOf,
    wire,
)
from scheduler_core.errors import FieldError

SYSTEM_DEFAULTING = "System"

_LABEL_SELECTOR = Fields(
    Field("matchLabels", MapOf(STRING)),
    Field(
        "matchExpressions",
        ListOf(
            Fields(
                Field("key", STRING, KEEP), Field("operator", STRING, KEEP), Field("values", ListOf(STRING))
            )
        ),
    ),
)
_TOPOLOGY_SPREAD_CONSTRAINT = Fields(
    Field("maxSkew", INT32, KEEP),
    Field("topologyKey", STRING, KEEP),
    Field("whenUnsatisfiable", STRING, KEEP),
    Field("labelSelector", _LABEL_SELECTOR, POINTER),
    Field("minDomains", INT32, POINTER),
    Field("nodeAffinityPolicy", STRING, POINTER),
    Field("nodeTaintsPolicy", STRING, POINTER),
    Field("matchLabelKeys", ListOf(STRING)),
)


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs(PluginArgs):
    """`default_constraints` are core/v1 TopologySpreadConstraint documents (no labelSelector)."""

    default_constraints: tuple[Document, ...] = wire(
        "defaultConstraints", ListOf(_TOPOLOGY_SPREAD_CONSTRAINT)
    )
    defaulting_type: str = wire("defaultingType", STRING, default=SYSTEM_DEFAULTING)

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        kind, here = self.defaulting_type, f"{path}.defaultingType"
        if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            errors.append(not_supported(here, kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING)))
        elif kind == SYSTEM_DEFAULTING and self.default_constraints:
            errors.append(invalid(here, kind, "when .defaultConstraints are not empty"))
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            here = f"{path}.defaultConstraints[{index}]"
            key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
            if constraint["maxSkew"] <= 0:
                errors.append(
                    invalid(f"{here}.maxSkew", constraint["maxSkew"], "not in valid range (0, inf)")
                )
            if key:
                errors += label_name_errors(key, f"{here}.topologyKey")
            else:
                errors.append(required(f"{here}.topologyKey", "can not be empty"))
            if not action:
                errors.append(required(f"{here}.whenUnsatisfiable", "can not be empty"))
            elif action not in ("DoNotSchedule", "ScheduleAnyway"):
                supported = ("DoNotSchedule", "ScheduleAnyway")
                errors.append(not_supported(f"{here}.whenUnsatisfiable", action, supported))
            if constraint.get("labelSelector") is not None:
                detail = "constraint must not define a selector, as they deduced for each pod"
                errors.append(FieldError("FieldValueForbidden", f"{here}.labelSelector", "", detail))
            if (key, action) in seen:
                errors.append(FieldError("FieldValueDuplicate", here, f"{{{key}, {action}}}", ""))
            seen.add((key, action))
        return errors
