"""Persistent volumes: claims get a volume that fits, or one is provisioned; both sides say that they are bound.

Source: pkg/controller/volume/persistentvolume/pv_controller.go, index.go, v1.34
Differs: a provisioner answers at once and never fails; what it makes for a node can be used in the node's zone (its
label topology.kubernetes.io/zone), or everywhere when the node names none. Nothing is recycled.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.objects.fields import mapping
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_ZONE
from scheduler_core.objects.storage import (
    AVAILABLE,
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    NO_PROVISIONER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler_core.sim.controllers.base import Controller, ControllerContext, Key
from scheduler_core.sim.world import Noticed, annotations_of

VOLUME, CLAIM, CLASS = "PersistentVolume", "PersistentVolumeClaim", "StorageClass"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
BOUND, RELEASED = "Bound", "Released"


class VolumeBinder(Controller):
    """Looks at claims that are not bound, when they or anything that could serve them changes."""

    watches: ClassVar[tuple[str, ...]] = (VOLUME, CLAIM, CLASS)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._unbound: dict[Key, None] = {}
        self._kept_for: dict[Key, str] = {}
        """Claim -> name of the volume that is bound to, or kept for it."""
        self._claims: dict[Key, None] = {}
        self._volumes: dict[str, None] = {}

    def noticed(self, change: Noticed) -> None:
        if change.kind == VOLUME:
            self._volume_noticed(change)
        elif change.kind == CLAIM:
            claim: PersistentVolumeClaim = change.newest.typed
            key = (claim.namespace, claim.name)
            if change.new is not None and not claim.is_fully_bound:
                self._unbound[key] = None
                self._claims[key] = None
                return
            self._unbound.pop(key, None)
            self._claims.pop(key, None)
            if change.new is None and key in self._kept_for:
                self._volumes[self._kept_for[key]] = None
        elif change.new is not None:
            self._claims.update(self._unbound)

    def _volume_noticed(self, change: Noticed) -> None:
        for stored, is_new in change.versions:
            volume: PersistentVolume = stored.typed
            reference = volume.claim_ref
            if reference is None:
                if is_new:
                    self._claims.update(self._unbound)
                continue
            key = (reference.namespace, reference.name)
            if not is_new:
                if self._kept_for.get(key) == volume.name:
                    del self._kept_for[key]
            else:
                self._kept_for[key] = volume.name
                if key in self._unbound:
                    self._claims[key] = None
        if change.new is not None:
            self._volumes[change.new.typed.name] = None

    def restored(self) -> None:
        self._claims.clear()
        self._volumes.clear()

    def sync(self) -> bool:
        if not self._claims and not self._volumes:
            return False
        volumes, self._volumes = list(self._volumes), {}
        for name in volumes:
            self._sync_volume(name)
        claims, self._claims = list(self._claims), {}
        for key in claims:
            stored = self.world.get(CLAIM, *key)
            if stored is not None and stored.typed.meta.deletion_ns is None:
                self._sync_claim(stored.typed)
        return True

    # ---- volumes

    def _sync_volume(self, name: str) -> None:
        """Keep the phase; let go of what was kept for a claim that is gone."""
        stored = self.world.get(VOLUME, "", name)
        if stored is None:
            return
        volume: PersistentVolume = stored.typed
        reference = volume.claim_ref
        if reference is None or not reference.uid:
            if volume.phase in ("", "Pending"):
                self._write_phase(volume, AVAILABLE)
            return
        claim = self.world.get(CLAIM, reference.namespace, reference.name)
        if claim is not None and claim.typed.meta.uid == reference.uid:
            return
        if volume.phase in (BOUND, RELEASED) or claim is not None:
            policy = mapping(volume.manifest, "spec", "").get("persistentVolumeReclaimPolicy")
            if policy == "Delete" and _annotation(volume, PROVISIONED_BY):
                self.world.remove(VOLUME, "", name, "reclaimed")
            elif volume.phase != RELEASED:
                self._write_phase(volume, RELEASED)

    def _write_phase(self, volume: PersistentVolume, phase: str) -> None:
        status = {**(volume.manifest.get("status") or {}), "phase": phase}
        self.world.put({**volume.manifest, "status": status}, "volume phase")

    # ---- claims

    def _sync_claim(self, claim: PersistentVolumeClaim) -> None:
        if claim.is_fully_bound:
            return
        name = claim.volume_name or self._kept_for.get((claim.namespace, claim.name), "")
        stored = self.world.get(VOLUME, "", name) if name else None
        if stored is not None:
            volume: PersistentVolume = stored.typed
            if volume.claim_ref is None or volume.is_bound_to(claim):
                self._bind(claim, volume)
                return
        if claim.volume_name:
            return
        if not claim.storage_class and claim.manifest["spec"].get("storageClassName") is None:
            default = self._default_class()
            if default is not None:
                spec = {**claim.manifest["spec"], "storageClassName": default.name}
                self.world.put({**claim.manifest, "spec": spec}, "default storage class")
                return
        found = self.world.get(CLASS, "", claim.storage_class) if claim.storage_class else None
        storage_class: StorageClass | None = None if found is None else found.typed
        waits = storage_class is not None and storage_class.waits_for_first_consumer
        if waits and not claim.selected_node:
            return
        if not waits:
            best = self._best_volume(claim)
            if best is not None:
                self._bind(claim, best)
                return
        if storage_class is None or claim.selector is not None:
            return
        if storage_class.provisioner and storage_class.provisioner != NO_PROVISIONER:
            self._bind(claim, self._provision(claim, storage_class))

    def _default_class(self) -> StorageClass | None:
        """The youngest class that is marked as default. Source: pkg/volume/util/storageclass.go, v1.34."""
        classes: list[StorageClass] = [
            stored.typed
            for stored in self.world.all(CLASS)
            if _annotation(stored.typed, DEFAULT_CLASS) == "true"
        ]
        return min(classes, key=lambda item: (-(item.meta.creation_ns or 0), item.name), default=None)

    def _best_volume(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The smallest free volume that will do. Source: volume_helpers.go FindMatchingVolume."""
        free: list[PersistentVolume] = [stored.typed for stored in self.world.all(VOLUME)]
        fitting = [
            volume
            for volume in free
            if volume.claim_ref is None
            and volume.phase in ("", AVAILABLE)
            and volume.meta.deletion_ns is None
            and volume.storage_class == claim.storage_class
            and volume.capacity_nano >= (claim.requested_nano or 0)
            and volume.volume_mode == claim.volume_mode
            and volume.volume_attributes_class == claim.volume_attributes_class
            and (claim.selector is None or claim.selector.matches(volume.meta.labels))
            and all(mode in volume.access_modes for mode in claim.access_modes)
        ]
        return min(fitting, key=lambda volume: (volume.capacity_nano, volume.name), default=None)

    def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> PersistentVolume:
        name = f"pvc-{claim.meta.uid.replace('/', '-')}"
        claim_spec = claim.manifest["spec"]
        spec: dict[str, Any] = {
            "accessModes": list(claim.access_modes) or ["ReadWriteOnce"],
            "capacity": {
                "storage": ((claim_spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
            },
            "claimRef": _reference(claim),
            "csi": {"driver": storage_class.provisioner, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": storage_class.manifest.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class.name,
            "volumeMode": claim.volume_mode,
        }
        expressions = self._topology(claim, storage_class)
        if expressions:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
        uid = self.world.free_uid(self.context.randomness)
        meta = {"name": name, "uid": uid, "annotations": {PROVISIONED_BY: storage_class.provisioner}}
        manifest = object_of("v1", VOLUME, meta, spec=spec, status={"phase": AVAILABLE})
        made: PersistentVolume = self.world.create(manifest, "provisioned").typed
        return made

    def _topology(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> list[dict[str, Any]]:
        node = self.world.node(claim.selected_node) if claim.selected_node else None
        if node is not None:
            zone = node.labels.get(LABEL_ZONE)
            return [{"key": LABEL_ZONE, "operator": "In", "values": [zone]}] if zone else []
        for term in storage_class.allowed_topologies[:1]:
            return [{"key": key, "operator": "In", "values": list(values)} for key, values in term]
        return []

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Both sides name each other. Source: pv_controller.go bind."""
        manifest = dict(volume.manifest)
        if volume.claim_ref is None or volume.claim_ref.uid != claim.meta.uid:
            if volume.claim_ref is None:
                manifest["metadata"] = _annotated(volume, {BOUND_BY_CONTROLLER_ANNOTATION: "yes"})
            manifest["spec"] = {**manifest["spec"], "claimRef": _reference(claim)}
        manifest["status"] = {**(manifest.get("status") or {}), "phase": BOUND}
        self.world.put(manifest, "volume bound")
        annotations = {BIND_COMPLETED_ANNOTATION: "yes"}
        if not claim.volume_name:
            annotations[BOUND_BY_CONTROLLER_ANNOTATION] = "yes"
        status = {
            **(claim.manifest.get("status") or {}),
            "phase": BOUND,
            "accessModes": list(volume.access_modes),
            "capacity": dict(mapping(mapping(volume.manifest, "spec", ""), "capacity", "spec")),
        }
        spec = {**claim.manifest["spec"], "volumeName": volume.name}
        meta = _annotated(claim, annotations)
        self.world.put({**claim.manifest, "metadata": meta, "spec": spec, "status": status}, "claim bound")


def _reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    kind = {"apiVersion": "v1", "kind": CLAIM}
    return {**kind, "namespace": claim.namespace, "name": claim.name, "uid": claim.meta.uid}


def _annotation(item: PersistentVolume | StorageClass, key: str) -> str:
    return str(annotations_of(item.manifest).get(key, ""))


def _annotated(item: PersistentVolume | PersistentVolumeClaim, annotations: dict[str, str]) -> dict[str, Any]:
    return {
        **item.manifest["metadata"],
        "annotations": {**annotations_of(item.manifest), **annotations},
    }
