"""Parts of a pod as rows of its form, and back: what the form can say of a manifest."""

from collections.abc import Mapping, Sequence
from typing import Any

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AMOUNTS = ("cpu", "memory")


def put(holder: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Set a key, or leave it out when there is nothing to say."""
    if value:
        holder[key] = value
    else:
        holder.pop(key, None)
    return holder


def toleration(row: Mapping[str, Any]) -> dict[str, Any]:
    """One toleration."""
    made = {"key": row["key"]} if row["key"] else {}
    made["operator"] = row["operator"] or "Equal"
    if made["operator"] == "Equal" and row["value"]:
        made["value"] = row["value"]
    return put(made, "effect", row["effect"])


def expression(row: Mapping[str, Any]) -> dict[str, Any]:
    """One match expression."""
    made: dict[str, Any] = {"key": row["key"], "operator": row["operator"] or "In"}
    if made["operator"] not in ("Exists", "DoesNotExist"):
        made["values"] = [value.strip() for value in (row["values"] or "").split(",") if value.strip()]
    return made


def spread(row: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """One topology spread constraint over pods with the same labels."""
    made: dict[str, Any] = {
        "maxSkew": row["skew"] or 1,
        "topologyKey": row["key"],
        "whenUnsatisfiable": row["when"] or "ScheduleAnyway",
    }
    if labels:
        made["labelSelector"] = {"matchLabels": dict(labels)}
    return made


def put_node_affinity(
    spec: dict[str, Any], required: Sequence[Mapping[str, Any]], preferred: Sequence[Mapping[str, Any]]
) -> None:
    """Write node affinity; pod affinity beside it stays."""
    affinity = dict(spec.get("affinity") or {})
    node: dict[str, Any] = {}
    if required:
        node[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": [expression(row) for row in required]}]}
    if preferred:
        node[PREFERRED] = [
            {"weight": row["weight"] or 1, "preference": {"matchExpressions": [expression(row)]}}
            for row in preferred
        ]
    put(spec, "affinity", put(affinity, "nodeAffinity", node))


def container(base: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The first container with the form's image, requests and host port."""
    made = {"name": "main", **base, "image": data["image"] or "pause:3.10"}
    resources = dict(made.pop("resources", None) or {})
    requests = {key: data[key] for key in AMOUNTS if data[key]} | data["extended"]
    limits = {key: value for key, value in (resources.get("limits") or {}).items() if "/" not in key}
    put(resources, "requests", requests)
    put(resources, "limits", limits | data["extended"])
    put(made, "resources", resources)
    others = [port for port in made.pop("ports", None) or [] if not port.get("hostPort")]
    port = data["host_port"]
    return put(made, "ports", ([{"containerPort": port, "hostPort": port}] if port else []) + others)


def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the form's fields are for a manifest; parts it has no field for are not in it."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    first = (spec.get("containers") or [{}])[0]
    requests = (first.get("resources") or {}).get("requests") or {}
    ports = [port["hostPort"] for port in first.get("ports") or [] if port.get("hostPort")]
    values: dict[str, Any] = {
        "name": metadata.get("name") or "",
        "namespace": metadata.get("namespace") or "default",
        "copies": 1,
        "priority_class": spec.get("priorityClassName") or "",
        "labels": _pairs(metadata.get("labels")),
        "cpu": str(requests.get("cpu", "")),
        "memory": str(requests.get("memory", "")),
        "extended": _pairs({key: value for key, value in requests.items() if "/" in key}),
        "image": first.get("image") or "",
        "host_port": ports[0] if ports else "",
        "node_selector": _pairs(spec.get("nodeSelector")),
    }
    for i, one in enumerate(spec.get("tolerations") or []):
        values |= {f"toleration_{i}_{key}": one.get(key) or "" for key in ("key", "value", "effect")}
        values[f"toleration_{i}_operator"] = one.get("operator") or "Equal"
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    for i, one in enumerate(terms[0].get("matchExpressions") or []):
        values |= _expression("required", i, one)
    for i, term in enumerate(node.get(PREFERRED) or []):
        expressions = (term.get("preference") or {}).get("matchExpressions") or [{}]
        values |= _expression("affinity", i, expressions[0])
        values[f"affinity_{i}_weight"] = term.get("weight") or 1
    for i, one in enumerate(spec.get("topologySpreadConstraints") or []):
        values[f"spread_{i}_key"] = one.get("topologyKey") or ""
        values[f"spread_{i}_skew"] = one.get("maxSkew") or 1
        values[f"spread_{i}_when"] = one.get("whenUnsatisfiable") or "DoNotSchedule"
    return values


def _expression(group: str, i: int, one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{group}_{i}_key": one.get("key") or "",
        f"{group}_{i}_operator": one.get("operator") or "In",
        f"{group}_{i}_values": ", ".join(map(str, one.get("values") or [])),
    }


def _pairs(pairs: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (pairs or {}).items())
