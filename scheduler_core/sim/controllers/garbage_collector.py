"""Garbage collection: what an object owned goes with it, at once, or before it where deletion is in the foreground.

Source: pkg/controller/garbagecollector/garbagecollector.go, v1.34
Differs: an owner that was never seen is no reason to delete (a dump may hold pods without their owners); of a pod only
the controlling owner counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.meta import finalizers_of
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.kubelet import delete_pod
from scheduler_core.sim.world import Noticed, Owner, Stored

OWNER_KINDS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
KINDS = (
    *OWNER_KINDS,
    "CronJob", "ControllerRevision", "HorizontalPodAutoscaler", "LimitRange", "PersistentVolumeClaim",
    "PodDisruptionBudget", "PodGroup", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota", "Service",
)  # fmt: skip
"""What owns and is owned, besides pods."""
FOREGROUND = "foregroundDeletion"
Place = tuple[str, str, str]
"""(kind, namespace, name)"""


class GarbageCollector(Controller):
    """Deletes what belonged to owners that were deleted."""

    watches: ClassVar[tuple[str, ...]] = KINDS
    watches_pods_of: ClassVar[tuple[str, ...]] = OWNER_KINDS

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._gone: dict[Owner, None] = {}
        self._owned: dict[str, dict[Place, None]] = {}
        """uid of an owner -> what it owns, besides pods."""
        self._going: dict[Place, None] = {}
        """Owners that go when what blocks them is gone."""

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Pod":
            return
        self._note(change)
        if change.old is not None:
            before = _identity(change.kind, change.old.manifest)
            if change.new is None or _identity(change.kind, change.new.manifest) != before:
                self._gone[before] = None

    def _note(self, change: Noticed) -> None:
        for stored, is_new in change.versions:
            place = (change.kind, *stored.key)
            for item in stored.manifest["metadata"].get("ownerReferences") or ():
                uid = str(item.get("uid") or "")
                if is_new:
                    self._owned.setdefault(uid, {})[place] = None
                elif uid in self._owned:
                    self._owned[uid].pop(place, None)
                    if not self._owned[uid]:
                        del self._owned[uid]
            self._going.pop(place, None)
            if is_new and goes_in_foreground(stored.manifest):
                self._going[place] = None

    def restored(self) -> None:
        self._gone.clear()

    def sync(self) -> bool:
        if not self._gone and not self._going:
            return False
        gone, self._gone = list(self._gone), {}
        for owner in gone:
            self._collect(owner)
        acted = bool(gone)
        for place in list(self._going):
            stored = self.world.get(*place)
            acted |= stored is not None and self._go_on(stored)
        return acted

    def _collect(self, owner: Owner) -> None:
        """Delete what an owner that is gone has left."""
        for place in sorted(self._owned.get(owner[2], {})):
            stored = self.world.get(*place)
            if stored is not None:
                self._without_owner(stored, owner[2])
        pods = self.pods.of_owner(owner).pods
        for name in sorted(pods):
            if not pods[name].is_terminating:
                delete_pod(self.world, pods[name], None, "owner deleted")

    def _without_owner(self, stored: Stored, uid: str) -> None:
        """One of an object's owners is gone: it goes, too, unless another one is there."""
        meta = stored.manifest["metadata"]
        left = [item for item in meta.get("ownerReferences") or () if str(item.get("uid") or "") != uid]
        if any(self._is_there(item, str(meta.get("namespace") or "")) for item in left):
            self.world.put(
                {**stored.manifest, "metadata": {**meta, "ownerReferences": left}}, "owner deleted"
            )
        else:
            self._delete(stored, "owner deleted")

    def _is_there(self, reference: Mapping[str, Any], namespace: str) -> bool:
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        if kind not in KINDS:
            # Not held here: its holder sees to that.
            return True
        owner = self.world.get(kind, namespace, name)
        return owner is not None and owner.manifest["metadata"].get("uid") == reference.get("uid")

    def _delete(self, stored: Stored, reason: str) -> None:
        meta = stored.manifest["metadata"]
        if not finalizers_of(stored.manifest):
            self.world.remove(str(stored.manifest["kind"]), *stored.key, reason)
        elif not meta.get("deletionTimestamp"):
            self.world.put({**stored.manifest, "metadata": self._marked(meta)}, reason)

    def _marked(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        now = format_seconds(self.world.clock.now_ns)
        return {**meta, "deletionTimestamp": now, "deletionGracePeriodSeconds": 0}

    # ---- in the foreground

    def _go_on(self, stored: Stored) -> bool:
        """Delete what an owner has; let it go when nothing is left that blocks it. Whether anything was done."""
        meta, kind = stored.manifest["metadata"], str(stored.manifest["kind"])
        owner = _identity(kind, stored.manifest)
        acted, blocked = False, False
        pods = self.pods.of_owner(owner).pods
        for name in sorted(pods):
            blocked |= _blocks(pods[name].manifest, owner[2])
            if not pods[name].is_terminating:
                delete_pod(self.world, pods[name], None, "owner deleted")
                acted = True
        for place in sorted(self._owned.get(owner[2], {})):
            dependent = self.world.get(*place)
            if dependent is None:
                continue
            blocks = _blocks(dependent.manifest, owner[2])
            if not dependent.manifest["metadata"].get("deletionTimestamp"):
                acted = True
                if blocks and self._has_dependents(dependent):
                    marked = self._marked(dependent.manifest["metadata"])
                    marked["finalizers"] = [*(marked.get("finalizers") or ()), FOREGROUND]
                    self.world.put({**dependent.manifest, "metadata": marked}, "owner deleted")
                else:
                    self._delete(dependent, "owner deleted")
            blocked |= blocks and self.world.get(*place) is not None
        if blocked or acted:
            return acted
        left = [name for name in meta.get("finalizers") or () if name != FOREGROUND]
        rest = {**stored.manifest, "metadata": {**meta, "finalizers": left}}
        if finalizers_of(rest):
            self.world.put(rest, "dependents are gone")
        else:
            self.world.remove(kind, *stored.key, "dependents are gone")
        return True

    def _has_dependents(self, stored: Stored) -> bool:
        owner = _identity(str(stored.manifest["kind"]), stored.manifest)
        return bool(self._owned.get(owner[2]) or self.pods.of_owner(owner).pods)


def goes_in_foreground(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is being deleted, and waits for what it owns."""
    meta = manifest["metadata"]
    return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())


def _blocks(manifest: Mapping[str, Any], uid: str) -> bool:
    references = manifest["metadata"].get("ownerReferences") or ()
    return any(item.get("blockOwnerDeletion") and str(item.get("uid") or "") == uid for item in references)


def _identity(kind: str, manifest: Mapping[str, Any]) -> Owner:
    meta = manifest.get("metadata") or {}
    return (kind, str(meta.get("namespace") or ""), str(meta.get("uid") or ""))
