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
    FieldKind,
    Fields,
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
    """A Policy; None for predicates or priorities means the defaults of its time, () means none.

    `kubernetesVersion` is this package's: the release whose kube-scheduler speaks to the extenders, e.g. `1.5`.
    """

    predicates: tuple[PolicyPredicate, ...] | None = wire(
        "predicates", ListOf(typed(PolicyPredicate)), POINTER, None
    )
    priorities: tuple[PolicyPriority, ...] | None = wire(
        "priorities", ListOf(typed(PolicyPriority)), POINTER, None
    )
    extenders: tuple[Extender, ...] = wire("extenders", ListOf(typed(Extender)))
    hard_pod_affinity_symmetric_weight: int = wire("hardPodAffinitySymmetricWeight", INT32)
    always_check_all_predicates: bool = wire("alwaysCheckAllPredicates", BOOLEAN)
    kubernetes_version: str = wire("kubernetesVersion", STRING)


def decode_policy(document: Document) -> LegacyPolicy:
    """Read a Policy document.

    Raises
    ------
    DecodeError
        Every unknown field and every value of a wrong type, with their paths.
    """
    fields = {
        key: value for key, value in in_todays_case(document).items() if key not in ("apiVersion", "kind")
    }
    extenders = fields.get("extenders")
    if isinstance(extenders, list | tuple):
        fields["extenders"] = [modern_extender(extender) for extender in extenders]
    problems = Problems()
    checked: Any = typed(LegacyPolicy).check(fields, "", problems)
    errors = (*problems.types, *problems.unknown)
    if errors:
        message = "; ".join(str(error) for error in errors)
        raise DecodeError("other" if problems.types else "strict", f"invalid policy: {message}", errors)
    return build(LegacyPolicy, checked)


def in_todays_case(document: Document) -> dict[str, Any]:
    """The Policy with its keys as they are spelled today: early releases read them in any case.

    Unknown keys and second spellings of one key stay as they are, to be named.
    """
    spelled: dict[str, Any] = spelled_today(document, typed(LegacyPolicy))
    return spelled


def spelled_today(value: Any, kind: FieldKind) -> Any:
    """A value with its keys in the case of its kind: what was read in any case, as it is spelled today."""
    if isinstance(kind, ListOf) and isinstance(value, list | tuple):
        return [spelled_today(item, kind.item) for item in value]
    if not isinstance(kind, Fields) or not isinstance(value, Mapping):
        return value
    names = {name.lower(): name for name in kind.fields}
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(str(key).lower(), str(key))
        if name != key and (name in value or name in result):
            name = str(key)
        known = kind.fields.get(name)
        result[name] = item if known is None else spelled_today(item, known.kind)
    return result


def modern_extender(extender: Any) -> Any:
    """An extender in today's form: its timeout was plain nanoseconds, and early examples gave it an `apiVersion`."""
    if not isinstance(extender, Mapping):
        return extender
    modern = {key: value for key, value in extender.items() if key != "apiVersion"}
    timeout = modern.get("httpTimeout", 0)
    if timeout is None:
        del modern["httpTimeout"]
    elif isinstance(timeout, int) and not isinstance(timeout, bool) and -(2**63) <= timeout < 2**63:
        modern["httpTimeout"] = format_duration(timeout)
    return modern
