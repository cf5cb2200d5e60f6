"""Which pools of devices a node may use, complete and current; and which nodes have devices that are alike.

What a search finds on one of several alike nodes holds for all. A node's likeness is what its slices say, names of node
and pool left out, and which of its devices are given out. Each slice is read once, however many cycles look at it.

Source: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/*/pools_*.go, v1.34 to v1.36
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.dynamic_resources.model import Device, Manifest, Objects, Slice, slice_from, tainted
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


class SliceIndex:
    """The ResourceSlices of a cluster, by node; kept from cycle to cycle, only what changed is read again.

    Attributes
    ----------
    slices : list of Slice
        In the order of the cluster.
    on_node : dict of str to list of Slice
        Those that name their node and share no counters.
    shared : list of Slice
        All others.
    of_pool : dict of (driver, pool) to list of Slice
    """

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.on_node: dict[str, list[Slice]] = {}
        self.shared: list[Slice] = []
        self.of_pool: dict[tuple[str, str], list[Slice]] = {}
        self._read: dict[str, tuple[Manifest, Slice]] = {}
        self._source: tuple[Any, tuple[int, int]] | None = None
        self._numbers: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        """Node -> number of what its slices say."""

    def update(self, listers: Objects, *, with_rules: bool = False) -> None:
        """Read the slices that have changed; nothing where none has.

        Parameters
        ----------
        with_rules : bool
            Whether DeviceTaintRules taint devices.
        """
        rules = listers.version("DeviceTaintRule") if with_rules else 0
        version = listers.version("ResourceSlice"), rules
        if self._source is not None and self._source[0] is listers and self._source[1] == version:
            return
        if self._source is None or self._source[1][1] != rules:
            self._read = {}
        self._source = (listers, version)
        taints = [item.manifest for item in listers.all("DeviceTaintRule")] if with_rules else []
        manifests = [item.manifest for item in listers.all("ResourceSlice")]
        read: dict[str, tuple[Manifest, Slice]] = {}
        for manifest in manifests:
            name = str(manifest["metadata"]["name"])
            known = self._read.get(name)
            read[name] = (
                known
                if known is not None and known[0] is manifest
                else (manifest, slice_from(tainted(manifest, taints)))
            )
        self._read = read
        self.of([item for _, item in read.values()])

    def of(self, slices: Iterable[Slice]) -> SliceIndex:
        """Index these slices."""
        self.slices = list(slices)
        self.on_node, self.shared, self.of_pool, self._kinds = {}, [], {}, {}
        for item in self.slices:
            name = item.document.get("nodeName")
            if name and not item.counter_sets:
                self.on_node.setdefault(name, []).append(item)
            else:
                self.shared.append(item)
            self.of_pool.setdefault(item.pool_key, []).append(item)
        return self

    def kind_of(self, node_name: str) -> int:
        """The number of what a node's slices say; equal for nodes whose devices are alike.

        -1 where no other node can be like it: a pool is not whole, or others have slices of it.
        """
        known = self._kinds.get(node_name)
        if known is None:
            known = self._kinds[node_name] = self._kind(self.on_node.get(node_name, ()))
        return known

    def place_of(self, node_name: str, pool: tuple[str, str]) -> int:
        """Which of the node's pools it is, by driver and name."""
        return sorted({item.pool_key for item in self.on_node.get(node_name, ())} | {pool}).index(pool)

    def _kind(self, slices: Sequence[Slice]) -> int:
        pools: dict[tuple[str, str], list[Slice]] = {}
        for item in slices:
            pools.setdefault(item.pool_key, []).append(item)
        parts = []
        for key in sorted(pools):
            of_pool = pools[key]
            first = of_pool[0]
            is_whole = (
                len(of_pool) == len(self.of_pool[key]) == first.n_slices_of_pool
                and len({item.generation for item in of_pool}) == 1
                and not any(item.document.get("perDeviceNodeSelection") for item in of_pool)
            )
            if not is_whole:
                return -1
            parts.append([key[0], [item.said for item in sorted(of_pool, key=lambda one: one.name)]])
        text = json.dumps(parts)
        return self._numbers.setdefault(text, len(self._numbers))
