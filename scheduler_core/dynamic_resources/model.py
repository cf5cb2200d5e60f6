"""The objects of resource.k8s.io as the allocator reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from scheduler_core.releases import Release

EXACT_COUNT, ALL = "ExactCount", "All"
MAX_DEVICES = 32
"""Devices that one claim may be given (AllocationResultsMaxSize)."""
MAX_ALTERNATIVES = 8
"""Alternatives of one request (FirstAvailableDeviceRequestMaxSize)."""

Manifest = Mapping[str, Any]
DeviceId = tuple[str, str, str]
"""(driver, pool, device)."""


class Objects(Protocol):
    """Where a cluster's objects are (`cluster.listers.Listers`)."""

    def version(self, kind: str) -> int: ...

    def all(self, kind: str) -> list[Any]: ...


@dataclass(frozen=True, eq=False)
class Device:
    """One device of a ResourceSlice; `document` is its entry there."""

    document: Manifest
    id: DeviceId
    slice: Slice

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.document.get("attributes") or {}

    @property
    def capacity(self) -> Mapping[str, Any]:
        return self.document.get("capacity") or {}

    @property
    def counters(self) -> Sequence[Manifest]:
        """`consumesCounters`: what it takes of the pool's shared counters."""
        return self.document.get("consumesCounters") or ()

    @property
    def is_shared(self) -> bool:
        return bool(self.document.get("allowMultipleAllocations"))

    def attribute(self, name: str) -> tuple[str, Any] | None:
        """(type, value) of an attribute by its full name; the driver's own domain may be left out in the device."""
        found = self.attributes.get(name)
        if found is None:
            domain, slash, rest = name.partition("/")
            found = self.attributes.get(rest) if slash and domain == self.id[0] else None
        return None if found is None else next(iter(found.items()), None)


@dataclass(frozen=True, eq=False)
class Slice:
    """A ResourceSlice."""

    name: str
    document: Manifest
    """Its spec."""

    @property
    def pool_key(self) -> tuple[str, str]:
        return str(self.document.get("driver", "")), str(self.document["pool"]["name"])

    @property
    def generation(self) -> int:
        return int(self.document["pool"].get("generation") or 0)

    @property
    def n_slices_of_pool(self) -> int:
        return int(self.document["pool"].get("resourceSliceCount") or 0)

    @property
    def counter_sets(self) -> Sequence[Manifest]:
        return self.document.get("sharedCounters") or ()

    def devices(self) -> list[Device]:
        """Its devices; made once."""
        return self._devices

    @cached_property
    def _devices(self) -> list[Device]:
        driver, pool = self.pool_key
        return [
            Device(item, (driver, pool, str(item["name"])), self)
            for item in self.document.get("devices") or ()
        ]

    @cached_property
    def said(self) -> str:
        """What it says but for the names of node and pool, as text."""
        spec = {key: value for key, value in self.document.items() if key not in ("nodeName", "pool")}
        return json.dumps(spec, sort_keys=True)


def reads_taint_rules(release: Release) -> bool:
    """Whether DeviceTaintRules taint devices; before 1.35 they had no gate."""
    own = "DRADeviceTaintRules"
    return release.gate("DRADeviceTaints") and (own not in release.gates or release.gate(own))


def tainted(manifest: Manifest, rules: Iterable[Manifest]) -> Manifest:
    """A ResourceSlice with what DeviceTaintRules add to the taints of its devices; itself where they add nothing.

    Source: staging/src/k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go applyPatches, v1.36
    """
    spec = manifest["spec"]
    added: dict[int, list[Any]] = {}
    for rule in rules:
        wanted = rule["spec"].get("deviceSelector") or {}
        if wanted.get("deviceClassName") or wanted.get("selectors"):
            continue  # v1alpha3 had them until 1.34; they choose nothing here
        if wanted.get("driver") not in (None, spec.get("driver")):
            continue
        if wanted.get("pool") not in (None, spec["pool"]["name"]):
            continue
        for place, device in enumerate(spec.get("devices") or ()):
            if wanted.get("device") in (None, device["name"]):
                added.setdefault(place, []).append(rule["spec"]["taint"])
    if not added:
        return manifest
    devices = [
        {**device, "taints": [*(device.get("taints") or ()), *added[place]]} if place in added else device
        for place, device in enumerate(spec["devices"])
    ]
    return {**manifest, "spec": {**spec, "devices": devices}}


def slice_from(manifest: Manifest) -> Slice:
    return Slice(str(manifest["metadata"]["name"]), manifest["spec"])


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request of a claim, or one alternative of its `firstAvailable`.

    Attributes
    ----------
    name : str
        Its own; `full_name` has the parent's before it.
    parent : str
        The request whose alternative it is; empty otherwise.
    """

    name: str
    document: Manifest
    parent: str
    full_name: str
    base_name: str
    class_name: str
    mode: str
    count: int
    admin_access: bool
    selectors: Sequence[Manifest]
    tolerations: Sequence[Manifest]
    capacity_requests: Mapping[str, Any]


def request_from(name: str, document: Manifest, parent: str = "") -> Request:
    get = document.get
    count = get("count")
    return Request(
        name,
        document,
        parent,
        full_name=f"{parent}/{name}" if parent else name,
        base_name=parent or name,
        class_name=str(get("deviceClassName") or ""),
        mode=str(get("allocationMode") or EXACT_COUNT),
        count=1 if count is None else int(count),
        admin_access=not parent and bool(get("adminAccess")),
        selectors=get("selectors") or (),
        tolerations=get("tolerations") or (),
        capacity_requests=(get("capacity") or {}).get("requests") or {},
    )


@dataclass(frozen=True, eq=False)
class Claim:
    """A ResourceClaim; `manifest` is the whole object."""

    manifest: Manifest
    requests: tuple[tuple[Request, ...], ...] = field(default=())
    """A request a row: itself alone, or its alternatives in order."""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"].get("namespace") or "")

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"].get("uid") or self.key)

    @property
    def spec(self) -> Manifest:
        return (self.manifest.get("spec") or {}).get("devices") or {}

    @property
    def status(self) -> Manifest:
        return self.manifest.get("status") or {}

    @property
    def allocation(self) -> Manifest | None:
        found: Manifest | None = self.status.get("allocation")
        return found

    @property
    def reserved_for(self) -> Sequence[Manifest]:
        return self.status.get("reservedFor") or ()

    def is_reserved_for(self, uid: str) -> bool:
        return any(entry.get("uid") == uid for entry in self.reserved_for)


def claim_from(manifest: Manifest) -> Claim:
    spec = (manifest.get("spec") or {}).get("devices") or {}
    rows: list[tuple[Request, ...]] = []
    for item in spec.get("requests") or ():
        name = str(item.get("name", ""))
        if item.get("exactly") is not None:
            rows.append((request_from(name, item["exactly"]),))
        else:
            rows.append(
                tuple(request_from(str(one["name"]), one, name) for one in item.get("firstAvailable") or ())
            )
    return Claim(manifest, tuple(rows))
