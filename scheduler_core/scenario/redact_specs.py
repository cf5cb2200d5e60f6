"""Specs of what shapes placement without being scheduled, without names: quotas and autoscalers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

_AUTOSCALER: Final = frozenset(("minReplicas", "maxReplicas", "targetCPUUtilizationPercentage", "behavior"))
"""What decides of an autoscaler, beside its target and its metrics."""
_SCOPES: Final = {"PriorityClass": "PriorityClass", "VolumeAttributesClass": "VolumeAttributesClass"}
"""Scopes of a quota whose values are names, and of what."""
_OF_A_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"


class Renaming(Protocol):
    """Who knows the new names (`redact`), and notes the resources whose names stay."""

    resources: dict[str, None]

    def name(self, what: str, value: Any) -> Any: ...

    def pod_name(self, value: Any) -> Any: ...

    def manifest(self, manifest: Mapping[str, Any]) -> dict[str, Any]: ...


def quota_spec(spec: Mapping[str, Any], renaming: Renaming) -> dict[str, Any]:
    """Scopes name classes, and so do the amounts of a storage class: ``gold.storageclass.storage.k8s.io/...``."""
    result = {key: value for key, value in spec.items() if key in ("hard", "scopes")}
    if "hard" in result:
        result["hard"] = {_counted(name, renaming): amount for name, amount in (result["hard"] or {}).items()}
    selector = spec.get("scopeSelector")
    if isinstance(selector, Mapping):
        result["scopeSelector"] = {
            "matchExpressions": [_scope(item, renaming) for item in selector.get("matchExpressions") or ()]
        }
    return result


def _counted(name: str, renaming: Renaming) -> str:
    """What a quota counts."""
    what, found, rest = name.partition(_OF_A_STORAGE_CLASS)
    if found:
        return f"{renaming.name('StorageClass', what)}{found}{rest}"
    if "/" in name and not name.startswith("count/"):
        renaming.resources[name.removeprefix("requests.").removeprefix("limits.")] = None
    return name


def _scope(value: Mapping[str, Any], renaming: Renaming) -> dict[str, Any]:
    what = _SCOPES.get(str(value.get("scopeName")))
    if what is None or "values" not in value:
        return dict(value)
    return {**value, "values": [renaming.name(what, item) for item in value["values"] or ()]}


def autoscaler_spec(spec: Mapping[str, Any], renaming: Renaming) -> dict[str, Any]:
    result = {key: value for key, value in spec.items() if key in _AUTOSCALER}
    target = spec.get("scaleTargetRef")
    if isinstance(target, Mapping):
        named = renaming.name(str(target.get("kind")), target.get("name"))
        result["scaleTargetRef"] = {**target, "name": named}
    if "metrics" in spec:
        result["metrics"] = [_metric(item, renaming) for item in spec["metrics"] or ()]
    return result


def _metric(value: Any, renaming: Renaming) -> Any:
    """A metric of an autoscaler: other than those of resources there are none here, so that no name is read."""
    if not isinstance(value, Mapping):
        return value
    result = dict(value)
    for key in ("pods", "object", "external"):
        if isinstance(value.get(key), Mapping):
            kept = {name: item for name, item in value[key].items() if name == "target"}
            named = renaming.name("metric", (value[key].get("metric") or {}).get("name"))
            result[key] = {"metric": {"name": named}, **kept}
            if "describedObject" in value[key]:
                about = value[key]["describedObject"]
                named = renaming.name(str(about.get("kind")), about.get("name"))
                result[key]["describedObject"] = {**about, "name": named}
    if isinstance(value.get("containerResource"), Mapping):
        result["containerResource"] = {**value["containerResource"], "container": "c0"}
    return result
