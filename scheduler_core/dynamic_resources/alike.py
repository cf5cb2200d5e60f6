"""Nodes whose devices are alike: what the search finds on one of them holds for all.

A node's likeness is what its slices say, names of node and pool left out, and which of its devices are given out.
Each slice is read once, however many cycles look at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from scheduler_core.dynamic_resources.model import Manifest, Slice, slice_from, tainted


class SliceListers(Protocol):
    """Where slices are looked up (`cluster.listers`)."""

    def version(self, kind: str) -> int: ...

    def all(self, kind: str) -> list[Any]: ...


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

    def update(self, listers: SliceListers, *, with_rules: bool = False) -> None:
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
