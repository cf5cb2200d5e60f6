"""Validation of plugin args.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.34
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scheduler_core.config.duration import format_duration
from scheduler_core.config.qualified_name import label_value_problems, qualified_name_problems
from scheduler_core.config.types import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from scheduler_core.config.wire import Document, encode
from scheduler_core.errors import FieldError

Errors = list[FieldError]


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, value, detail)


def not_supported(path: str, value: Any, supported: tuple[str, ...]) -> FieldError:
    shown = ", ".join(f'"{one}"' for one in supported)
    return FieldError("FieldValueNotSupported", path, value, f"supported values: {shown}")


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, "", detail)


def aggregate(errors: Sequence[FieldError]) -> str:
    """Several errors as one message.

    Source: staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go Error, v1.34
    """
    messages = list(dict.fromkeys(str(error) for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def label_name_errors(name: str, path: str) -> Errors:
    """Source: apis/meta/v1/validation ValidateLabelName."""
    return [invalid(path, name, problem) for problem in qualified_name_problems(name)]


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> Errors:
    errors: Errors = []
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = f"{path}.minCandidateNodesPercentage"
    absolute_path = f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        errors.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        errors.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        same_time = "cannot be zero at the same time as"
        errors.append(invalid(percentage_path, percentage, f"{same_time} minCandidateNodesAbsolute"))
        errors.append(invalid(absolute_path, absolute, f"{same_time} minCandidateNodesPercentage"))
    return errors


def _dynamic_resources(args: DynamicResourcesArgs, path: str) -> Errors:
    if args.filter_timeout_ns < 0:
        value = format_duration(args.filter_timeout_ns)
        return [invalid(f"{path}.filterTimeout", value, "must be zero or positive")]
    return []


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str) -> Errors:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        return [invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")]
    return []


def _node_affinity(args: NodeAffinityArgs, path: str) -> Errors:
    errors: Errors = []
    affinity = args.added_affinity or {}
    path = f"{path}.addedAffinity"
    selector = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if selector is not None:
        here = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(selector["nodeSelectorTerms"] or ()):
            errors += _node_selector_term(term, f"{here}[{index}]")
    here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())):
        if preferred["weight"] != 0:
            errors += _node_selector_term(preferred["preference"], f"{here}[{index}]")
    return errors


_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def _node_selector_term(term: Document, path: str) -> Errors:
    """Source: component-helpers/scheduling/corev1/nodeaffinity newNodeSelectorTerm, v1.34."""
    errors: Errors = []
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        here = f"{path}.matchExpressions[{index}]"
        if requirement["operator"] not in _LABEL_OPERATORS:
            errors.append(not_supported(f"{here}.operator", requirement["operator"], _LABEL_OPERATORS))
        else:
            errors += _label_requirement(requirement, here)
    for index, requirement in enumerate(term.get("matchFields", ())):
        here = f"{path}.matchFields[{index}]"
        if requirement["operator"] not in _FIELD_OPERATORS:
            errors.append(not_supported(f"{here}.operator", requirement["operator"], _FIELD_OPERATORS))
        elif len(requirement.get("values", ())) != 1:
            errors.append(invalid(f"{here}.values", requirement.get("values"), "must have one element"))
    return errors


def _label_requirement(requirement: Document, path: str) -> Errors:
    """Source: staging/src/k8s.io/apimachinery/pkg/labels/selector.go NewRequirement, v1.34."""
    errors: Errors = []
    key, operator = requirement["key"], requirement["operator"]
    written = requirement.get("values")
    values = written or []
    problems = qualified_name_problems(key)
    if problems:
        errors.append(invalid(f"{path}.key", key, "; ".join(problems)))
    here = f"{path}.values"
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(invalid(here, written, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(invalid(here, written, "values set must be empty for exists and does not exist"))
    else:
        if len(values) != 1:
            errors.append(invalid(here, written, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for index, value in enumerate(values):
            if not _is_int64(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(invalid(f"{here}[{index}]", value, detail))
    for index, value in enumerate(values):
        problems = label_value_problems(value)
        if problems:
            errors.append(invalid(f"{here}[{index}][{key}]", value, "; ".join(problems)))
    return errors


def _is_int64(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit() and -(2**63) <= int(text) < 2**63


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        here = f"{path}.resources[{index}]"
        if resource.name in seen:
            errors.append(FieldError("FieldValueDuplicate", f"{here}.name", resource.name, ""))
        seen.add(resource.name)
        if resource.weight != 1:
            errors.append(invalid(f"{here}.weight", resource.weight, "must be 1"))
    return errors


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str) -> Errors:
    errors: Errors = []
    kind, here = args.defaulting_type, f"{path}.defaultingType"
    if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        errors.append(not_supported(here, kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING)))
    elif kind == SYSTEM_DEFAULTING and args.default_constraints:
        errors.append(invalid(here, kind, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        here = f"{path}.defaultConstraints[{index}]"
        key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if constraint["maxSkew"] <= 0:
            errors.append(invalid(f"{here}.maxSkew", constraint["maxSkew"], "not in valid range (0, inf)"))
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


def _volume_binding(args: VolumeBindingArgs, path: str) -> Errors:
    errors: Errors = []
    if args.bind_timeout_s < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_s, detail))
    if args.shape is not None:
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        errors.append(invalid(f"{path}.shape", [encode(point) for point in args.shape], detail))
    return errors


ARGS_VALIDATORS: dict[type, Callable[[Any, str], Errors]] = {
    DefaultPreemptionArgs: _default_preemption,
    DynamicResourcesArgs: _dynamic_resources,
    InterPodAffinityArgs: _inter_pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    PodTopologySpreadArgs: _pod_topology_spread,
    VolumeBindingArgs: _volume_binding,
}
"""Args checked with the configuration. Upstream misnames NodeResourcesFit's entry, so those args are checked
only when the plugin is made (`fit_args_errors`)."""


def fit_args_errors(args: NodeResourcesFitArgs, path: str = "") -> Errors:
    """Source: ValidateNodeResourcesFitArgs; paths are relative to the args, as upstream calls it."""
    prefix = f"{path}." if path else ""
    errors: Errors = []
    for index, name in enumerate(args.ignored_resources):
        errors += label_name_errors(name, f"{prefix}ignoredResources[{index}]")
    for index, group in enumerate(args.ignored_resource_groups):
        here = f"{prefix}ignoredResourceGroups[{index}]"
        if "/" in group:
            errors.append(invalid(here, group, "resource group name can't contain '/'"))
        errors += label_name_errors(group, here)
    strategy = args.scoring_strategy
    if strategy is None:
        return [*errors, required(f"{prefix}scoringStrategy", "ScoringStrategy field is required")]
    supported = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
    if strategy.type not in supported:
        errors.append(not_supported(f"{prefix}scoringStrategy.type", strategy.type, supported))
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.append(
                invalid(f"{prefix}scoringStrategy.resources[{index}].weight", resource.weight, detail)
            )
    if strategy.requested_to_capacity_ratio is not None:
        shape = strategy.requested_to_capacity_ratio.shape
        errors += shape_errors(shape, f"{prefix}scoringStrategy.shape")
    return errors


def shape_errors(shape: tuple[UtilizationShapePoint, ...], path: str) -> Errors:
    """Source: validateFunctionShape."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors: Errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            here = f"{path}[{index}].utilization"
            errors.append(
                invalid(here, shape[index].utilization, "values must be sorted in increasing order")
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            here = f"{path}[{index}].utilization"
            errors.append(invalid(here, point.utilization, "not in valid range [0, 100]"))
        if not 0 <= point.score <= 10:
            errors.append(invalid(f"{path}[{index}].score", point.score, "not in valid range [0, 10]"))
    return errors
