"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import Int32, NodeColumns, NodeTable, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.vocabulary import Interner
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import FREE_OF, SHORT, Amount, Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects import csi_translation, storage
from scheduler_core.objects.fields import Document, string
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins import pod_volumes

REASON_NOT_INSTALLED = "{} CSI driver is not installed on the node"

NO_LIMIT = np.iinfo(np.int64).max
Migrated = frozenset[str] | None
"""In-tree plugins a node hands to CSI drivers; None for a node without a CSINode."""
Attachable = dict[str, str]
"""Volumes that count: unique name -> CSI driver."""


@dataclass(slots=True)
class State:
    """What counts, as one cycle sees it.

    Attributes
    ----------
    new : list of Attachable or VolumeError
        The pod's volumes (or why they cannot be counted) by migration class.
    messages : Interner of str
        Texts; a verdict's detail is a place in it. That of a row that is merely full is 0, for `VOLUMES_REASON`.
    changed_rows : dict of int to None
        Rows of a what-if table whose pods are no longer those of the cluster.
    """

    new: list[Attachable | pod_volumes.VolumeError]
    messages: Interner[str] = field(default_factory=Interner)
    changed_rows: dict[int, None] = field(default_factory=dict)


class NodeVolumeLimits(fw.PreFilterPlugin[State], fw.FilterPlugin[State]):
    """Rejects rows where the pod's new volumes and those already there exceed what a CSINode says.

    Volumes of one driver with one handle are one volume. An unbound claim counts for the provisioner of its
    class, in-tree volumes for the driver that took over from them, and attached volumes (VolumeAttachment)
    even if no pod on the node uses them any more. A node without limits, or without a CSINode, takes any
    number. Where VolumeLimitScaling is on, a driver that says so (`preventPodSchedulingIfMissing`) has to be installed.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, v1.36
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    default_weight: ClassVar[int | None] = 0

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._attached = _AttachedVolumes()
        self._asks_for_drivers = handle.release.gate("VolumeLimitScaling")

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("CSINode", "Add"),
            on("CSINode", "Update", after_csi_node_update),
            on("Pod", "Delete", after_pod_deleted),
            on("PersistentVolumeClaim", "Add", after_claim_added),
            on("VolumeAttachment", "Delete", after_volume_detached),
        ]

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[State]:
        if not any(_may_count(pod, volume) for volume in pod.volumes):
            return fw.SKIP_FILTER
        attached = self._attached
        attached.refresh(snapshot)
        new: list[Attachable | pod_volumes.VolumeError] = []
        for migrated in attached.migration_classes:
            try:
                new.append(attachable_volumes(pod, snapshot.listers, migrated, is_new=True))
            except pod_volumes.VolumeError as error:
                new.append(error)
        state = State(new)
        state.messages.id(pod_volumes.VOLUMES_REASON)
        return fw.PreFilterResult(state=state)

    def filter(self, state: State, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes = np.zeros(len(rows), np.int8)
        details = np.zeros(len(rows), np.int64)
        attached = self._attached
        base_rows = nodes.base_rows[rows] if isinstance(nodes, WhatIf) else rows
        classes = attached.class_id[base_rows]
        for class_id, new in enumerate(state.new):
            places = np.flatnonzero(classes == class_id)
            if not len(places):
                continue
            if isinstance(new, pod_volumes.VolumeError):
                codes[places] = Code.UnschedulableAndUnresolvable if new.not_found else Code.Error
                details[places] = state.messages.id(str(new))
                continue
            for driver in self._needed_drivers(new):
                lacking = places[~attached.has_driver(driver, base_rows[places])]
                codes[lacking] = Code.Unschedulable
                details[lacking] = state.messages.id(REASON_NOT_INSTALLED.format(driver))
                places = np.setdiff1d(places, lacking)
            if new and attached.migration_classes[class_id] is not None:
                attached.judge(new, base_rows[places], places, codes, details, state)
                self._judge_changed(state, new, nodes, rows, places, codes, details)
        return Verdicts(codes, details)

    def _needed_drivers(self, new: Attachable) -> list[str]:
        """Source: nodevolumelimits/csi.go checkCSIDriverOnNode, v1.36."""
        if not self._asks_for_drivers:
            return []
        found = {name: self.handle.snapshot.listers.get("CSIDriver", "", name) for name in new.values()}
        return [name for name, driver in found.items() if driver is not None and driver.is_needed_on_node]

    def reasons(
        self, state: State, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (state.messages[detail],)

    def compare(self, state: State, pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        attached, rows = self._attached, snapshot.rows
        classes = attached.class_id[rows]
        for class_id, new in enumerate(state.new):
            places = np.flatnonzero(classes == class_id)
            if isinstance(new, pod_volumes.VolumeError) or attached.migration_classes[class_id] is None:
                continue
            for driver, wanted, present, limit in attached.demands(new, rows[places]):
                free = limit - present
                exceeded = np.zeros(len(rows), np.bool_)
                exceeded[places] = (wanted > 0) & (wanted > free) & attached.has_limits[rows[places]]
                columns = np.zeros((4, len(rows)), np.int64)
                columns[:, places] = wanted, free, limit, wanted - free
                yield Comparison(
                    exceeded,
                    (
                        f"{driver} volumes: wants ", Amount(columns[0]), ", ", Amount(columns[1]), FREE_OF,
                        Amount(columns[2]), ", ", Amount(columns[3]), SHORT,
                    ),
                )  # fmt: skip

    def fork(self, state: State, nodes: WhatIf) -> State:
        return State(state.new, state.messages)

    def add_pods(self, state: State, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]) -> None:
        for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
            if nodes.pods[pod_id].volumes:
                state.changed_rows[row] = None

    remove_pods = add_pods

    def _judge_changed(
        self,
        state: State,
        new: Attachable,
        nodes: NodeColumns,
        rows: Rows,
        places: NDArray[np.intp],
        codes: NDArray[np.int8],
        details: NDArray[np.int64],
    ) -> None:
        """Judge anew rows of a what-if table whose pods changed; they are few, so one at a time."""
        if not state.changed_rows or not isinstance(nodes, WhatIf):
            return
        for place in places.tolist():
            row = int(rows[place])
            if row in state.changed_rows:
                pods = nodes.pods.all_of(nodes.pods_on(row))
                verdict = self._attached.judge_one(new, int(nodes.base_rows[row]), pods)
                if isinstance(verdict, pod_volumes.VolumeError):
                    codes[place] = Code.Error
                    details[place] = state.messages.id(str(verdict))
                else:
                    codes[place] = Code.Success if verdict else Code.Unschedulable
                    details[place] = 0


def _may_count(pod: Pod, volume: Document) -> bool:
    return (
        pod_volumes.claim_name(pod, volume) is not None or csi_translation.inline_plugin(volume) is not None
    )


def attachable_volumes(
    pod: Pod, listers: pod_volumes.Lookup, migrated: Migrated, *, is_new: bool
) -> Attachable:
    """The volumes of a pod that count against a limit.

    Parameters
    ----------
    migrated : frozenset of str or None
        What the node hands to CSI drivers.
    is_new : bool
        The pod is not on the node yet: it cannot do without its claims.

    Raises
    ------
    VolumeError
        A claim is missing (only for a new pod), belongs to another pod, or a volume names no disk.

    Source: nodevolumelimits/csi.go filterAttachableVolumes, v1.34
    """
    found: Attachable = {}
    for volume in pod.volumes:
        named = pod_volumes.claim_name(pod, volume)
        if named is None:
            _add_inline(volume, migrated, found)
            continue
        claim = pod_volumes.counted_claim(pod, *named, listers, is_new=is_new)
        if claim is None:
            continue
        driver, handle = _driver_and_handle(claim, listers, migrated)
        if driver and handle:
            found[f"{driver}/{handle}"] = driver
    return found


def _add_inline(volume: Document, migrated: Migrated, found: Attachable) -> None:
    plugin = csi_translation.inline_plugin(volume)
    if plugin is None or not _is_migrated(plugin.name, migrated):
        return
    found[f"{plugin.driver}/{_translated(volume).volume_handle}"] = plugin.driver


def _translated(volume: Document) -> storage.CSIVolumeSource:
    try:
        return csi_translation.translate_inline(volume)
    except csi_translation.TranslationError as error:
        name = string(volume, "name", "")
        raise pod_volumes.VolumeError(f"converting volume({name}) from inline to csi: {error}") from error


def _is_migrated(plugin_name: str, migrated: Migrated) -> bool:
    """Source: nodevolumelimits/utils.go isCSIMigrationOn, v1.34."""
    if migrated is None:
        return False
    return plugin_name in csi_translation.ALWAYS_MIGRATED or (
        plugin_name in csi_translation.MIGRATED_BY_NODE and plugin_name in migrated
    )


def _driver_and_handle(
    claim: storage.PersistentVolumeClaim, listers: pod_volumes.Lookup, migrated: Migrated
) -> tuple[str, str]:
    """Driver and handle of a claim's volume, empty if it does not count.

    Source: nodevolumelimits/csi.go getCSIDriverInfo, v1.34
    """
    volume: storage.PersistentVolume | None = None
    if claim.volume_name:
        volume = listers.get("PersistentVolume", "", claim.volume_name)
    if volume is None:
        return _driver_and_handle_of_class(claim, listers, migrated)
    if volume.csi is not None:
        return volume.csi.driver, volume.csi.volume_handle
    plugin = csi_translation.volume_plugin(volume)
    if plugin is None or not _is_migrated(plugin.name, migrated):
        return "", ""
    try:
        source = csi_translation.translate_volume(volume)
    except csi_translation.TranslationError:
        return "", ""
    return source.driver, source.volume_handle


def _driver_and_handle_of_class(
    claim: storage.PersistentVolumeClaim, listers: pod_volumes.Lookup, migrated: Migrated
) -> tuple[str, str]:
    """What a volume provisioned for the claim will count as; the handle is made up, but its own."""
    storage_class: storage.StorageClass | None = None
    if claim.storage_class:
        storage_class = listers.get("StorageClass", "", claim.storage_class)
    if storage_class is None:
        return "", ""
    handle = f"\x00{claim.key}"
    driver = csi_translation.driver_of(storage_class.provisioner)
    if driver is None:
        return storage_class.provisioner, handle
    return (driver, handle) if _is_migrated(storage_class.provisioner, migrated) else ("", "")


_NODE_KINDS = ("CSINode", "VolumeAttachment")
_VOLUME_KINDS = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")

Seen = tuple[str, str, str, Any]
"""Kind, namespace and name of an object that was looked up, and what was found."""


class _Recorder:
    """Looks objects up and remembers what was seen."""

    __slots__ = ("_listers", "seen")

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self.seen: list[Seen] = []

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        found = self._listers.get(kind, namespace, name)
        self.seen.append((kind, namespace, name, found))
        return found


class _AttachedVolumes:
    """Volumes on every row, counted by driver, and the limits there; kept from cycle to cycle.

    Attributes
    ----------
    migration_classes : list of Migrated
        The distinct answers of nodes to what they hand to CSI drivers; class 0 has no CSINode.
    class_id : ndarray of shape (capacity,), int32
    """

    def __init__(self) -> None:
        self.migration_classes: list[Migrated] = [None]
        self.class_id: Int32 = np.zeros(0, np.int32)
        self._usage = pod_volumes.VolumeUsage()
        self._nodes: NodeTable | None = None
        self._listers = Listers()
        self._node_versions: tuple[int, ...] = ()
        self._volume_versions: tuple[int, ...] = ()
        self._seen_on: dict[int, list[Seen]] = {}
        self._limits: dict[str, NDArray[np.int64]] = {}
        self._installed: dict[str, NDArray[np.bool_]] = {}
        self.has_limits: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._attachments: dict[int, Attachable] = {}
        self._counts: dict[str, NDArray[np.int64]] = {}
        self._counted_on: dict[int, dict[str, int]] = {}
        self._volumes_on: dict[int, Attachable] = {}
        self._rows_of: dict[str, dict[int, None]] = {}
        self._errors: dict[int, str] = {}

    def refresh(self, snapshot: Snapshot) -> None:
        """Catch up with the cluster."""
        nodes, listers = snapshot.nodes, snapshot.listers
        changed = self._usage.refresh(nodes)
        node_versions = (snapshot.generation, nodes.capacity, *map(listers.version, _NODE_KINDS))
        volume_versions = tuple(map(listers.version, _VOLUME_KINDS))
        if nodes is not self._nodes or listers is not self._listers or node_versions != self._node_versions:
            self._nodes, self._listers, self._node_versions = nodes, listers, node_versions
            self._read_csi_nodes(nodes, listers)
            self._attachments = _attachments(nodes, listers)
            changed = None
        if volume_versions != self._volume_versions:
            self._volume_versions = volume_versions
            if self._attachments or listers.version("VolumeAttachment"):
                attachments = _attachments(nodes, listers)
                if attachments != self._attachments:
                    self._attachments = attachments
                    changed = None
            if changed is not None:
                changed = sorted({*changed, *self._outdated()})
        if changed is None:
            for index in (
                self._counts,
                self._counted_on,
                self._volumes_on,
                self._rows_of,
                self._errors,
                self._seen_on,
            ):
                index.clear()
            changed = sorted({*self._usage.pods_on, *self._attachments})
        for row in changed:
            self._forget(row)
            self._learn(row)

    def _outdated(self) -> list[int]:
        """Rows for which another object was found than now."""
        get = self._listers.get
        return [
            row
            for row, seen in self._seen_on.items()
            if any(get(kind, namespace, name) is not found for kind, namespace, name, found in seen)
        ]

    def has_driver(self, driver: str, rows: Rows) -> NDArray[np.bool_]:
        installed = self._installed.get(driver)
        return np.zeros(len(rows), np.bool_) if installed is None else installed[rows]

    def demands(
        self, new: Attachable, rows: Rows
    ) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """By driver that is limited anywhere: volumes that would be new, those there, the limit; of each row."""
        for driver in dict.fromkeys(new.values()):
            limits = self._limits.get(driver)
            if limits is None:
                continue
            wanted = np.zeros(len(limits), np.int64)
            wanted += sum(other == driver for other in new.values())
            for volume, other in new.items():
                if other == driver:
                    wanted[list(self._rows_of.get(volume, ()))] -= 1
            counts = self._counts.get(driver)
            present = np.zeros(len(rows), np.int64) if counts is None else counts[rows]
            yield driver, wanted[rows], present, limits[rows]

    def judge(
        self,
        new: Attachable,
        rows: Rows,
        places: NDArray[np.intp],
        codes: NDArray[np.int8],
        details: NDArray[np.int64],
        state: State,
    ) -> None:
        """Write verdicts on `rows` to `places` of codes and details."""
        limited = self.has_limits[rows]
        exceeded = np.zeros(len(rows), np.bool_)
        for _, wanted, present, limit in self.demands(new, rows):
            exceeded |= (wanted > 0) & (present + wanted > limit)
        codes[places[exceeded & limited]] = Code.Unschedulable
        if self._errors:
            for place, row in zip(places[limited].tolist(), rows[limited].tolist(), strict=True):
                if row in self._errors:
                    codes[place] = Code.Error
                    details[place] = state.messages.id(self._errors[row])

    def judge_one(self, new: Attachable, row: int, pods: list[Pod]) -> bool | pod_volumes.VolumeError:
        """Whether the volumes fit on a row if `pods` were on it."""
        if not self.has_limits[row]:
            return True
        try:
            volumes, counts = self._count(row, pods, self._listers)
        except pod_volumes.VolumeError as error:
            return error
        wanted: dict[str, int] = {}
        for volume, driver in new.items():
            if volume not in volumes:
                wanted[driver] = wanted.get(driver, 0) + 1
        return all(
            counts.get(driver, 0) + n_new <= int(self._limits[driver][row])
            for driver, n_new in wanted.items()
            if driver in self._limits
        )

    def _count(
        self, row: int, pods: list[Pod] | tuple[Pod, ...], lookup: pod_volumes.Lookup
    ) -> tuple[Attachable, dict[str, int]]:
        migrated = self.migration_classes[self.class_id[row]]
        volumes: Attachable = {}
        for pod in pods:
            if pod.volumes:
                volumes |= attachable_volumes(pod, lookup, migrated, is_new=False)
        counts: dict[str, int] = {}
        for driver in volumes.values():
            counts[driver] = counts.get(driver, 0) + 1
        for volume, driver in self._attachments.get(row, {}).items():
            if volume not in volumes:
                counts[driver] = counts.get(driver, 0) + 1
        return volumes, counts

    def _learn(self, row: int) -> None:
        recorder = _Recorder(self._listers)
        self._seen_on[row] = recorder.seen
        try:
            volumes, counts = self._count(row, self._usage.pods_on.get(row, ()), recorder)
        except pod_volumes.VolumeError as error:
            self._errors[row] = str(error)
            return
        if volumes:
            self._volumes_on[row] = volumes
            for volume in volumes:
                self._rows_of.setdefault(volume, {})[row] = None
        if counts:
            self._counted_on[row] = counts
            for driver, count in counts.items():
                self._column(driver)[row] = count

    def _forget(self, row: int) -> None:
        self._errors.pop(row, None)
        self._seen_on.pop(row, None)
        for volume in self._volumes_on.pop(row, ()):
            rows = self._rows_of[volume]
            del rows[row]
            if not rows:
                del self._rows_of[volume]
        for driver in self._counted_on.pop(row, ()):
            self._column(driver)[row] = 0

    def _column(self, driver: str) -> NDArray[np.int64]:
        column = self._counts.get(driver)
        if column is None:
            column = self._counts[driver] = np.zeros(len(self.class_id), np.int64)
        return column

    def _read_csi_nodes(self, nodes: NodeTable, listers: Listers) -> None:
        ids: dict[Migrated, int] = {None: 0}
        self.class_id = np.zeros(nodes.capacity, np.int32)
        self._limits = {}
        self._installed = {}
        self.has_limits = np.zeros(nodes.capacity, np.bool_)
        csi_nodes: list[storage.CSINode] = listers.all("CSINode")
        for csi_node in csi_nodes:
            row = nodes.row_of.get(csi_node.name)
            if row is None:
                continue
            self.class_id[row] = ids.setdefault(csi_node.migrated_plugins, len(ids))
            self.has_limits[row] = bool(csi_node.limits)
            for driver in csi_node.drivers:
                self._installed.setdefault(driver, np.zeros(nodes.capacity, np.bool_))[row] = True
            for driver, limit in csi_node.limits.items():
                column = self._limits.get(driver)
                if column is None:
                    column = self._limits[driver] = np.full(nodes.capacity, NO_LIMIT, np.int64)
                column[row] = limit
        self.migration_classes = list(ids)


def _attachments(nodes: NodeTable, listers: Listers) -> dict[int, Attachable]:
    """Volumes attached to rows, whether a pod uses them or not.

    Source: nodevolumelimits/csi.go getNodeVolumeAttachmentInfo, v1.34
    """
    found: dict[int, Attachable] = {}
    attachments: list[storage.VolumeAttachment] = listers.all("VolumeAttachment")
    for attachment in attachments:
        row = nodes.row_of.get(attachment.node_name)
        if row is None or not attachment.attacher or attachment.persistent_volume_name is None:
            continue
        volume: storage.PersistentVolume | None
        volume = listers.get("PersistentVolume", "", attachment.persistent_volume_name)
        if volume is not None and volume.csi is not None:
            name = f"{attachment.attacher}/{volume.csi.volume_handle}"
            found.setdefault(row, {})[name] = attachment.attacher
    return found


# ---- hints: when a pod that the plugin rejected is worth another try

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


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    if not old.volumes:
        return _NO_VOLUMES
    if not old.node_name and not old.nominated_node_name:
        return _UNASSIGNED
    return _DETACHED if any(_may_count(old, volume) for volume in old.volumes) else _NO_VOLUMES


def after_claim_added(pod: Pod, old: None, new: storage.PersistentVolumeClaim) -> QueueingHint:
    if new.namespace != pod.namespace:
        return _OTHER_NAMESPACE
    return _CLAIM if new.name in pod_volumes.claim_names(pod, ephemeral=True) else _OTHER_CLAIM


def after_volume_detached(pod: Pod, old: storage.VolumeAttachment, new: None) -> QueueingHint:
    for volume in pod.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            return _ROOM
        plugin = csi_translation.inline_plugin(volume)
        if plugin is not None and _translated(volume) and plugin.driver == old.attacher:
            return _ROOM
    return _OTHER_DRIVER


def after_csi_node_update(pod: Pod, old: storage.CSINode, new: storage.CSINode) -> QueueingHint:
    raised = any(limit > old.limits.get(driver, 0) for driver, limit in new.limits.items())
    return _RAISED if raised else _NOT_RAISED
