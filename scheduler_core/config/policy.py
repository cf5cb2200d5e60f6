"""The legacy `kind: Policy` file, translated to a profile.

Predicates and priorities become plugins at the extension points those plugins have today, as the legacy
registry of kube-scheduler did until v1.22; predicates about node taints are always on. What has no
counterpart any more is named, never dropped silently; what never existed is an error.

Source: pkg/scheduler/framework/plugins/legacy_registry.go, pkg/scheduler/factory.go createFromConfig,
pkg/scheduler/apis/config/validation ValidatePolicy, v1.20

Differs: the three resource priorities are strategies of one plugin today, so a Policy can have one of them;
SchedulingGates and dynamic resources, which are younger than Policy files, stay on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from scheduler_core.config import types, wire
from scheduler_core.config.args import Errors
from scheduler_core.config.catalog import (
    BIND,
    FILTER,
    MULTI_POINT,
    POST_FILTER,
    PRE_BIND,
    PRE_ENQUEUE,
    PRE_FILTER,
    PRE_SCORE,
    QUEUE_SORT,
    RESERVE,
    SCORE,
    Catalog,
)
from scheduler_core.config.validation import extender_errors
from scheduler_core.errors import ConfigurationError, DecodeError, FieldError, aggregate, invalid, required
from scheduler_core.objects.duration import format_duration
from scheduler_core.schema.tables import table_beside

_FILTER_POINTS = (PRE_FILTER, FILTER, RESERVE, PRE_BIND)
_SCORE_POINTS = (PRE_SCORE, SCORE)

_STRATEGIES = {
    "LeastRequestedPriority": types.LEAST_ALLOCATED,
    "MostRequestedPriority": types.MOST_ALLOCATED,
    "RequestedToCapacityRatio": types.REQUESTED_TO_CAPACITY_RATIO,
}
_NAMED_BY_ARGUMENT = ("NodeLabel", "ServiceAffinity", "RequestedToCapacityRatio")
"""Priorities a file means by their argument, under any name."""
_PREDICATE_ALIASES = {"PodFitsPorts": "PodFitsHostPorts"}
_PRIORITY_ALIASES = {"ServiceSpreadingPriority": "SelectorSpreadPriority"}

_MAX_WEIGHT = 2**31 - 1
_OVERFLOWN = "should have a positive weight applied to it or it has overflown"
_FIRST_WITH_EXTENDERS, _FIRST_WITHOUT_TAGS, _LAST_WITH_POLICY = 2, 6, 22
"""Minor releases of Kubernetes."""


# --- the document ---


_LABELS = wire.Field("labels", wire.ListOf(wire.STRING))
_PRESENCE = wire.Field("presence", wire.BOOLEAN, wire.KEEP)
_NAME = wire.Field("name", wire.STRING, wire.KEEP)


def _argument(*of: wire.Field) -> wire.Field:
    """The argument of a predicate or priority: exactly one of some; with one, its name is free."""
    return wire.Field("argument", wire.Fields(*of), wire.POINTER)


_PREDICATE = wire.Fields(
    _NAME,
    _argument(
        wire.Field("serviceAffinity", wire.Fields(_LABELS), wire.POINTER),
        wire.Field("labelsPresence", wire.Fields(_LABELS, _PRESENCE), wire.POINTER),
    ),
)
_LABEL = wire.Field("label", wire.STRING, wire.KEEP)
_SHAPE = wire.Field("shape", wire.ListOf(wire.typed(types.UtilizationShapePoint)))
_RESOURCES = wire.Field("resources", wire.ListOf(wire.typed(types.ResourceSpec)))
_RATIO = "requestedToCapacityRatioArguments"
_PRIORITY = wire.Fields(
    _NAME,
    wire.Field("weight", wire.INT64, wire.KEEP),
    _argument(
        wire.Field("serviceAntiAffinity", wire.Fields(_LABEL), wire.POINTER),
        wire.Field("labelPreference", wire.Fields(_LABEL, _PRESENCE), wire.POINTER),
        wire.Field(_RATIO, wire.Fields(_SHAPE, _RESOURCES), wire.POINTER),
    ),
)


@dataclass(frozen=True, slots=True)
class LegacyPolicy:
    """A Policy; None for predicates or priorities means the defaults of its time, () means none.

    Predicates and priorities are checked documents. `kubernetesVersion` is this package's: the release whose
    kube-scheduler speaks to the extenders, e.g. `1.5`.
    """

    predicates: Annotated[tuple[wire.Document, ...] | None, wire.ListOf(_PREDICATE)] = None
    priorities: Annotated[tuple[wire.Document, ...] | None, wire.ListOf(_PRIORITY)] = None
    extenders: tuple[types.Extender, ...] = wire.omit(())
    hard_pod_affinity_symmetric_weight: wire.Int32 = wire.omit(0)
    always_check_all_predicates: bool = wire.omit(False)
    kubernetes_version: str = wire.omit("")


def decode_policy(document: wire.Document) -> LegacyPolicy:
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
    problems = wire.Problems()
    checked: Any = wire.typed(LegacyPolicy).check(fields, "", problems)
    errors = (*problems.types, *problems.unknown)
    if errors:
        message = "; ".join(str(error) for error in errors)
        raise DecodeError("other" if problems.types else "strict", f"invalid policy: {message}", errors)
    return wire.build(LegacyPolicy, checked)


def in_todays_case(document: wire.Document) -> dict[str, Any]:
    """The Policy with its keys as they are spelled today: early releases read them in any case.

    Unknown keys and second spellings of one key stay as they are, to be named.
    """
    spelled: dict[str, Any] = spelled_today(document, wire.typed(LegacyPolicy))
    return spelled


def spelled_today(value: Any, kind: wire.FieldKind) -> Any:
    """A value with its keys in the case of its kind: what was read in any case, as it is spelled today."""
    if isinstance(kind, wire.ListOf) and isinstance(value, list | tuple):
        return [spelled_today(item, kind.item) for item in value]
    if not isinstance(kind, wire.Fields) or not isinstance(value, Mapping):
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


# --- its translation ---


def legacy(name: str) -> Any:
    """A table of `legacy.yaml`."""
    return table_beside(__package__, "legacy.yaml")[name]


@dataclass(frozen=True, slots=True)
class Untranslated:
    """An entry of a Policy that has no effect.

    Attributes
    ----------
    field : str
        Where it stands, e.g. `predicates[2]`.
    name : str
        Its name.
    reason : str
        Why, for a person.
    """

    field: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class TranslatedPolicy:
    """A Policy as a v1 document.

    Attributes
    ----------
    document : mapping
        A KubeSchedulerConfiguration; it may name retired plugins.
    lower_case_wire : bool
        Extenders are sent `pod` and `nodes`, as before 1.6, not `Pod` and `Nodes`.
    """

    document: wire.Document
    untranslated: tuple[Untranslated, ...]
    run_all_filters: bool
    lower_case_wire: bool


def translate_policy(document: wire.Document, catalog: Catalog) -> TranslatedPolicy:
    """Translate a Policy document.

    Raises
    ------
    DecodeError
        Unknown fields or values of wrong types.
    ConfigurationError
        Nonsense in it; every error names its field.
    """
    translation = _Translation(decode_policy(document), catalog)
    for index, extender in enumerate(in_todays_case(document).get("extenders") or ()):
        if isinstance(extender, Mapping) and "apiVersion" in extender:
            reason = "no kube-scheduler read it; kubernetesVersion of the Policy says what extenders are sent"
            translation.untranslated.append(
                Untranslated(f"extenders[{index}].apiVersion", "apiVersion", reason)
            )
    return translation.result()


class _Translation:
    def __init__(self, policy: LegacyPolicy, catalog: Catalog) -> None:
        self.policy = policy
        self.catalog = catalog
        self.errors: Errors = []
        self.untranslated: list[Untranslated] = []
        self.points: dict[str, list[dict[str, Any]]] = {}
        self.args: dict[str, dict[str, Any]] = {}
        self.node_label: dict[str, list[str]] = {}
        self.service_affinity: dict[str, list[str]] = {}
        self.strategy: tuple[str, str] | None = None

    def result(self) -> TranslatedPolicy:
        predicates = self._predicates()
        priorities = self._priorities()
        weight = self.policy.hard_pod_affinity_symmetric_weight
        if not 0 <= weight <= 100:
            path = "hardPodAffinitySymmetricWeight"
            self.errors.append(invalid(path, weight, "not in valid range [0-100]"))
        self.errors += extender_errors(self.policy.extenders)
        lower_case_wire = self._lower_case_wire()
        if self.errors:
            errors = tuple(map(self.catalog.release.worded, self.errors))
            raise ConfigurationError(aggregate(errors), errors)

        for name in ("SchedulingGates", "DynamicResources", "DefaultPreemption"):
            self._enable(name, (PRE_ENQUEUE,))
        self._enable("PrioritySort", (QUEUE_SORT,))
        self._enable("DefaultBinder", (BIND,))
        for predicate, plugins in legacy("predicates").items():
            if predicate in predicates:
                for plugin in plugins:
                    self._enable_or_name(plugin, _FILTER_POINTS, predicates[predicate], predicate)
        self._enable("DynamicResources", (PRE_FILTER, FILTER, POST_FILTER, RESERVE, PRE_BIND))
        self._enable("DefaultPreemption", (POST_FILTER,))
        for priority in sorted(priorities):
            where, weight = priorities[priority]
            self._enable_or_name(legacy("priorities")[priority], _SCORE_POINTS, where, priority, weight)
        return TranslatedPolicy(
            self._document(),
            tuple(self.untranslated),
            self.policy.always_check_all_predicates,
            lower_case_wire,
        )

    def _lower_case_wire(self) -> bool:
        """Whether the release the Policy names is one whose ExtenderArgs had JSON tags.

        Source: plugin/pkg/scheduler/api/types.go, which lost its tags in 1.6 while api/v1/types.go kept them;
        extender.go always sent the former.
        """
        written = self.policy.kubernetes_version
        if not written:
            return False
        match = re.fullmatch(r"v?1\.(\d{1,2})(\.\d{1,3})?", written)
        if match is None or not _FIRST_WITH_EXTENDERS <= int(match[1]) <= _LAST_WITH_POLICY:
            detail = "must be a release that read Policy files and called extenders: 1.2 to 1.22"
            self.errors.append(invalid("kubernetesVersion", written, detail))
            return False
        return int(match[1]) < _FIRST_WITHOUT_TAGS

    # --- what is asked for ---

    def _predicates(self) -> dict[str, str]:
        """Predicate -> where it was asked for."""
        wanted = dict.fromkeys(legacy("mandatoryPredicates"), "predicates")
        if self.policy.predicates is None:
            wanted.update(dict.fromkeys(legacy("defaultPredicates"), "predicates"))
            return wanted
        for index, predicate in enumerate(self.policy.predicates):
            path = f"predicates[{index}]"
            name = self._predicate(predicate, path)
            if name is not None:
                wanted[name] = path
        return wanted

    def _predicate(self, predicate: wire.Document, path: str) -> str | None:
        argument = predicate.get("argument")
        if not self._is_one(argument, path, "predicate"):
            return None
        written: str = predicate["name"]
        name = _PREDICATE_ALIASES.get(written, written)
        if name in legacy("predicates"):
            self._ignored_argument(bool(argument), path, name)
            return name
        if argument is None:
            self._unknown(name, path, legacy("forgottenPredicates"), "predicate")
            return None
        if (affinity := argument.get("serviceAffinity")) is not None:
            self.service_affinity.setdefault("affinityLabels", []).extend(affinity.get("labels", ()))
            return "CheckServiceAffinity"
        presence = argument["labelsPresence"]
        key = "presentLabels" if presence["presence"] else "absentLabels"
        self.node_label.setdefault(key, []).extend(presence.get("labels", ()))
        return "CheckNodeLabelPresence"

    def _is_one(self, argument: wire.Document | None, path: str, kind: str) -> bool:
        if argument is None or len(argument) == 1:
            return True
        words = f"exactly 1 {kind} argument is required"
        self.errors.append(invalid(f"{path}.argument", argument, words))
        return False

    def _priorities(self) -> dict[str, tuple[str, int]]:
        """Priority -> where it was asked for, and its weight."""
        if self.policy.priorities is None:
            self.strategy = (types.LEAST_ALLOCATED, "priorities")
            return {name: ("priorities", weight) for name, weight in legacy("defaultPriorities").items()}
        wanted: dict[str, tuple[str, int]] = {}
        declared: dict[str, wire.Document] = {}
        for index, priority in enumerate(self.policy.priorities):
            path = f"priorities[{index}]"
            if not 0 < priority["weight"] <= _MAX_WEIGHT:
                self.errors.append(invalid(f"{path}.weight", priority["weight"], _OVERFLOWN))
            name = self._priority(priority, path, declared)
            if name is None:
                continue
            if name in _STRATEGIES and not self._take_strategy(name, path, priority["name"]):
                continue
            wanted[name] = (path, priority["weight"])
        for name, labels in (
            ("NodeLabel", self._label_preferences()),
            ("ServiceAffinity", self.service_affinity.get("antiAffinityLabelsPreference", [])),
        ):
            if name in wanted:
                where, weight = wanted[name]
                wanted[name] = (where, weight * len(labels))
                if weight * len(labels) > _MAX_WEIGHT:
                    self.errors.append(invalid(f"{where}.weight", weight, _OVERFLOWN))
        return wanted

    def _label_preferences(self) -> list[str]:
        keys = ("presentLabelsPreference", "absentLabelsPreference")
        return [label for key in keys for label in self.node_label.get(key, ())]

    def _priority(self, priority: wire.Document, path: str, declared: dict[str, wire.Document]) -> str | None:
        argument = priority.get("argument")
        if not self._is_one(argument, path, "priority"):
            return None
        if argument and not self._declare(next(iter(argument)), priority, path, declared):
            return None
        written: str = priority["name"]
        name = _PRIORITY_ALIASES.get(written, written)
        if name == "EqualPriority":
            return None
        if name in _NAMED_BY_ARGUMENT:
            if argument is None:
                self.errors.append(required(f"{path}.argument", f'"{name}" scores by its argument'))
                return None
        elif name in legacy("priorities"):
            self._ignored_argument(bool(argument), path, name)
            return name
        if argument is None:
            self._unknown(name, path, legacy("forgottenPriorities"), "priority")
            return None
        if (spread := argument.get("serviceAntiAffinity")) is not None:
            labels = self.service_affinity.setdefault("antiAffinityLabelsPreference", [])
            labels.append(spread["label"])
            return "ServiceAffinity"
        if (preference := argument.get("labelPreference")) is not None:
            key = "presentLabelsPreference" if preference["presence"] else "absentLabelsPreference"
            self.node_label.setdefault(key, []).append(preference["label"])
            return "NodeLabel"
        ratio = argument[_RATIO]
        shape, resources = ratio.get("shape", []), ratio.get("resources", [])
        here = f"{path}.argument.{_RATIO}"
        self.errors += types.shape_errors(_SHAPE.kind.build(shape), f"{here}.shape")
        for index, resource in enumerate(resources):
            if not 0 <= (weight := resource.get("weight", 0)) <= 100:
                detail = f"resource weight of {resource['name']} not in valid range (0, 100]"
                self.errors.append(invalid(f"{here}.resources[{index}].weight", weight, detail))
        if self.strategy is None:
            self.args["NodeResourcesFit"] = {
                "scoringStrategy": {
                    "type": types.REQUESTED_TO_CAPACITY_RATIO,
                    "resources": resources,
                    "requestedToCapacityRatio": {"shape": shape},
                }
            }
        return "RequestedToCapacityRatio"

    def _declare(
        self, kind: str, priority: wire.Document, path: str, declared: dict[str, wire.Document]
    ) -> bool:
        """Merge custom priorities of one kind; RequestedToCapacityRatio appears once.

        Source: validateCustomPriorities
        """
        earlier = declared.setdefault(kind, priority)
        if earlier is priority:
            return True
        if kind == _RATIO:
            detail = f'redeclares custom priority "RequestedToCapacityRatio", from: "{earlier["name"]}"'
            self.errors.append(
                FieldError("FieldValueDuplicate", f"{path}.argument", priority["name"], detail)
            )
            return False
        if earlier["weight"] != priority["weight"]:
            detail = f'{kind} priority "{priority["name"]}" has a different weight with "{earlier["name"]}"'
            self.errors.append(invalid(f"{path}.weight", priority["weight"], detail))
            return False
        return True

    def _take_strategy(self, name: str, path: str, written: str) -> bool:
        """NodeResourcesFit scores by one strategy; the first asked for gets it."""
        strategy = _STRATEGIES[name]
        if self.strategy is not None and self.strategy[0] != strategy:
            reason = (
                f"NodeResourcesFit scores by one strategy, which is {self.strategy[0]} of {self.strategy[1]}"
            )
            self.untranslated.append(Untranslated(path, written, reason))
            return False
        if self.strategy is None:
            self.strategy = (strategy, path)
        return True

    def _ignored_argument(self, given: bool, path: str, name: str) -> None:
        if given:
            reason = f'"{name}" is built in and takes no argument; another name makes it count'
            self.untranslated.append(Untranslated(f"{path}.argument", name, reason))

    def _unknown(self, name: str, path: str, forgotten: Mapping[str, str], kind: str) -> None:
        if name in forgotten:
            self.untranslated.append(Untranslated(path, name, forgotten[name]))
        else:
            detail = f'{kind} type not found for "{name}"'
            self.errors.append(FieldError("FieldValueInvalid", f"{path}.name", name, detail))

    # --- what becomes of it ---

    def _enable(self, plugin: str, points: tuple[str, ...], weight: int = 0) -> bool:
        """Enable a plugin at those of `points` that it implements; False when it is not registered."""
        if plugin not in self.catalog:
            return False
        for point in points:
            if point not in self.catalog[plugin].points:
                continue
            enabled = self.points.setdefault(point, [])
            if all(one["name"] != plugin for one in enabled):
                enabled.append({"name": plugin, **({"weight": weight} if weight and point == SCORE else {})})
        return True

    def _enable_or_name(
        self, plugin: str, points: tuple[str, ...], where: str, name: str, weight: int = 0
    ) -> None:
        if not self._enable(plugin, points, weight):
            reason = f"its plugin {plugin} is not registered"
            self.untranslated.append(Untranslated(where, name, reason))

    def _document(self) -> dict[str, Any]:
        # Always there, even without the plugin: extenders may want resources ignored.
        strategy = {"scoringStrategy": {"type": self.strategy[0]}} if self.strategy is not None else {}
        self.args.setdefault("NodeResourcesFit", strategy)
        if self.policy.hard_pod_affinity_symmetric_weight:
            weight = self.policy.hard_pod_affinity_symmetric_weight
            self.args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        # SelectorSpread does what system default constraints would do a second time.
        self.args["PodTopologySpread"] = {"defaultingType": types.LIST_DEFAULTING}
        names = {plugin["name"] for enabled in self.points.values() for plugin in enabled}
        plugins: dict[str, Any] = {MULTI_POINT: {"disabled": [{"name": "*"}]}}
        plugins.update({point: {"enabled": enabled} for point, enabled in self.points.items()})
        configs: list[dict[str, Any]] = [
            {"name": name, "args": args}
            for name, args in self.args.items()
            if name in names or name == "NodeResourcesFit"
        ]
        configs += [
            {"name": name, "args": args} for name, args in self._retired_args().items() if name in names
        ]
        return {
            "apiVersion": types.API_VERSION,
            "kind": types.KIND,
            "profiles": [{"plugins": plugins, "pluginConfig": configs}],
            "extenders": [wire.encode(extender) for extender in self.policy.extenders],
        }

    def _retired_args(self) -> dict[str, dict[str, list[str]]]:
        """Args of the plugins that custom predicates and priorities stand for."""
        return {
            "NodeLabel": {key: value for key, value in self.node_label.items() if value},
            "ServiceAffinity": {key: value for key, value in self.service_affinity.items() if value},
        }
