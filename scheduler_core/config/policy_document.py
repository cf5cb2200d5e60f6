"""The objects of a legacy Policy file (`apiVersion: v1`, `kind: Policy`), read strictly.

Source: pkg/scheduler/apis/config/v1 legacy types (staging/src/k8s.io/kube-scheduler/config/v1), v1.20
"""

# ruff: noqa: RUF009 - `wire` is dataclasses.field under another name

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.config.duration import format_duration
from scheduler_core.config.types import (
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    ResourceSpec,
    UtilizationShapePoint,
)
from scheduler_core.config.wire import (
    BOOLEAN,
    INT32,
    INT64,
    KEEP,
    POINTER,
    STRING,
    Document,
    ListOf,
    Problems,
    build,
    typed,
    wire,
)
from scheduler_core.errors import DecodeError


@dataclass(frozen=True, slots=True)
class ServiceAffinity:
    """Labels that hold the pods of a service together."""

    labels: tuple[str, ...] = wire("labels", ListOf(STRING))


@dataclass(frozen=True, slots=True)
class LabelsPresence:
    """Labels nodes must have, or must not have."""

    labels: tuple[str, ...] = wire("labels", ListOf(STRING))
    presence: bool = wire("presence", BOOLEAN, KEEP)


@dataclass(frozen=True, slots=True)
class PredicateArgument:
    """Exactly one of them."""

    service_affinity: ServiceAffinity | None = wire("serviceAffinity", typed(ServiceAffinity), POINTER, None)
    labels_presence: LabelsPresence | None = wire("labelsPresence", typed(LabelsPresence), POINTER, None)


@dataclass(frozen=True, slots=True)
class PolicyPredicate:
    """A predicate by name; with an argument the name is free."""

    name: str = wire("name", STRING, KEEP)
    argument: PredicateArgument | None = wire("argument", typed(PredicateArgument), POINTER, None)


@dataclass(frozen=True, slots=True)
class ServiceAntiAffinity:
    """The label a service's pods are spread over."""

    label: str = wire("label", STRING, KEEP)


@dataclass(frozen=True, slots=True)
class LabelPreference:
    """A label nodes should have, or should not have."""

    label: str = wire("label", STRING, KEEP)
    presence: bool = wire("presence", BOOLEAN, KEEP)


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioArguments:
    """The scoring function and the resources it applies to."""

    shape: tuple[UtilizationShapePoint, ...] = wire("shape", ListOf(typed(UtilizationShapePoint)))
    resources: tuple[ResourceSpec, ...] = wire("resources", ListOf(typed(ResourceSpec)))


@dataclass(frozen=True, slots=True)
class PriorityArgument:
    """Exactly one of them."""

    service_anti_affinity: ServiceAntiAffinity | None = wire(
        "serviceAntiAffinity", typed(ServiceAntiAffinity), POINTER, None
    )
    label_preference: LabelPreference | None = wire("labelPreference", typed(LabelPreference), POINTER, None)
    requested_to_capacity_ratio: RequestedToCapacityRatioArguments | None = wire(
        "requestedToCapacityRatioArguments", typed(RequestedToCapacityRatioArguments), POINTER, None
    )

    @property
    def given(self) -> list[str]:
        """The names of those that are there."""
        return [
            item.metadata["wire"].name
            for item in dataclasses.fields(self)
            if getattr(self, item.name) is not None
        ]


@dataclass(frozen=True, slots=True)
class PolicyPriority:
    """A priority by name and its weight; with an argument the name is free."""

    name: str = wire("name", STRING, KEEP)
    weight: int = wire("weight", INT64, KEEP)
    argument: PriorityArgument | None = wire("argument", typed(PriorityArgument), POINTER, None)


@dataclass(frozen=True, slots=True)
class LegacyPolicy:
    """A Policy; None for predicates or priorities means the defaults of its time, () means none."""

    predicates: tuple[PolicyPredicate, ...] | None = wire(
        "predicates", ListOf(typed(PolicyPredicate)), POINTER, None
    )
    priorities: tuple[PolicyPriority, ...] | None = wire(
        "priorities", ListOf(typed(PolicyPriority)), POINTER, None
    )
    extenders: tuple[Extender, ...] = wire("extenders", ListOf(typed(Extender)))
    hard_pod_affinity_symmetric_weight: int = wire("hardPodAffinitySymmetricWeight", INT32)
    always_check_all_predicates: bool = wire("alwaysCheckAllPredicates", BOOLEAN)


def decode_policy(document: Document) -> LegacyPolicy:
    """Read a Policy document.

    Raises
    ------
    DecodeError
        Every unknown field and every value of a wrong type, with their paths.
    """
    fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    extenders = fields.get("extenders")
    if isinstance(extenders, list | tuple):
        fields["extenders"] = [_modern_extender(extender) for extender in extenders]
    problems = Problems()
    checked: Any = typed(LegacyPolicy).check(fields, "", problems)
    errors = (*problems.types, *problems.unknown)
    if errors:
        message = "; ".join(str(error) for error in errors)
        raise DecodeError("other" if problems.types else "strict", f"invalid policy: {message}", errors)
    return build(LegacyPolicy, checked)


def _in_todays_case(document: Mapping[str, Any], cls: type) -> dict[str, Any]:
    """The mapping with its keys as they are spelled today; unknown ones stay, to be named."""
    names = [item.metadata["wire"].name for item in dataclasses.fields(cls) if "wire" in item.metadata]
    spelled = {name.lower(): name for name in names}
    return {spelled.get(str(key).lower(), key): value for key, value in document.items()}


def _modern_extender(extender: Any) -> Any:
    """Field names of today, written in any case as they were read then, and timeouts as plain nanoseconds."""
    if not isinstance(extender, Mapping):
        return extender
    modern = _in_todays_case(extender, Extender)
    tls = modern.get("tlsConfig")
    if isinstance(tls, Mapping):
        modern["tlsConfig"] = _in_todays_case(tls, ExtenderTLSConfig)
    managed = modern.get("managedResources")
    if isinstance(managed, list | tuple):
        modern["managedResources"] = [
            _in_todays_case(item, ExtenderManagedResource) if isinstance(item, Mapping) else item
            for item in managed
        ]
    timeout = modern.get("httpTimeout", 0)
    if timeout is None:
        del modern["httpTimeout"]
    elif isinstance(timeout, int) and not isinstance(timeout, bool) and -(2**63) <= timeout < 2**63:
        modern["httpTimeout"] = format_duration(timeout)
    return modern
