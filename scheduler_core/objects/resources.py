"""What a pod requests and a node offers, in whole units.

Units: `cpu` in millicores; `memory`, `ephemeral-storage` and hugepages in bytes; all others as counts.
Sums are taken exactly (in nano units) and rounded up once, as Kubernetes' quantities do.

Source: staging/src/k8s.io/component-helpers/resource/helpers.go, pkg/scheduler/framework/types.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from scheduler_core.errors import FieldError, InvalidObject
from scheduler_core.objects.fields import Document, child, mapping, mappings, string
from scheduler_core.objects.quantity import FORMAT_WRONG, Quantity, QuantityError, quantity_from

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

_MISSING = {CPU: 100 * 10**6, MEMORY: 200 * 1024 * 1024 * 10**9}
"""What scoring assumes of a container that requests none, in nano units: 100m and 200Mi."""

NanoList = dict[str, int]
_NOTHING: Mapping[str, Any] = {}


_LARGEST_NANO = (2**63 - 1) * 10**9
_LARGEST = 2**62
"""Whole units kept in int64 columns are cut off here; no real node or pod comes near."""


@lru_cache(maxsize=65536)
def _nano(text: str) -> int:
    return _clipped(quantity_from(text))


def _clipped(quantity: Quantity) -> int:
    """Columns are int64; upstream's Value() saturates or wraps there, and no real request comes near."""
    return max(-_LARGEST_NANO, min(_LARGEST_NANO, quantity.nano_value()))


def quantity_at(value: Any, path: str) -> Quantity:
    """A manifest's quantity (text or number).

    Raises
    ------
    InvalidObject
        It is none, or one of more digits than are ever written out.
    """
    try:
        if value is None:
            raise QuantityError(FORMAT_WRONG)
        return quantity_from(value)
    except QuantityError as error:
        raise InvalidObject.of(FieldError("FieldValueInvalid", path, value, str(error))) from None


def quantity_nano(value: Any, path: str) -> int:
    """A manifest's quantity in nano units, as `quantity_at` reads it."""
    return _clipped(quantity_at(value, path))


def named(resource: str) -> str:
    """A resource in a sentence.

    >>> named("cpu"), named("memory"), named("nvidia.com/gpu")
    ('CPU', 'memory', 'GPU')
    """
    word = resource.rsplit("/", 1)[-1]
    return word.upper() if word in ("cpu", "gpu") else word


def amount_text(resource: str, amount: int) -> str:
    """An amount in whole units for a person, its resource left out: two decimals, below one core whole millicores.

    >>> amount_text("cpu", 2400), amount_text("memory", 15 * 2**29), amount_text("nvidia.com/gpu", 1)
    ('2.4', '7.5 Gi', '1')
    >>> amount_text("cpu", 125), amount_text("cpu", 11_163), amount_text("memory", 63_803_924_480)
    ('0.125', '11.16', '59.42 Gi')
    """
    if resource == CPU:
        return _decimal(amount / 1000)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, unit in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if abs(amount) >= unit:
                return f"{_decimal(amount / unit)} {suffix}"
        return f"{amount} B" if amount else "0"
    return str(amount)


def _decimal(number: float) -> str:
    return f"{number:.{2 if abs(number) >= 1 else 3}f}".rstrip("0").rstrip(".")


def resource_list(document: Document, key: str, path: str) -> NanoList:
    """A ResourceList in nano units."""
    items = mapping(document, key, path)
    if not items:
        return {}
    result: NanoList = {}
    for name, value in items.items():
        if type(name) is type(value) is str:
            try:
                result[name] = _nano(value)
                continue
            except QuantityError:
                pass  # it is told below, with its path
        result[str(name)] = quantity_nano(value, child(child(path, key), str(name)))
    return result


def is_scalar_resource(name: str) -> bool:
    """Extended, hugepages, attachable-volumes or prefixed native resource.

    Source: pkg/scheduler/util/utils.go IsScalarResourceName, v1.34
    """
    if name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    if "/" not in name:
        return False
    # "kubernetes.io/x" is prefixed native; anything else with a domain is extended unless it is a quota name.
    return "kubernetes.io/" in name or not name.startswith("requests.")


def is_extended_resource(name: str) -> bool:
    """Source: pkg/apis/core/v1/helper/helpers.go IsExtendedResourceName, v1.34."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def whole_units(nano: Mapping[str, int]) -> dict[str, int]:
    """Round a nano list up to the scheduler's units, dropping names it does not count."""
    result: dict[str, int] = {}
    for name, amount in nano.items():
        if name == CPU:
            result[name] = min(-(-amount // 10**6), _LARGEST)
        elif name in (MEMORY, EPHEMERAL_STORAGE, PODS) or is_scalar_resource(name):
            result[name] = min(-(-amount // 10**9), _LARGEST)
    return result


def _add(total: NanoList, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _maximum(total: NanoList, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def is_supported_pod_level_resource(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _container_views(
    container: Document,
    path: str,
    statuses: Mapping[str, tuple[str, Document]],
    *,
    resize_infeasible: bool,
    as_sums: bool,
) -> tuple[NanoList, ...]:
    """What a container asks for, what it was allocated, and what it has; their largest where these are not summed.

    Where each is summed (`as_sums`), what is not said is as in the view before.
    Source: component-helpers/resource/helpers.go, v1.34, v1.37
    """
    resources = container.get("resources")
    requests = (
        resource_list(mapping(container, "resources", path), "requests", f"{path}.resources")
        if resources
        else {}
    )
    status = statuses.get(string(container, "name", path)) if statuses else None
    if status is None or status[1].get("resources") is None:
        return (requests,) * (3 if as_sums else 1)
    # In-place resize: the node may still hold what was allocated before.
    status_path, document = status
    actual = resource_list(
        mapping(document, "resources", status_path), "requests", f"{status_path}.resources"
    )
    allocated = resource_list(document, "allocatedResources", status_path)
    asked = {} if resize_infeasible else requests
    if not as_sums:
        return (_largest((asked, allocated, actual)),)
    allocated = allocated or requests
    return asked, allocated, (actual or allocated)


def _largest(views: Sequence[NanoList]) -> NanoList:
    result: NanoList = {}
    for view in views:
        _maximum(result, view)
    return result


def _aggregate(
    containers: list[NanoList], init_containers: list[tuple[bool, NanoList]], missing: Mapping[str, int]
) -> NanoList:
    total: NanoList = {}
    for requests in containers:
        _add(total, {**missing, **requests} if missing else requests)
    sidecars: NanoList = {}
    largest_init: NanoList = {}
    for restartable, requests in init_containers:
        if missing:
            requests = {**missing, **requests}
        if restartable:
            _add(total, requests)
            _add(sidecars, requests)
            at_start = sidecars
        else:
            at_start = dict(requests)
            _add(at_start, sidecars)
        _maximum(largest_init, at_start)
    _maximum(total, largest_init)
    return total


def aggregate(spec: Document, key: str) -> NanoList:
    """`requests` or `limits` of all containers together in nano units, without pod-level resources and overhead."""

    def amounts(container: Document, path: str) -> NanoList:
        return resource_list(mapping(container, "resources", path), key, f"{path}.resources")

    containers = [amounts(item, path) for path, item in mappings(spec, "containers", "spec")]
    init_containers = [
        (item.get("restartPolicy") == "Always", amounts(item, path))
        for path, item in mappings(spec, "initContainers", "spec")
    ]
    return _aggregate(containers, init_containers, {})


@dataclass(frozen=True, slots=True)
class PodRequests:
    """What the scheduler reserves for a pod.

    Attributes
    ----------
    requests : dict of str to int
        Whole units, explicit zeros included.
    non_zero : tuple of int
        Millicores and bytes counted against a node's non-zero requests: 100m and 200Mi stand in for each container
        that names none (with pod-level resources only where nothing at all is named).
    scoring : tuple of int
        Millicores and bytes the pod itself counts for when NodeResourcesFit scores a node: pod-level resources
        are not looked at there, as recorded from v1.34.1.
    """

    requests: dict[str, int]
    non_zero: tuple[int, int]
    scoring: tuple[int, int]


def pod_requests(manifest: Document) -> PodRequests:
    """Sum up a pod's requests.

    Source: pkg/scheduler/framework/types.go calculateResource and
    pkg/scheduler/framework/plugins/noderesources/resource_allocation.go calculatePodResourceRequest, v1.34
    """
    return _plain_requests(manifest) or summed_requests(manifest)


def _plain_requests(manifest: Document) -> PodRequests | None:
    """Those of a pod with nothing but containers, in a fifth of the time; None where there is more to look at."""
    spec, status = manifest.get("spec"), manifest.get("status")
    if type(spec) is not dict or "initContainers" in spec or "resources" in spec or "overhead" in spec:
        return None
    if status is not None and (type(status) is not dict or "initContainerStatuses" in status):
        return None
    total: NanoList = {}
    n_without_cpu = n_without_memory = 0
    try:
        for item in (status and status.get("containerStatuses")) or ():
            if "resources" in item or type(item["name"]) is not str:
                return None
        for container in spec.get("containers", ()):
            requests = (container.get("resources") or _NOTHING).get("requests")
            if requests is None:
                requests = _NOTHING
            for name, value in requests.items():
                if type(value) is not str:
                    return None
                total[name] = total.get(name, 0) + _nano(value)
            n_without_cpu += CPU not in requests
            n_without_memory += MEMORY not in requests
    except (AttributeError, KeyError, TypeError, QuantityError):
        return None
    cpu = total.get(CPU, 0) + n_without_cpu * _MISSING[CPU]
    memory = total.get(MEMORY, 0) + n_without_memory * _MISSING[MEMORY]
    scoring = min(-(-cpu // 10**6), _LARGEST), min(-(-memory // 10**9), _LARGEST)
    return PodRequests(whole_units(total), scoring, scoring)


def summed_requests(manifest: Document, *, as_sums: bool = False) -> PodRequests:
    """Those of any pod.

    A pod that is being resized has what it asks for, what it was allocated and what it has. Until 1.36 the largest of
    the three counts for each container, from 1.37 on (`as_sums`) the largest of the pod's three sums, and of what the
    pod as a whole asks for, was allocated and has.
    """
    spec = mapping(manifest, "spec", "")
    status = mapping(manifest, "status", "")
    statuses: dict[str, tuple[str, Document]] = {}
    resize_infeasible = False
    if status:
        for key in ("containerStatuses", "initContainerStatuses"):
            for status_path, item in mappings(status, key, "status"):
                statuses[string(item, "name", status_path)] = (status_path, item)
        resize_infeasible = any(
            condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
            for _, condition in mappings(status, "conditions", "status")
        )
    views_of = partial(_container_views, resize_infeasible=resize_infeasible, as_sums=as_sums)
    containers = [
        views_of(container, path, statuses) for path, container in mappings(spec, "containers", "spec")
    ]
    init_containers = []
    for path, container in mappings(spec, "initContainers", "spec"):
        restartable = container.get("restartPolicy") == "Always"
        init_containers.append((restartable, views_of(container, path, statuses if restartable else {})))

    pod_resources = mapping(spec, "resources", "spec")
    pod_level = resource_list(pod_resources, "requests", "spec.resources") if pod_resources else {}
    pod_level = {name: amount for name, amount in pod_level.items() if is_supported_pod_level_resource(name)}
    if as_sums and pod_level and status.get("resources") is not None:
        has = resource_list(mapping(status, "resources", "status"), "requests", "status.resources")
        allocated = resource_list(status, "allocatedResources", "status")
        largest = _largest(({} if resize_infeasible else pod_level, allocated, has))
        pod_level = {name: largest.get(name, 0) for name in pod_level}
    overhead = resource_list(spec, "overhead", "spec")

    def total_with(missing: Mapping[str, int], at_pod_level: NanoList) -> NanoList:
        total = _largest(
            [
                _aggregate(
                    [views[place] for views in containers],
                    [(restartable, views[place]) for restartable, views in init_containers],
                    missing,
                )
                for place in range(3 if as_sums else 1)
            ]
        )
        total.update(at_pod_level)
        _add(total, overhead)
        return total

    total = total_with({}, pod_level)
    scoring = total_with(_MISSING, {})
    non_zero = scoring
    if pod_level:
        missing = {name: amount for name, amount in _MISSING.items() if name not in total}
        non_zero = total_with(missing, pod_level) if missing else total
    return PodRequests(whole_units(total), _cpu_and_memory(non_zero), _cpu_and_memory(scoring))


def _cpu_and_memory(nano: NanoList) -> tuple[int, int]:
    return min(-(-nano.get(CPU, 0) // 10**6), _LARGEST), min(-(-nano.get(MEMORY, 0) // 10**9), _LARGEST)
