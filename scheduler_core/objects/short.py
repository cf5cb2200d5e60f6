"""The short form of nodes and pods: `{name: n, cpu: 8, memory: 32Gi, zone: [a, b], count: 4}` is four Nodes.

Its fields are described, for editors too, by `ShortNode` and `ShortPod` of the scenario's schema. What it cannot say is
written as Kubernetes does, beside it. What is made of it are plain manifests: nothing else reads the short form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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


# ---- the way back


def shortened(
    manifests: Sequence[Mapping[str, Any]], same: Callable[[Manifest], Any]
) -> dict[str, list[Manifest]]:
    """`nodes` and `pods` in the short form, and `objects` that it cannot say, as they are.

    Parameters
    ----------
    same
        What of a manifest must be equal for two to be the same.
    """
    found: dict[str, list[Manifest]] = {"nodes": [], "objects": [], "pods": []}
    classes: list[Any] = []
    rest = [dict(manifest) for manifest in manifests]
    while rest:
        key = {"Node": "nodes", "Pod": "pods"}.get(str(rest[0].get("kind")), "")
        for item, taken in _items(key, rest):
            made = [same(one) for one in written_out(key, item)]
            if [one for one in made if one["kind"] != "PriorityClass"] == [same(one) for one in rest[:taken]]:
                classes += [one for one in made if one["kind"] == "PriorityClass"]
                found[key].append(item)
                del rest[:taken]
                break
        else:
            found["objects"].append(rest.pop(0))
    found["objects"] = [one for one in found["objects"] if same(one) not in classes]
    return {key: items for key, items in found.items() if items}


def _items(key: str, manifests: Sequence[Manifest]) -> Iterator[tuple[Manifest, int]]:
    """Entries that may mean the first of some manifests, and how many they mean: of several, and of it alone."""
    if not key:
        return
    try:
        parts = [_parts(key, manifests[0])]
        name = parts[0]["name"]
        base = name[:-2] if name.endswith("-0") else ""
        while base and len(parts) < min(len(manifests), MOST):
            following = manifests[len(parts)]
            if following.get("kind") != manifests[0]["kind"]:
                break
            part = _parts(key, following)
            if part | {"name": "", "zone": ""} != parts[0] | {"name": "", "zone": ""}:
                break
            if part["name"] != f"{base}-{len(parts)}":
                break
            parts.append(part)
        if base:
            zones = [part.get("zone") for part in parts]
            turn = next(
                n for n in range(1, len(zones) + 1) if zones == [zones[at % n] for at in range(len(zones))]
            )
            zone = {"zone": zones[0] if turn == 1 else zones[:turn]} if zones[0] else {}
            item = {"name": base, **parts[0], **zone} | {"name": base, "count": len(parts)}
            yield _without_own_app(item, base), len(parts)
        yield _without_own_app(parts[0], name), 1
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        # It has a form that the short one does not know.
        return


def _without_own_app(item: Manifest, base: str) -> Manifest:
    labels = {key: value for key, value in item.get("labels", {}).items() if (key, value) != ("app", base)}
    return {key: value for key, value in (item | {"labels": labels}).items() if value not in ({}, [], None)}


def _parts(key: str, manifest: Manifest) -> Manifest:
    """What the short form can say of one manifest."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    labels = dict(metadata.get("labels") or {})
    if key == "nodes":
        labels.pop(LABEL_HOSTNAME, None)
        has = dict(manifest["status"]["allocatable"])
        kind = {one.name: one for one in shipped_prices().types}.get(labels.get(LABEL_INSTANCE_TYPE, ""))
        of_type = {} if kind is None else kind.allocatable
        if kind is not None:
            del labels[LABEL_INSTANCE_TYPE]
            labels = {name: value for name, value in labels.items() if kind.labels.get(name) != value}
        has = {name: str(value) for name, value in has.items() if of_type.get(name) != value}
        own = [
            taint
            for taint in spec.get("taints") or ()
            if kind is None or dict(taint) not in map(dict, kind.taints)
        ]
        pods = has.pop("pods", None)
        return {
            "name": metadata["name"],
            "type": kind and kind.name,
            **_split(has),
            "pods": None if pods == "110" else pods,
            "zone": labels.pop(LABEL_ZONE, None),
            "pool": labels.pop(POOL, None),
            "labels": labels,
            "taints": [
                f"{one['key']}{'=' + one['value'] if one.get('value') else ''}:{one['effect']}" for one in own
            ],
        }
    priority = str(spec.get("priorityClassName") or "").removeprefix("priority-").replace("minus-", "-")
    return {
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        **_split((spec["containers"][0].get("resources") or {}).get("requests") or {}),
        "priority": int(priority) if priority else None,
        "nodeSelector": spec.get("nodeSelector"),
        "tolerations": [_toleration_words(one) for one in spec.get("tolerations") or ()],
        "spread": [_spread_words(one) for one in spec.get("topologySpreadConstraints") or ()],
        "nodeName": spec.get("nodeName"),
        "labels": labels,
    }


def _split(amounts: Mapping[str, Any]) -> Manifest:
    devices = {name: amount for name, amount in amounts.items() if name not in ("cpu", "memory", "pods")}
    return {"cpu": amounts.get("cpu"), "memory": amounts.get("memory"), "devices": devices} | (
        {"pods": amounts["pods"]} if "pods" in amounts else {}
    )


def _toleration_words(said: Manifest) -> Any:
    value = {"Equal": f"={said.get('value', '')}", "Exists": ""}.get(said.get("operator", "Equal"))
    effect = f":{said['effect']}" if said.get("effect") else ""
    return f"{said['key']}{value}{effect}" if value is not None and "tolerationSeconds" not in said else said


def _spread_words(said: Manifest) -> Any:
    names = {key: word for word, key in _TOPOLOGY.items()}
    key = names.get(said["topologyKey"], said["topologyKey"])
    usual = said.get("maxSkew", 1) == 1 and said.get("whenUnsatisfiable") == "DoNotSchedule"
    return key if usual and len(said) == 4 else said | {"topologyKey": key}
