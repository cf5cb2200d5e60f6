"""When a pod rejected by VolumeBinding is worth another try.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    QUEUE,
    SKIP,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    annotations_of,
    without_empties,
)
from scheduler_core.objects.fields import boolean, mapping, sequence, string
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import quantity_nano
from scheduler_core.plugins.stored_objects import HasManifest, name_of, namespace_of, used_claim_names

MIGRATED_PLUGINS_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"
_CHANGED = ActionType.ADD | ActionType.UPDATE

_NEW_CLASS = QUEUE.because("a storage class was created")
_TOPOLOGIES = QUEUE.because("the storage class allows other topologies now")
_SAME_TOPOLOGIES = SKIP.because("the storage class allows the same topologies as before")
_CLAIM = QUEUE.because("a claim the pod uses was created or changed")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")
_OTHER_NAMESPACE = SKIP.because("it is in another namespace")
_NEW_CSI_NODE = QUEUE.because("a node announced its storage drivers")
_MIGRATED = QUEUE.because("the node's list of migrated plugins changed")
_NOT_MIGRATED = SKIP.because("the node's list of migrated plugins is as before")
_NEW_CAPACITY = QUEUE.because("storage capacity was announced")
_MORE_CAPACITY = QUEUE.because("larger volumes are possible now")
_NO_MORE_CAPACITY = SKIP.because("no larger volumes are possible than before")
_UNCHECKED = QUEUE.because("a driver the pod uses no longer has its capacity checked")
_STILL_CHECKED = SKIP.because("nothing changed for a driver the pod uses")


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, _CHANGED), after_storage_class_change),
        ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, _CHANGED), after_claim_change),
        ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME, _CHANGED)),
        ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
        ClusterEventWithHint(ClusterEvent(CSI_NODE, _CHANGED), after_csi_node_change),
        ClusterEventWithHint(ClusterEvent(CSI_DRIVER, ActionType.UPDATE), after_csi_driver_change),
        ClusterEventWithHint(ClusterEvent(CSI_STORAGE_CAPACITY, _CHANGED), after_capacity_change),
    ]


def after_storage_class_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    if old is None:
        return _NEW_CLASS
    before, after = (
        without_empties(list(sequence(item.manifest, "allowedTopologies", ""))) for item in (old, new)
    )
    return _TOPOLOGIES if before != after else _SAME_TOPOLOGIES


def after_claim_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    if namespace_of(new) != pod.namespace:
        return _OTHER_NAMESPACE
    return _CLAIM if name_of(new) in used_claim_names(pod) else _OTHER_CLAIM


def after_csi_node_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    if old is None:
        return _NEW_CSI_NODE
    before = annotations_of(old).get(MIGRATED_PLUGINS_ANNOTATION) or ""
    return (
        _MIGRATED if before != (annotations_of(new).get(MIGRATED_PLUGINS_ANNOTATION) or "") else _NOT_MIGRATED
    )


def after_csi_driver_change(pod: Pod, old: HasManifest, new: HasManifest) -> QueueingHint:
    driver = name_of(new)
    uses = any(
        volume.get("csi") is not None and string(mapping(volume, "csi", ""), "driver", "csi") == driver
        for volume in pod.volumes
    )
    return _UNCHECKED if uses and _checks_capacity(old) and not _checks_capacity(new) else _STILL_CHECKED


def after_capacity_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    if old is None:
        return _NEW_CAPACITY
    before, after = _largest_volume(old), _largest_volume(new)
    return _MORE_CAPACITY if after is not None and (before is None or after > before) else _NO_MORE_CAPACITY


def _checks_capacity(driver: HasManifest) -> bool:
    return boolean(mapping(driver.manifest, "spec", ""), "storageCapacity", "spec")


def _largest_volume(capacity: HasManifest) -> int | None:
    """Bytes of the largest volume possible; None when nothing is said.

    Source: volumebinding/binder.go volumeLimit, v1.34
    """
    for field in ("maximumVolumeSize", "capacity"):
        value = capacity.manifest.get(field)
        if value is not None:
            return -(-quantity_nano(value, field) // 10**9)
    return None
