"""VolumeBinding: a pod runs where its volumes are, or can be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import Listers
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.vocabulary import Interner
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.config.types import UtilizationShapePoint, shape_errors
from scheduler_core.config.wire import encode, pointer
from scheduler_core.errors import invalid
from scheduler_core.framework import interface as fw
from scheduler_core.framework.cluster_event import (
    QUEUE,
    SKIP,
    ClusterEventWithHint,
    QueueingHint,
    annotations_of,
    on,
)
from scheduler_core.framework.status import SUCCESS, Code, Status, Verdicts
from scheduler_core.objects.fields import Document, mapping, string
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import (
    MIGRATED_PLUGINS_ANNOTATION,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler_core.plugins.pod_volumes import CLAIM, claim_names
from scheduler_core.plugins.resource_allocation import broken_linear
from scheduler_core.plugins.volume_binding import finder
from scheduler_core.releases import Release

# --- When a pod rejected by VolumeBinding is worth another try.


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


def after_storage_class_change(pod: Pod, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    if old is None:
        return _NEW_CLASS
    return _TOPOLOGIES if old.allowed_topologies != new.allowed_topologies else _SAME_TOPOLOGIES


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> QueueingHint:
    if new.namespace != pod.namespace:
        return _OTHER_NAMESPACE
    return _CLAIM if new.name in claim_names(pod, ephemeral=True) else _OTHER_CLAIM


def after_csi_node_change(pod: Pod, old: CSINode | None, new: CSINode) -> QueueingHint:
    if old is None:
        return _NEW_CSI_NODE
    before, after = (annotations_of(item).get(MIGRATED_PLUGINS_ANNOTATION) or "" for item in (old, new))
    return _MIGRATED if before != after else _NOT_MIGRATED


def after_csi_driver_change(pod: Pod, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    uses = any(
        volume.get("csi") is not None and string(mapping(volume, "csi", ""), "driver", "csi") == new.name
        for volume in pod.volumes
    )
    return _UNCHECKED if uses and old.storage_capacity and not new.storage_capacity else _STILL_CHECKED


def after_capacity_change(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> QueueingHint:
    if old is None:
        return _NEW_CAPACITY
    before, after = old.largest_volume_bytes, new.largest_volume_bytes
    return _MORE_CAPACITY if after is not None and (before is None or after > before) else _NO_MORE_CAPACITY


REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
REASON_TIMEOUT = "binding volumes: context deadline exceeded"

_DEFAULT_BIND_TIMEOUT_S = 600
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs(PluginArgs):
    """`shape` needs a feature gate that is off by default: any value but None is invalid."""

    bind_timeout_s: int = pointer(600, "bindTimeoutSeconds")
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        if self.bind_timeout_s < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            errors.append(invalid(f"{path}.bindTimeoutSeconds", self.bind_timeout_s, detail))
        if self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            errors.append(invalid(f"{path}.shape", [encode(point) for point in self.shape], detail))
        return errors


@dataclass(frozen=True, slots=True)
class VolumeBindingArgsWithShape(VolumeBindingArgs):
    """Where StorageCapacityScoring is on: which share in use scores what; all free scores most by default."""

    @classmethod
    def set_defaults(cls, document: dict[str, Any]) -> None:
        VolumeBindingArgs.set_defaults(document)
        if not document.get("shape"):
            document["shape"] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]

    def problems(self, path: str) -> Errors:
        return [
            *VolumeBindingArgs.problems(replace(self, shape=None), path),
            *shape_errors(self.shape or (), f"{path}.shape"),
        ]


@dataclass(slots=True)
class State:
    """The pod's claims; `messages` holds texts of errors, a verdict's detail is a place in it."""

    claims: finder.PodClaims
    messages: Interner[str] = field(default_factory=Interner)


class VolumeBinding(
    fw.PreFilterPlugin[State],
    fw.FilterPlugin[State],
    fw.PreScorePlugin[finder.PodClaims],
    fw.ScorePlugin[finder.PodClaims],
    fw.ReservePlugin,
    fw.PreBindPlugin,
):
    """Rejects rows where bound volumes cannot be used, or unbound claims neither find nor get a volume.

    A claim that waits for its first consumer gets the smallest volume that will do on the row, or one is
    provisioned there if the class allows the row and its driver has room. Reserve keeps the volumes, PreBind
    has the API server told (`take_writes`) and waits until all claims are bound. Where StorageCapacityScoring is on,
    rows score by the share that the claims would take of the volumes, or of the room for new ones.

    Source: pkg/scheduler/framework/plugins/volumebinding/{volume_binding.go,binder.go,scorer.go}, v1.36
    Differs: of equally small volumes the first by name is taken; upstream takes any.

    Attributes
    ----------
    bind_timeout_ns : int
        How long PreBind waits.
    """

    name: ClassVar[str] = "VolumeBinding"
    Args = VolumeBindingArgs
    default_weight: ClassVar[int | None] = 0

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        timeout_s = getattr(args, "bind_timeout_s", None)
        self.bind_timeout_ns = _NS_PER_S * (_DEFAULT_BIND_TIMEOUT_S if timeout_s is None else int(timeout_s))
        self._curve: NDArray[np.int64] | None = None
        if handle.release.gate("StorageCapacityScoring"):
            self._curve = broken_linear([(point.utilization, point.score * 10) for point in args.shape])
        self._cache = finder.AssumeCache()
        self._reservations: dict[str, finder.Reservation] = {}

    @classmethod
    def args_in(cls, release: Release) -> type[PluginArgs]:
        return VolumeBindingArgsWithShape if release.gate("StorageCapacityScoring") else cls.Args

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("StorageClass", "Add|Update", after_storage_class_change),
            on("PersistentVolumeClaim", "Add|Update", after_claim_change),
            on("PersistentVolume", "Add|Update"),
            on("Node", "Add|UpdateNodeLabel"),
            on("CSINode", "Add|Update", after_csi_node_change),
            on("CSIDriver", "Update", after_csi_driver_change),
            on("CSIStorageCapacity", "Add|Update", after_capacity_change),
        ]

    # ---- scheduling cycle

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[State]:
        if not pod.volumes or not claim_names(pod, ephemeral=True):
            return fw.SKIP_FILTER
        reason = finder.wrong_claim(pod, snapshot.listers)
        if reason is not None:
            return fw.PreFilterResult(Status(Code.UnschedulableAndUnresolvable, (reason,)))
        try:
            claims = finder.claims_of(pod, self._cache, snapshot.listers)
        except finder.ClaimError as error:
            return fw.PreFilterResult(Status(Code.Error, (str(error),)))
        if claims.immediate:
            return fw.PreFilterResult(Status(Code.UnschedulableAndUnresolvable, (REASON_IMMEDIATE,)))
        return fw.PreFilterResult(state=State(claims))

    def filter(self, state: State, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        found = finder.find_pod_volumes(state.claims, self._cache, self.handle.snapshot.listers, nodes, rows)
        codes = np.where(found.conflicts != 0, Code.UnschedulableAndUnresolvable, Code.Success).astype(
            np.int8
        )
        details = found.conflicts
        for message, failed in found.errors.items():
            codes[failed] = Code.Error
            details[failed] = state.messages.id(message)
        return Verdicts(codes, details)

    def reasons(
        self, state: State, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        if code is Code.Error:
            return (state.messages[detail],)
        return tuple(reason for conflict, reason in finder.REASONS.items() if conflict & detail)

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[finder.PodClaims]:
        if self._curve is None:
            return fw.SKIP_SCORE
        if not pod.volumes or not claim_names(pod, ephemeral=True):
            return fw.PreScoreResult()
        return fw.PreScoreResult(state=finder.claims_of(pod, self._cache, snapshot.listers))

    def score(self, state: finder.PodClaims | None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        if state is None or self._curve is None or not state.delayed:
            return np.zeros(len(rows), np.int64)
        found = finder.find_pod_volumes(state, self._cache, self.handle.snapshot.listers, nodes, rows)
        return scores_by_share(found, self._curve)

    # ---- reserving and binding

    def reserve(self, pod: Pod, node_name: str) -> Status:
        """Keep the volumes the pod gets on its node.

        Source: volumebinding/binder.go AssumePodVolumes, v1.34
        """
        if not pod.volumes or not claim_names(pod, ephemeral=True):
            return SUCCESS
        snapshot = self.handle.snapshot
        listers, nodes = snapshot.listers, snapshot.nodes
        try:
            claims = finder.claims_of(pod, self._cache, listers)
        except finder.ClaimError as error:
            return Status(Code.Error, (str(error),))
        if not claims.delayed:
            self._reservations[pod.uid] = finder.Reservation(node_name, all_bound=True)
            return SUCCESS
        row = np.array([nodes.row_of[node_name]], np.intp)
        found = finder.find_pod_volumes(claims, self._cache, listers, nodes, row)
        bindings, provisions = [], []
        for claim, volumes, places in found.bindings:
            if places[0] >= 0:
                volume, is_new = finder.bound_to_claim(volumes[int(places[0])], claim)
                if is_new:
                    self._cache.assume(listers, volume)
                bindings.append(finder.BindingInfo(volume, claim.namespace, claim.name, is_new))
        for claim, wanted, _ in found.provisions:
            if wanted[0]:
                provision = finder.provisioned_on(claim, node_name)
                self._cache.assume(listers, provision)
                provisions.append(provision)
        self._reservations[pod.uid] = finder.Reservation(node_name, tuple(bindings), tuple(provisions))
        return SUCCESS

    def unreserve(self, pod: Pod, node_name: str) -> None:
        reservation = self._reservations.pop(pod.uid, None)
        if reservation is None:
            return
        for binding in reservation.bindings:
            self._cache.restore(binding.volume)
        for claim in reservation.provisions:
            self._cache.restore(claim)

    def will_pre_bind(self, pod: Pod, node_name: str) -> bool:
        reservation = self._reservations.get(pod.uid)
        return reservation is not None and not reservation.all_bound

    def pre_bind(self, pod: Pod, node_name: str) -> Status:
        """Success when all claims are bound; Wait while they are not: ask again when storage objects change.

        The first Wait comes with objects to be written (`take_writes`). An error means that the pod is to be
        scheduled again.

        Source: volumebinding/binder.go BindPodVolumes, v1.34
        """
        reservation = self._reservations.get(pod.uid)
        if reservation is None or reservation.all_bound:
            self._reservations.pop(pod.uid, None)
            return SUCCESS
        if reservation.started_ns is None:
            reservation.started_ns = self.handle.now_ns
            return Status(Code.Wait)
        status = self._check_bindings(reservation)
        if status.is_success:
            del self._reservations[pod.uid]
        elif status.code is Code.Wait and self.handle.now_ns >= reservation.started_ns + self.bind_timeout_ns:
            return Status(Code.Error, (REASON_TIMEOUT,))
        return status

    def take_writes(self, pod: Pod) -> tuple[Document, ...]:
        """Whole manifests the API server is to be given, after the first Wait of `pre_bind`."""
        reservation = self._reservations.get(pod.uid)
        if reservation is None or reservation.written:
            return ()
        reservation.written = True
        return reservation.writes()

    def pre_bind_deadline_ns(self, pod: Pod) -> int | None:
        """When `pre_bind` gives up on a pod that waits; None for one that does not."""
        reservation = self._reservations.get(pod.uid)
        if reservation is None or reservation.started_ns is None:
            return None
        return reservation.started_ns + self.bind_timeout_ns

    def _check_bindings(self, reservation: finder.Reservation) -> Status:
        """Source: volumebinding/binder.go checkBindings, v1.34."""
        snapshot = self.handle.snapshot
        listers = snapshot.listers
        row = snapshot.nodes.row_of.get(reservation.node_name)
        if row is None:
            name = reservation.node_name
            return _failed(f'failed to get node "{name}": node "{name}" not found')
        node = snapshot.nodes.node(row)
        for binding in reservation.bindings:
            status = _check_binding(binding, node, listers)
            if not status.is_success:
                return status
        for assumed in reservation.provisions:
            status = _check_provision(assumed, reservation.node_name, node, listers)
            if not status.is_success:
                return status
        return SUCCESS

    # ---- keeping it

    def checkpoint(self) -> dict[str, Any]:
        """Reservations by pod uid, as JSON-able data."""
        return {uid: reservation.to_document() for uid, reservation in self._reservations.items()}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take over what `checkpoint` gave; the listers must hold the cluster again."""
        listers = self.handle.snapshot.listers
        self._reservations = {uid: finder.reservation_from(item) for uid, item in document.items()}
        for reservation in self._reservations.values():
            for binding in reservation.bindings:
                if binding.is_new and _is_unchanged(binding.volume, listers):
                    self._cache.assume(listers, binding.volume)
            for claim in reservation.provisions:
                if _is_unchanged(claim, listers):
                    self._cache.assume(listers, claim)


def scores_by_share(found: finder.VolumeSearch, curve: NDArray[np.int64]) -> fw.Scores:
    """The mean over storage classes of what `curve` says of the share in use; 0 where there is none.

    On a row with volumes to bind only these count, on others the room for those to be provisioned.

    Source: volumebinding/volume_binding.go Score, scorer.go buildScorerFunction, v1.36
    """
    n_rows = len(found.conflicts)
    # By class: bytes requested, capacity in bytes, and how many claims these are of.
    bound: dict[str, NDArray[np.int64]] = {}
    made: dict[str, NDArray[np.int64]] = {}
    has_bound = np.zeros(n_rows, np.bool_)
    for claim, volumes, places in found.bindings:
        parts = bound.setdefault(claim.storage_class, np.zeros((3, n_rows), np.int64))
        takes = places >= 0
        has_bound |= takes
        sizes = [-(-volume.capacity_nano // 10**9) for volume in volumes]
        parts += np.array([takes * finder.requested_bytes(claim), np.array([*sizes, 0])[places], takes])
    for claim, wanted, capacity_bytes in found.provisions:
        parts = made.setdefault(claim.storage_class, np.zeros((3, n_rows), np.int64))
        known = wanted & (capacity_bytes >= 0)
        parts[[0, 2]] += np.array([known * finder.requested_bytes(claim), known])
        # Two claims of a class share its room: it is not added up.
        parts[1][known] = capacity_bytes[known]
    total, n_classes = np.zeros((2, n_rows), np.int64)
    for by_class, counted in ((bound, has_bound), (made, ~has_bound)):
        for requested, capacity, n_claims in by_class.values():
            is_full = (capacity <= 0) | (requested > capacity)
            share = np.where(is_full, 100, requested * 100 // np.maximum(capacity, 1))
            total += np.where(counted & (n_claims > 0), curve[share], 0)
            n_classes += counted & (n_claims > 0)
    # Half away from zero.
    scores: fw.Scores = (2 * total + n_classes) // np.maximum(2 * n_classes, 1)
    return scores


def _failed(reason: str) -> Status:
    return Status(Code.Error, (f"binding volumes: {reason}",))


def _is_unchanged(assumed: PersistentVolume | PersistentVolumeClaim, listers: Listers) -> bool:
    """Whether the API server still holds the version the assumption was made of."""
    found = listers.get(*finder.key_of(assumed))
    return found is not None and found.meta.resource_version == assumed.meta.resource_version


def _check_binding(binding: finder.BindingInfo, node: Node, listers: Listers) -> Status:
    volume: PersistentVolume | None = listers.get(finder.VOLUME, "", binding.volume.name)
    if volume is None:
        name = binding.volume.name
        return _failed(f'failed to check binding: could not find v1.PersistentVolume "{name}"')
    key = f"{binding.claim_namespace}/{binding.claim_name}"
    claim: PersistentVolumeClaim | None = listers.get(CLAIM, binding.claim_namespace, binding.claim_name)
    if claim is None:
        return _failed(f'failed to check binding: could not find v1.PersistentVolumeClaim "{key}"')
    if binding.is_new and _is_unchanged(binding.volume, listers):
        # Our write has not come back yet.
        return Status(Code.Wait)
    problem = finder.usable_on(volume, node, listers)
    if problem is not None:
        return _failed(problem)
    if volume.claim_ref is None or not volume.claim_ref.uid:
        return _failed(f'ClaimRef got reset for pv "{volume.name}"')
    return SUCCESS if claim.is_fully_bound else Status(Code.Wait)


def _check_provision(assumed: PersistentVolumeClaim, node_name: str, node: Node, listers: Listers) -> Status:
    claim: PersistentVolumeClaim | None = listers.get(CLAIM, assumed.namespace, assumed.name)
    if claim is None:
        return _failed(
            f'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "{assumed.key}"'
        )
    if _is_unchanged(assumed, listers):
        return Status(Code.Wait)
    if not claim.has_annotations:
        return _failed(f'selectedNode annotation reset for PVC "{claim.name}"')
    if (claim.selected_node or "") != node_name:
        return _failed(f'provisioning failed for PVC "{claim.name}"')
    if claim.volume_name:
        volume: PersistentVolume | None = listers.get(finder.VOLUME, "", claim.volume_name)
        if volume is None:
            # It may yet come.
            return Status(Code.Wait)
        problem = finder.usable_on(volume, node, listers)
        if problem is not None:
            return _failed(problem)
    return SUCCESS if claim.is_fully_bound else Status(Code.Wait)
