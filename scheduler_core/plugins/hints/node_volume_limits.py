"""When a pod rejected by NodeVolumeLimits is worth another try.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, staging/src/k8s.io/csi-translation-lib, v1.34
"""

from __future__ import annotations

import re

from scheduler_core.framework.cluster_event import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    QUEUE,
    SKIP,
    VOLUME_ATTACHMENT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.fields import Document, integer, mapping, mappings, string
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.hints.volumes import HasManifest, name_of, namespace_of, used_claim_names

_DETACHED = QUEUE.because("the deleted pod held volumes that count against a limit")
_NO_VOLUMES = SKIP.because("the deleted pod held no volume that counts against a limit")
_UNASSIGNED = SKIP.because("the deleted pod was on no node")
_CLAIM = QUEUE.because("a claim the pod uses was created")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")
_OTHER_NAMESPACE = SKIP.because("it is in another namespace")
_ROOM = QUEUE.because("a volume was detached, and the pod wants one")
_OTHER_DRIVER = SKIP.because("the pod wants no volume of this driver")
_RAISED = QUEUE.because("a driver's limit was raised")
_NOT_RAISED = SKIP.because("no driver's limit was raised")

CSI_DRIVER_OF_INLINE_VOLUME = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "vsphereVolume": "csi.vsphere.vmware.com",
    "portworxVolume": "pxd.portworx.com",
}
"""In-tree volume sources that are served by a CSI driver, and the driver."""

_AWS_VOLUME = re.compile(r"^vol-[^/]*$")


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(ClusterEvent(CSI_NODE, ActionType.ADD)),
        ClusterEventWithHint(ClusterEvent(CSI_NODE, ActionType.UPDATE), after_csi_node_update),
        ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), after_pod_deleted),
        ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_added),
        ClusterEventWithHint(ClusterEvent(VOLUME_ATTACHMENT, ActionType.DELETE), after_volume_detached),
    ]


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    if not old.volumes:
        return _NO_VOLUMES
    if not old.node_name and not old.nominated_node_name:
        return _UNASSIGNED
    counts = any(
        volume.get("persistentVolumeClaim") is not None
        or volume.get("ephemeral") is not None
        or inline_driver(volume) is not None
        for volume in old.volumes
    )
    return _DETACHED if counts else _NO_VOLUMES


def after_claim_added(pod: Pod, old: None, new: HasManifest) -> QueueingHint:
    if namespace_of(new) != pod.namespace:
        return _OTHER_NAMESPACE
    return _CLAIM if name_of(new) in used_claim_names(pod) else _OTHER_CLAIM


def after_volume_detached(pod: Pod, old: HasManifest, new: None) -> QueueingHint:
    attacher = string(mapping(old.manifest, "spec", ""), "attacher", "spec")
    for volume in pod.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            return _ROOM
        driver = inline_driver(volume)
        if driver is None:
            continue
        _check_translatable(volume)
        if driver == attacher:
            return _ROOM
    return _OTHER_DRIVER


def after_csi_node_update(pod: Pod, old: HasManifest, new: HasManifest) -> QueueingHint:
    before = driver_limits(old)
    raised = any(limit > before.get(driver, 0) for driver, limit in driver_limits(new).items())
    return _RAISED if raised else _NOT_RAISED


def driver_limits(csi_node: HasManifest) -> dict[str, int]:
    """Volumes a node may hold by driver; 0 where the driver sets no limit."""
    spec = mapping(csi_node.manifest, "spec", "")
    return {
        string(driver, "name", path): integer(mapping(driver, "allocatable", path), "count", path)
        for path, driver in mappings(spec, "drivers", "spec")
    }


def inline_driver(volume: Document) -> str | None:
    """The CSI driver that serves an in-tree volume written into a pod; None for other volumes."""
    for source, driver in CSI_DRIVER_OF_INLINE_VOLUME.items():
        if volume.get(source) is not None:
            return driver
    return None


def _check_translatable(volume: Document) -> None:
    """Fail where upstream cannot translate: an AWS volume URL that names no volume."""
    aws = volume.get("awsElasticBlockStore")
    if aws is None:
        return
    volume_id = str(aws.get("volumeID", ""))
    if volume_id.startswith("aws://"):
        path = volume_id.removeprefix("aws://").partition("/")[2].strip("/")
        if not _AWS_VOLUME.match(path):
            name = volume.get("name", "")
            raise ValueError(
                f"converting volume({name}) from inline to csi: failed to translate Kubernetes ID to "
                f"EBS Volume ID invalid format for AWS volume ({volume_id})"
            )
