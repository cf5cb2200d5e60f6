"""Objects between the versions of their kind: the one their rows have, and the one a client asked for.

Source: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/events/v1/conversion.go, v1.34; conversion "None" of custom
resources changes the apiVersion alone
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from playground.clusters.kinds import Kind

_EVENT_NAMES: Final = {  # core v1 -> events.k8s.io/v1
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_NAMES_BACK: Final = {new: old for old, new in _EVENT_NAMES.items()}
_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"


def as_stored(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """An object a client wrote in this version, as its row has it."""
    if not kind.stored_version or manifest.get("apiVersion") == kind.stored_version:
        return manifest
    result = {**manifest, "apiVersion": kind.stored_version}
    return _CONVERSIONS[kind.type][0](result) if kind.type in _CONVERSIONS else result


def as_served(kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """An object as stored, in the version of this kind."""
    if manifest.get("apiVersion") == kind.api_version:
        return manifest
    result = {**manifest, "apiVersion": kind.api_version}
    return _CONVERSIONS[kind.type][1](result) if kind.type in _CONVERSIONS else result


def _renamed(manifest: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in manifest.items()}


def _autoscaler_from_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    meta = dict(_mapping(manifest.get("metadata")))
    notes = dict(_mapping(meta.get("annotations")))
    spec, status = dict(_mapping(manifest.get("spec"))), dict(_mapping(manifest.get("status")))
    metrics = _listed(notes.pop(_METRICS, None))
    if (target := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": wanted}})
    if metrics:
        spec["metrics"] = metrics
    if isinstance(behavior := _parsed(notes.pop(_BEHAVIOR, None)), dict):
        spec["behavior"] = behavior
    current = _listed(notes.pop(_CURRENT, None))
    if (usage := status.pop("currentCPUUtilizationPercentage", None)) is not None:
        value = {"averageUtilization": usage}
        current.append({"type": "Resource", "resource": {"name": "cpu", "current": value}})
    if current:
        status["currentMetrics"] = current
    if conditions := _listed(notes.pop(_CONDITIONS, None)):
        status["conditions"] = conditions
    return _put_back(manifest, meta, notes, spec, status)


def _autoscaler_to_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    meta = dict(_mapping(manifest.get("metadata")))
    notes = dict(_mapping(meta.get("annotations")))
    spec, status = dict(_mapping(manifest.get("spec"))), dict(_mapping(manifest.get("status")))
    others = []
    for metric in spec.pop("metrics", None) or ():
        target = _cpu(metric, "target")
        if target is None or "targetCPUUtilizationPercentage" in spec:
            others.append(metric)
        else:
            spec["targetCPUUtilizationPercentage"] = target
    others_now = []
    for metric in status.pop("currentMetrics", None) or ():
        usage = _cpu(metric, "current")
        if usage is None or "currentCPUUtilizationPercentage" in status:
            others_now.append(metric)
        else:
            status["currentCPUUtilizationPercentage"] = usage
    kept = {
        _METRICS: others,
        _BEHAVIOR: spec.pop("behavior", None),
        _CURRENT: others_now,
        _CONDITIONS: status.pop("conditions", None),
    }
    notes |= {key: json.dumps(value, separators=(",", ":")) for key, value in kept.items() if value}
    return _put_back(manifest, meta, notes, spec, status)


def _with_plain_selector(manifest: dict[str, Any]) -> dict[str, Any]:
    """A rule without what could choose devices in 1.34 alone."""
    spec = _mapping(manifest.get("spec"))
    chosen = {
        key: value
        for key, value in _mapping(spec.get("deviceSelector")).items()
        if key not in ("deviceClassName", "selectors")
    }
    return {**manifest, "spec": {**spec, "deviceSelector": chosen}} if "deviceSelector" in spec else manifest


def _put_back(
    manifest: Mapping[str, Any],
    meta: dict[str, Any],
    notes: dict[str, Any],
    spec: dict[str, Any],
    status: dict[str, Any],
) -> dict[str, Any]:
    meta.pop("annotations", None)
    if notes:
        meta["annotations"] = notes
    parts = {"metadata": meta, "spec": spec, "status": status}
    return {**manifest, **{key: value for key, value in parts.items() if value or key in manifest}}


def _cpu(metric: Any, key: str) -> int | None:
    """The average utilization of a metric that is about cpu and nothing else."""
    resource = _mapping(_mapping(metric).get("resource"))
    if resource.get("name") != "cpu":
        return None
    value = _mapping(resource.get(key)).get("averageUtilization")
    return value if isinstance(value, int) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(text: Any) -> list[Any]:
    found = _parsed(text)
    return found if isinstance(found, list) else []


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


_Conversion = Callable[[dict[str, Any]], dict[str, Any]]
_CONVERSIONS: Final[Mapping[str, tuple[_Conversion, _Conversion]]] = {
    "autoscaling.v1.HorizontalPodAutoscaler": (_autoscaler_from_v1, _autoscaler_to_v1),
    "resource.v1beta2.DeviceTaintRule": (lambda manifest: manifest, _with_plain_selector),
    "events.v1.Event": (
        lambda manifest: _renamed(manifest, _EVENT_NAMES_BACK),
        lambda manifest: _renamed(manifest, _EVENT_NAMES),
    ),
}
"""Type -> into the stored version, and back, with the new apiVersion in place. Of others that is all that changes."""
