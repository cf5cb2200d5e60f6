"""EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits: how many in-tree volumes a node can attach."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import NodeColumns, NodeTable, Rows
from scheduler_core.cluster.volume_usage import VolumeUsage
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.interface import FilterPlugin, Handle
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.fields import Document, mapping, string
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

REASON = "node(s) exceed max volume count"

_MOST_CHANGES = 4096
_EBS_LIMIT, _EBS_NITRO_LIMIT = 39, 25
_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_INSTANCE_TYPE_LABELS = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")


class VolumeError(Exception):
    """Volumes that cannot be counted: an error of the attempt."""


@dataclass(slots=True)
class State:
    """Rows of a what-if table whose pods are no longer those of the cluster."""

    changed_rows: dict[int, None] = field(default_factory=dict)


class NonCSILimits(FilterPlugin[State | None]):
    """Rejects rows where the volumes of one in-tree plugin would be more than the node can attach.

    The limit is the node's allocatable (`attachable-volumes-...`), or else the plugin's own. Nodes that announce
    the plugin as migrated are left to NodeVolumeLimits.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, v1.20
    Differs: the environment variable KUBE_MAX_PD_VOLS is not looked at.

    Attributes
    ----------
    source : str
        Key of the volume source.
    identity : str
        Field of the source that tells volumes apart.
    plugin_name : str
        As StorageClasses and CSINodes name the in-tree plugin.
    limit_resource : str
    default_limit : int
    """

    source: ClassVar[str]
    identity: ClassVar[str]
    refused_in_v1: ClassVar[bool] = True
    plugin_name: ClassVar[str]
    limit_resource: ClassVar[str]
    default_limit: ClassVar[int]

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._usage = VolumeUsage()
        self._nodes: NodeTable | None = None
        self._position = 0
        self._limit: NDArray[np.int64] = np.zeros(0, np.int64)
        self._messages: list[str] = []

    def filter(self, state: State | None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes = np.zeros(len(rows), np.int8)
        details = np.zeros(len(rows), np.int64)
        if not pod.volumes:
            return Verdicts(codes, details)
        listers = self.handle.snapshot.listers
        try:
            new = self._volumes_of([pod], listers, is_new=True)
        except VolumeError as error:
            codes[:] = Code.Error
            details[:] = self._message_id(str(error))
            return Verdicts(codes, details)
        if not new:
            return Verdicts(codes, details)
        table = nodes.base if isinstance(nodes, WhatIf) else nodes
        assert isinstance(table, NodeTable)
        self._usage.refresh(table)
        base_rows = nodes.base_rows[rows] if isinstance(nodes, WhatIf) else rows
        limits = self._limits(table, base_rows)
        migrated = self._migrated(table, listers)[base_rows]
        # Rows without any mounted volume are judged at once, the others one by one.
        codes[(len(new) > limits) & ~migrated] = Code.Unschedulable
        changed = state.changed_rows if state is not None else {}
        in_use = np.isin(base_rows, list(self._usage.pods_on)) | np.isin(rows, list(changed))
        for place in np.flatnonzero(in_use & ~migrated).tolist():
            row, base_row = int(rows[place]), int(base_rows[place])
            pods: Iterable[Pod] = self._usage.pods_on.get(base_row, ())
            if row in changed:
                pods = [nodes.pods[pod_id] for pod_id in nodes.pods_on(row)]
            try:
                present = self._volumes_of(pods, listers, is_new=False)
            except VolumeError as error:
                codes[place] = Code.Error
                details[place] = self._message_id(str(error))
                continue
            fits = len(present.keys() | new.keys()) <= int(limits[place])
            codes[place] = Code.Success if fits else Code.Unschedulable
        return Verdicts(codes, details)

    def reasons(
        self, state: State | None, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (self._messages[detail] if code is Code.Error else REASON,)

    def fork(self, state: State | None, nodes: WhatIf) -> State | None:
        return State()

    def add_pods(
        self, state: State | None, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        if state is not None:
            state.changed_rows.update(dict.fromkeys(rows.tolist()))

    def remove_pods(
        self, state: State | None, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.int64]
    ) -> None:
        self.add_pods(state, pod, nodes, rows, pod_ids)

    def limit_of(self, node: Node) -> int:
        """The limit of a node that states none."""
        return self.default_limit

    def _message_id(self, message: str) -> int:
        if message not in self._messages:
            self._messages.append(message)
        return self._messages.index(message)

    def _limits(self, nodes: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Limits of `rows`, read again only where a node object changed."""
        journal = nodes.spec_journal
        changed = journal.since(self._position, _MOST_CHANGES) if nodes is self._nodes else None
        self._nodes, self._position = nodes, journal.position
        if changed is None or len(self._limit) < nodes.capacity:
            self._limit = np.zeros(nodes.capacity, np.int64)
            changed = list(range(nodes.n_rows))
        in_use = set(nodes.row_of.values())
        for row in changed:
            if row in in_use:
                node = nodes.node(row)
                stated = node.allocatable.get(self.limit_resource)
                self._limit[row] = self.limit_of(node) if stated is None else stated
        return self._limit[rows]

    def _migrated(self, nodes: NodeTable, listers: Listers) -> NDArray[np.bool_]:
        csi_nodes: list[CSINode] = listers.all("CSINode")
        migrated = np.zeros(nodes.capacity, np.bool_)
        names = (item.name for item in csi_nodes if self.plugin_name in item.migrated_plugins)
        migrated[nodes.rows_of(names)] = True
        return migrated

    def _volumes_of(self, pods: Iterable[Pod], listers: Listers, *, is_new: bool) -> dict[str, None]:
        """Source: non_csi.go filterVolumes, v1.20."""
        found: dict[str, None] = {}
        for pod in pods:
            for volume in pod.volumes:
                name = self._volume_name(pod, volume, listers, is_new)
                if name is not None:
                    found[name] = None
        return found

    def _volume_name(self, pod: Pod, volume: Document, listers: Listers, is_new: bool) -> str | None:
        if volume.get(self.source) is not None:
            return string(mapping(volume, self.source, ""), self.identity, "")
        if volume.get("persistentVolumeClaim") is not None:
            claim_name = string(mapping(volume, "persistentVolumeClaim", ""), "claimName", "")
        elif volume.get("ephemeral") is not None:
            claim_name = f"{pod.name}-{string(volume, 'name', '')}"
        else:
            return None
        if not claim_name:
            raise VolumeError("PersistentVolumeClaim had no name")
        claim: PersistentVolumeClaim | None = listers.get("PersistentVolumeClaim", pod.namespace, claim_name)
        if claim is None:
            if not is_new:
                return None
            raise VolumeError(
                f'looking up PVC {pod.namespace}/{claim_name}: persistentvolumeclaim "{claim_name}" not found'
            )
        owner = claim.meta.controller
        if volume.get("persistentVolumeClaim") is None and (owner is None or owner.uid != pod.uid):
            raise VolumeError(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")
        found: PersistentVolume | None = None
        if claim.volume_name:
            found = listers.get("PersistentVolume", "", claim.volume_name)
        if found is None:
            # Which volume it will be is not known yet, but whose.
            return f"\x00{claim.key}" if self._is_provisioner_of(claim, listers) else None
        if found.source != self.source:
            return None
        document = mapping(mapping(found.manifest, "spec", ""), self.source, "spec")
        return string(document, self.identity, "spec")

    def _is_provisioner_of(self, claim: PersistentVolumeClaim, listers: Listers) -> bool:
        # Only the field is read; the older annotation never counted here.
        name = string(mapping(claim.manifest, "spec", ""), "storageClassName", "spec")
        storage_class: StorageClass | None = listers.get("StorageClass", "", name) if name else None
        return storage_class is not None and storage_class.provisioner == self.plugin_name


class EBSLimits(NonCSILimits):
    """AWS Elastic Block Store: 39 volumes, 25 on Nitro instances."""

    name: ClassVar[str] = "EBSLimits"
    source: ClassVar[str] = "awsElasticBlockStore"
    identity: ClassVar[str] = "volumeID"
    plugin_name: ClassVar[str] = "kubernetes.io/aws-ebs"
    limit_resource: ClassVar[str] = "attachable-volumes-aws-ebs"
    default_limit: ClassVar[int] = _EBS_LIMIT

    def limit_of(self, node: Node) -> int:
        kinds = (node.labels[key] for key in _INSTANCE_TYPE_LABELS if key in node.labels)
        return _EBS_NITRO_LIMIT if _NITRO.search(next(kinds, "")) else _EBS_LIMIT


class GCEPDLimits(NonCSILimits):
    """Google persistent disks: 16 volumes."""

    name: ClassVar[str] = "GCEPDLimits"
    source: ClassVar[str] = "gcePersistentDisk"
    identity: ClassVar[str] = "pdName"
    plugin_name: ClassVar[str] = "kubernetes.io/gce-pd"
    limit_resource: ClassVar[str] = "attachable-volumes-gce-pd"
    default_limit: ClassVar[int] = 16


class AzureDiskLimits(NonCSILimits):
    """Azure disks: 16 volumes."""

    name: ClassVar[str] = "AzureDiskLimits"
    source: ClassVar[str] = "azureDisk"
    identity: ClassVar[str] = "diskName"
    plugin_name: ClassVar[str] = "kubernetes.io/azure-disk"
    limit_resource: ClassVar[str] = "attachable-volumes-azure-disk"
    default_limit: ClassVar[int] = 16


class CinderLimits(NonCSILimits):
    """OpenStack Cinder: 256 volumes."""

    name: ClassVar[str] = "CinderLimits"
    source: ClassVar[str] = "cinder"
    identity: ClassVar[str] = "volumeID"
    plugin_name: ClassVar[str] = "kubernetes.io/cinder"
    limit_resource: ClassVar[str] = "attachable-volumes-cinder"
    default_limit: ClassVar[int] = 256
