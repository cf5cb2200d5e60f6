"""Defaults of resource.k8s.io, and how its first beta is read today.

Source: pkg/apis/resource/v1/defaults.go, pkg/apis/resource/v1beta1/conversion.go, v1.36
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_core.objects.fields import Document, mapping, mappings

_EXACT_FIELDS = (
    "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity",
)  # fmt: skip
"""What stood in a request itself in v1beta1, and stands in its `exactly` now."""


def with_device_defaults(manifest: Document) -> dict[str, Any]:
    """A claim, template, slice or class with what the API server fills in."""
    match manifest.get("kind"):
        case "ResourceClaim":
            return _with_claim_spec(manifest, "spec", _with_requests)
        case "ResourceClaimTemplate":
            spec = mapping(manifest, "spec", "")
            return (
                {**manifest, "spec": _with_claim_spec(spec, "spec", _with_requests)}
                if spec
                else dict(manifest)
            )
        case _:
            return dict(manifest)


def from_first_beta(manifest: Document) -> dict[str, Any]:
    """An object of v1beta1 as v1 writes it: exact requests under `exactly`, devices without `basic`."""
    match manifest.get("kind"):
        case "ResourceClaim":
            return _with_claim_spec(manifest, "spec", _with_exactly)
        case "ResourceClaimTemplate":
            spec = mapping(manifest, "spec", "")
            return (
                {**manifest, "spec": _with_claim_spec(spec, "spec", _with_exactly)}
                if spec
                else dict(manifest)
            )
        case "ResourceSlice":
            spec = mapping(manifest, "spec", "")
            devices = [
                {
                    **{key: value for key, value in device.items() if key != "basic"},
                    **mapping(device, "basic", path),
                }
                for path, device in mappings(spec, "devices", "spec")
            ]
            return {**manifest, "spec": {**spec, **({"devices": devices} if devices else {})}}
        case _:
            return dict(manifest)


def _with_claim_spec(
    document: Document, key: str, change: Callable[[Document, str], dict[str, Any]]
) -> dict[str, Any]:
    spec = mapping(document, key, "")
    devices = mapping(spec, "devices", key)
    if not devices.get("requests"):
        return dict(document)
    requests = [change(item, path) for path, item in mappings(devices, "requests", f"{key}.devices")]
    return {**document, key: {**spec, "devices": {**devices, "requests": requests}}}


def _with_exactly(request: Document, path: str) -> dict[str, Any]:
    if request.get("exactly") is not None or request.get("firstAvailable"):
        return dict(request)
    exactly = {key: request[key] for key in _EXACT_FIELDS if key in request}
    rest = {key: value for key, value in request.items() if key not in _EXACT_FIELDS}
    return {**rest, "exactly": exactly} if exactly else rest


def _with_requests(request: Document, path: str) -> dict[str, Any]:
    result = dict(request)
    if request.get("exactly") is not None:
        result["exactly"] = _counted(mapping(request, "exactly", path), f"{path}.exactly")
    if request.get("firstAvailable"):
        result["firstAvailable"] = [
            _counted(item, where) for where, item in mappings(request, "firstAvailable", path)
        ]
    return result


def _counted(request: Document, path: str) -> dict[str, Any]:
    result = dict(request)
    if not result.get("allocationMode"):
        result["allocationMode"] = "ExactCount"
    if result["allocationMode"] == "ExactCount" and not result.get("count"):
        result["count"] = 1
    tolerations = mappings(request, "tolerations", path)
    if tolerations:
        result["tolerations"] = [{"operator": "Equal", **item} for _, item in tolerations]
    return result
