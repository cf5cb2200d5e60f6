"""LimitRange: what containers, pods and claims of a namespace get if they say nothing, and may ask for at most.

Source: plugin/pkg/admission/limitranger/admission.go, pkg/apis/core/v1/defaults.go SetDefaults_LimitRangeItem, v1.34
Differs: of several complaints the order is that of the names, where upstream's is chance; volumes of claims in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.fields import Document
from scheduler_core.objects.quantity import Quantity, quantity_from

ANNOTATION: Final = "kubernetes.io/limit-ranger"
Amounts = dict[str, Quantity]


def items_of(limit_ranges: Iterable[Document]) -> Iterator[Document]:
    """The limits of all LimitRanges of a namespace, with their defaults."""
    for limit_range in limit_ranges:
        for item in (limit_range.get("spec") or {}).get("limits") or ():
            yield _with_defaults(item)


def _with_defaults(item: Document) -> dict[str, Any]:
    """A container's default limit is its maximum, its default request the default limit, or the minimum."""
    result = dict(item)
    if item.get("type") == "Container":
        result["default"] = {**(item.get("max") or {}), **(item.get("default") or {})}
        result["defaultRequest"] = {
            **(item.get("min") or {}),
            **result["default"],
            **(item.get("defaultRequest") or {}),
        }
    return result


def with_limit_range_defaults(pod: Document, limit_ranges: Iterable[Document]) -> dict[str, Any]:
    """The pod with requests and limits where its containers name none; an annotation says which came so."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in items_of(limit_ranges):
        if item.get("type") == "Container":
            # The first LimitRange that has one counts.
            requests = {**item["defaultRequest"], **requests}
            limits = {**item["default"], **limits}
    spec = dict(pod.get("spec") or {})
    if not requests and not limits:
        return dict(pod)
    said: list[str] = []
    for key, word in (("containers", "container"), ("initContainers", "init container")):
        if spec.get(key):
            spec[key] = [_completed(item, requests, limits, word, said) for item in spec[key]]
    if not said:
        return dict(pod)
    meta = dict(pod.get("metadata") or {})
    words = f"LimitRanger plugin set: {'; '.join(said)}"
    meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION: words}
    return {**pod, "metadata": meta, "spec": spec}


def _completed(
    container: Document, requests: Mapping[str, Any], limits: Mapping[str, Any], word: str, said: list[str]
) -> dict[str, Any]:
    resources = dict(container.get("resources") or {})
    for key, given, what in (("requests", requests, "request"), ("limits", limits, "limit")):
        own = resources.get(key) or {}
        missing = sorted(name for name in given if name not in own)
        if key == "requests":
            # A limit alone is a request, too: that default comes first.
            stated = resources.get("limits") or {}
            own = {**{name: stated[name] for name in sorted(stated) if name not in own}, **own}
            missing = [name for name in missing if name not in own]
        if missing:
            said.append(f"{', '.join(missing)} {what} for {word} {container.get('name', '')}")
        if own or missing:
            resources[key] = {**own, **{name: given[name] for name in missing}}
    return {**container, "resources": resources} if resources else dict(container)


def check_limit_ranges(manifest: Document, limit_ranges: Iterable[Document]) -> None:
    """Refuse a pod or a claim that a LimitRange of its namespace does not allow.

    Raises
    ------
    ForbiddenObject
        With every complaint, as upstream words them.
    """
    complaints: list[str] = []
    spec = manifest.get("spec") or {}
    for item in items_of(limit_ranges):
        type_ = str(item.get("type") or "")
        if manifest.get("kind") == "PersistentVolumeClaim" and type_ == "PersistentVolumeClaim":
            amounts = _amounts((spec.get("resources") or {}).get("requests"))
            for name, bound in _bounds(item, "min"):
                complaints += _minimum(type_, name, bound, amounts, {})
            for name, bound in _bounds(item, "max"):
                complaints += _maximum(type_, name, bound, amounts, {}, of_requests=True)
        if manifest.get("kind") != "Pod":
            continue
        if type_ == "Container":
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
                resources = container.get("resources") or {}
                requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
                complaints += _complaints(item, requests, limits)
        elif type_ == "Pod":
            complaints += _complaints(item, total_of(spec, "requests"), total_of(spec, "limits"))
    if complaints:
        unique = list(dict.fromkeys(complaints))
        raise ForbiddenObject("spec", None, unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")


def total_of(spec: Document, key: str) -> Amounts:
    """Requests or limits of a pod as the sum of its containers', at least what one init container needs."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        for name, amount in _amounts((container.get("resources") or {}).get(key)).items():
            total[name] = total[name].add(amount) if name in total else amount
    for container in spec.get("initContainers") or ():
        for name, amount in _amounts((container.get("resources") or {}).get(key)).items():
            if container.get("restartPolicy") == "Always":
                total[name] = total[name].add(amount) if name in total else amount
            elif name not in total or amount.cmp(total[name]) > 0:
                total[name] = amount
    return total


def _complaints(item: Document, requests: Amounts, limits: Amounts) -> list[str]:
    type_ = str(item.get("type"))
    found: list[str] = []
    for name, bound in _bounds(item, "min"):
        found += _minimum(type_, name, bound, requests, limits)
    for name, bound in _bounds(item, "max"):
        found += _maximum(type_, name, bound, requests, limits)
    for name, bound in _bounds(item, "maxLimitRequestRatio"):
        found += _ratio(type_, name, bound, requests, limits)
    return found


def _minimum(type_: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    words = f"minimum {name} usage per {type_} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        return [f"{words}.  No request is specified"]
    if request.cmp(bound) < 0:
        return [f"{words}, but request is {request}"]
    if limit is not None and limit.cmp(bound) < 0:
        return [f"{words}, but limit is {limit}"]
    return []


def _maximum(
    type_: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts, *, of_requests: bool = False
) -> list[str]:
    words = f"maximum {name} usage per {type_} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if of_requests:
        if request is None:
            return [f"{words}.  No request is specified"]
    elif limit is None:
        return [f"{words}.  No limit is specified"]
    elif limit.cmp(bound) > 0:
        return [f"{words}, but limit is {limit}"]
    if request is not None and request.cmp(bound) > 0:
        return [f"{words}, but request is {request}"]
    return []


def _ratio(type_: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    words = f"{name} max limit to request ratio per {type_} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None or request.is_zero():
        return [f"{words}, but no request is specified or request is 0"]
    if limit is None or limit.is_zero():
        return [f"{words}, but no limit is specified or limit is 0"]
    ratio = limit.milli_value() / request.milli_value()
    if ratio > bound.milli_value() / 1000:
        return [f"{words}, but provided ratio is {ratio:f}"]
    return []


def _bounds(item: Document, key: str) -> list[tuple[str, Quantity]]:
    return sorted(_amounts(item.get(key)).items())


def _amounts(named: Any) -> Amounts:
    return {str(name): quantity_from(amount) for name, amount in (named or {}).items()}
