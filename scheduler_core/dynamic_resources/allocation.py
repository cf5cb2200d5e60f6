"""An allocation as a claim's status holds it, of the devices that were chosen; and what is left of shared devices.

Source: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go and
consumable_capacity.go, v1.36
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.dynamic_resources.model import Claim, Device, Manifest, Request
from scheduler_core.dynamic_resources.pools import DevicePool
from scheduler_core.objects.node import Node
from scheduler_core.objects.quantity import Quantity, read_quantity
from scheduler_core.releases import Release

Amounts = dict[str, Quantity]


class UndefinedCapacity(Exception):
    """A request names a capacity that the device does not have."""


class AllocationError(Exception):
    """An attempt that ends in an error, in Kubernetes' words."""


def consumed(request: Request, device: Device, release: Release) -> Amounts:
    """What a request takes of each capacity of a shared device, rounded up by the device's policy.

    Raises
    ------
    AllocationError
        An amount is negative, or lies beyond what the range can count (from 1.37 on).
    """
    asked = request.capacity_requests
    amounts = {}
    for name, capacity in device.capacity.items():
        try:
            amounts[name] = _consumed(asked.get(name), capacity, release)
            if amounts[name].sign() < 0 and release.has("CapacityRequestsChecked"):
                raise AllocationError("capacity value is negative")
        except AllocationError as error:
            raise AllocationError(f'capacity "{name}": {error}') from None
    return amounts


def has_room(request: Request, device: Device, taken: Mapping[str, Quantity], release: Release) -> bool:
    """Whether the device has what the request takes besides what is taken.

    Raises
    ------
    UndefinedCapacity
    AllocationError
    """
    capacities = device.capacity
    if any(name not in capacities for name in request.capacity_requests):
        raise UndefinedCapacity
    for name, amount in consumed(request, device, release).items():
        if _violates(amount, capacities[name].get("requestPolicy"), release):
            return False
        if name in taken:
            amount = amount.add(taken[name])
        if amount.cmp(read_quantity(str(capacities[name]["value"]))) > 0:
            return False
    return True


def add_amounts(amounts: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts[name].add(amount) if name in amounts else amount


def _consumed(asked: Any, capacity: Mapping[str, Any], release: Release) -> Quantity:
    policy = capacity.get("requestPolicy")
    if asked is None:
        default = policy.get("default") if policy else None
        return read_quantity(str(capacity["value"] if default is None else default))
    amount = read_quantity(str(asked))
    if not policy:
        return amount
    valid_range = policy.get("validRange")
    if valid_range and valid_range.get("min") is not None:
        return _rounded_up(amount, valid_range, release)
    for value in policy.get("validValues") or ():
        if amount.cmp(read_quantity(str(value))) <= 0:
            return read_quantity(str(value))
    return amount


_MOST: Final = 2**63 - 1


def _counts_thousandths(valid_range: Mapping[str, Any], release: Release) -> bool:
    """Whether a range counts in thousandths: every bound is a whole number of them, the step at least one."""
    if not release.gate("DRAFractionalCapacityRange"):
        return False
    bounds = [
        read_quantity(str(valid_range[key]))
        for key in ("min", "max", "step")
        if valid_range.get(key) is not None
    ]
    step = read_quantity(str(valid_range["step"]))
    return all(_is_exact(bound) for bound in bounds) and step.milli_value() >= 1


def _is_exact(amount: Quantity) -> bool:
    """Whether an amount is a whole number of thousandths that an int64 holds."""
    return amount.cmp(Quantity(amount.milli_value(), -3, False, amount.format)) == 0


def _rounded_up(amount: Quantity, valid_range: Mapping[str, Any], release: Release) -> Quantity:
    least = read_quantity(str(valid_range["min"]))
    if amount.cmp(least) < 0:
        return least
    if valid_range.get("step") is None:
        return amount
    in_thousandths, is_checked = (
        _counts_thousandths(valid_range, release),
        release.has("CapacityRequestsChecked"),
    )
    step = read_quantity(str(valid_range["step"]))
    asked, start, each = (
        one.milli_value() if in_thousandths else one.value() for one in (amount, least, step)
    )
    if is_checked:
        if in_thousandths and not _is_exact(amount):
            raise AllocationError(f"{_CANNOT}: request {amount} is not a representable milli value")
        if not in_thousandths and amount.cmp(Quantity(_MOST, 0, False, amount.format)) > 0:
            raise AllocationError(f"{_CANNOT}: request {amount} exceeds MaxInt64")
    rounded = start - (start - asked) // each * each
    if is_checked and rounded > _MOST and (in_thousandths or start >= 0):
        beyond = "the milli-value range" if in_thousandths else "MaxInt64"
        raise AllocationError(f"{_CANNOT}: rounding request {amount} up to the next step passes {beyond}")
    whole, left = divmod(rounded, 1000) if in_thousandths else (rounded, 0)
    number = (rounded, -3) if left else (whole, 0)
    return read_quantity(Quantity(*number, False, step.format if is_checked else "BinarySI").canonical())


_CANNOT: Final = "capacity request cannot be represented in the device's range arithmetic"


def _violates(amount: Quantity, policy: Mapping[str, Any] | None, release: Release) -> bool:
    if not policy:
        return False
    default = policy.get("default")
    if default is not None and amount.cmp(read_quantity(str(default))) == 0:
        return False
    valid_range = policy.get("validRange")
    if valid_range is not None:
        most, step = valid_range.get("max"), valid_range.get("step")
        if most is not None and amount.cmp(read_quantity(str(most))) > 0:
            return True
        if step is None:
            return False
        least = read_quantity(str(valid_range.get("min") or 0))
        if _counts_thousandths(valid_range, release):
            apart = amount.milli_value() - least.milli_value()
            return not _is_exact(amount) or apart % read_quantity(str(step)).milli_value() != 0
        return (amount.value() - least.value()) % read_quantity(str(step)).value() != 0
    values = policy.get("validValues") or ()
    return bool(values) and all(amount.cmp(read_quantity(str(value))) != 0 for value in values)


@dataclass(slots=True)
class Chosen:
    """One device given to one request."""

    request: Request
    device: Device
    consumed: Amounts | None = None


@dataclass(slots=True)
class RequestRow:
    """What is to be found for a request or an alternative of it."""

    request: Request
    device_class: Manifest
    n_devices: int = 0
    all_devices: list[tuple[Device, DevicePool]] = field(default_factory=list)


def allocation_of(
    claim: Claim, rows: Sequence[RequestRow], chosen: Sequence[Chosen], node: Node, release: Release
) -> dict[str, Any]:
    """The allocation of one claim, as its status holds it.

    Parameters
    ----------
    rows : sequence of RequestRow
        What was asked for: of each request, the alternative that was taken.
    chosen : sequence of Chosen
        Its devices, in the order they were chosen.

    Raises
    ------
    AllocationError
    """
    devices: dict[str, Any] = {"results": [_result(item, release) for item in chosen]}
    config = _config(claim, rows, release)
    if config:
        devices["config"] = config
    allocation: dict[str, Any] = {"devices": devices}
    selector = _node_selector(claim, chosen, node)
    if selector is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _result(item: Chosen, release: Release) -> dict[str, Any]:
    driver, pool, name = item.device.id
    result: dict[str, Any] = {
        "request": item.request.full_name,
        "driver": driver,
        "pool": pool,
        "device": name,
    }
    if item.request.admin_access:
        result["adminAccess"] = True
    if item.request.tolerations:
        result["tolerations"] = [dict(one) for one in item.request.tolerations]
    if release_has_binding(release):
        for key in ("bindingConditions", "bindingFailureConditions"):
            if item.device.document.get(key):
                result[key] = list(item.device.document[key])
    if item.consumed is not None:
        result["shareID"] = "/".join((driver, pool, name, item.request.full_name))
        if item.consumed:
            result["consumedCapacity"] = {key: str(value) for key, value in item.consumed.items()}
    return result


def _config(claim: Claim, rows: Sequence[RequestRow], release: Release) -> list[dict[str, Any]]:
    names_requests = release.has("ClassConfigNamesRequests")
    found: list[dict[str, Any]] = []
    of_class: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        class_name = row.device_class["metadata"]["name"]
        if names_requests and class_name in of_class:
            for entry in of_class[class_name]:
                entry["requests"].append(row.request.full_name)
            continue
        of_class[class_name] = [
            {
                "source": "FromClass",
                **({"requests": [row.request.full_name]} if names_requests else {}),
                **item,
            }
            for item in (row.device_class.get("spec") or {}).get("config") or ()
        ]
        found += of_class[class_name]
    for item in claim.spec.get("config") or ():
        names = item.get("requests") or ()
        body = {"source": "FromClaim", **item}
        if not names:
            found.append(body)
            continue
        covered = [
            row.request.base_name in names or (row.request.parent and row.request.full_name in names)
            for row in rows
        ]
        if not release.has("ConfigListedOnce"):
            found += [body] * sum(map(bool, covered))
        elif any(covered):
            found.append({**body, "requests": []} if all(covered) else body)
    return found


def _node_selector(claim: Claim, chosen: Sequence[Chosen], node: Node) -> dict[str, Any] | None:
    terms: dict[str, list[Any]] = {"matchFields": [], "matchExpressions": []}
    for item in chosen:
        document = item.device.slice.document
        source = item.device.document if document.get("perDeviceNodeSelection") else document
        if source.get("nodeName") is not None or item.device.document.get("bindsToNode"):
            by_name = {"key": "metadata.name", "operator": "In", "values": [node.name]}
            return {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
        selector_terms = (source.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
        if len(selector_terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.name}: unsupported "
                f"ResourceSlice.NodeSelector with {len(selector_terms)} terms"
            )
        for term in selector_terms:
            for key, known in terms.items():
                known += [one for one in term.get(key) or () if not _is_known(one, known)]
    kept = {key: value for key, value in terms.items() if value}
    return {"nodeSelectorTerms": [kept]} if kept else None


def release_has_binding(release: Release) -> bool:
    """Whether devices with binding conditions are allocated."""
    return release.gate("DRADeviceBindingConditions") and release.gate("DRAResourceClaimDeviceStatus")


def _is_known(requirement: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        one.get("key") == requirement.get("key")
        and one.get("operator") == requirement.get("operator")
        and set(one.get("values") or ()) == set(requirement.get("values") or ())
        for one in known
    )
