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
from scheduler_core.objects import labels
from scheduler_core.objects.fields import boolean
from scheduler_core.objects.resources import quantity_at
from scheduler_core.validation.problems import Checked

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


def _claim(manifest: Checked) -> None:
    _status(manifest.at("status"), _claim_spec(manifest.at("spec")))


def _template(manifest: Checked) -> None:
    _claim_spec(manifest.at("spec", "spec"))


def _claim_spec(spec: Checked) -> dict[str, None]:
    """Check a claim's spec; returns the names by which its requests go."""
    devices = spec.at("devices")
    known: dict[str, None] = {}
    for request in devices.each("requests", _MAX_LIST):
        name = request.name_of_one(known)
        is_exact, alternatives = request.has("exactly"), request.get("firstAvailable")
        if is_exact and alternatives:
            request.invalid("", None, f"{_ONE_REQUEST}, but multiple fields are set")
        elif is_exact:
            _request(request.at("exactly"))
        elif not alternatives:
            request.required("", _ONE_REQUEST)
        else:
            inner: dict[str, None] = {}
            for item in request.each("firstAvailable", MAX_ALTERNATIVES):
                known[f"{name}/{item.name_of_one(inner)}"] = None
                _request(item)
    for item in devices.each("constraints", _MAX_LIST):
        _references(item, known)
        kinds = [key for key in ("matchAttribute", "distinctAttribute") if item.has(key)]
        if len(kinds) != 1:
            several = ", but multiple fields are set" if kinds else ""
            item.required("", f'exactly one of "matchAttribute" or "distinctAttribute" is required{several}')
            continue
        attribute = item.text(kinds[0])
        _qualified(item, kinds[0], attribute)
        if "/" not in attribute:
            words = "a fully qualified name must be a domain and a name separated by a slash"
            item.invalid(kinds[0], attribute, words)
    for item in devices.each("config", _MAX_LIST):
        _references(item, known)
    return known


def _request(request: Checked) -> None:
    request.name("deviceClassName", labels.subdomain_errors, required=True)
    _selectors(request)
    mode, count = request.text("allocationMode") or EXACT_COUNT, request.number("count")
    if mode == ALL and count:
        request.invalid("count", count, "must not be specified when allocationMode is 'All'")
    elif mode == EXACT_COUNT and count is not None and count < 1:
        request.invalid("count", count, "must be greater than zero")
    elif mode not in (ALL, EXACT_COUNT):
        request.unsupported("allocationMode", mode, (ALL, EXACT_COUNT))
    boolean(request.document, "adminAccess", request.path)
    for item in request.each("tolerations", 16):
        key = item.name("key", labels.qualified_name_errors)
        operator, value = item.text("operator") or "Equal", item.text("value")
        if operator == "Exists" and value:
            item.invalid("value", value, "must be empty for operator `Exists`")
        elif operator == "Equal":
            item.named("value", labels.label_value_errors, value)
            if not key:
                item.required("key")
        elif operator != "Exists":
            item.unsupported("operator", operator, ("Equal", "Exists"))
        item.one_of("effect", _EFFECTS)
    _quantities(request.at("capacity"), "requests")


def _quantities(holder: Checked, key: str) -> None:
    for name, amount in holder.at(key).document.items():
        quantity_at(amount, holder.where(f"{key}[{name}]"))


def _references(item: Checked, known: Mapping[str, None]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(item.texts("requests")):
        if name not in known:
            item.invalid(f"requests[{index}]", name, _REFERENCE)
        else:
            item.once(seen, f"requests[{index}]", name)


def _status(status: Checked, known: Mapping[str, None]) -> None:
    if not status.document:
        return
    allocation = status.at("allocation")
    for item in allocation.at("devices").each("results", MAX_DEVICES):
        request = item.text("request")
        if not request:
            item.required("request")
        elif request not in known:
            item.invalid("request", request, _REFERENCE)
        item.needs("driver", "pool", "device")
        _quantities(item, "consumedCapacity")
    if status.get("reservedFor") and not allocation.document:
        status.forbidden("reservedFor", "may not be specified when `allocated` is not set")
    for item in status.each("reservedFor"):
        item.needs("resource", "name", "uid")
    for item in status.each("devices"):
        item.each("conditions")


# ---- slices


def _slice(manifest: Checked) -> None:
    spec = manifest.at("spec")
    _driver_name(spec, "driver")
    pool = spec.at("pool")
    _pool_name(pool, "name")
    n_slices = pool.whole("resourceSliceCount")
    if n_slices < 1:
        pool.invalid("resourceSliceCount", n_slices, "must be greater than zero")
    pool.least("generation", words="must be greater than or equal to zero")
    spec.name("nodeName", labels.subdomain_errors)
    if spec.has("nodeSelector"):
        selector = spec.at("nodeSelector")
        selector.node_selector()
        if len(terms := selector.each("nodeSelectorTerms")) > 1:
            shown = [dict(term.document) for term in terms]
            selector.invalid("nodeSelectorTerms", shown, "must have exactly one node selector term")
    chosen = [f"`{key}`" for key in _NODE_CHOICES if spec.get(key)]
    one_of_them = f"exactly one of {', '.join(f'`{key}`' for key in _NODE_CHOICES)} is required"
    if len(chosen) > 1:
        spec.invalid("", f"{{{', '.join(chosen)}}}", f"{one_of_them}, but multiple fields are set")
    elif not chosen and not spec.get("sharedCounters"):
        spec.required("", one_of_them)
    _devices(spec)
    names: dict[str, None] = {}
    for item in spec.each("sharedCounters"):
        item.name_of_one(names)
        _counters(item)


def _driver_name(holder: Checked, key: str) -> None:
    """Source: pkg/apis/core/validation ValidateCSIDriverName."""
    name = holder.text(key)
    if not name:
        holder.required(key)
        return
    if len(name) > 63:
        holder.too_long(key, 63)
    for words in labels.subdomain_errors(name.lower()):
        holder.invalid(key, name, words)


def _pool_name(holder: Checked, key: str) -> None:
    name = holder.text(key)
    if not name:
        holder.required(key)
    for part in name.split("/") if name else ():
        holder.named(key, labels.subdomain_errors, part)


def _devices(spec: Checked) -> None:
    devices = spec.each("devices")
    in_detail = any(
        item.get("taints")
        or item.get("consumesCounters")
        or any(
            isinstance(value, Mapping) and any(value.get(key) is not None for key in _LIST_TYPES)
            for value in item.at("attributes").document.values()
        )
        for item in devices
    )
    spec.at_most("devices", devices, _MAX_IN_DETAIL if in_detail else _MAX_IN_SLICE)
    seen: dict[str, None] = {}
    for device in devices:
        device.name_of_one(seen)
        _device(device)


def _device(device: Checked) -> None:
    attributes, capacity = device.at("attributes").document, device.at("capacity").document
    if (total := len(attributes) + len(capacity)) > _MAX_LIST:
        words = f"the total number of attributes and capacities must not exceed {_MAX_LIST}"
        device.invalid("", total, words)
    for name, value in attributes.items():
        where = f"attributes[{name}]"
        _qualified(device, where, str(name))
        types = (*_VALUE_TYPES, *_LIST_TYPES) if isinstance(value, Mapping) else ()
        kinds = [key for key in types if value.get(key) is not None]
        if not kinds:
            device.required(where, "exactly one value must be specified")
        elif len(kinds) > 1:
            device.invalid(where, dict(value), "exactly one value must be specified")
        elif isinstance(value.get("int"), str) or isinstance(value.get("bool"), str):
            raise InvalidObject(device.where(where), dict(value), "the value is not of its type")
    for name, value in capacity.items():
        _qualified(device, f"capacity[{name}]", str(name))
        _amount(value, device.where(f"capacity[{name}]"))
    for item in device.each("consumesCounters"):
        item.needs("counterSet")
        _counters(item)
    for item in device.each("taints"):
        _taint(item)


def _counters(holder: Checked) -> None:
    for name, value in holder.at("counters").document.items():
        _amount(value, holder.where(f"counters[{name}]"))


def _amount(value: Any, path: str) -> None:
    if not isinstance(value, Mapping):
        raise InvalidObject(path, value, "must be an object with a value")
    if value.get("value") is None:
        raise InvalidObject(f"{path}.value", None, "is required")
    quantity_at(value["value"], f"{path}.value")


def _taint(taint: Checked) -> None:
    taint.named("key", labels.qualified_name_errors, taint.text("key"))
    taint.name("value", labels.label_value_errors)
    taint.one_of("effect", _EFFECTS, required=True)


# ---- classes, rules and workloads


def _class(manifest: Checked) -> None:
    spec = manifest.at("spec")
    _selectors(spec)
    name = spec.text("extendedResourceName")
    if name and not labels.is_extended_resource_name(name):
        spec.invalid("extendedResourceName", name, "must be a valid extended resource name")


def _taint_rule(manifest: Checked) -> None:
    selector = manifest.at("spec", "deviceSelector")
    if selector.has("driver"):
        _driver_name(selector, "driver")
    if selector.has("pool"):
        _pool_name(selector, "pool")
    if selector.has("device"):
        selector.named("device", labels.label_errors, selector.text("device"))
    _taint(manifest.at("spec", "taint"))


def _workload(manifest: Checked) -> None:
    spec = manifest.at("spec")
    templates = spec.each("podGroupTemplates", _MAX_TEMPLATES)
    if not templates:
        spec.required("podGroupTemplates", "must have at least one value")
    names: dict[str, None] = {}
    for item in templates:
        item.name_of_one(names)
        policy = item.at("schedulingPolicy")
        if policy.has("basic") == policy.has("gang"):
            policy.invalid("", dict(policy.document), "must have exactly one of basic and gang")


# ---- parts


def _selectors(holder: Checked) -> None:
    for item in holder.each("selectors", _MAX_LIST):
        selector = item.at("cel")
        text = selector.text("expression")
        if not text:
            selector.required("expression")
            continue
        try:
            compiled(text)
        except DeviceSelectorError as error:
            selector.invalid("expression", text, str(error))


def _qualified(holder: Checked, key: str, name: str) -> None:
    """Check a name with a domain or without one. Source: validateQualifiedName."""
    domain, slash, identifier = name.rpartition("/")
    if slash and not domain:
        holder.invalid(key, "", "the domain must not be empty")
    elif slash:
        holder.named(key, labels.subdomain_errors, domain)
    if slash and not identifier:
        holder.invalid(key, "", "the name must not be empty")
    elif not _IDENTIFIER.fullmatch(identifier):
        holder.invalid(key, identifier, _A_C_IDENTIFIER)
    if len(identifier) > 32:
        holder.too_long(key, 32)


RULES: Final[Mapping[str, Callable[[Checked], None]]] = {
    "DeviceClass": _class,
    "DeviceTaintRule": _taint_rule,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "ResourceSlice": _slice,
    "Workload": _workload,
}
