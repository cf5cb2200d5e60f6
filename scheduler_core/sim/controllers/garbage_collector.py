"""Garbage collection: what an object owned goes with it.

Source: pkg/controller/garbagecollector/garbagecollector.go, v1.34
Differs: only the controlling owner counts; deletion is always in the background; an owner that was never seen is no
reason to delete (a dump may hold pods without their owners).
"""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.sim.controllers.base import Controller, Site
from scheduler_core.sim.kubelet import delete_pod
from scheduler_core.sim.pod_index import Owner
from scheduler_core.sim.world import Noticed

OWNER_KINDS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")


class GarbageCollector(Controller):
    """Deletes pods and ReplicaSets of owners that were deleted."""

    watches: ClassVar[tuple[str, ...]] = OWNER_KINDS

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._gone: dict[Owner, None] = {}
        self._sets: dict[Owner, dict[str, None]] = {}
        """ReplicaSets by name, by their owner."""

    def noticed(self, change: Noticed) -> None:
        for stored in (change.old, change.new):
            if stored is None or change.kind != "ReplicaSet":
                continue
            meta = stored.typed.meta
            if meta.controller is not None:
                owner = (meta.controller.kind, meta.namespace, meta.controller.uid)
                if stored is change.new:
                    self._sets.setdefault(owner, {})[meta.name] = None
                else:
                    self._sets.get(owner, {}).pop(meta.name, None)
        if change.old is not None:
            before = _identity(change.kind, change.old.manifest)
            if change.new is None or _identity(change.kind, change.new.manifest) != before:
                self._gone[before] = None

    def restored(self) -> None:
        self._gone.clear()

    def sync(self) -> bool:
        if not self._gone:
            return False
        gone, self._gone = list(self._gone), {}
        for owner in gone:
            for name in sorted(self._sets.pop(owner, {})):
                self.world.remove("ReplicaSet", owner[1], name, "owner deleted")
            pods = self.pods.of_owner(owner).pods
            for name in sorted(pods):
                if not pods[name].is_terminating:
                    delete_pod(self.world, pods[name], None, "owner deleted")
        return True


def _identity(kind: str, manifest: object) -> Owner:
    assert isinstance(manifest, dict)
    meta = manifest.get("metadata") or {}
    return (kind, str(meta.get("namespace") or ""), str(meta.get("uid") or ""))
