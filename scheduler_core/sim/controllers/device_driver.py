"""Drivers of the devices that nodes say they have (`sim.devices`): they publish ResourceSlices, and take them back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import Node
from scheduler_core.releases import Release
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.world import Noticed, annotations_of

PUBLISHED_BY = "playground.dev/published-for"
"""Label of slices that a driver here published: the node they are of."""


class DeviceDriver(Controller):
    """Keeps a node's ResourceSlices as its annotation says, from its first moment to its last."""

    watches: ClassVar[tuple[str, ...]] = ("Node", "ResourceSlice")
    component = "device-driver"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._published: dict[str, dict[str, None]] = {}
        """Names of slices by node."""

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Node":
            before, after = (None if it is None else _said(it.typed) for it in (change.old, change.new))
            if before != after:
                self._to_sync[change.newest.typed.name] = None
            return
        for stored, is_new in change.versions:
            node = (stored.manifest["metadata"].get("labels") or {}).get(PUBLISHED_BY)
            if node is None:
                continue
            names = self._published.setdefault(node, {})
            if is_new:
                names[stored.manifest["metadata"]["name"]] = None
            else:
                names.pop(stored.manifest["metadata"]["name"], None)

    def sync_key(self, node_name: str) -> None:
        stored = self.world.get("Node", "", node_name)
        said = "" if stored is None else _said(stored.typed)
        slices: list[Manifest] = []
        if stored is not None and said:
            try:
                devices = devices_of(said)
            except InvalidObject as error:
                self.warn(stored.manifest, "DevicesNotPublished", str(error), action="Publishing")
                return
            slices = slices_of(node_name, devices, self.context.release)
            for manifest in classes_of(devices, self.context.release):
                if self.world.get("DeviceClass", "", manifest["metadata"]["name"]) is None:
                    self.world.create(manifest, "installed with its driver")
        wanted = {manifest["metadata"]["name"]: manifest for manifest in slices}
        for name in list(self._published.get(node_name, {})):
            if name not in wanted:
                self.world.remove("ResourceSlice", "", name, "its devices are gone")
        for name, manifest in wanted.items():
            labels = {PUBLISHED_BY: node_name}
            manifest = {**manifest, "metadata": {"name": name, "labels": labels}}
            before = self.world.get("ResourceSlice", "", name)
            if before is None:
                self.world.create(manifest, "published by its driver")
            elif before.manifest["spec"] != manifest["spec"]:
                pool = manifest["spec"]["pool"]
                generation = before.manifest["spec"]["pool"]["generation"] + 1
                spec = {**manifest["spec"], "pool": {**pool, "generation": generation}}
                meta = before.manifest["metadata"]
                self.world.put({**manifest, "metadata": meta, "spec": spec}, "published by its driver")


def _said(node: Node) -> str:
    return str(annotations_of(node.manifest).get(DEVICES) or "")


# --- The devices a simulated driver finds on a node, as the ResourceSlices it publishes.


DEVICES = "playground.dev/devices"
GPU_DRIVER, NIC_DRIVER = "gpu.playground.dev", "nic.playground.dev"
KINDS = ("gpu", "mig", "nic")
MAX_DEVICES = 128
"""Devices of one slice."""
MAX_PARTS = 64
"""Devices of one slice that consume counters."""
DEFAULT_MODEL = "A100-80GB"
MODELS: Mapping[str, tuple[str, str]] = {
    "A100-40GB": ("40Gi", "8.0.0"),
    "A100-80GB": ("80Gi", "8.0.0"),
    "H100-80GB": ("80Gi", "9.0.0"),
    "L4": ("24Gi", "8.9.0"),
}
"""Memory and compute capability of a model."""

PARTS: tuple[tuple[str, int, int, tuple[int, ...]], ...] = (
    ("1g.10gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("2g.20gb", 2, 2, (0, 2, 4)),
    ("3g.40gb", 3, 4, (0, 4)),
    ("4g.40gb", 4, 4, (0,)),
    ("7g.80gb", 7, 8, (0,)),
)
"""Profile, multiprocessor units, memory slices, and the slices at which it may begin."""
N_MEMORY_SLICES, N_UNITS = 8, 7

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices of one kind on a node."""

    kind: str
    count: int
    model: str


def devices_of(annotation: str, path: str = f"metadata.annotations[{DEVICES}]") -> list[Devices]:
    """Read the annotation.

    Raises
    ------
    InvalidObject
        With the part that cannot be read.

    Examples
    --------
    >>> devices_of("gpu=8:H100-80GB,nic=2")[0]
    Devices(kind='gpu', count=8, model='H100-80GB')
    """
    found: list[Devices] = []
    for part in filter(None, (item.strip() for item in annotation.split(","))):
        match = re.fullmatch(r"([a-z]+)=(\d+)(?::(\S+))?", part)
        if match is None:
            raise InvalidObject(path, part, "must be KIND=NUMBER or KIND=NUMBER:MODEL")
        kind, count, model = match[1], int(match[2]), match[3] or DEFAULT_MODEL
        if kind not in KINDS:
            raise InvalidObject(path, part, f"the kind must be one of {', '.join(KINDS)}")
        if not 1 <= count <= MAX_DEVICES:
            raise InvalidObject(path, part, f"the number must be from 1 to {MAX_DEVICES}")
        if kind != "nic" and model not in MODELS:
            raise InvalidObject(path, part, f"the model must be one of {', '.join(MODELS)}")
        if any(item.kind == kind for item in found):
            raise InvalidObject(path, part, f"{kind} is given twice")
        found.append(Devices(kind, count, model))
    return found


def slices_of(node_name: str, devices: list[Devices], release: Release) -> list[Manifest]:
    """The ResourceSlices of a node, pool by pool; parts of GPUs only where the release partitions devices."""
    found = []
    for item in devices:
        driver = NIC_DRIVER if item.kind == "nic" else GPU_DRIVER
        pool = f"{node_name}-{item.kind}"
        if item.kind == "mig" and release.gate("DRAPartitionableDevices"):
            counters = [_counter_set(index) for index in range(item.count)]
            bodies: list[Manifest] = [{"sharedCounters": counters}]
            bodies += [{"devices": part} for part in _in_parts(list(_parts(item)), MAX_PARTS)]
        else:
            whole = [_nic(index) if item.kind == "nic" else _gpu(index, item) for index in range(item.count)]
            bodies = [{"devices": part} for part in _in_parts(whole, MAX_DEVICES)]
        for number, body in enumerate(bodies):
            spec = {
                "driver": driver,
                "nodeName": node_name,
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": len(bodies)},
                **body,
            }
            name = f"{node_name}-{driver}-{item.kind}-{number}"
            found.append(_object("ResourceSlice", name, spec))
    return found


def classes_of(devices: list[Devices], release: Release) -> list[Manifest]:
    """DeviceClasses by which these devices are asked for, named after their kind: `gpu.playground.dev`, ..."""
    found = []
    for item in devices:
        kind, driver = item.kind, NIC_DRIVER if item.kind == "nic" else GPU_DRIVER
        if kind == "mig" and not release.gate("DRAPartitionableDevices"):
            kind = "gpu"
        expression = f'device.driver == "{driver}" && device.attributes["{driver}"].type == "{kind}"'
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        found.append(_object("DeviceClass", f"{kind}.playground.dev", spec))
    return found


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return object_of("resource.k8s.io/v1", kind, {"name": name}, spec=spec)


def _in_parts(devices: list[Manifest], size: int) -> Iterator[list[Manifest]]:
    for begin in range(0, len(devices), size):
        yield devices[begin : begin + size]


def _gpu(index: int, item: Devices) -> Manifest:
    memory, capability = MODELS[item.model]
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "index": {"int": index},
            "model": {"string": item.model},
            "computeCapability": {"version": capability},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index // 2:02x}"},
        },
        "capacity": {"memory": {"value": memory}},
    }


def _nic(index: int) -> Manifest:
    return {
        "name": f"nic-{index}",
        "attributes": {
            "type": {"string": "nic"},
            "index": {"int": index},
            "rdma": {"bool": True},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
        },
        "capacity": {"bandwidth": {"value": "100G"}},
    }


def _counter_set(index: int) -> Manifest:
    memory = {f"memory-slice-{place}": {"value": "1"} for place in range(N_MEMORY_SLICES)}
    return {"name": f"gpu-{index}", "counters": {"multiprocessors": {"value": str(N_UNITS)}, **memory}}


def _parts(item: Devices) -> Iterator[Manifest]:
    for index in range(item.count):
        for profile, units, n_slices, begins in PARTS:
            for begin in begins:
                slices = range(begin, min(begin + n_slices, N_MEMORY_SLICES))
                counters = {f"memory-slice-{place}": {"value": "1"} for place in slices}
                gpu = _gpu(index, item)
                yield {
                    "name": f"gpu-{index}-mig-{profile.replace('.', '-')}-{begin}",
                    "attributes": {
                        **gpu["attributes"],
                        "type": {"string": "mig"},
                        "profile": {"string": profile},
                    },
                    "capacity": {"memory": {"value": f"{profile.partition('.')[2][:-2]}Gi"}},
                    "consumesCounters": [
                        {
                            "counterSet": f"gpu-{index}",
                            "counters": {"multiprocessors": {"value": str(units)}, **counters},
                        }
                    ],
                }
