"""Which pools of devices a node may use, complete and current.

Source: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/*/pools_*.go, v1.34 to v1.36
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.dynamic_resources.model import Device, Slice
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import node_selector_from
from scheduler_core.releases import Release

PoolKey = tuple[str, str]
Counters = dict[str, dict[str, Any]]
"""Counter set -> counter -> {value}."""


@dataclass(eq=False)
class DevicePool:
    """The part of a pool that one node may use.

    Attributes
    ----------
    devices : list of Device
        In the order they are tried.
    other_devices : list of Device
        Of the pool's other slices: they take of the shared counters, too.
    invalid : str
        Why nothing of it can be allocated; empty where that is not so.
    """

    key: PoolKey
    devices: list[Device] = field(default_factory=list)
    other_devices: list[Device] = field(default_factory=list)
    counter_sets: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    invalid: str = ""

    @property
    def name(self) -> str:
        return "/".join(self.key)


def node_matches(node: Node, document: Mapping[str, Any]) -> bool:
    """Whether `nodeName`, `allNodes` or `nodeSelector` of a slice or device choose the node."""
    if document.get("nodeName"):
        return bool(document["nodeName"] == node.name)
    if document.get("allNodes"):
        return True
    selector = document.get("nodeSelector")
    return selector is not None and node_selector_from(selector).match(node.labels, node.name)


def gather(node: Node, slices: Sequence[Slice], release: Release) -> list[DevicePool]:
    """The pools of a node, by driver and name; those with binding conditions last."""
    partitionable = release.gate("DRAPartitionableDevices")
    chosen: dict[PoolKey, list[Slice]] = {}
    for item in slices:
        if _is_relevant(node, item, partitionable):
            known = chosen.setdefault(item.pool_key, [])
            if known and item.generation > known[0].generation:
                known.clear()
            if not known or item.generation == known[0].generation:
                known.append(item)
    pools = []
    for key in sorted(chosen):
        generation = chosen[key][0].generation
        of_pool = [item for item in slices if item.pool_key == key]
        is_whole = len(chosen[key]) == chosen[key][0].n_slices_of_pool
        if not is_whole and any(item.generation > generation for item in of_pool):
            continue
        current = [item for item in of_pool if item.generation == generation]
        wanted = chosen[key][0].n_slices_of_pool
        if len(chosen[key]) != wanted and len(current) != wanted:
            pools.append(_incomplete(key, chosen[key], release))
        else:
            pools.append(_built(key, chosen[key], current, partitionable))
    return sorted(pools, key=_has_binding_conditions)


def _is_relevant(node: Node, item: Slice, partitionable: bool) -> bool:
    document = item.document
    if not partitionable and (document.get("perDeviceNodeSelection") is not None or item.counter_sets):
        return False
    if item.counter_sets:
        return True
    if document.get("perDeviceNodeSelection"):
        return any(node_matches(node, device) for device in document.get("devices") or ())
    return node_matches(node, document)


def _incomplete(key: PoolKey, slices: list[Slice], release: Release) -> DevicePool:
    pool = DevicePool(key, is_incomplete=True)
    if not release.has("IncompletePoolsIgnored"):
        pool.devices = _devices(slices)
    return pool


def _built(key: PoolKey, slices: list[Slice], current: list[Slice], partitionable: bool) -> DevicePool:
    pool = DevicePool(key)
    with_devices = [item for item in slices if not (partitionable and item.counter_sets)]
    pool.devices = _devices(with_devices)
    names: set[str] = set()
    for device in pool.devices:
        if device.id[2] in names:
            return DevicePool(key, invalid=f"duplicate device name {device.id[2]}")
        names.add(device.id[2])
    if not partitionable:
        return pool
    for item in slices:
        for counter_set in item.counter_sets:
            if counter_set["name"] in pool.counter_sets:
                return DevicePool(key, invalid=f"duplicate counter set name {counter_set['name']}")
            pool.counter_sets[counter_set["name"]] = dict(counter_set.get("counters") or {})
    here = {item.name for item in slices}
    pool.other_devices = _devices(item for item in current if item.name not in here)
    problem = next(
        filter(None, (_counter_problem(one, pool) for one in (*pool.devices, *pool.other_devices))), ""
    )
    return DevicePool(key, invalid=problem) if problem else pool


def _counter_problem(device: Device, pool: DevicePool) -> str:
    for taken in device.counters:
        known = pool.counter_sets.get(taken["counterSet"])
        if known is None:
            return f"counter set {taken['counterSet']} not found"
        for name in taken.get("counters") or {}:
            if name not in known:
                return f"counter {name} not found in counter set {taken['counterSet']}"
    return ""


def _devices(slices: Iterable[Slice]) -> list[Device]:
    return [device for item in sorted(slices, key=lambda one: one.name) for device in item.devices()]


def _has_binding_conditions(pool: DevicePool) -> bool:
    return any(device.document.get("bindingConditions") is not None for device in pool.devices)
