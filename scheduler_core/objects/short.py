"""The short form of nodes and pods: `{name: n, cpu: 8, memory: 32Gi, zone: [a, b], count: 4}` is four Nodes.

Its fields are described, for editors too, by `ShortNode` and `ShortPod` of the scenario's schema. What it cannot say is
written as Kubernetes does, beside it. What is made of it are plain manifests: nothing else reads the short form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.node import LABEL_HOSTNAME, LABEL_INSTANCE_TYPE, LABEL_ZONE
from scheduler_core.objects.prices import NodeType, amount_from, labels_from, shipped_prices, taint_from
from scheduler_core.schema.fields_check import nearest_name

Manifest = dict[str, Any]

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "nodes": ("name", "type", "cpu", "memory", "pods", "devices", "zone", "pool", "labels", "taints", "count"),
    "pods": (
        "name", "namespace", "labels", "cpu", "memory", "devices", "priority", "nodeSelector", "tolerations", "spread",
        "affinity", "nodeName", "count",
    ),
}  # fmt: skip
"""Key of a document -> what an entry of its list may say."""
MOST: Final = 10_000
"""Of `count`."""
POOL: Final = "pool"
"""The label of a node's pool."""
_TOPOLOGY: Final = {"zone": LABEL_ZONE, "node": LABEL_HOSTNAME}
_TOLERATION: Final = re.compile(r"([^=:]+)(?:=([^:]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?")


def is_short(item: Mapping[str, Any]) -> bool:
    """Whether an entry of `nodes` or `pods` is of the short form: a manifest says what it is, or has metadata."""
    return not item.keys() & {"apiVersion", "kind", "metadata", "spec", "status"}


def written_out(key: str, item: Mapping[str, Any]) -> list[Manifest]:
    """The manifests that an entry of the list `key` means.

    Raises
    ------
    InvalidObject
        Names the field, in the entry, and the value.
    """
    for name in item:
        if name not in FIELDS[key]:
            near = nearest_name(str(name), FIELDS[key])
            known = f'did you mean "{near}"?' if near else f"known here: {', '.join(FIELDS[key])}"
            raise InvalidObject(str(name), item[name], f"unknown field; {known}")
    if not isinstance(item.get("name"), str) or not item["name"]:
        raise InvalidObject("name", item.get("name"), "is required and must be a string")
    count = item.get("count", 1)
    if type(count) is not int or not 1 <= count <= MOST:
        raise InvalidObject("count", count, f"must be a whole number from 1 to {MOST:,}")
    names = [f"{item['name']}-{number}" for number in range(count)] if "count" in item else [item["name"]]
    return list(_nodes(item, names) if key == "nodes" else _pods(item, names))


def _nodes(item: Mapping[str, Any], names: Sequence[str]) -> Iterator[Manifest]:
    of_type = _type(item["type"]) if item.get("type") is not None else None
    labels = {**(of_type.labels if of_type else {}), **labels_from(item.get("labels"), "labels")}
    if of_type:
        labels = {LABEL_INSTANCE_TYPE: of_type.name, **labels}
    if item.get("pool") is not None:
        labels[POOL] = _text(item, "pool")
    amounts = {
        **(of_type.allocatable if of_type else {"pods": "110"}),
        **_amounts(item, "cpu", "memory", "pods"),
    }
    for name in ("cpu", "memory"):
        if name not in amounts:
            raise InvalidObject(name, None, "is required, or a type that has it")
    taints = [taint_from(taint, path) for path, taint in _listed(item, "taints")]
    taints = [*map(dict, of_type.taints if of_type else ()), *taints]
    zones = [zone for _, zone in _listed(item, "zone")]
    for number, name in enumerate(names):
        own = {LABEL_HOSTNAME: name, **labels}
        if zones:
            own = {LABEL_ZONE: str(zones[number % len(zones)]), **own}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": own},
            **({"spec": {"taints": [dict(taint) for taint in taints]}} if taints else {}),
            "status": {"allocatable": dict(amounts)},
        }


def _type(name: Any) -> NodeType:
    types = {one.name: one for one in shipped_prices().types}
    if not isinstance(name, str) or name not in types:
        near = nearest_name(str(name), types)
        known = f'did you mean "{near}"?' if near else f"known here: {', '.join(types)}"
        raise InvalidObject("type", name, f"is no node type of the price list; {known}")
    return types[name]


def _pods(item: Mapping[str, Any], names: Sequence[str]) -> Iterator[Manifest]:
    labels = {"app": item["name"], **labels_from(item.get("labels"), "labels")}
    requests = _amounts(item, "cpu", "memory")
    devices = {name: amount for name, amount in requests.items() if name not in ("cpu", "memory")}
    resources = {"requests": requests, **({"limits": devices} if devices else {})}
    spec: Manifest = {}
    if (priority := item.get("priority")) is not None:
        if type(priority) is not int:
            raise InvalidObject("priority", priority, "must be a whole number")
        name = f"priority-{priority}".replace("--", "-minus-")
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": priority,
        }
        spec["priorityClassName"] = name
    if item.get("nodeSelector"):
        spec["nodeSelector"] = labels_from(item["nodeSelector"], "nodeSelector")
    if tolerations := [_toleration(value, path) for path, value in _listed(item, "tolerations")]:
        spec["tolerations"] = tolerations
    if spread := [_spread(value, path, item["name"]) for path, value in _listed(item, "spread")]:
        spec["topologySpreadConstraints"] = spread
    if item.get("affinity") is not None:
        spec["affinity"] = _affinity(item["affinity"])
    if item.get("nodeName") is not None:
        spec["nodeName"] = _text(item, "nodeName")
    where = {"namespace": _text(item, "namespace")} if item.get("namespace") is not None else {}
    for name in names:
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **where, "labels": dict(labels)},
            "spec": {
                "containers": [{"name": "main", **({"resources": resources} if requests else {})}],
                **spec,
            },
        }


def _text(item: Mapping[str, Any], key: str) -> str:
    if not isinstance(item[key], str) or not item[key]:
        raise InvalidObject(key, item[key], "must be a string")
    text: str = item[key]
    return text


def _listed(item: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    """What a field says, once or as a list, each with its path."""
    value = item.get(key)
    if isinstance(value, list | tuple):
        return [(f"{key}[{place}]", each) for place, each in enumerate(value)]
    return [] if value is None else [(key, value)]


def _amounts(item: Mapping[str, Any], *keys: str) -> dict[str, str]:
    found = {
        key: amount_from(item[key], key, whole=key == "pods") for key in keys if item.get(key) is not None
    }
    devices = item.get("devices") or {}
    if not isinstance(devices, Mapping):
        raise InvalidObject(
            "devices", devices, "must be a mapping of resources to numbers, as {nvidia.com/gpu: 1}"
        )
    for name, amount in devices.items():
        found[str(name)] = amount_from(amount, f"devices.{name}", whole=True)
    return found


def _toleration(value: Any, path: str) -> Manifest:
    if isinstance(value, Mapping):
        return dict(value)
    found = _TOLERATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise InvalidObject(
            path, value, "must be written key, key=value or key=value:Effect, or as Kubernetes does"
        )
    toleration = {"key": found[1], "operator": "Exists" if found[2] is None else "Equal"}
    return toleration | {key: found[n] for n, key in ((2, "value"), (3, "effect")) if found[n] is not None}


def _topology(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidObject(path, value, "must be zone, node or a label's key")
    return _TOPOLOGY.get(value, value)


def _of_app(name: str) -> Manifest:
    return {"matchLabels": {"app": name}}


def _spread(value: Any, path: str, name: str) -> Manifest:
    if not isinstance(value, Mapping):
        value = {"topologyKey": value}
    key = _topology(value.get("topologyKey"), f"{path}.topologyKey" if "topologyKey" in value else path)
    defaults = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _of_app(name)}
    return {**defaults, **value, "topologyKey": key}


def _affinity(said: Any) -> Manifest:
    if not isinstance(said, Mapping) or not said or not said.keys() <= {"near", "apart", "by"}:
        raise InvalidObject(
            "affinity", said, "must be near or apart with names of pods, and by: zone or node"
        )
    key = _topology(said.get("by", "node"), "affinity.by")
    return {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": _of_app(str(name)), "topologyKey": key} for _, name in _listed(said, word)
            ]
        }
        for word, kind in (("near", "podAffinity"), ("apart", "podAntiAffinity"))
        if said.get(word) is not None
    }
