"""VolumeZone: a pod runs in the zones and regions its bound volumes are labelled with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import Bool, Int32, NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.interface import SKIP_FILTER, FilterPlugin, PreFilterPlugin, PreFilterResult
from scheduler_core.framework.status import Code, Status, Verdicts
from scheduler_core.objects.node import LABEL_REGION, LABEL_REGION_BETA, LABEL_ZONE, LABEL_ZONE_BETA
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler_core.plugins.pod_volumes import claim_names

_LABELS = (LABEL_ZONE_BETA, LABEL_REGION_BETA, LABEL_ZONE, LABEL_REGION)
_CURRENT = {LABEL_ZONE_BETA: LABEL_ZONE, LABEL_REGION_BETA: LABEL_REGION}
_ZONE_DELIMITER = "__"


@dataclass(frozen=True, slots=True)
class VolumeTopology:
    """One zone or region label of a bound volume: the node's label must have one of the values."""

    key: str
    values: tuple[str, ...]


Topologies = tuple[VolumeTopology, ...]


class VolumeZone(PreFilterPlugin[Topologies], FilterPlugin[Topologies]):
    """Rejects rows outside of the zones and regions that bound volumes carry as labels.

    A row without any zone or region label is in every zone. A beta label of a volume is also looked up under
    its current name.

    Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go, v1.34
    """

    name: ClassVar[str] = "VolumeZone"
    sentences: ClassVar[Sequence[str]] = ("node(s) had no available volume zone",)
    default_weight: ClassVar[int | None] = 0

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("StorageClass", "Add", after_storage_class_added),
            on("Node", "Add|UpdateNodeLabel"),
            on("PersistentVolumeClaim", "Add|Update", after_claim_change),
            on("PersistentVolume", "Add|Update", after_volume_change),
        ]

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> PreFilterResult[Topologies]:
        topologies: list[VolumeTopology] = []
        for name in claim_names(pod) if pod.volumes else ():
            found = _topologies_of_claim(name, pod.namespace, snapshot.listers)
            if isinstance(found, str):
                return PreFilterResult(Status(Code.UnschedulableAndUnresolvable, (found,)))
            topologies += found
        return PreFilterResult(state=tuple(topologies)) if topologies else SKIP_FILTER

    def filter(self, state: Topologies, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        columns = {key: nodes.label_column(key)[rows] for key in _LABELS}
        constrained = np.zeros(len(rows), np.bool_)
        for column in columns.values():
            constrained |= column >= 0
        outside = np.zeros(len(rows), np.bool_)
        for topology in state:
            inside = _is_one_of(columns[topology.key], topology, topology.key, nodes)
            current = _CURRENT.get(topology.key)
            if current is not None:
                lacks = columns[topology.key] < 0
                inside |= lacks & _is_one_of(columns[current], topology, current, nodes)
            outside |= ~inside
        return Verdicts.where(outside & constrained, Code.UnschedulableAndUnresolvable)


def _is_one_of(column: Int32, topology: VolumeTopology, key: str, nodes: NodeColumns) -> Bool:
    """Where a label column, read by `key`, holds one of the topology's values."""
    interned = nodes.vocabulary.label_values[key]
    allowed: NDArray[np.bool_] = np.zeros(len(interned) + 1, np.bool_)
    allowed[[found for value in topology.values if (found := interned.find(value)) >= 0]] = True
    return allowed[column]


def _topologies_of_claim(name: str, namespace: str, listers: Listers) -> list[VolumeTopology] | str:
    """The labels of the volume a claim is bound to, none while it waits for its pod; or what is wrong."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim: PersistentVolumeClaim | None = listers.get("PersistentVolumeClaim", namespace, name)
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if not claim.volume_name:
        return _unbound(claim, listers)
    volume: PersistentVolume | None = listers.get("PersistentVolume", "", claim.volume_name)
    if volume is None:
        return f'persistentvolume "{claim.volume_name}" not found'
    return topologies_of(volume)


def _unbound(claim: PersistentVolumeClaim, listers: Listers) -> list[VolumeTopology] | str:
    if not claim.storage_class:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class: StorageClass | None = listers.get("StorageClass", "", claim.storage_class)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
    return [] if storage_class.waits_for_first_consumer else "PersistentVolume had no name"


def topologies_of(volume: PersistentVolume) -> list[VolumeTopology]:
    """Zone and region labels of a volume; one with an empty value in its list is ignored.

    Source: volumezone/volume_zone.go getPVTopologies,
    staging/src/k8s.io/cloud-provider/volume/helpers/zones.go LabelZonesToSet, v1.34
    """
    topologies = []
    for key in _LABELS:
        label = volume.meta.labels.get(key)
        if label is not None:
            values = tuple(sorted({value.strip() for value in label.split(_ZONE_DELIMITER)}))
            if all(values):
                topologies.append(VolumeTopology(key, values))
    return topologies


# ---- hints: when a pod that the plugin rejected is worth another try

_LATE_BINDING = QUEUE.because("a storage class that binds late was created")
_IMMEDIATE = SKIP.because("the new storage class does not bind late")
_CLAIM = QUEUE.because("a claim the pod uses was created or changed")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")
_NEW_VOLUME = QUEUE.because("a volume was created")
_MOVED = QUEUE.because("the volume's zones or regions changed")
_NOT_MOVED = SKIP.because("the volume's zones and regions are as before")


def after_storage_class_added(pod: Pod, old: None, new: StorageClass) -> QueueingHint:
    return _LATE_BINDING if new.waits_for_first_consumer else _IMMEDIATE


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    uses = new.namespace == pod.namespace and new.name in claim_names(pod)
    return _CLAIM if uses else _OTHER_CLAIM


def after_volume_change(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> QueueingHint:
    if old is None:
        return _NEW_VOLUME
    return _MOVED if topologies_of(old) != topologies_of(new) else _NOT_MOVED
