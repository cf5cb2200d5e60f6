"""When a pod rejected by VolumeZone is worth another try.

Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
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
)
from scheduler_core.objects.fields import mapping, string, string_map
from scheduler_core.objects.node import LABEL_REGION, LABEL_REGION_BETA, LABEL_ZONE, LABEL_ZONE_BETA
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.hints.volumes import HasManifest, claim_names, name_of, namespace_of

_CHANGED = ActionType.ADD | ActionType.UPDATE
_TOPOLOGY_LABELS = (LABEL_ZONE_BETA, LABEL_REGION_BETA, LABEL_ZONE, LABEL_REGION)

_LATE_BINDING = QUEUE.because("a storage class that binds late was created")
_IMMEDIATE = SKIP.because("the new storage class does not bind late")
_CLAIM = QUEUE.because("a claim the pod uses was created or changed")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")
_NEW_VOLUME = QUEUE.because("a volume was created")
_MOVED = QUEUE.because("the volume's zones or regions changed")
_NOT_MOVED = SKIP.because("the volume's zones and regions are as before")


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, ActionType.ADD), after_storage_class_added),
        ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
        ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, _CHANGED), after_claim_change),
        ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME, _CHANGED), after_volume_change),
    ]


def after_storage_class_added(pod: Pod, old: None, new: HasManifest) -> QueueingHint:
    late = string(new.manifest, "volumeBindingMode", "") == "WaitForFirstConsumer"
    return _LATE_BINDING if late else _IMMEDIATE


def after_claim_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    uses = namespace_of(new) == pod.namespace and name_of(new) in claim_names(pod)
    return _CLAIM if uses else _OTHER_CLAIM


def after_volume_change(pod: Pod, old: HasManifest | None, new: HasManifest) -> QueueingHint:
    if old is None:
        return _NEW_VOLUME
    return _MOVED if _topology(old) != _topology(new) else _NOT_MOVED


def _topology(volume: HasManifest) -> list[tuple[str, str, frozenset[str]]]:
    """(volume, label, values) of the zone and region labels; a label with an empty zone is ignored."""
    name = name_of(volume)
    labels = string_map(mapping(volume.manifest, "metadata", ""), "labels", "metadata")
    found = []
    for key in _TOPOLOGY_LABELS:
        if key in labels:
            zones = frozenset(zone.strip() for zone in labels[key].split("__"))
            if "" not in zones:
                found.append((name, key, zones))
    return found
