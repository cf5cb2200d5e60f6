"""The scale subresource: of workloads, and of custom resources by the paths that their definition names.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go (ScaleREST), v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playground.clusters.kinds import Kind
from playground.kube_api.status import Refusal

_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The Scale of an object.

    Raises
    ------
    Refusal
        A custom resource has no such field.
    """
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    if kind.custom is None:
        selector = spec.get("selector") or {}
        labels = selector.get("matchLabels", {}) if "matchLabels" in selector else selector
        words = ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str))
        replicas, now = spec.get("replicas"), status.get("replicas")
        replicas = 1 if replicas is None else replicas
    else:
        paths = _paths(kind)
        replicas, now = _at(manifest, paths["specReplicasPath"]), _at(manifest, paths["statusReplicasPath"])
        words = _at(manifest, paths.get("labelSelectorPath", ""))
        if not isinstance(replicas, int):
            said = f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'
            raise Refusal("InternalError", f"Internal error occurred: {said}")
    meta = manifest["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in _KEPT if key in meta},
        "spec": {"replicas": replicas},
        "status": {
            "replicas": now if isinstance(now, int) else 0,
            **({"selector": words} if isinstance(words, str) else {}),
        },
    }


def scaled(kind: Kind, manifest: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """The object with another number of replicas."""
    path = [part for part in _paths(kind)["specReplicasPath"].split(".") if part]
    return _with(manifest, path, replicas)


def _paths(kind: Kind) -> Mapping[str, str]:
    if kind.custom is None:
        return {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    found: Mapping[str, str] = kind.custom["subresources"]["scale"]
    return found


def _at(value: Any, path: str) -> Any:
    for part in filter(None, path.split(".")):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if path else None


def _with(value: Mapping[str, Any], path: list[str], replicas: int) -> dict[str, Any]:
    first, *rest = path
    inner = value.get(first)
    return {
        **value,
        first: _with(inner if isinstance(inner, Mapping) else {}, rest, replicas) if rest else replicas,
    }
