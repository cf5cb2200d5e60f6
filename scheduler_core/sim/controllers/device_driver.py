"""Drivers of the devices that nodes say they have (`sim.devices`): they publish ResourceSlices, and take them back."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.node import Node
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.devices import DEVICES, Manifest, classes_of, devices_of, slices_of
from scheduler_core.sim.world import Noticed

PUBLISHED_BY = "playground.dev/published-for"
"""Label of slices that a driver here published: the node they are of."""
COMPONENT = "device-driver"


class DeviceDriver(Controller):
    """Keeps a node's ResourceSlices as its annotation says, from its first moment to its last."""

    watches: ClassVar[tuple[str, ...]] = ("Node", "ResourceSlice")

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._to_sync: dict[str, None] = {}
        self._published: dict[str, dict[str, None]] = {}
        """Names of slices by node."""

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Node":
            before, after = (None if it is None else _said(it.typed) for it in (change.old, change.new))
            if before != after:
                stored = change.new or change.old
                assert stored is not None
                self._to_sync[stored.typed.name] = None
            return
        for stored, present in ((change.old, False), (change.new, True)):
            node = (
                None
                if stored is None
                else (stored.manifest["metadata"].get("labels") or {}).get(PUBLISHED_BY)
            )
            if stored is None or node is None:
                continue
            names = self._published.setdefault(node, {})
            if present:
                names[stored.manifest["metadata"]["name"]] = None
            else:
                names.pop(stored.manifest["metadata"]["name"], None)

    def restored(self) -> None:
        self._to_sync.clear()

    def sync(self) -> bool:
        if not self._to_sync:
            return False
        names, self._to_sync = list(self._to_sync), {}
        for name in names:
            self._publish(name)
        return True

    def _publish(self, node_name: str) -> None:
        stored = self.world.get("Node", "", node_name)
        said = "" if stored is None else _said(stored.typed)
        slices: list[Manifest] = []
        if stored is not None and said:
            try:
                devices = devices_of(said)
            except InvalidObject as error:
                self.world.record_event(
                    stored.manifest, "Warning", "DevicesNotPublished", "Publishing", str(error), COMPONENT
                )
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
    annotations = node.manifest["metadata"].get("annotations") or {}
    return str(annotations.get(DEVICES) or "")
