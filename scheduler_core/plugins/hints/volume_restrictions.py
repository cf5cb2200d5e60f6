"""When a pod rejected by VolumeRestrictions is worth another try.

Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.fields import Document
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.hints.volumes import HasManifest, claim_names, name_of, namespace_of

_CONFLICT = QUEUE.because("the deleted pod used a disk the pod wants")
_SAME_CLAIM = QUEUE.because("the deleted pod used a claim of the pod")
_OTHER_VOLUMES = SKIP.because("the deleted pod shares no volume with the pod")
_OTHER_NAMESPACE = SKIP.because("it is in another namespace")
_CLAIM = QUEUE.because("a claim the pod uses was created")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), after_pod_deleted),
        ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
        ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_added),
    ]


def after_claim_added(pod: Pod, old: None, new: HasManifest) -> QueueingHint:
    if namespace_of(new) != pod.namespace:
        return _OTHER_NAMESPACE
    return _CLAIM if name_of(new) in claim_names(pod) else _OTHER_CLAIM


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    if old.namespace != pod.namespace:
        return _OTHER_NAMESPACE
    if any(_disks_conflict(wanted, used) for wanted in pod.volumes for used in old.volumes):
        return _CONFLICT
    claims = claim_names(pod)
    return _SAME_CLAIM if any(name in claims for name in claim_names(old)) else _OTHER_VOLUMES


def _disks_conflict(wanted: Document, used: Document) -> bool:
    """Source: volume_restrictions.go isVolumeConflict, v1.34."""
    disk, other = wanted.get("gcePersistentDisk"), used.get("gcePersistentDisk")
    if _is_shared(disk, other, "pdName"):
        return True
    disk, other = wanted.get("awsElasticBlockStore"), used.get("awsElasticBlockStore")
    if disk is not None and other is not None and disk.get("volumeID", "") == other.get("volumeID", ""):
        return True
    disk, other = wanted.get("iscsi"), used.get("iscsi")
    if _is_shared(disk, other, "iqn"):
        return True
    disk, other = wanted.get("rbd"), used.get("rbd")
    if disk is not None and other is not None:
        monitors = other.get("monitors") or ()
        return (
            any(monitor in monitors for monitor in disk.get("monitors") or ())
            and _pool(disk) == _pool(other)
            and disk.get("image", "") == other.get("image", "")
            and not _both_read_only(disk, other)
        )
    return False


def _is_shared(disk: Document | None, other: Document | None, identity: str) -> bool:
    """The same disk, mounted for writing by one of the two."""
    if disk is None or other is None:
        return False
    return disk.get(identity, "") == other.get(identity, "") and not _both_read_only(disk, other)


def _pool(disk: Document) -> str:
    return disk.get("pool") or "rbd"


def _both_read_only(disk: Document, other: Document) -> bool:
    return bool(disk.get("readOnly")) and bool(other.get("readOnly"))
