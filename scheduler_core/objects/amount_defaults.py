"""What an API server does to the amounts of an object that is written: pod-level requests, and rounding.

Source: pkg/apis/core/v1/defaults.go (defaultHugePagePodLimits, defaultPodRequests, SetDefaults_ResourceList), v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scheduler_core.objects.fields import Document, mapping, mappings
from scheduler_core.objects.quantity import Quantity, QuantityError, quantity_from
from scheduler_core.objects.resources import (
    CPU,
    MEMORY,
    aggregate_limits,
    aggregate_requests,
    is_supported_pod_level_resource,
)

_HUGE_PAGES = "hugepages-"
_MILLI = -3
_AMOUNT = (str, float)


def pod_level_resources(spec: Document) -> dict[str, Any] | None:
    """`spec.resources` with what the containers give it; None for a pod that says nothing at pod level.

    Containers' limits of huge pages become pod-level limits, where the pod names neither a limit nor a request of
    that size. With any limit at pod level, missing requests of cpu and memory are what the containers request
    together, and what is still missing then is requested up to its pod-level limit.

    Parameters
    ----------
    spec : mapping
        The containers' requests are filled in from their limits already.
    """
    if spec.get("resources") is None:
        return None
    resources = mapping(spec, "resources", "spec")
    limits = dict(mapping(resources, "limits", "spec.resources"))
    requests = dict(mapping(resources, "requests", "spec.resources"))
    if limits or requests:
        for name, amount in _together(spec, "limits").items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        for name, amount in _together(spec, "requests").items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_supported_pod_level_resource(name):
                requests.setdefault(name, amount)
    result = dict(resources)
    if limits:
        result["limits"] = limits
    if requests:
        result["requests"] = requests
    return result


def _together(spec: Document, key: str) -> dict[str, str]:
    """What all containers request, or are limited to, as quantities in the form of the first that names one."""
    amounts = aggregate_requests(spec) if key == "requests" else aggregate_limits(spec)
    return {name: aggregate_text(spec, key, name, amount) for name, amount in amounts.items()}


def aggregate_text(spec: Document, key: str, name: str, amount: int) -> str:
    """An amount of all containers together (nano units) as a quantity, in the form of the first that names one."""
    for kind in ("containers", "initContainers"):
        for _, container in mappings(spec, kind, "spec"):
            written = mapping(mapping(container, "resources", kind), key, kind).get(name)
            if written is not None and not (first := quantity_from(written)).is_zero():
                return str(Quantity(amount, -9, False, first.format))
    return str(Quantity(amount, -9, False, "DecimalSI"))


@lru_cache(maxsize=65536)
def _rounded(value: str | float) -> str | float:
    """The amount rounded up to thousandths; itself where nothing is lost, or where it is no quantity."""
    try:
        quantity = quantity_from(value)
        if quantity.exponent >= _MILLI:
            return value
        unit = 10 ** (_MILLI - quantity.exponent)
        whole = -(-abs(quantity.mantissa) // unit) * quantity.sign()
        if whole * unit == quantity.mantissa:
            return value
        return str(Quantity(whole, _MILLI, quantity.is_decimal, quantity.format))
    except QuantityError:
        # Validation names the place.
        return value


def in_milli_units(amounts: Mapping[str, Any]) -> Mapping[str, Any]:
    """A ResourceList whose amounts are rounded up to thousandths; what is no quantity stays for validation.

    >>> in_milli_units({"cpu": "100100u", "memory": "1Gi"})
    {'cpu': '101m', 'memory': '1Gi'}
    """
    changed: dict[str, Any] = {}
    # A loop, as nearly always nothing changes: every pod comes this way.
    for name, value in amounts.items():
        if isinstance(value, _AMOUNT) and (text := _rounded(value)) != value:
            changed[name] = text
    return {**amounts, **changed} if changed else amounts


def rounded(document: Document, *keys: str) -> Document:
    """`document` with its resource lists at `keys` rounded up to thousandths; itself where nothing changes."""
    changed: dict[str, Any] = {}
    for key in keys:
        amounts = document.get(key)
        if amounts and isinstance(amounts, Mapping) and (lists := in_milli_units(amounts)) is not amounts:
            changed[key] = lists
    return {**document, **changed} if changed else document


def with_rounded_resources(holder: Document) -> Document:
    """A container, a container's status or a claim's spec whose `resources` are rounded up to thousandths."""
    resources = holder.get("resources")
    if not resources or not isinstance(resources, Mapping):
        return holder
    changed = rounded(resources, "limits", "requests")
    return holder if changed is resources else {**holder, "resources": changed}
