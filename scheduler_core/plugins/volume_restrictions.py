"""VolumeRestrictions: disks that serve one node or one pod at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, NodeTable, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework import interface as fw
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Status, Verdicts
from scheduler_core.objects.fields import Document, string, strings
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import READ_WRITE_ONCE_POD, PersistentVolumeClaim
from scheduler_core.plugins.pod_volumes import VolumeUsage, claim_names

REASON_DISK = "node(s) had no available disk"
REASON_READ_WRITE_ONCE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    " already in-use by another pod"
)

_DISK, _READ_WRITE_ONCE_POD = 0, 1
_DEFAULT_RBD_POOL = "rbd"


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk written into a pod.

    Attributes
    ----------
    identity : hashable
        Equal for mounts of what may be one disk.
    monitors : frozenset of str or None
        Ceph monitors: two mounts are of one disk only if they share one. None where identity says it all.
    """

    identity: Hashable
    read_only: bool
    monitors: frozenset[str] | None = None

    def conflicts_with(self, other: Disk) -> bool:
        """Whether the two cannot be mounted on one node.

        Source: volumerestrictions/volume_restrictions.go isVolumeConflict, v1.34
        """
        if self.identity != other.identity or (self.read_only and other.read_only):
            return False
        return self.monitors is None or other.monitors is None or not self.monitors.isdisjoint(other.monitors)


@dataclass(slots=True)
class State:
    """What the pod mounts, and who is in its way.

    Attributes
    ----------
    disks : tuple of Disk
    claims : frozenset of str
        Names of its ReadWriteOncePod claims.
    claim_references : int
        How often they are in use, anywhere in the cluster.
    claim_changes : ndarray of shape (n_rows,), int64, or None
        What a row's own world adds to that; None in the cluster as it is.
    changed_rows : dict of int to None
        Rows of a what-if table whose pods are no longer those of the cluster.
    """

    disks: tuple[Disk, ...]
    claims: frozenset[str]
    claim_references: int
    claim_changes: NDArray[np.int64] | None = None
    changed_rows: dict[int, None] = field(default_factory=dict)


class VolumeRestrictions(fw.PreFilterPlugin[State], fw.FilterPlugin[State]):
    """Rejects rows where a pod mounts the same disk and one of the two writes, and claims already in use.

    Disks are those of GCE, AWS (always), iSCSI and Ceph RBD. A ReadWriteOncePod claim another pod uses,
    wherever that pod is, rules out every row, but removing that pod would help.

    Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go, v1.34
    """

    name: ClassVar[str] = "VolumeRestrictions"
    sentences: ClassVar[Sequence[str]] = (REASON_DISK, REASON_READ_WRITE_ONCE_POD)
    default_weight: ClassVar[int | None] = 0

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._mounts = _Mounts()

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Pod", "Delete", after_pod_deleted),
            on("Node", "Add"),
            on("PersistentVolumeClaim", "Add", after_claim_added),
        ]

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[State]:
        if not pod.volumes:
            return fw.SKIP_FILTER
        claims = []
        for name in claim_names(pod):
            claim: PersistentVolumeClaim | None = snapshot.listers.get(
                "PersistentVolumeClaim", pod.namespace, name
            )
            if claim is None:
                reason = f'persistentvolumeclaim "{name}" not found'
                return fw.PreFilterResult(Status(Code.UnschedulableAndUnresolvable, (reason,)))
            if READ_WRITE_ONCE_POD in claim.access_modes:
                claims.append(name)
        disks = tuple(disks_of(pod))
        if not claims and not disks:
            return fw.SKIP_FILTER
        self._mounts.refresh(snapshot.nodes)
        distinct = frozenset(claims)
        references = sum(
            self._mounts.is_used(pod.namespace, name, snapshot.nodes) for name in sorted(distinct)
        )
        if not disks and not references:
            return fw.SKIP_FILTER
        return fw.PreFilterResult(state=State(disks, distinct, references))

    def filter(self, state: State, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        if state.claim_changes is None:
            used = np.full(len(rows), state.claim_references > 0)
        else:
            used = state.claim_references + state.claim_changes[rows] > 0
        details = np.full(len(rows), _READ_WRITE_ONCE_POD, np.int64)
        conflicts = self._disk_conflicts(state, nodes, rows)
        details[conflicts] = _DISK
        return Verdicts.where(used | conflicts, Code.Unschedulable, details)

    def fork(self, state: State, nodes: WhatIf) -> State:
        changes = np.zeros(len(nodes.base_rows), np.int64)
        return State(state.disks, state.claims, state.claim_references, changes)

    def add_pods(self, state: State, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        _count(state, nodes, rows, pod_ids, 1)

    def remove_pods(
        self, state: State, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        _count(state, nodes, rows, pod_ids, -1)

    def _disk_conflicts(self, state: State, nodes: NodeColumns, rows: Rows) -> NDArray[np.bool_]:
        if not state.disks:
            return np.zeros(len(rows), np.bool_)
        if not isinstance(nodes, WhatIf):
            return np.isin(rows, self._mounts.conflicting_rows(state.disks))
        conflicts = np.isin(nodes.base_rows[rows], self._mounts.conflicting_rows(state.disks))
        if state.changed_rows:
            for position, row in enumerate(rows.tolist()):
                if row in state.changed_rows:
                    conflicts[position] = _conflicts_on(state.disks, nodes, row)
        return conflicts


def _count(state: State, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp], sign: int) -> None:
    changes = state.claim_changes
    assert changes is not None, "only a forked state changes"
    for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
        other = nodes.pods[pod_id]
        if not other.volumes:
            continue
        state.changed_rows[row] = None
        # As upstream, claims of the same name in other namespaces count here.
        changes[row] += sign * sum(name in state.claims for name in claim_names(other))


def _conflicts_on(disks: tuple[Disk, ...], nodes: WhatIf, row: int) -> bool:
    return any(
        disk.conflicts_with(other)
        for pod_id in nodes.pods_on(row)
        for other in disks_of(nodes.pods[pod_id])
        for disk in disks
    )


class _Mounts:
    """Who mounts which disk and uses which claim, kept from cycle to cycle."""

    def __init__(self) -> None:
        self._usage = VolumeUsage()
        self._claims_on: dict[int, list[tuple[str, str]]] = {}
        self._disks_on: dict[int, list[Disk]] = {}
        self._claim_rows: dict[tuple[str, str], dict[int, None]] = {}
        self._disk_rows: dict[Hashable, dict[int, list[Disk]]] = {}

    def refresh(self, nodes: NodeTable) -> None:
        changed = self._usage.refresh(nodes)
        if changed is None:
            for index in (self._claims_on, self._disks_on, self._claim_rows, self._disk_rows):
                index.clear()
            changed = list(self._usage.pods_on)
        for row in changed:
            self._forget(row)
            for pod in self._usage.pods_on.get(row, ()):
                self._learn(row, pod)

    def is_used(self, namespace: str, name: str, nodes: NodeTable) -> bool:
        """Whether a pod on a node uses the claim; a node that is gone does not count."""
        return any(nodes.alive[row] for row in self._claim_rows.get((namespace, name), ()))

    def conflicting_rows(self, disks: tuple[Disk, ...]) -> list[int]:
        return [
            row
            for disk in disks
            for row, others in self._disk_rows.get(disk.identity, {}).items()
            if any(disk.conflicts_with(other) for other in others)
        ]

    def _learn(self, row: int, pod: Pod) -> None:
        for name in claim_names(pod):
            key = (pod.namespace, name)
            self._claims_on.setdefault(row, []).append(key)
            self._claim_rows.setdefault(key, {})[row] = None
        for disk in disks_of(pod):
            self._disks_on.setdefault(row, []).append(disk)
            self._disk_rows.setdefault(disk.identity, {}).setdefault(row, []).append(disk)

    def _forget(self, row: int) -> None:
        for key in self._claims_on.pop(row, ()):
            self._claim_rows.get(key, {}).pop(row, None)
            if not self._claim_rows.get(key, True):
                del self._claim_rows[key]
        for disk in self._disks_on.pop(row, ()):
            self._disk_rows.get(disk.identity, {}).pop(row, None)
            if not self._disk_rows.get(disk.identity, True):
                del self._disk_rows[disk.identity]


def disks_of(pod: Pod) -> Iterable[Disk]:
    """Disks written into a pod."""
    for volume in pod.volumes:
        for source, disk_from in _DISKS.items():
            document = volume.get(source)
            if document is not None:
                yield disk_from(document)


def _gce(document: Document) -> Disk:
    return Disk(("gce", string(document, "pdName", "")), bool(document.get("readOnly")))


def _aws(document: Document) -> Disk:
    # Mounting it twice is never possible, read-only or not.
    return Disk(("aws", string(document, "volumeID", "")), False)


def _iscsi(document: Document) -> Disk:
    return Disk(("iscsi", string(document, "iqn", "")), bool(document.get("readOnly")))


def _rbd(document: Document) -> Disk:
    pool = string(document, "pool", "") or _DEFAULT_RBD_POOL
    monitors = frozenset(strings(document, "monitors", ""))
    return Disk(("rbd", pool, string(document, "image", "")), bool(document.get("readOnly")), monitors)


_DISKS = {"gcePersistentDisk": _gce, "awsElasticBlockStore": _aws, "iscsi": _iscsi, "rbd": _rbd}


# ---- hints: when a pod that the plugin rejected is worth another try

_CONFLICT = QUEUE.because("the deleted pod used a disk the pod wants")
_SAME_CLAIM = QUEUE.because("the deleted pod used a claim of the pod")
_OTHER_VOLUMES = SKIP.because("the deleted pod shares no volume with the pod")
_OTHER_NAMESPACE = SKIP.because("it is in another namespace")
_CLAIM = QUEUE.because("a claim the pod uses was created")
_OTHER_CLAIM = SKIP.because("the pod does not use this claim")


def after_claim_added(pod: Pod, old: None, new: PersistentVolumeClaim) -> QueueingHint:
    if new.namespace != pod.namespace:
        return _OTHER_NAMESPACE
    return _CLAIM if new.name in claim_names(pod) else _OTHER_CLAIM


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    if old.namespace != pod.namespace:
        return _OTHER_NAMESPACE
    if any(disk.conflicts_with(other) for disk in disks_of(pod) for other in disks_of(old)):
        return _CONFLICT
    claims = claim_names(pod)
    return _SAME_CLAIM if any(name in claims for name in claim_names(old)) else _OTHER_VOLUMES
