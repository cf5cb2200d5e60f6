"""A scenario's `controllers`: programs beside the scheduler, as annotations of the namespace kube-system."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any, Final, Protocol

from scheduler_core.autoscaler.expand import priorities_of
from scheduler_core.autoscaler.groups import template_of
from scheduler_core.autoscaler.pasted import DURATIONS
from scheduler_core.descheduler.policy import PLUGINS, PROTECTIONS, STATES, STRUCTS, PolicyError
from scheduler_core.descheduler.settings import read_settings, settings_from
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import NO_POOL, POOL_LABELS, EqualNodes
from scheduler_core.karpenter.node_pools import POOL, read_node_pools
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.labels import Requirement, label_requirements
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.prices import shipped_prices
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.schema.tables import kinds
from scheduler_core.sim.controllers.programs import (
    CLUSTER_AUTOSCALER,
    DESCHEDULER,
    KARPENTER,
    NAMESPACE,
    PROGRAMS,
    VERTICAL,
    given_from,
    read_vertical,
    settings_text,
)

_PREFIX = "playground.dev/"


def with_controllers(given: Any, objects: Sequence[Any]) -> list[Any]:
    """The objects of a scenario, the namespace kube-system with the settings of its programs among them.

    Raises
    ------
    ScenarioError
        Names the field and its value.
    """
    known = [name.removeprefix(_PREFIX) for name in PROGRAMS]
    if not isinstance(given, Mapping) or not given.keys() <= set(known):
        raise ScenarioError([Problem("controllers", f"must be a mapping of {' and '.join(known)}")])
    annotations = {}
    for name, settings in given.items():
        text = settings_text(settings)
        try:
            PROGRAMS[_PREFIX + name](text)
        except InvalidObject as error:
            path = f"controllers.{name}{error.path.lstrip(ascii_letters)}"
            raise ScenarioError([Problem(path, error.reason, error.value)]) from None
        annotations[_PREFIX + name] = text
    place = next((n for n, one in enumerate(objects) if _is_namespace(one)), None)
    if place is None:
        return [object_of("v1", "Namespace", {"name": NAMESPACE, "annotations": annotations}), *objects]
    meta = objects[place]["metadata"]
    changed = {
        **objects[place],
        "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}},
    }
    return [*objects[:place], changed, *objects[place + 1 :]]


def _is_namespace(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("kind") != "Namespace":
        return False
    meta = item.get("metadata")
    return (
        isinstance(meta, Mapping)
        and meta.get("name") == NAMESPACE
        and isinstance(meta.get("annotations") or {}, Mapping)
    )


# ---- under other names


class Renamer(Protocol):
    """Gives names other names, the same name the same one.

    Attributes
    ----------
    pools : set of EqualNodes
        Of the nodes that were seen.
    groups : dict of str to str
        Of node groups in lower case, as new nodes are named after them -> the group's new name.
    """

    pools: set[EqualNodes]
    groups: dict[str, str]

    def name(self, what: str, value: Any) -> Any: ...
    def label_key(self, key: Any) -> Any: ...
    def label_value(self, key: str, value: Any) -> Any: ...
    def labels(self, labels: Any) -> Any: ...
    def resource(self, name: str) -> str | None: ...
    def manifest(self, manifest: Mapping[str, Any]) -> dict[str, Any]: ...
    def walk(self, value: Any, key: str = "") -> Any: ...
    def plain(self, value: Any) -> Any: ...


def programs_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Annotation -> the settings of a program, where the object is the namespace that holds them."""
    if not _is_namespace(manifest):
        return {}
    annotations = manifest["metadata"].get("annotations") or {}
    return {name: annotations[name] for name in PROGRAMS if name in annotations}


class NotRenamed(ValueError):
    """Settings that decide by names in a way that other names do not keep."""


def renamed_settings(annotation: str, text: str, names: Renamer) -> str:
    """Settings of a program that decide the same under other names.

    Raises
    ------
    NotRenamed
        They cannot be.
    """
    try:
        document = _RENAMED[annotation](text, names)
    except (InvalidObject, PolicyError) as error:
        raise NotRenamed(f"its settings cannot be read: {error}") from None
    documents = document if isinstance(document, list) else [document]
    return "\n---\n".join(json.dumps(one, sort_keys=True) for one in documents)


_LABELS: Final = (
    "balancing-label",
    "balancing-ignore-label",
    "startup-taint",
    "status-taint",
    "ignore-taint",
)
_SCHEDULERS: Final = ("bypassed-scheduler-names", "allowed-scheduler-names")
_LIMITS: Final = ("cores-total", "memory-total")


def _autoscaler(text: str, names: Renamer) -> dict[str, Any]:
    given = given_from(text)
    if "price" in str(given.options.get("expander", "")).split(","):
        raise NotRenamed("--expander=price goes by the prices of instance types, which are renamed")
    if given.options.get("gpu-total"):
        raise NotRenamed("--gpu-total names kinds of GPUs by a label that is renamed")
    for name in {pool.name for pool in names.pools} | {group.name for group in given.groups}:
        names.groups[name.lower()] = _group_name(name, names)
    options = dict[str, Any]()
    for flag, value in given.options.items():
        if flag in _LABELS:
            options[flag] = [names.label_key(item) for item in value]
        elif flag in _SCHEDULERS:
            options[flag] = [names.name("Scheduler", item) for item in value]
        elif flag in (*_LIMITS, "expander", *DURATIONS) or not isinstance(value, str):
            options[flag] = value
    groups = []
    for place, group in enumerate(given.groups):
        renamed: dict[str, Any] = {"name": names.groups[group.name.lower()]}
        renamed |= {"minSize": group.min_size, "maxSize": group.max_size}
        if group.template is not None or group.instance_type:
            path = f"autoscaler.nodeGroups[{place}].name"
            made = dict(template_of(group, path, (), shipped_prices()))
            meta = {key: item for key, item in made["metadata"].items() if key == "labels"}
            renamed["template"] = names.manifest({**made, "apiVersion": "v1", "metadata": meta})
        groups.append(renamed)
    ranks = {
        priority: [
            f"^{re.escape(new)}$" for old, new in sorted(names.groups.items()) if _is_of(old, patterns)
        ]
        for priority, patterns in (priorities_of(given.priorities) or {}).items()
    }
    found: dict[str, Any] = {"options": options, "nodeGroups": groups}
    return {**found, "priorities": json.dumps(ranks)} if ranks else found


def _is_of(group: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.search(group) for pattern in patterns)


def _group_name(name: str, names: Renamer) -> str:
    """A group is named after its nodes' pool, or after pool and instance type, as their labels are renamed."""
    pool = next((one for one in names.pools if name == f"{one.name}-{one.shape}"), EqualNodes(name, ""))
    parts = [names.label_value(POOL_LABELS[-1], part) for part in pool if part]
    return "-".join(parts) if name != NO_POOL else NO_POOL


_DROPPED: Final = ("metricsCollector", "metricsProviders", "metricsUtilization")
_NAMED: Final[Mapping[tuple[str, str], str]] = {
    ("Namespaces", "include"): "Namespace",
    ("Namespaces", "exclude"): "Namespace",
    ("PriorityThreshold", "name"): "PriorityClass",
    ("ProtectedStorageClass", "name"): "StorageClass",
    ("DeschedulerProfile", "name"): "profile",
}
"""Struct and field of a policy -> what its texts name; of other fields they are words that stay, or reasons."""
_ENUMERATED: Final = frozenset((
    *(plugin for plugins in PLUGINS.values() for plugin in plugins),
    *(name for names in PROTECTIONS.values() for name in names),
    *(state for states in STATES.values() for state in states),
    "Preferred", "Mandatory", "OnlyThresholdingResources",
    "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution",
))  # fmt: skip


def _descheduler(text: str, names: Renamer) -> dict[str, Any]:
    found = read_settings(text)
    policy = _renamed(found.policy, "DeschedulerPolicy", "", names)
    renamed = {"apiVersion": found.policy["apiVersion"], "kind": found.policy["kind"], **policy}
    settings_from({"policy": renamed})
    when: dict[str, Any] = {"descheduling-interval": f"{found.interval_ns}ns"} if found.interval_ns else {}
    if found.schedule is not None:
        when = {"schedule": found.schedule.text}
    return {"policy": renamed, "dry-run": found.dry_run, **when}


def _renamed(value: Any, declared: str, field: str, names: Renamer, struct: str = "") -> Any:
    """A value of a policy by its declared type."""
    if value is None:
        return None
    if declared == "LabelSelector":
        return names.walk(value, "labelSelector")
    if declared == "PluginConfig":
        arguments = _renamed(value.get("args"), f"{value['name']}Args", "", names)
        return {"name": value["name"], "args": arguments or {}}
    if declared in STRUCTS:
        return {
            name: _renamed(value[name], inner, name, names, declared)
            for name, inner in STRUCTS[declared].items()
            if name in value and name not in _DROPPED
        }
    if declared.startswith("[]"):
        return [_renamed(item, declared[2:], field, names, struct) for item in value]
    if declared.startswith("map["):
        return {known: item for name, item in value.items() if (known := names.resource(name)) is not None}
    return _text(value, field, names, struct) if declared == "string" else value


def _text(value: str, field: str, names: Renamer, struct: str) -> str:
    if field == "nodeSelector":
        return ",".join(str(_requirement(item, names)) for item in label_requirements(value))
    if field in ("excludedTaints", "includedTaints"):
        key, equals, of = value.partition("=")
        return f"{names.label_key(key)}{equals}{names.label_value(key, of) if equals else ''}"
    if field == "excludeOwnerKinds" or struct == "OwnerKinds":
        return value if value in _kinds() else str(names.name("kind of an owner", value))
    what = _NAMED.get((struct, field))
    if what is not None:
        return str(names.name(what, value))
    return value if value in _ENUMERATED or names.plain(value) == value else str(names.name("reason", value))


def _requirement(item: Requirement, names: Renamer) -> Requirement:
    values = tuple(sorted(str(names.label_value(item.key, value)) for value in item.values))
    return replace(item, key=names.label_key(item.key), values=values)


def _kinds() -> frozenset[str]:
    return frozenset(str(item["kind"]) for item in kinds())


def _vertical(text: str, names: Renamer) -> dict[str, Any]:
    read_vertical(text)
    document = load_documents(text)[0].value
    targets = []
    for given in document["autoscalers"]:
        kind, _, key = given["target"].partition(" ")
        namespace, _, name = key.partition("/")
        renamed = f"{kind} {names.name('Namespace', namespace)}/{names.name(kind, name)}"
        targets.append({**given, "target": renamed})
    return {**document, "autoscalers": targets}


def _karpenter(text: str, names: Renamer) -> list[dict[str, Any]]:
    """NodePools; NodeClasses decide nothing and are left out."""
    pools = {pool.name: pool for pool in read_node_pools(text)}
    renamed = []
    for document in (one.value for one in load_documents(text)):
        if document["kind"] != "NodePool":
            continue
        pool, given = pools[document["metadata"]["name"]], document.get("spec") or {}
        template = given.get("template") or {}
        own, meta = template.get("spec") or {}, template.get("metadata") or {}
        names.groups[pool.name.lower()] = name = names.label_value(POOL, pool.name)
        asked = own.get("requirements") or ()
        limits = (given.get("limits") or {}).items()
        kept = {
            key: given["disruption"][key] for key in _DISRUPTION if key in (given.get("disruption") or {})
        }
        if "budgets" in kept:
            kept["budgets"] = [{key: one[key] for key in _BUDGET if key in one} for one in kept["budgets"]]
        spec = {
            "weight": pool.weight,
            "limits": {known: amount for key, amount in limits if (known := names.resource(key)) is not None},
            "disruption": kept,
            "template": {
                "metadata": {"labels": names.labels(meta.get("labels") or {})},
                "spec": {
                    "requirements": names.walk(
                        [{**one, "values": [*map(str, one.get("values") or ())]} for one in asked],
                        "matchExpressions",
                    ),
                    "taints": names.walk(own.get("taints") or [], "taints"),
                },
            },
        }
        renamed.append(
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
        )
    return renamed


_DISRUPTION: Final = ("consolidationPolicy", "consolidateAfter", "budgets")
_BUDGET: Final = ("nodes", "reasons", "schedule", "duration")
_RENAMED: Final[Mapping[str, Callable[[str, Renamer], Any]]] = {
    CLUSTER_AUTOSCALER: _autoscaler,
    DESCHEDULER: _descheduler,
    VERTICAL: _vertical,
    KARPENTER: _karpenter,
}
