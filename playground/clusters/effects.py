"""What an object of each kind does to placement, in words: of kinds that are not here it is only kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from playground.clusters.kinds import Kind

READ: Final = "read"
MAKES: Final = "makes"
KEPT: Final = "kept"

_READ: Final[Mapping[str, str]] = {
    "Node": "room, taints, labels, conditions",
    "Pod": "what it asks for; on a node it takes room, and counts for affinity and spread",
    "Namespace": "labels, for the namespaceSelector of pod affinity",
    "PersistentVolumeClaim": "VolumeBinding, VolumeRestrictions, NodeVolumeLimits",
    "PersistentVolume": "which nodes reach it",
    "StorageClass": "when and where a volume is made",
    "CSINode": "how many volumes a node takes",
    "CSIDriver": "whether capacity is tracked",
    "CSIStorageCapacity": "free capacity, by where it is",
    "VolumeAttachment": "volumes a node has attached already",
    "Service": "selectors, for the default spread of pods that ask for none",
    "ReplicaSet": "selectors, for the default spread; makes pods",
    "ReplicationController": "selectors, for the default spread; makes pods",
    "StatefulSet": "selectors, for the default spread; makes pods and their claims",
    "PriorityClass": "order of the queue, who may evict whom",
    "PodDisruptionBudget": "which victims preemption spares; drains respect it",
    "DeviceClass": "which devices a claim may have",
    "ResourceSlice": "the devices of nodes",
    "ResourceClaim": "the devices a pod has or wants",
    "Workload": "groups of pods that are placed together",
    "PodGroup": "pods that are placed together, or not at all",
}
_MAKES: Final[Mapping[str, str]] = {
    "Deployment": "makes ReplicaSets, and they pods",
    "DaemonSet": "one pod a node",
    "Job": "makes pods until enough have succeeded; each ends by itself after a while",
    "CronJob": "makes a Job whenever its schedule says so",
    "HorizontalPodAutoscaler": "sets the replicas of a workload by the load drawn on it",
    "ControllerRevision": "templates that rollouts go back to",
    "LimitRange": "default requests of new pods, and their bounds",
    "ResourceQuota": "refuses pods above it, before they reach the queue",
    "ResourceClaimTemplate": "makes a claim for each pod that names it",
}


def effect_of(kind: Kind) -> tuple[str, str]:
    """`READ`, `MAKES` or `KEPT`, and what of it counts."""
    if not kind.interpreted:
        return KEPT, ""
    if kind.row_kind in _READ:
        return READ, _READ[kind.row_kind]
    return MAKES, _MAKES.get(kind.row_kind, "")
