"""What an API server refuses of resource.k8s.io objects and of Workloads.

Source: pkg/apis/resource/validation/validation.go, pkg/apis/scheduling/validation/validation.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

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
from scheduler_core.objects.labels import (
    is_extended_resource_name,
    label_errors,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from scheduler_core.objects.resources import quantity_at
from scheduler_core.validation.problems import FieldErrors

_MAX_IN_SLICE: Final = 128
_MAX_IN_DETAIL: Final = 64
"""Devices of a slice where one has taints, consumes counters or has lists for attributes."""
_MAX_LIST: Final = 32
_MAX_TEMPLATES: Final = 8
_NODE_CHOICES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUE_TYPES: Final = ("bool", "int", "string", "version")
_LIST_TYPES: Final = ("bools", "ints", "strings", "versions")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_A_C_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters"
    " or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"


# ---- claims


def _claim(problems: FieldErrors, manifest: Document) -> None:
    known = _claim_spec(problems, mapping(manifest, "spec", ""), "spec")
    _status(problems, manifest, known)


def _template(problems: FieldErrors, manifest: Document) -> None:
    _claim_spec(problems, mapping(mapping(manifest, "spec", ""), "spec", "spec"), "spec.spec")


def _claim_spec(problems: FieldErrors, spec: Document, path: str) -> dict[str, None]:
    """Check a claim's spec; returns the names by which its requests go."""
    devices, base = mapping(spec, "devices", path), f"{path}.devices"
    known: dict[str, None] = {}
    for where, request in _limited(problems, devices, "requests", base, _MAX_LIST):
        name = problems.name_of_one(request, where, known)
        is_exact, alternatives = request.get("exactly") is not None, request.get("firstAvailable")
        if is_exact and alternatives:
            problems.invalid(where, None, f"{_ONE_REQUEST}, but multiple fields are set")
        elif is_exact:
            _request(problems, mapping(request, "exactly", where), f"{where}.exactly")
        elif not alternatives:
            problems.required(where, _ONE_REQUEST)
        else:
            inner: dict[str, None] = {}
            for place, item in _limited(problems, request, "firstAvailable", where, MAX_ALTERNATIVES):
                known[f"{name}/{problems.name_of_one(item, place, inner)}"] = None
                _request(problems, item, place)
    for where, item in _limited(problems, devices, "constraints", base, _MAX_LIST):
        _references(problems, item, where, known)
        kinds = [key for key in ("matchAttribute", "distinctAttribute") if item.get(key) is not None]
        if len(kinds) != 1:
            several = ", but multiple fields are set" if kinds else ""
            words = f'exactly one of "matchAttribute" or "distinctAttribute" is required{several}'
            problems.required(where, words)
            continue
        attribute, place = string(item, kinds[0], where), f"{where}.{kinds[0]}"
        _qualified(problems, attribute, place)
        if "/" not in attribute:
            words = "a fully qualified name must be a domain and a name separated by a slash"
            problems.invalid(place, attribute, words)
    for where, item in _limited(problems, devices, "config", base, _MAX_LIST):
        _references(problems, item, where, known)
    return known


def _request(problems: FieldErrors, request: Document, path: str) -> None:
    name = string(request, "deviceClassName", path)
    if name:
        problems.named(subdomain_errors, name, f"{path}.deviceClassName")
    else:
        problems.required(f"{path}.deviceClassName")
    _selectors(problems, request, path)
    mode = string(request, "allocationMode", path) or EXACT_COUNT
    count = optional_integer(request, "count", path)
    if mode == ALL and count:
        problems.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == EXACT_COUNT and count is not None and count < 1:
        problems.invalid(f"{path}.count", count, "must be greater than zero")
    elif mode not in (ALL, EXACT_COUNT):
        problems.unsupported(f"{path}.allocationMode", mode, (ALL, EXACT_COUNT))
    boolean(request, "adminAccess", path)
    for where, item in _limited(problems, request, "tolerations", path, 16):
        if key := string(item, "key", where):
            problems.named(qualified_name_errors, key, f"{where}.key")
        operator, value = string(item, "operator", where) or "Equal", string(item, "value", where)
        if operator == "Exists" and value:
            problems.invalid(f"{where}.value", value, "must be empty for operator `Exists`")
        elif operator == "Equal":
            problems.named(label_value_errors, value, f"{where}.value")
            if not key:
                problems.required(f"{where}.key")
        elif operator != "Exists":
            problems.unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        problems.one_of(item, "effect", where, _EFFECTS)
    place = f"{path}.capacity.requests"
    for key, amount in mapping(mapping(request, "capacity", path), "requests", f"{path}.capacity").items():
        quantity_at(amount, f"{place}[{key}]")


def _references(problems: FieldErrors, item: Document, path: str, known: Mapping[str, None]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(strings(item, "requests", path)):
        if name not in known:
            problems.invalid(f"{path}.requests[{index}]", name, _REFERENCE)
        elif name in seen:
            problems.duplicate(f"{path}.requests[{index}]", name)
        seen.add(name)


def _status(problems: FieldErrors, manifest: Document, known: Mapping[str, None]) -> None:
    status = mapping(manifest, "status", "")
    if not status:
        return
    allocation = mapping(status, "allocation", "status")
    devices, base = mapping(allocation, "devices", "status.allocation"), "status.allocation.devices"
    for where, item in _limited(problems, devices, "results", base, MAX_DEVICES):
        request = string(item, "request", where)
        if not request:
            problems.required(f"{where}.request")
        elif request not in known:
            problems.invalid(f"{where}.request", request, _REFERENCE)
        for key in ("driver", "pool", "device"):
            if not string(item, key, where):
                problems.required(f"{where}.{key}")
        for key, amount in mapping(item, "consumedCapacity", where).items():
            quantity_at(amount, f"{where}.consumedCapacity[{key}]")
    if status.get("reservedFor") and not allocation:
        problems.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    for where, item in mappings(status, "reservedFor", "status"):
        for key in ("resource", "name", "uid"):
            if not string(item, key, where):
                problems.required(f"{where}.{key}")
    for where, item in mappings(status, "devices", "status"):
        mappings(item, "conditions", where)


# ---- slices


def _slice(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    _driver_name(problems, string(spec, "driver", "spec"), "spec.driver")
    pool = mapping(spec, "pool", "spec")
    _pool_name(problems, string(pool, "name", "spec.pool"), "spec.pool.name")
    n_slices = optional_integer(pool, "resourceSliceCount", "spec.pool") or 0
    if n_slices < 1:
        problems.invalid("spec.pool.resourceSliceCount", n_slices, "must be greater than zero")
    problems.at_least(pool, "generation", "spec.pool", 0, "must be greater than or equal to zero")
    if name := string(spec, "nodeName", "spec"):
        problems.named(subdomain_errors, name, "spec.nodeName")
    if spec.get("nodeSelector") is not None:
        selector = mapping(spec, "nodeSelector", "spec")
        problems.node_selector(selector, "spec.nodeSelector")
        if len(terms := mappings(selector, "nodeSelectorTerms", "spec.nodeSelector")) > 1:
            shown = [dict(term) for _, term in terms]
            words = "must have exactly one node selector term"
            problems.invalid("spec.nodeSelector.nodeSelectorTerms", shown, words)
    chosen = [f"`{key}`" for key in _NODE_CHOICES if spec.get(key)]
    one_of_them = f"exactly one of {', '.join(f'`{key}`' for key in _NODE_CHOICES)} is required"
    if len(chosen) > 1:
        several = f"{one_of_them}, but multiple fields are set"
        problems.invalid("spec", f"{{{', '.join(chosen)}}}", several)
    elif not chosen and not spec.get("sharedCounters"):
        problems.required("spec", one_of_them)
    _devices(problems, spec)
    names: dict[str, None] = {}
    for where, item in mappings(spec, "sharedCounters", "spec"):
        problems.name_of_one(item, where, names)
        _counters(item, where)


def _driver_name(problems: FieldErrors, name: str, path: str) -> None:
    """Source: pkg/apis/core/validation ValidateCSIDriverName."""
    if not name:
        problems.required(path)
        return
    if len(name) > 63:
        problems.too_long(path, 63)
    for words in subdomain_errors(name.lower()):
        problems.invalid(path, name, words)


def _pool_name(problems: FieldErrors, name: str, path: str) -> None:
    if not name:
        problems.required(path)
    for part in name.split("/") if name else ():
        problems.named(subdomain_errors, part, path)


def _devices(problems: FieldErrors, spec: Document) -> None:
    devices = mappings(spec, "devices", "spec")
    in_detail = any(
        item.get("taints")
        or item.get("consumesCounters")
        or any(
            isinstance(value, Mapping) and any(value.get(key) is not None for key in _LIST_TYPES)
            for value in mapping(item, "attributes", where).values()
        )
        for where, item in devices
    )
    problems.at_most(devices, _MAX_IN_DETAIL if in_detail else _MAX_IN_SLICE, "spec.devices")
    seen: dict[str, None] = {}
    for where, device in devices:
        problems.name_of_one(device, where, seen)
        _device(problems, device, where)


def _device(problems: FieldErrors, device: Document, path: str) -> None:
    attributes, capacity = mapping(device, "attributes", path), mapping(device, "capacity", path)
    if len(attributes) + len(capacity) > _MAX_LIST:
        words = f"the total number of attributes and capacities must not exceed {_MAX_LIST}"
        problems.invalid(path, len(attributes) + len(capacity), words)
    for name, value in attributes.items():
        where = f"{path}.attributes[{name}]"
        _qualified(problems, str(name), where)
        kinds = [key for key in (*_VALUE_TYPES, *_LIST_TYPES) if value.get(key) is not None] if isinstance(
            value, Mapping) else []  # fmt: skip
        if not kinds:
            problems.required(where, "exactly one value must be specified")
        elif len(kinds) > 1:
            problems.invalid(where, dict(value), "exactly one value must be specified")
        elif isinstance(value.get("int"), str) or isinstance(value.get("bool"), str):
            raise InvalidObject(where, dict(value), "the value is not of its type")
    for name, value in capacity.items():
        where = f"{path}.capacity[{name}]"
        _qualified(problems, str(name), where)
        _amount(value, where)
    for where, item in mappings(device, "consumesCounters", path):
        if not string(item, "counterSet", where):
            problems.required(f"{where}.counterSet")
        _counters(item, where)
    for where, item in mappings(device, "taints", path):
        _taint(problems, item, where)


def _counters(document: Document, path: str) -> None:
    for name, value in mapping(document, "counters", path).items():
        _amount(value, f"{path}.counters[{name}]")


def _amount(value: Any, path: str) -> None:
    if not isinstance(value, Mapping):
        raise InvalidObject(path, value, "must be an object with a value")
    if value.get("value") is None:
        raise InvalidObject(f"{path}.value", None, "is required")
    quantity_at(value["value"], f"{path}.value")


def _taint(problems: FieldErrors, taint: Document, path: str) -> None:
    problems.named(qualified_name_errors, string(taint, "key", path), f"{path}.key")
    if value := string(taint, "value", path):
        problems.named(label_value_errors, value, f"{path}.value")
    problems.one_of(taint, "effect", path, _EFFECTS, required=True)


# ---- classes, rules and workloads


def _class(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    _selectors(problems, spec, "spec")
    name = string(spec, "extendedResourceName", "spec")
    if name and not is_extended_resource_name(name):
        problems.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def _taint_rule(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    selector, path = mapping(spec, "deviceSelector", "spec"), "spec.deviceSelector"
    if selector.get("driver") is not None:
        _driver_name(problems, string(selector, "driver", path), f"{path}.driver")
    if selector.get("pool") is not None:
        _pool_name(problems, string(selector, "pool", path), f"{path}.pool")
    if selector.get("device") is not None:
        problems.named(label_errors, string(selector, "device", path), f"{path}.device")
    _taint(problems, mapping(spec, "taint", "spec"), "spec.taint")


def _workload(problems: FieldErrors, manifest: Document) -> None:
    spec = mapping(manifest, "spec", "")
    templates = _limited(problems, spec, "podGroupTemplates", "spec", _MAX_TEMPLATES)
    if not templates:
        problems.required("spec.podGroupTemplates", "must have at least one value")
    names: dict[str, None] = {}
    for where, item in templates:
        problems.name_of_one(item, where, names)
        policy = mapping(item, "schedulingPolicy", where)
        if len([key for key in ("basic", "gang") if policy.get(key) is not None]) != 1:
            words = "must have exactly one of basic and gang"
            problems.invalid(f"{where}.schedulingPolicy", dict(policy), words)


# ---- parts


def _selectors(problems: FieldErrors, document: Document, path: str) -> None:
    for where, item in _limited(problems, document, "selectors", path, _MAX_LIST):
        text = string(mapping(item, "cel", where), "expression", f"{where}.cel")
        if not text:
            problems.required(f"{where}.cel.expression")
            continue
        try:
            compiled(text)
        except DeviceSelectorError as error:
            problems.invalid(f"{where}.cel.expression", text, str(error))


def _limited(
    problems: FieldErrors, document: Document, key: str, path: str, most: int
) -> list[tuple[str, Document]]:
    items = mappings(document, key, path)
    problems.at_most(items, most, f"{path}.{key}")
    return items[:most]


def _qualified(problems: FieldErrors, name: str, path: str) -> None:
    """Check a name with a domain or without one. Source: validateQualifiedName."""
    domain, slash, identifier = name.rpartition("/")
    if slash and not domain:
        problems.invalid(path, "", "the domain must not be empty")
    elif slash:
        problems.named(subdomain_errors, domain, path)
    if slash and not identifier:
        problems.invalid(path, "", "the name must not be empty")
    elif not _IDENTIFIER.fullmatch(identifier):
        problems.invalid(path, identifier, _A_C_IDENTIFIER)
    if len(identifier) > 32:
        problems.too_long(path, 32)


RULES: Final[Mapping[str, Callable[[FieldErrors, Document], None]]] = {
    "DeviceClass": _class,
    "DeviceTaintRule": _taint_rule,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "ResourceSlice": _slice,
    "Workload": _workload,
}
