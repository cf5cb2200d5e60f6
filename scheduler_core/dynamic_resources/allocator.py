"""Finds devices for all claims of a pod on one node: the first that will do, in order, going back where it must.

Source: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v1.36
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.dynamic_resources.allocation import (
    AllocationError,
    Amounts,
    Chosen,
    RequestRow,
    UndefinedCapacity,
    add_amounts,
    allocation_of,
    consumed,
    has_room,
    release_has_binding,
)
from scheduler_core.dynamic_resources.model import (
    ALL,
    EXACT_COUNT,
    MAX_DEVICES,
    Claim,
    Device,
    DeviceId,
    Manifest,
    Request,
    Slice,
)
from scheduler_core.dynamic_resources.pools import DevicePool, SliceIndex, gather, node_matches
from scheduler_core.dynamic_resources.selectors import DeviceSelectorError, compiled
from scheduler_core.objects.node import Node
from scheduler_core.objects.quantity import Quantity, read_quantity
from scheduler_core.releases import Release


class Constraint:
    """A rule between the devices of some requests of a claim: they match in an attribute, or all differ in it.

    Of distinct values only the last one of each request is remembered until 1.36 (`of_each_device` is false).
    """

    def __init__(
        self, names: tuple[str, ...], attribute: str, *, is_distinct: bool, of_each_device: bool = False
    ) -> None:
        self.names = names
        self.attribute = attribute
        self.is_distinct = is_distinct
        self.of_each_device = of_each_device
        self.values: dict[str, tuple[str, Any]] = {}
        self.n_devices = 0

    def applies_to(self, request: Request) -> bool:
        return not self.names or request.base_name in self.names or request.full_name in self.names

    def add(self, request: Request, device: Device) -> bool:
        if not self.applies_to(request):
            return True
        value = device.attribute(self.attribute)
        if value is None or (self.n_devices and (value in self.values.values()) is self.is_distinct):
            return False
        self.values[self._key(request, self.n_devices)] = value
        self.n_devices += 1
        return True

    def _key(self, request: Request, number: int) -> str:
        """Under which a value is remembered, of the device with a number."""
        if not self.is_distinct:
            return ""
        return str(number) if self.of_each_device else request.base_name

    def words(self, device: Device) -> str:
        """Why it refuses a device."""
        value = device.attribute(self.attribute)
        rule = f"{self.attribute} must {'be distinct' if self.is_distinct else 'match'}"
        if value is None:
            return f"{rule}: this device has none"
        if self.is_distinct:
            return f"{rule}: {value[1]} is chosen already"
        return f"{rule}: {value[1]} here, {self.values.get('', ('', ''))[1]} for what is chosen already"

    def remove(self, request: Request, device: Device) -> None:
        if self.applies_to(request):
            self.n_devices -= 1
            if self.is_distinct:
                self.values.pop(self._key(request, self.n_devices), None)


NOTHING = read_quantity("0")
IN_USE, SELECTOR, CAPACITY = "in use", "selector", "capacity"
COUNTER, TAINT, CONSTRAINT = "counter", "taint", "constraint"
"""What can stand against a device, as an `Observer` is told it."""


class NotOnNode(Exception):
    """Nothing can be allocated on this node, for a reason that is worth telling."""


class _TooManyDevices(Exception):
    """More devices than a claim may be given; another alternative may need fewer."""


@dataclass(slots=True)
class Allocated:
    """What is allocated already, in the cluster and in scheduling cycles under way.

    Attributes
    ----------
    devices : set of (driver, pool, device)
        Taken whole.
    capacity : dict
        Of shared devices: what is taken of each capacity.
    """

    devices: set[DeviceId] = field(default_factory=set)
    capacity: dict[DeviceId, Amounts] = field(default_factory=dict)

    @classmethod
    def of(cls, allocations: Sequence[Manifest], release: Release) -> Allocated:
        """What allocations of claims (`status.allocation`) hold; admin access holds nothing."""
        found = cls()
        with_capacity = release.gate("DRAConsumableCapacity")
        for allocation in allocations:
            for item in (allocation.get("devices") or {}).get("results") or ():
                if item.get("adminAccess"):
                    continue
                device = (str(item["driver"]), str(item["pool"]), str(item["device"]))
                if with_capacity and item.get("shareID") is not None:
                    amounts = {
                        name: read_quantity(str(value))
                        for name, value in (item.get("consumedCapacity") or {}).items()
                    }
                    add_amounts(found.capacity.setdefault(device, {}), amounts)
                else:
                    found.devices.add(device)
        return found


class Observer:
    """Receives why devices are rejected, in the order in which they are tried; this one ignores it."""

    def refused(self, key: tuple[int, int, int], device: Device, check: str, words: str = "") -> None:
        """A device was not taken for a request: (claim, request, alternative), what stood against it."""

    def took(self, key: tuple[int, int, int], device: Device) -> None:
        """A device was taken for a request, for now."""

    def put_back(self, key: tuple[int, int, int], device: Device) -> None:
        """A device that was taken is free again: with it the rest could not be found."""


class Allocator:
    """Allocates for one pod; asked about one node after the other.

    Parameters
    ----------
    slices : sequence of Slice
    classes : mapping of str to manifest
        DeviceClasses by name.
    allocated : Allocated
    release : Release
    """

    def __init__(
        self,
        slices: Sequence[Slice] | SliceIndex,
        classes: Mapping[str, Manifest],
        allocated: Allocated,
        release: Release,
    ) -> None:
        self.index = slices if isinstance(slices, SliceIndex) else SliceIndex().of(slices)
        self.classes = classes
        self.allocated = allocated
        self.release = release
        self._taken: dict[str, list[tuple[Any, ...]]] = {}
        """What is given out of a node's own pools, by node."""
        for device in sorted(allocated.devices):
            self._note_taken(device, ())
        for device, amounts in sorted(allocated.capacity.items()):
            self._note_taken(device, tuple(sorted((name, str(amount)) for name, amount in amounts.items())))

    def _note_taken(self, device: DeviceId, amounts: tuple[tuple[str, str], ...]) -> None:
        driver, pool, name = device
        for item in self.index.of_pool.get((driver, pool), ())[:1]:
            node = item.document.get("nodeName")
            if node:
                place = self.index.place_of(str(node), (driver, pool))
                self._taken.setdefault(str(node), []).append((place, name, amounts))

    def likeness(self, node_name: str) -> Hashable | None:
        """Equal for nodes on which the search comes to the same; None where it has to be made."""
        if self.index.shared:
            return None
        kind = self.index.kind_of(node_name)
        if kind < 0:
            return None
        taken = self._taken.get(node_name)
        return kind if taken is None else (kind, tuple(taken))

    def allocate(self, node: Node, claims: Sequence[Claim]) -> list[dict[str, Any]] | None:
        """`status.allocation` for each claim, or None where the node does not do.

        Raises
        ------
        AllocationError
        NotOnNode
        """
        return NodeSearch(self, node, claims).run()

    def pools_of(self, node: Node) -> list[DevicePool]:
        """The pools the node may use."""
        local = self.index.on_node.get(node.name, ())
        keys = {item.pool_key for item in (*local, *self.index.shared)}
        slices = [item for key in sorted(keys) for item in self.index.of_pool[key]]
        return gather(node, slices, self.release)


class NodeSearch:
    """One search on one node."""

    def __init__(
        self, allocator: Allocator, node: Node, claims: Sequence[Claim], observer: Observer | None = None
    ) -> None:
        self.shared = allocator
        self.observer = observer
        self.release = allocator.release
        self.node = node
        self.claims = claims
        self.pools = allocator.pools_of(node)
        self.rows: dict[tuple[int, int, int], RequestRow] = {}
        self.constraints: list[list[Constraint]] = []
        self.results: list[list[Chosen]] = [[] for _ in claims]
        self.chosen_alternative: dict[tuple[int, int], int] = {}
        self.taking: dict[DeviceId, set[int]] = {}
        self.taking_capacity: dict[DeviceId, Amounts] = {}
        # Until 1.36 by the name of the pool alone: drivers whose pools have one name share the first one's counters.
        self._first_of_key = 0 if self.release.has("CountersByDriver") else 1
        self.counters: dict[tuple[str, ...], dict[tuple[str, str], Quantity]] = {}
        self.available: dict[tuple[str, ...], dict[tuple[str, str], Quantity]] = {}
        self.selectable: dict[tuple[DeviceId, tuple[int, int, int]], bool] = {}
        self._bindable = release_has_binding(self.release)
        self._names_devices = self.release.has("DeviceErrorsNamed")
        self._with_lists = self.release.gate("DRAListTypeAttributes") or self.release.has(
            "ListAttributesInCEL"
        )
        self._consumable = self.release.gate("DRAConsumableCapacity")
        self._gives_back = self.release.has("RefusedDevicesGiveBack")

    def run(self) -> list[dict[str, Any]] | None:
        for index, claim in enumerate(self.claims):
            self._prepare(index, claim)
        try:
            done = self._claim(0)
        except _TooManyDevices:
            return None
        if done:
            return [
                allocation_of(claim, self._taken(index), self.results[index], self.node, self.release)
                for index, claim in enumerate(self.claims)
            ]
        if self.release.has("IncompletePoolsIgnored") and any(pool.invalid for pool in self.pools):
            raise NotOnNode("invalid resource pools were encountered")
        return None

    def _taken(self, index: int) -> list[RequestRow]:
        """Of each request of a claim, the alternative that was taken."""
        places = range(len(self.claims[index].requests))
        return [self.rows[(index, place, self.chosen_alternative.get((index, place), 0))] for place in places]

    # ---- what is asked for

    def _prepare(self, index: int, claim: Claim) -> None:
        n_least = 0
        for place, alternatives in enumerate(claim.requests):
            if alternatives and alternatives[0].parent and not self.release.gate("DRAPrioritizedList"):
                raise AllocationError(
                    f"claim {claim.key}, request {alternatives[0].parent}: has subrequests, "
                    "but the DRAPrioritizedList feature is disabled"
                )
            counts = []
            for number, request in enumerate(alternatives):
                if request.document.get("capacity") is not None and not self._consumable:
                    kind = "subrequest" if request.parent else "request"
                    raise AllocationError(
                        f"claim {claim.key}, {kind} {request.name}: has capacity requests, "
                        "but the DRAConsumableCapacity feature is disabled"
                    )
                row = self._row(claim, request, (index, place, number))
                self.rows[(index, place, number)] = row
                counts.append(row.n_devices)
            n_least += min(counts, default=0)
        if n_least > MAX_DEVICES:
            raise AllocationError(
                f"claim {claim.key}: number of requested devices {n_least} exceeds the claim limit of {MAX_DEVICES}"
            )
        constraints: list[Constraint] = []
        for number, item in enumerate(claim.spec.get("constraints") or ()):
            names = tuple(item.get("requests") or ())
            if item.get("matchAttribute") is not None:
                constraints.append(Constraint(names, item["matchAttribute"], is_distinct=False))
            elif item.get("distinctAttribute") is not None and self._consumable:
                of_each_device = self.release.has("DistinctForEachDevice")
                constraints.append(
                    Constraint(
                        names, item["distinctAttribute"], is_distinct=True, of_each_device=of_each_device
                    )
                )
            else:
                raise AllocationError(
                    f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
                )
        self.constraints.append(constraints)

    def _row(self, claim: Claim, request: Request, key: tuple[int, int, int]) -> RequestRow:
        where = f"claim {claim.key}, request {request.name}"
        for number, selector in enumerate(request.selectors):
            if selector.get("cel") is None:
                raise AllocationError(
                    f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
                )
        if request.document.get("adminAccess") is not None and not self.release.gate("DRAAdminAccess"):
            raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
        if not request.class_name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self.shared.classes.get(request.class_name)
        if device_class is None:
            raise AllocationError(
                f"{where}: could not retrieve device class {request.class_name}: "
                f'deviceclass.resource.k8s.io "{request.class_name}" not found'
            )
        row = RequestRow(request, device_class)
        if request.mode == EXACT_COUNT:
            row.n_devices = request.count
            return row
        if request.mode != ALL:
            raise AllocationError(f"{where}: unsupported count mode {request.mode}")
        for pool in self.pools:
            if pool.is_incomplete:
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.name} is currently being updated"
                )
            if pool.invalid:
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.name} is currently invalid"
                )
            for device in pool.devices:
                if self._is_selectable(key, row, device) and self._has_capacity(row.request, device):
                    row.all_devices.append((device, pool))
        row.n_devices = len(row.all_devices)
        return row

    # ---- going through claims, requests and devices

    def _claim(self, index: int) -> bool:
        return index >= len(self.claims) or self._request(index, 0)

    def _request(self, index: int, place: int) -> bool:
        claim = self.claims[index]
        if place >= len(claim.requests):
            try:
                return self._claim(index + 1)
            except _TooManyDevices:
                return False
        alternatives = claim.requests[place]
        if not alternatives[0].parent:
            return self._device((index, place, 0), 0, 0, 0)
        exceeded = True
        for number in range(len(alternatives)):
            try:
                done = self._device((index, place, number), 0, 0, 0)
            except _TooManyDevices:
                continue
            exceeded = False
            if done:
                self.chosen_alternative[(index, place)] = number
                return True
        if exceeded:
            raise _TooManyDevices
        return False

    def _device(self, key: tuple[int, int, int], n_chosen: int, pool_start: int, device_start: int) -> bool:
        row, index = self.rows[key], key[0]
        takes_all = row.request.mode == ALL
        if takes_all and not row.all_devices:
            return False
        if n_chosen >= row.n_devices:
            return self._request(index, key[1] + 1)
        if len(self.results[index]) + row.n_devices - n_chosen > MAX_DEVICES:
            raise _TooManyDevices
        if takes_all:
            device, pool = row.all_devices[n_chosen]
            undo = self._take(key, row, device, pool, must=True)
            if undo is None:
                return False
            return self._go_on(undo, key, n_chosen + 1, 0, 0)
        for pool_index in range(pool_start, len(self.pools)):
            pool = self.pools[pool_index]
            if pool.invalid or (pool.is_incomplete and self.release.has("IncompletePoolsIgnored")):
                continue
            start = device_start if pool_index == pool_start else 0
            for place in range(start, len(pool.devices)):
                device = pool.devices[place]
                if row.request.admin_access:
                    if index in self.taking.get(device.id, ()):
                        self._refuse(key, device, IN_USE)
                        continue
                elif self._in_use(device.id):
                    self._refuse(key, device, IN_USE)
                    continue
                if not self._is_selectable(key, row, device):
                    self._refuse(key, device, SELECTOR)
                    continue
                if not self._has_capacity(row.request, device):
                    self._refuse(key, device, CAPACITY)
                    continue
                undo = self._take(key, row, device, pool, must=False)
                if undo is not None and self._go_on(undo, key, n_chosen + 1, pool_index, place + 1):
                    return True
        return False

    def _go_on(
        self,
        undo: Callable[[], None],
        key: tuple[int, int, int],
        n_chosen: int,
        pool_index: int,
        place: int,
    ) -> bool:
        done = False
        try:
            done = self._device(key, n_chosen, pool_index, place)
        finally:
            if not done:
                undo()
        return done

    # ---- one device

    def _refuse(self, key: tuple[int, int, int], device: Device, check: str, words: str = "") -> None:
        if self.observer is not None:
            self.observer.refused(key, device, check, words)

    def _in_use(self, device: DeviceId) -> bool:
        return device in self.shared.allocated.devices or bool(self.taking.get(device))

    def _is_selectable(self, key: tuple[int, int, int], row: RequestRow, device: Device) -> bool:
        if not self._bindable and device.document.get("bindingConditions"):
            return False
        known = self.selectable.get((device.id, key))
        if known is None:
            known = self._selected(key, row, device)
            self.selectable[(device.id, key)] = known
        return known

    def _selected(self, key: tuple[int, int, int], row: RequestRow, device: Device) -> bool:
        class_name = row.device_class["metadata"]["name"]
        spec = row.device_class.get("spec") or {}
        for where, selectors in (
            (f"class {class_name}", spec.get("selectors") or ()),
            (f"claim {self.claims[key[0]].key}", row.request.selectors),
        ):
            for number, selector in enumerate(selectors):
                try:
                    if not compiled(selector["cel"]["expression"]).matches(
                        device, with_lists=self._with_lists
                    ):
                        return False
                except DeviceSelectorError as error:
                    raise AllocationError(
                        f"{where}: selector #{number}{self._about(device)}: {self._hinted(error)}"
                    ) from None
        if device.slice.document.get("perDeviceNodeSelection"):
            return node_matches(self.node, device.document)
        return True

    def _about(self, device: Device) -> str:
        return f" on device {'/'.join(device.id)}" if self._names_devices else ""

    def _hinted(self, error: DeviceSelectorError) -> str:
        said = str(error)
        if not self._names_devices or "no such key: " not in said:
            return said
        return (
            f"{said}. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
            "for optional fields"
        )

    def _has_capacity(self, request: Request, device: Device) -> bool:
        if not self._consumable:
            return True
        taken: Amounts = {}
        add_amounts(taken, self.shared.allocated.capacity.get(device.id, {}))
        add_amounts(taken, self.taking_capacity.get(device.id, {}))
        try:
            return has_room(request, device, taken, self.release)
        except UndefinedCapacity:
            return False

    def _take(
        self, key: tuple[int, int, int], row: RequestRow, device: Device, pool: DevicePool, *, must: bool
    ) -> Callable[[], None] | None:
        """Take a device; what gives it back, or None where it cannot be taken."""
        index, request = key[0], row.request
        is_shared = self._consumable and device.is_shared
        taken: list[Callable[[], object]] = []
        """What takes each step back that was done for it."""

        def give_back() -> None:
            for step in reversed(taken):
                step()

        refused = self._refusal(index, request, device, pool, taken, is_shared=is_shared)
        if refused is None:
            refused = self._constraint_not_met(key, request, device, taken, must=must)
        if refused is None:
            if not is_shared:
                holders = self.taking.setdefault(device.id, set())
                holders.add(index)
                taken.append(lambda: holders.discard(index))
            if self._consumable and not self._has_capacity(request, device):
                refused = CAPACITY, ""
        if refused is not None:
            self._refuse(key, device, *refused)
            # Until 1.36.3 what was taken before a later check failed stays taken.
            if self._gives_back:
                give_back()
            return None
        amounts: Amounts | None = None
        if is_shared:
            amounts = consumed(request, device, self.release)
            self._take_capacity(device, amounts, taken)
        self.results[index].append(Chosen(request, device, amounts))
        taken.append(self.results[index].pop)
        if self.observer is not None:
            self.observer.took(key, device)

        def undo() -> None:
            give_back()
            if self.observer is not None:
                self.observer.put_back(key, device)

        return undo

    def _take_capacity(self, device: Device, amounts: Amounts, taken: list[Callable[[], object]]) -> None:
        was_shared = device.id in self.taking_capacity
        held = self.taking_capacity.setdefault(device.id, {})
        add_amounts(held, amounts)

        def give_back() -> None:
            for name, amount in amounts.items():
                held[name] = held[name].sub(amount)
            if all(amount.is_zero() for amount in held.values()) and not (was_shared and self._gives_back):
                del self.taking_capacity[device.id]

        if amounts or self._gives_back:
            taken.append(give_back)

    def _refusal(
        self,
        index: int,
        request: Request,
        device: Device,
        pool: DevicePool,
        taken: list[Callable[[], object]],
        *,
        is_shared: bool,
    ) -> tuple[str, str] | None:
        """Why a device cannot be had whatever else the claim takes, and more about it; None takes its counters."""
        if request.admin_access:
            if not is_shared and index in self.taking.get(device.id, ()):
                return IN_USE, ""
        elif self._in_use(device.id):
            return IN_USE, ""
        if device.counters:
            if not self.release.gate("DRAPartitionableDevices"):
                return COUNTER, "the release partitions no devices"
            if not (is_shared and self._capacity_in_use(device.id)):
                if not self._take_counters(device, pool):
                    return COUNTER, self._missing_counter(device, pool)
                if self._gives_back or not is_shared:
                    taken.append(lambda: self._give_counters_back(device, pool))
        if self.release.gate("DRADeviceTaints") and not is_tolerated(device, request):
            return TAINT, ""
        return None

    def _constraint_not_met(
        self,
        key: tuple[int, int, int],
        request: Request,
        device: Device,
        taken: list[Callable[[], object]],
        *,
        must: bool,
    ) -> tuple[str, str] | None:
        """Add the device to the constraints of its claim; to none of them where one is not met."""
        constraints = self.constraints[key[0]]
        for place, constraint in enumerate(constraints):
            if constraint.add(request, device):
                continue
            if must:
                driver, pool_name, name = device.id
                raise AllocationError(
                    f"claim {self.claims[key[0]].key}, request {request.name}: cannot add device "
                    f"{driver}/{pool_name}/{name} because a claim constraint would not be satisfied"
                )
            refused = CONSTRAINT, constraint.words(device)
            for one in constraints[:place]:
                one.remove(request, device)
            return refused

        def give_back() -> None:
            for constraint in constraints:
                constraint.remove(request, device)

        taken.append(give_back)
        return None

    def _capacity_in_use(self, device: DeviceId) -> bool:
        return device in self.shared.allocated.capacity or device in self.taking_capacity

    def _take_counters(self, device: Device, pool: DevicePool) -> bool:
        key = pool.key[self._first_of_key :]
        available = self.available.get(key)
        if available is None:
            available = self.available[key] = self.available_counters(pool)
        taken = self.counters.setdefault(key, {})
        for name, amount in counted(device):
            taken[name] = taken[name].add(amount) if name in taken else amount
        # A counter that allocated devices overdrew blocks the pool, whether this search takes of it or not.
        if all(amount.cmp(taken.get(name, NOTHING)) >= 0 for name, amount in available.items()):
            return True
        self._give_counters_back(device, pool)
        return False

    def _missing_counter(self, device: Device, pool: DevicePool) -> str:
        """The first counter of which less is left than the device takes."""
        key = pool.key[self._first_of_key :]
        available, taken = self.available[key], self.counters[key]
        for (set_name, name), amount in counted(device):
            left = available.get((set_name, name))
            if left is None:
                continue
            if (set_name, name) in taken:
                left = left.sub(taken[set_name, name])
            if left.cmp(amount) < 0:
                return f"{name} of {set_name}: it takes {amount}, {left} left"
        short = {key: amount.sub(taken.get(key, NOTHING)) for key, amount in available.items()}
        return overdrawn(short)[0]

    def _give_counters_back(self, device: Device, pool: DevicePool) -> None:
        taken = self.counters[pool.key[self._first_of_key :]]
        for name, amount in counted(device):
            taken[name] = taken[name].sub(amount)

    def available_counters(self, pool: DevicePool) -> dict[tuple[str, str], Quantity]:
        found = {
            (set_name, name): read_quantity(str(counter["value"]))
            for set_name, counters in pool.counter_sets.items()
            for name, counter in counters.items()
        }
        allocated = self.shared.allocated
        for device in (*pool.devices, *pool.other_devices):
            if device.id in allocated.devices or device.id in allocated.capacity:
                for counter, amount in counted(device):
                    if counter in found:
                        found[counter] = found[counter].sub(amount)
        return found


def counted(device: Device) -> Iterator[tuple[tuple[str, str], Quantity]]:
    """What the device takes of each shared counter, by counter set and name."""
    for taken in device.counters:
        for name, counter in (taken.get("counters") or {}).items():
            yield (taken["counterSet"], name), read_quantity(str(counter["value"]))


def overdrawn(left: Mapping[tuple[str, str], Quantity]) -> list[str]:
    """The counters of which more was taken than there was: nothing that takes of any counter is had from the pool."""
    return [
        f"{name} of {set_name}: more of it is taken than there is"
        for (set_name, name), amount in left.items()
        if amount.cmp(NOTHING) < 0
    ]


def is_tolerated(device: Device, request: Request) -> bool:
    """Whether no taint of the device keeps the request off it."""
    return all(
        taint.get("effect") not in ("NoSchedule", "NoExecute")
        or any(_tolerates(one, taint) for one in request.tolerations)
        for taint in device.document.get("taints") or ()
    )


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    """Source: dynamic-resource-allocation/resourceclaim/devicetoleration.go ToleratesTaint, v1.36"""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")
