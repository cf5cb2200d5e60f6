"""What an API server refuses of resource.k8s.io objects and of a Workload; the first problem is enough.

Source: pkg/apis/resource/validation/validation.go, pkg/apis/scheduling/validation/validation.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from scheduler_core.dynamic_resources.model import ALL, EXACT_COUNT, MAX_ALTERNATIVES, MAX_DEVICES
from scheduler_core.dynamic_resources.selectors import DeviceSelectorError, compiled
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import (
    Document,
    boolean,
    mapping,
    mappings,
    optional_integer,
    string,
    strings,
)
from scheduler_core.objects.label_syntax import label_errors, subdomain_errors
from scheduler_core.objects.quantity import QuantityError, parse_quantity

MAX_IN_SLICE = 128
MAX_IN_DETAIL = 64
"""Devices of a slice where one has taints or consumes counters."""
MAX_LIST = 32
MAX_TEMPLATES = 8
KINDS = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "Workload")
NODE_CHOICES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
VALUE_TYPES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
EFFECTS = ("None", "NoSchedule", "NoExecute")

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(manifest: Document) -> None:
    """Check a defaulted object; one of another kind is let through.

    Raises
    ------
    InvalidObject
        With the field path and the value at fault.
    """
    spec = mapping(manifest, "spec", "")
    match manifest.get("kind"):
        case "ResourceClaim":
            _claim(spec, "spec")
            _status(manifest)
        case "ResourceClaimTemplate":
            _claim(mapping(spec, "spec", "spec"), "spec.spec")
        case "ResourceSlice":
            _slice(spec)
        case "DeviceClass":
            _selectors(spec, "spec")
            name = string(spec, "extendedResourceName", "spec")
            if name and "/" not in name:
                raise InvalidObject("spec.extendedResourceName", name, "must be an extended resource name")
        case "Workload":
            _workload(spec)


# ---- claims


def _claim(spec: Document, path: str) -> None:
    devices = mapping(spec, "devices", path)
    base = f"{path}.devices"
    names: dict[str, None] = {}
    for where, request in _limited(devices, "requests", base, MAX_LIST):
        name = _label(request, "name", where)
        if name in names:
            raise InvalidObject(f"{where}.name", name, "Duplicate value")
        names[name] = None
        is_exact = request.get("exactly") is not None
        if is_exact == bool(request.get("firstAvailable")):
            raise InvalidObject(where, name, "exactly one of `exactly` or `firstAvailable` is required")
        if is_exact:
            _request(mapping(request, "exactly", where), f"{where}.exactly")
            continue
        for inner, item in _limited(request, "firstAvailable", where, MAX_ALTERNATIVES):
            full = f"{name}/{_label(item, 'name', inner)}"
            if full in names:
                raise InvalidObject(f"{inner}.name", item["name"], "Duplicate value")
            names[full] = None
            _request(item, inner)
    for where, item in _limited(devices, "constraints", base, MAX_LIST):
        _known(item, where, names)
        kinds = [key for key in ("matchAttribute", "distinctAttribute") if item.get(key) is not None]
        if len(kinds) != 1:
            raise InvalidObject(
                where, kinds, "exactly one of `matchAttribute` or `distinctAttribute` is required"
            )
        attribute = string(item, kinds[0], where)
        domain, slash, identifier = attribute.rpartition("/")
        if not slash:
            raise InvalidObject(f"{where}.{kinds[0]}", attribute, "must include a domain")
        if not _SUBDOMAIN.fullmatch(domain) or not _IDENTIFIER.fullmatch(identifier):
            raise InvalidObject(f"{where}.{kinds[0]}", attribute, "must be DOMAIN/IDENTIFIER")
    for where, item in _limited(devices, "config", base, MAX_LIST):
        _known(item, where, names)


def _request(request: Document, path: str) -> None:
    name = string(request, "deviceClassName", path)
    if not name:
        raise InvalidObject(f"{path}.deviceClassName", None, "is required")
    if wrong := subdomain_errors(name):
        raise InvalidObject(f"{path}.deviceClassName", name, wrong[0])
    _selectors(request, path)
    mode = string(request, "allocationMode", path)
    count = optional_integer(request, "count", path)
    if mode == EXACT_COUNT:
        if count is None or count < 1:
            raise InvalidObject(f"{path}.count", count, "must be greater than zero")
    elif mode == ALL:
        if count:
            raise InvalidObject(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    else:
        raise InvalidObject(f"{path}.allocationMode", mode, f"must be one of {ALL}, {EXACT_COUNT}")
    boolean(request, "adminAccess", path)
    for where, item in _limited(request, "tolerations", path, 16):
        operator = string(item, "operator", where)
        if operator not in ("Equal", "Exists"):
            raise InvalidObject(f"{where}.operator", operator, "must be one of Equal, Exists")
        if operator == "Exists" and item.get("value"):
            raise InvalidObject(f"{where}.value", item["value"], "must be empty for operator `Exists`")
        if operator == "Equal" and not item.get("key"):
            raise InvalidObject(f"{where}.key", None, "is required")
        _effect(item, where, optional=True)
    _amounts(mapping(mapping(request, "capacity", path), "requests", path), f"{path}.capacity.requests")


def _known(item: Document, path: str, names: Iterable[str]) -> None:
    known = list(names)
    for index, name in enumerate(strings(item, "requests", path)):
        if name not in known:
            raise InvalidObject(
                f"{path}.requests[{index}]", name, "must be the name of a request in the claim"
            )


def _status(manifest: Document) -> None:
    status = mapping(manifest, "status", "")
    allocation = mapping(status, "allocation", "status")
    devices = mapping(allocation, "devices", "status.allocation")
    base = "status.allocation.devices"
    for where, item in _limited(devices, "results", base, MAX_DEVICES):
        for key in ("request", "driver", "pool", "device"):
            if not string(item, key, where):
                raise InvalidObject(f"{where}.{key}", None, "is required")
        _amounts(mapping(item, "consumedCapacity", where), f"{where}.consumedCapacity")
    if status.get("reservedFor") and not allocation:
        raise InvalidObject("status.reservedFor", None, "may not be specified when `allocated` is not set")
    for where, item in mappings(status, "reservedFor", "status"):
        for key in ("resource", "name", "uid"):
            if not string(item, key, where):
                raise InvalidObject(f"{where}.{key}", None, "is required")
    for where, item in mappings(status, "devices", "status"):
        mappings(item, "conditions", where)


# ---- slices


def _slice(spec: Document) -> None:
    if not string(spec, "driver", "spec"):
        raise InvalidObject("spec.driver", None, "is required")
    pool = mapping(spec, "pool", "spec")
    if not string(pool, "name", "spec.pool"):
        raise InvalidObject("spec.pool.name", None, "is required")
    if (optional_integer(pool, "generation", "spec.pool") or 0) < 0:
        raise InvalidObject("spec.pool.generation", pool["generation"], "must be greater than or equal to 0")
    n_slices = optional_integer(pool, "resourceSliceCount", "spec.pool")
    if n_slices is None or n_slices < 1:
        raise InvalidObject("spec.pool.resourceSliceCount", n_slices, "must be greater than zero")
    chosen = [key for key in NODE_CHOICES if spec.get(key)]
    devices = mappings(spec, "devices", "spec")
    if len(chosen) != 1 and not (spec.get("sharedCounters") and not chosen):
        names = ", ".join(f"`{key}`" for key in NODE_CHOICES)
        raise InvalidObject("spec", chosen, f"exactly one of {names} is required")
    in_detail = any(item.get("taints") or item.get("consumesCounters") for _, item in devices)
    limit = MAX_IN_DETAIL if in_detail else MAX_IN_SLICE
    if len(devices) > limit:
        raise InvalidObject("spec.devices", len(devices), f"must have at most {limit} items")
    names_seen: dict[str, None] = {}
    for where, device in devices:
        name = _label(device, "name", where)
        if name in names_seen:
            raise InvalidObject(f"{where}.name", name, "Duplicate value")
        names_seen[name] = None
        _device(device, where)
    for where, item in mappings(spec, "sharedCounters", "spec"):
        _label(item, "name", where)
        _counters(item, where)


def _device(device: Document, path: str) -> None:
    for name, value in mapping(device, "attributes", path).items():
        where = f"{path}.attributes[{name}]"
        if (
            not isinstance(value, dict)
            or len([key for key in VALUE_TYPES if value.get(key) is not None]) != 1
        ):
            raise InvalidObject(where, value, "exactly one value must be specified")
        if isinstance(value.get("int"), str) or isinstance(value.get("bool"), str):
            raise InvalidObject(where, value, "the value is not of its type")
    for name, value in mapping(device, "capacity", path).items():
        where = f"{path}.capacity[{name}]"
        if not isinstance(value, dict):
            raise InvalidObject(where, value, "must be an object with a value")
        _amount(value.get("value"), f"{where}.value")
    for where, item in mappings(device, "consumesCounters", path):
        if not string(item, "counterSet", where):
            raise InvalidObject(f"{where}.counterSet", None, "is required")
        _counters(item, where)
    for where, item in mappings(device, "taints", path):
        if not string(item, "key", where):
            raise InvalidObject(f"{where}.key", None, "is required")
        _effect(item, where, optional=False)


def _counters(document: Document, path: str) -> None:
    for name, value in mapping(document, "counters", path).items():
        where = f"{path}.counters[{name}]"
        if not isinstance(value, dict):
            raise InvalidObject(where, value, "must be an object with a value")
        _amount(value.get("value"), f"{where}.value")


# ---- workloads


def _workload(spec: Document) -> None:
    names: dict[str, None] = {}
    templates = _limited(spec, "podGroupTemplates", "spec", MAX_TEMPLATES)
    if not templates:
        raise InvalidObject("spec.podGroupTemplates", None, "must have at least one value")
    for where, item in templates:
        name = _label(item, "name", where)
        if name in names:
            raise InvalidObject(f"{where}.name", name, "Duplicate value")
        names[name] = None
        policy = mapping(item, "schedulingPolicy", where)
        if len([key for key in ("basic", "gang") if policy.get(key) is not None]) != 1:
            raise InvalidObject(
                f"{where}.schedulingPolicy", sorted(policy), "must have exactly one of basic and gang"
            )


# ---- parts


def _selectors(document: Document, path: str) -> None:
    for where, item in _limited(document, "selectors", path, MAX_LIST):
        text = string(mapping(item, "cel", where), "expression", f"{where}.cel")
        if not text:
            raise InvalidObject(f"{where}.cel.expression", None, "is required")
        try:
            compiled(text)
        except DeviceSelectorError as error:
            raise InvalidObject(f"{where}.cel.expression", text, str(error)) from None


def _limited(document: Document, key: str, path: str, limit: int) -> list[tuple[str, Document]]:
    items = mappings(document, key, path)
    if len(items) > limit:
        raise InvalidObject(f"{path}.{key}", len(items), f"must have at most {limit} items")
    return items


def _label(document: Document, key: str, path: str) -> str:
    name = string(document, key, path)
    if not name:
        raise InvalidObject(f"{path}.{key}", None, "is required")
    if wrong := label_errors(name):
        raise InvalidObject(f"{path}.{key}", name, wrong[0])
    return name


def _effect(document: Document, path: str, *, optional: bool) -> None:
    effect = string(document, "effect", path)
    if effect not in EFFECTS and not (optional and not effect):
        raise InvalidObject(f"{path}.effect", effect or None, f"must be one of {', '.join(EFFECTS)}")


def _amounts(amounts: Document, path: str) -> None:
    for name, value in amounts.items():
        _amount(value, f"{path}[{name}]")


def _amount(value: Any, path: str) -> None:
    if value is None:
        raise InvalidObject(path, None, "is required")
    try:
        parse_quantity(str(value))
    except QuantityError as error:
        raise InvalidObject(path, value, str(error)) from None
