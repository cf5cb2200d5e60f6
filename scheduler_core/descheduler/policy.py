"""A DeschedulerPolicy (`descheduler/v1alpha2`): decoded, checked and defaulted as the descheduler does it.

Source: pkg/descheduler/policyconfig.go, pkg/framework/plugins/*/validation.go and defaults.go, 7d2b28bf2b6a (v0.36)
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.errors import InvalidManifest, aggregate, quoted
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import label_selector_from, parse_label_selector_text
from scheduler_core.schema.tables import table_beside

Document = Mapping[str, Any]

_TABLE: Final = table_beside(__package__ or __name__, "arguments.yaml")
STRUCTS: Final[Mapping[str, Mapping[str, str]]] = _TABLE["structs"]
STATES: Final[Mapping[str, Sequence[str]]] = _TABLE["states"]
PLUGINS: Final[Mapping[str, Sequence[str]]] = {
    "deschedule": _TABLE["deschedule"],
    "balance": _TABLE["balance"],
    "filter": ["DefaultEvictor"],
    "preevictionfilter": ["DefaultEvictor"],
}
"""Extension point, as a profile writes it -> the plugins that have it."""
PROTECTIONS: Final = _TABLE["protections"]
SYSTEM_CRITICAL: Final = 2_000_000_000
_KIND: Final = "DeschedulerPolicy"
_API_VERSION: Final = "descheduler/v1alpha2"
_WHOLE: Final = {
    "int": (-(2**63), 2**63), "int64": (-(2**63), 2**63), "int32": (-(2**31), 2**31), "uint": (0, 2**64),
}  # fmt: skip
_FAILED_DECODING: Final = 'failed decoding descheduler\'s policy config "policy.yaml": '


class PolicyError(ValueError):
    """A policy is refused on loading, in the descheduler's words."""


class StartError(ValueError):
    """A profile cannot be built, in the descheduler's words."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile: what runs, in order, and with which arguments (defaults filled in)."""

    name: str
    deschedule: tuple[str, ...]
    balance: tuple[str, ...]
    arguments: Mapping[str, Document]
    """Plugin -> its arguments; `DefaultEvictor` is always there, its `priorityThreshold` a number."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A checked policy. Limits are None where there is none."""

    profiles: tuple[Profile, ...]
    node_selector: str
    most_in_all: int | None
    most_on_a_node: int | None
    most_in_a_namespace: int | None
    grace_period_seconds: int | None
    tells_failures: bool


def read_policy(text: str | bytes) -> Document:
    """The one DeschedulerPolicy of a text, also out of the ConfigMap that brings it to a cluster.

    Raises
    ------
    PolicyError
        The text cannot be read, or holds none or several.
    """
    try:
        documents = [document.value for document in load_documents(text)]
        held = [
            item.value
            for document in documents
            if document.get("kind") == "ConfigMap"
            for value in (document.get("data") or {}).values()
            for item in load_documents(value)
        ]
    except InvalidManifest as error:
        raise PolicyError(error.in_text) from None
    found = [document for document in (*documents, *held) if document.get("kind") == _KIND]
    if len(found) != 1:
        raise PolicyError(f"one {_KIND} is needed, and there are {len(found)}")
    return found[0]


def policy_from(document: Document, priority_of: Mapping[str, int] | None) -> Policy:
    """Read a policy.

    Parameters
    ----------
    document : mapping
        A DeschedulerPolicy.
    priority_of : mapping of str to int, optional
        Values of the cluster's PriorityClasses, for thresholds that name one. None: whichever is named is there.

    Raises
    ------
    PolicyError
        It cannot be decoded, or an argument is refused.
    StartError
        A profile names what is not there, or a selector that cannot be read.
    """
    _decode(document)
    profiles = document.get("profiles") or ()
    problems = [
        f"in profile {profile.get('name', '')}: {problem}"
        for profile in profiles
        for config in profile.get("pluginConfig") or ()
        if (problem := _problem_of(config))
    ]
    problems.extend(_problems_of_metrics(document))
    if problems:
        raise PolicyError(aggregate(problems))
    checked = [_defaulted(profile, priority_of) for profile in profiles]
    for written, profile in zip(profiles, checked, strict=True):
        if problem := _start_problem(written, profile):
            raise StartError(f'unable to create "{profile.name}" profile: {problem}')
    selector = document.get("nodeSelector") or ""
    try:
        parse_label_selector_text(selector)
    except SelectorError as error:
        raise StartError(str(error)) from None
    return Policy(
        tuple(checked),
        selector,
        document.get("maxNoOfPodsToEvictTotal"),
        document.get("maxNoOfPodsToEvictPerNode"),
        document.get("maxNoOfPodsToEvictPerNamespace"),
        document.get("gracePeriodSeconds"),
        bool(document.get("evictionFailureEventNotification")),
    )


# --- Decoding: types as Go has them, unknown arguments are errors.


def _decode(document: Document) -> None:
    kind, version = document.get("kind", ""), document.get("apiVersion", "")
    if (kind, version) != (_KIND, _API_VERSION):
        where = 'in scheme "pkg/descheduler/scheme/scheme.go:40"'
        if not kind:
            raise PolicyError(
                f"{_FAILED_DECODING}Object 'Kind' is missing in '{json.dumps(document, separators=(',', ':'))}'"
            )
        raise PolicyError(f'{_FAILED_DECODING}no kind "{kind}" is registered for version "{version}" {where}')
    _raise_first(_type_problems(document, _KIND, ""))
    for profile in document.get("profiles") or ():
        for config in profile.get("pluginConfig") or ():
            struct, arguments = f"{config.get('name')}Args", config.get("args")
            if struct in STRUCTS and arguments is not None:
                _raise_first(_type_problems(arguments, struct, ""))
                if unknown := list(_unknown_fields(arguments, struct, "")):
                    fields = ", ".join(f'unknown field "{field}"' for field in unknown)
                    raise PolicyError(f"{_FAILED_DECODING}strict decoding error: {fields}")


def _raise_first(problems: Iterator[str]) -> None:
    for problem in problems:
        raise PolicyError(f"{_FAILED_DECODING}json: cannot unmarshal {problem}")


def _type_problems(value: Any, declared: str, where: str) -> Iterator[str]:
    """What of a value is of another type than Go's, as `encoding/json` says it."""
    if value is None or declared == "any":
        return
    found, field = _json_kind(value), f" into Go struct field {where} of type {_go_type(declared)}"
    if found != _wanted_kind(declared):
        yield f"{found}{field if where else ''}"
    elif declared.startswith("[]"):
        for item in value:
            yield from _type_problems(item, declared[2:], where)
    elif declared.startswith("map["):
        for item in value.values():
            yield from _type_problems(item, declared.partition("]")[2], where)
    elif declared in STRUCTS:
        for name, inner in STRUCTS[declared].items():
            yield from _type_problems(value.get(name), inner, f"{where or declared}.{name}")
    elif declared in _WHOLE:
        least, above = _WHOLE[declared]
        if not (isinstance(value, int) and least <= value < above):
            yield f"number {value}{field if where else ''}"


def _unknown_fields(value: Any, declared: str, where: str) -> Iterator[str]:
    if declared.startswith("[]"):
        for index, item in enumerate(value or ()):
            yield from _unknown_fields(item, declared[2:], f"{where}[{index}]")
    elif declared in STRUCTS and isinstance(value, Mapping):
        fields = STRUCTS[declared]
        for name, item in value.items():
            path = f"{where}.{name}" if where else str(name)
            if name in fields:
                yield from _unknown_fields(item, fields[name], path)
            elif where or name not in ("apiVersion", "kind"):
                yield path


def _json_kind(value: Any) -> str:
    kinds = ((bool, "bool"), (int | float, "number"), (str, "string"), (Mapping, "object"))
    return next((kind for type_, kind in kinds if isinstance(value, type_)), "array")


def _wanted_kind(declared: str) -> str:
    if declared.startswith("[]"):
        return "array"
    if declared.startswith("map[") or declared in STRUCTS:
        return "object"
    return {"bool": "bool", "string": "string", "Duration": "string"}.get(declared, "number")


def _go_type(declared: str) -> str:
    return "v1.Duration" if declared == "Duration" else declared


# --- Checks of arguments.


def _problem_of(config: Document) -> str:
    """What is wrong with a plugin's arguments; empty if nothing is."""
    name = config.get("name", "")
    if f"{name}Args" not in STRUCTS:
        return f"plugin {name} in pluginConfig not registered"
    problems = list(_CHECKS[name](config.get("args") or {}))
    return aggregate(problems) if problems else ""


def _both(arguments: Document, key: str) -> Iterator[str]:
    lists = arguments.get(key) or {}
    if lists.get("include") and lists.get("exclude"):
        yield f"only one of Include/Exclude {key} can be set"


def _labels(arguments: Document) -> Iterator[str]:
    if arguments.get("labelSelector") is not None and (error := _selector_error(arguments["labelSelector"])):
        yield f"failed to get label selectors from strategy's params: {error}"


def _selector_error(selector: Document | None) -> str:
    try:
        label_selector_from(selector)
    except SelectorError as error:
        return str(error)
    return ""


def _common(arguments: Document) -> Iterator[str]:
    yield from _both(arguments, "namespaces")
    yield from _labels(arguments)


def _pod_life_time(arguments: Document) -> Iterator[str]:
    yield from _both(arguments, "namespaces")
    yield from _both(arguments, "ownerKinds")
    yield from _labels(arguments)
    yield from _states(arguments, "PodLifeTime")
    tests = ("type", "status", "reason")
    for index, condition in enumerate(arguments.get("conditions") or ()):
        transition = condition.get("minTimeSinceLastTransitionSeconds")
        if transition is None and not any(condition.get(test) for test in tests):
            rule = "at least one of type, status, reason, or minTimeSinceLastTransitionSeconds must be set"
            yield f"conditions[{index}]: {rule}"
    lists = ("states", "conditions", "exitCodes")
    if arguments.get("maxPodLifeTimeSeconds") is None and not any(arguments.get(name) for name in lists):
        criteria = "maxPodLifeTimeSeconds, states, conditions, or exitCodes"
        yield f"at least one filtering criterion must be specified ({criteria})"


def _states(arguments: Document, plugin: str) -> Iterator[str]:
    allowed = STATES[plugin]
    if not set(arguments.get("states") or ()) <= set(allowed):
        yield f"states must be one of {_go_list(allowed)}"


def _go_list(items: Sequence[str]) -> str:
    return f"[{' '.join(items)}]"


def _restarts(arguments: Document) -> Iterator[str]:
    yield from _common(arguments)
    if (arguments.get("podRestartThreshold") or 0) < 1:
        yield "invalid PodsHavingTooManyRestarts threshold"
    yield from _states(arguments, "RemovePodsHavingTooManyRestarts")


def _node_affinity(arguments: Document) -> Iterator[str]:
    if not arguments.get("nodeAffinityType"):
        yield "nodeAffinityType needs to be set"
    yield from _common(arguments)


def _node_taints(arguments: Document) -> Iterator[str]:
    yield from _common(arguments)
    if arguments.get("excludedTaints") and arguments.get("includedTaints"):
        yield "either includedTaints or excludedTaints can be set, but not both"


def _spread(arguments: Document) -> Iterator[str]:
    yield from _common(arguments)
    for constraint in arguments.get("constraints") or ():
        if constraint not in ("DoNotSchedule", "ScheduleAnyway"):
            yield f"constraint {constraint} is not one of map[DoNotSchedule:{{}} ScheduleAnyway:{{}}]"


def _low_utilization(arguments: Document) -> Iterator[str]:
    """One error at most, as upstream returns at the first."""
    yield from itertools.islice(_utilization_problems(arguments), 1)


def _utilization_problems(arguments: Document) -> Iterator[str]:
    yield from _no_inclusion(arguments)
    low, high = (arguments.get(key) or {} for key in ("thresholds", "targetThresholds"))
    for key, thresholds in (("thresholds", low), ("targetThresholds", high)):
        yield from (f"{key} config is not valid: {problem}" for problem in _thresholds(thresholds))
    if low.keys() != high.keys():
        yield "thresholds and targetThresholds configured different resources"
        return
    if not arguments.get("useDeviationThresholds"):
        for resource, value in low.items():
            if value > high[resource]:
                yield f"thresholds' {resource} percentage is greater than targetThresholds'"
    metrics = arguments.get("metricsUtilization") or {}
    source, prometheus = metrics.get("source"), metrics.get("prometheus")
    if source == "KubernetesMetrics" and metrics.get("metricsServer"):
        yield 'it is not allowed to set both "KubernetesMetrics" source and metricsServer'
    if source == "KubernetesMetrics" and prometheus is not None:
        yield 'prometheus configuration is not allowed to set when source is set to "KubernetesMetrics"'
    if source == "Prometheus" and not (prometheus or {}).get("query"):
        yield 'prometheus query is required when metrics source is set to "Prometheus"'


def _no_inclusion(arguments: Document) -> Iterator[str]:
    if (arguments.get("evictableNamespaces") or {}).get("include"):
        yield "only Exclude namespaces can be set, inclusion is not supported"


def _thresholds(thresholds: Mapping[str, float]) -> Iterator[str]:
    if not thresholds:
        yield "no resource threshold is configured"
    for resource, percentage in thresholds.items():
        if not 0 <= percentage <= 100:
            yield f"{resource} threshold not in [0, 100] range"


def _high_utilization(arguments: Document) -> Iterator[str]:
    problems = [*_no_inclusion(arguments), *_thresholds(arguments.get("thresholds") or {})]
    for mode in arguments.get("evictionModes") or ():
        if mode != "OnlyThresholdingResources":
            problems.append(f"invalid eviction mode {mode}")
    yield from problems[:1]


def _default_evictor(arguments: Document) -> Iterator[str]:
    threshold = arguments.get("priorityThreshold") or {}
    if threshold.get("value") is not None and threshold.get("name"):
        yield "priority threshold misconfigured, only one of priorityThreshold fields can be set"
    if arguments.get("noEvictionPolicy") not in (None, "", "Preferred", "Mandatory"):
        yield 'noEvictionPolicy accepts only ["Preferred" "Mandatory"] values'
    protections = arguments.get("podProtections") or {}
    disabled, extra = (protections.get(key) or [] for key in ("defaultDisabled", "extraEnabled"))
    if not disabled and not extra:
        return
    if any(arguments.get(switch) for switch in PROTECTIONS["switches"]):
        yield (
            "cannot use Deprecated fields alongside PodProtections.ExtraEnabled or "
            "PodProtections.DefaultDisabled"
        )
    for field, names, known in (
        ("ExtraEnabled", extra, PROTECTIONS["extra"]),
        ("DefaultDisabled", disabled, PROTECTIONS["default"]),
    ):
        for name in names:
            if name not in known:
                options = f"Valid options are: {_go_list(known)}"
                yield f"invalid pod protection policy in {field}: {quoted(name)}. {options}"
    for field, names in (("DefaultDisabled", disabled), ("ExtraEnabled", extra)):
        if len(set(names)) < len(names):
            yield f"PodProtections.{field} contains duplicate entries"
    if "PodsWithPVC" in extra:
        for index, protected in enumerate(protected_classes(arguments)):
            if not protected:
                where = f"PodProtections.Config.PodsWithPVC.ProtectedStorageClasses[{index}]"
                yield f"{where} name cannot be empty"


def protected_classes(arguments: Document) -> list[str]:
    """Names of the storage classes whose pods DefaultEvictor protects; none where all are."""
    config = ((arguments.get("podProtections") or {}).get("config") or {}).get("PodsWithPVC") or {}
    return [item.get("name") or "" for item in config.get("protectedStorageClasses") or ()]


_CHECKS: Final[Mapping[str, Callable[[Document], Iterator[str]]]] = {
    "DefaultEvictor": _default_evictor,
    "PodLifeTime": _pod_life_time,
    "RemoveFailedPods": _common,
    "RemovePodsHavingTooManyRestarts": _restarts,
    "RemovePodsViolatingNodeTaints": _node_taints,
    "RemovePodsViolatingNodeAffinity": _node_affinity,
    "RemovePodsViolatingInterPodAntiAffinity": _common,
    "RemoveDuplicates": lambda arguments: _both(arguments, "namespaces"),
    "RemovePodsViolatingTopologySpreadConstraint": _spread,
    "LowNodeUtilization": _low_utilization,
    "HighNodeUtilization": _high_utilization,
}


def _problems_of_metrics(document: Document) -> Iterator[str]:
    sources: dict[str, Document] = {}
    for provider in document.get("metricsProviders") or ():
        source = provider.get("source") or ""
        if source in sources:
            rule = "is already configured, each source can be configured only once"
            yield f"metric provider {quoted(source)} {rule}"
        sources.setdefault(source, provider)
    if "KubernetesMetrics" in sources and (document.get("metricsCollector") or {}).get("enabled"):
        yield "it is not allowed to combine metrics provider when metrics collector is enabled"
    if "Prometheus" not in sources:
        return
    prometheus = sources["Prometheus"].get("prometheus")
    if prometheus is None:
        yield "prometheus configuration is required when prometheus source is enabled"
        return
    if not prometheus.get("url"):
        yield "prometheus URL is required when prometheus is enabled"
    token = prometheus.get("authToken")
    if token is not None:
        secret = token.get("secretReference")
        if secret is None:
            yield "prometheus authToken secret is expected to be set when authToken field is"
        elif not (secret.get("name") and secret.get("namespace")):
            yield "prometheus authToken secret reference does not set both namespace and name"


# --- Defaults, and what keeps a profile from being built.


def _enabled(profile: Document, point: str) -> list[str]:
    plugins = profile.get("plugins") or {}
    return list((plugins.get(point) or {}).get("enabled") or ())


def _defaulted(profile: Document, priority_of: Mapping[str, int] | None) -> Profile:
    arguments: dict[str, Document] = {}
    for config in profile.get("pluginConfig") or ():
        arguments.setdefault(config["name"], config.get("args") or {})
    evictor = arguments.get("DefaultEvictor", {})
    threshold = _threshold(evictor.get("priorityThreshold") or {}, priority_of)
    arguments["DefaultEvictor"] = {**evictor, "priorityThreshold": threshold}
    if "RemoveFailedPods" in arguments:
        arguments["RemoveFailedPods"] = {
            "minPodLifetimeSeconds": 3600,
            **_given(arguments["RemoveFailedPods"]),
        }
    deschedule, balance = (tuple(_enabled(profile, point)) for point in ("deschedule", "balance"))
    return Profile(profile.get("name", ""), deschedule, balance, arguments)


def _given(arguments: Document) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not None}


def _threshold(threshold: Document, priority_of: Mapping[str, int] | None) -> int:
    """Source: pkg/utils/priority.go GetPriorityValueFromPriorityThreshold"""
    name, value = threshold.get("name"), threshold.get("value")
    if value is None and name and priority_of is not None:
        if name not in priority_of:
            missing = f'priorityclasses.scheduling.k8s.io "{name}" not found'
            raise PolicyError(f"unable to get priority value from the priority class: {missing}")
        value = priority_of[name]
    if value is None:
        value = SYSTEM_CRITICAL
    if value > SYSTEM_CRITICAL:
        raise PolicyError(f"priority threshold can't be greater than {SYSTEM_CRITICAL}")
    return int(value)


def _start_problem(written: Document, profile: Profile) -> str:
    for point, word in (
        ("deschedule", "deschedule"),
        ("balance", "balance"),
        ("filter", "filter"),
        ("preevictionfilter", "preEvictionFilter"),
    ):
        unknown = sorted(set(_enabled(written, point)) - set(PLUGINS[point]))
        if unknown:
            names = " ".join(f"{name}:{{}}" for name in unknown)
            return (
                f"profile {quoted(profile.name)} configures {word} extension point of non-existing plugins: "
                f"map[{names}]"
            )
    for plugin in ("DefaultEvictor", *profile.deschedule, *profile.balance):
        if plugin not in profile.arguments:
            return f'unable to build {plugin} plugin: unable to find "{plugin}" plugin config'
        if problem := _build_problem(plugin, profile.arguments[plugin]):
            return f'unable to build {plugin} plugin: unable to initialize "{plugin}" plugin: {problem}'
    return ""


def _build_problem(plugin: str, arguments: Document) -> str:
    if plugin == "DefaultEvictor":
        for key, words in (
            ("labelSelector", ""),
            ("namespaceLabelSelector", "unable to convert namespaceLabelSelector to label selector: "),
        ):
            if arguments.get(key) is not None and (error := _selector_error(arguments[key])):
                return f"{words}{error}"
    if (arguments.get("metricsUtilization") or {}).get("source") == "Prometheus":
        for key in ("thresholds", "targetThresholds"):
            if list(arguments[key]) != ["MetricResource"]:
                wanted = 'are expected to specify a single instance of "MetricResource" resource'
                return f"{key} {wanted}, got {_go_list(list(arguments[key]))} instead"
    return ""
