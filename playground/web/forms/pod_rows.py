"""A pod as the values of its form, and back: what the form can say of a manifest."""

from collections.abc import Mapping
from typing import Any

from playground.web.forms.pod_groups import GROUPS, put

AMOUNTS = ("cpu", "memory")


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
    for key, group in GROUPS.items():
        for i, row in enumerate(group.rows_of(spec)):
            values |= {f"{key}_{i}_{name}": _text(value) for name, value in row.items()}
    return values


def _text(value: Any) -> Any:
    """A cleaned value as it is posted."""
    return _pairs(value) if isinstance(value, Mapping) else "" if value is None else value


def _pairs(pairs: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (pairs or {}).items())
