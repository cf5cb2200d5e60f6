"""Plugins of older releases, for Policy files and for those who ask for them.

A v1 configuration that names one fails as v1.34 does: they are registered for a `kind: Policy` file, or when a
caller says so (`Registry.with_retired`). They behave as in v1.19 to v1.22.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.listers import DefaultSelectors, Listers
from scheduler_core.cluster.node_matching import matching_labels
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.config.args import PluginArgs
from scheduler_core.config.wire import omit
from scheduler_core.framework import interface as fw
from scheduler_core.framework.per_node import NodeView, per_node
from scheduler_core.framework.status import Code, Status, Verdicts
from scheduler_core.objects.csi_translation import IN_TREE_PLUGINS
from scheduler_core.objects.fields import Document, mapping, string, string_map
from scheduler_core.objects.labels import EVERYTHING, LabelSelector, selector_from_labels
from scheduler_core.objects.node import LABEL_REGION, LABEL_REGION_BETA, LABEL_ZONE, LABEL_ZONE_BETA, Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler_core.plugins.pod_volumes import VOLUMES_REASON, VolumeError, claim_name, counted_claim

# --- EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits: how many in-tree volumes a node can attach.


_EBS_LIMIT, _EBS_NITRO_LIMIT = 39, 25
_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_INSTANCE_TYPE_LABELS = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")


class NonCSILimits(fw.FilterPlugin[None]):
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
    default_limit : int
    """

    source: ClassVar[str]
    identity: ClassVar[str]
    refused_in_v1: ClassVar[bool] = True
    default_limit: ClassVar[int]

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.plugin_name = IN_TREE_PLUGINS[self.source].name
        self._limit_resource = f"attachable-volumes-{self.plugin_name.removeprefix('kubernetes.io/')}"

    @per_node
    def filter(self, state: None, pod: Pod, node: NodeView) -> Status | None:
        if not pod.volumes:
            return None
        try:
            new = self._volumes_of([pod], is_new=True)
            csi_node: CSINode | None = self.handle.listers.get("CSINode", "", node.name)
            if not new or (csi_node is not None and self.plugin_name in csi_node.migrated_plugins):
                return None
            there = self._volumes_of(node.pods, is_new=False)
        except VolumeError as error:
            return Status(Code.Error, (str(error),))
        stated = node.object.allocatable.get(self._limit_resource)
        limit = self.limit_of(node.object) if stated is None else stated
        return None if len(there | new) <= limit else Status(Code.Unschedulable, (VOLUMES_REASON,))

    def limit_of(self, node: Node) -> int:
        """The limit of a node that states none."""
        return self.default_limit

    def _volumes_of(self, pods: Iterable[Pod], *, is_new: bool) -> set[str]:
        """Source: non_csi.go filterVolumes, v1.20."""
        names = (self._volume_name(pod, volume, is_new) for pod in pods for volume in pod.volumes)
        return {name for name in names if name is not None}

    def _volume_name(self, pod: Pod, volume: Document, is_new: bool) -> str | None:
        listers = self.handle.listers
        if volume.get(self.source) is not None:
            return string(mapping(volume, self.source, ""), self.identity, "")
        named = claim_name(pod, volume)
        claim = None if named is None else counted_claim(pod, *named, listers, is_new=is_new)
        if claim is None:
            return None
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
    default_limit: ClassVar[int] = _EBS_LIMIT

    def limit_of(self, node: Node) -> int:
        kinds = (node.labels[key] for key in _INSTANCE_TYPE_LABELS if key in node.labels)
        return _EBS_NITRO_LIMIT if _NITRO.search(next(kinds, "")) else _EBS_LIMIT


class GCEPDLimits(NonCSILimits):
    """Google persistent disks: 16 volumes."""

    name: ClassVar[str] = "GCEPDLimits"
    source: ClassVar[str] = "gcePersistentDisk"
    identity: ClassVar[str] = "pdName"
    default_limit: ClassVar[int] = 16


class AzureDiskLimits(NonCSILimits):
    """Azure disks: 16 volumes."""

    name: ClassVar[str] = "AzureDiskLimits"
    source: ClassVar[str] = "azureDisk"
    identity: ClassVar[str] = "diskName"
    default_limit: ClassVar[int] = 16


class CinderLimits(NonCSILimits):
    """OpenStack Cinder: 256 volumes."""

    name: ClassVar[str] = "CinderLimits"
    source: ClassVar[str] = "cinder"
    identity: ClassVar[str] = "volumeID"
    default_limit: ClassVar[int] = 256


# --- How many pods of a namespace a selector matches on each row, terminating ones left out.


def count_matching_pods(
    namespace: str, selector: LabelSelector, nodes: NodeColumns, rows: Rows
) -> NDArray[np.int64]:
    """Counts aligned with `rows` of the cluster; a selector for everything counts nothing, as upstream."""
    counts = np.zeros(len(rows), np.int64)
    if selector.is_everything or not len(rows):
        return counts
    pods = nodes.pods
    classes = nodes.vocabulary.pod_classes.values
    matched = np.fromiter(
        (space == namespace and selector.matches(dict(labels)) for space, labels in classes),
        np.bool_,
        len(classes),
    )
    if not matched.any():
        return counts
    placed = np.flatnonzero(pods.row >= 0)
    placed = placed[matched[pods.class_id[placed]] & ~pods.terminating[placed]]
    by_row = np.bincount(pods.row[placed], minlength=int(rows.max()) + 1)
    return by_row[rows].astype(np.int64)


# --- SelectorSpread: pods of one service or controller go to different nodes and zones.


_ZONE_WEIGHTING = 2.0 / 3.0


class SelectorSpread(fw.PreScorePlugin[LabelSelector], fw.ScorePlugin[LabelSelector]):
    """Scores rows by how few pods of the pod's services and controllers they hold, two thirds by zone.

    A pod with topology spread constraints of its own gets 0 everywhere.

    Source: pkg/scheduler/framework/plugins/selectorspread/selector_spread.go, v1.20
    """

    name: ClassVar[str] = "SelectorSpread"
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._selectors: DefaultSelectors | None = None

    def pre_score(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> fw.PreScoreResult[LabelSelector]:
        if pod.topology_spread:
            return fw.PreScoreResult(state=EVERYTHING)
        if self._selectors is None:
            self._selectors = DefaultSelectors(snapshot.listers)
        return fw.PreScoreResult(state=self._selectors.of(pod))

    def score(self, state: LabelSelector, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        if pod.topology_spread:
            return np.zeros(len(rows), np.int64)
        return count_matching_pods(pod.namespace, state, nodes, rows)

    def normalize(
        self, state: LabelSelector, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        if pod.topology_spread:
            return scores
        most = int(scores.max()) if len(scores) else 0
        result = np.full(len(scores), float(fw.MAX_NODE_SCORE))
        if most > 0:
            result = float(fw.MAX_NODE_SCORE) * ((most - scores).astype(np.float64) / float(most))
        zones = _zone_ids(nodes, rows)
        zoned = zones >= 0
        if zoned.any():
            by_zone = np.bincount(zones[zoned], weights=scores[zoned]).astype(np.int64)
            most_in_zone = int(by_zone.max())
            zone_scores = np.full(len(scores), float(fw.MAX_NODE_SCORE))
            if most_in_zone > 0:
                share = (most_in_zone - by_zone[zones]).astype(np.float64) / float(most_in_zone)
                zone_scores = float(fw.MAX_NODE_SCORE) * share
            mixed = (result * (1.0 - _ZONE_WEIGHTING)) + (_ZONE_WEIGHTING * zone_scores)
            result = np.where(zoned, mixed, result)
        return result.astype(np.int64)


def _zone_ids(nodes: NodeColumns, rows: Rows) -> NDArray[np.int64]:
    """A number for each row's region and zone together, -1 where the node names neither."""
    keys = (LABEL_ZONE_BETA, LABEL_ZONE, LABEL_REGION_BETA, LABEL_REGION)
    columns = np.stack([nodes.label_column(key)[rows] for key in keys])
    _, first, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    ids: dict[str, int] = {}
    known = []
    for index in first.tolist():
        zone = nodes.node(int(rows[index])).zone_key
        known.append(ids.setdefault(zone, len(ids)) if zone else -1)
    return np.array(known, np.int64)[inverse.reshape(-1)]


# --- NodeLabel: labels nodes must or must not have, whatever their value.


@dataclass(frozen=True, slots=True)
class NodeLabelArgs(PluginArgs):
    """Labels nodes must or must not have, or are preferred to have or not to have."""

    present_labels: tuple[str, ...] = omit(())
    absent_labels: tuple[str, ...] = omit(())
    present_labels_preference: tuple[str, ...] = omit(())
    absent_labels_preference: tuple[str, ...] = omit(())


class NodeLabel(fw.FilterPlugin[None], fw.ScorePlugin[None]):
    """Rejects rows that lack a label of `presentLabels` or have one of `absentLabels`; scores preferences alike.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, v1.20
    """

    name: ClassVar[str] = "NodeLabel"
    sentences: ClassVar[Sequence[str]] = ("node(s) didn't have the requested labels",)
    Args = NodeLabelArgs
    filter_reads: ClassVar[fw.Reads] = fw.Reads.SPEC
    score_reads: ClassVar[fw.Reads] = fw.Reads.SPEC

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.args = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()

    def sign(self, pod: Pod) -> Hashable:
        return ()

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        rejected = np.zeros(len(rows), np.bool_)
        for key in self.args.present_labels:
            rejected |= nodes.label_column(key)[rows] < 0
        for key in self.args.absent_labels:
            rejected |= nodes.label_column(key)[rows] >= 0
        return Verdicts.where(rejected, Code.UnschedulableAndUnresolvable)

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        present, absent = self.args.present_labels_preference, self.args.absent_labels_preference
        scores = np.zeros(len(rows), np.int64)
        if not present and not absent:
            return scores
        for key in present:
            scores += fw.MAX_NODE_SCORE * (nodes.label_column(key)[rows] >= 0)
        for key in absent:
            scores += fw.MAX_NODE_SCORE * (nodes.label_column(key)[rows] < 0)
        return scores // (len(present) + len(absent))


# --- ServiceAffinity: pods of one service on nodes with the same label values, or spread over values.


AFFINITY_REASON = "node(s) didn't match service affinity"
REASON_NODE = "node not found"


@dataclass(slots=True)
class AffinityState:
    """Pods like the pod, in order of the nodes they are on.

    Attributes
    ----------
    pod_ids : list of int
        In the cluster.
    has_services : bool
    removed : dict of int to dict of int to None
        By row of a what-if table: those of `pod_ids` that have left it.
    added : dict of int to list of int
        By row: pods that came, after all others.
    """

    pod_ids: list[int] = field(default_factory=list)
    has_services: bool = False
    removed: dict[int, dict[int, None]] = field(default_factory=dict)
    added: dict[int, list[int]] = field(default_factory=dict)

    def first_pod(self, row: int) -> int | None:
        """The first pod of the list as a row's own world has it."""
        removed = self.removed.get(row, {})
        first = next((pod_id for pod_id in self.pod_ids if pod_id not in removed), None)
        return first if first is not None else next(iter(self.added.get(row, ())), None)


@dataclass(frozen=True, slots=True)
class ServiceAffinityArgs(PluginArgs):
    """Labels that pods of one service share, and labels they are spread over."""

    affinity_labels: tuple[str, ...] = omit(())
    anti_affinity_labels_preference: tuple[str, ...] = omit(())


class ServiceAffinity(
    fw.PreFilterPlugin[AffinityState], fw.FilterPlugin[AffinityState], fw.ScorePlugin[None]
):
    """Rejects rows whose `affinityLabels` differ from those of the node where the pod's service already runs.

    What the pod's nodeSelector says of such a label counts before. Score prefers values of
    `antiAffinityLabelsPreference` under which few pods of the service run.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, v1.20
    Differs: of several services the first created counts for scoring; upstream takes any.
    """

    name: ClassVar[str] = "ServiceAffinity"
    Args = ServiceAffinityArgs
    normalizes: ClassVar[bool] = True

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.args = args if isinstance(args, ServiceAffinityArgs) else ServiceAffinityArgs()
        self._selectors: DefaultSelectors | None = None

    # ---- filtering

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[AffinityState]:
        if not self.args.affinity_labels:
            return fw.PreFilterResult(state=AffinityState())
        nodes, pods = snapshot.nodes, snapshot.pods
        like = [
            pod_id
            for row in snapshot.order.tolist()
            for pod_id in nodes.pods_on(row)
            if _is_like(pods[pod_id], pod)
        ]
        return fw.PreFilterResult(state=AffinityState(like, bool(self._services_of(pod, snapshot))))

    def filter(self, state: AffinityState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes = np.zeros(len(rows), np.int8)
        if not self.args.affinity_labels:
            return Verdicts(codes)
        wanted = _own_labels(pod, self.args.affinity_labels)
        introspects = state.has_services and len(wanted) < len(self.args.affinity_labels)
        base = state.pod_ids[0] if state.pod_ids else None
        donors = np.full(len(rows), -1 if base is None or not introspects else base, np.intp)
        if introspects and (state.removed or state.added):
            for place, row in enumerate(rows.tolist()):
                if row in state.removed or row in state.added:
                    first = state.first_pod(row)
                    donors[place] = -1 if first is None else first
        for donor in np.unique(donors).tolist():
            places = np.flatnonzero(donors == donor)
            labels = dict(wanted)
            if donor >= 0:
                node_labels = self._labels_under(donor, nodes)
                if node_labels is None:
                    codes[places] = Code.Error
                    continue
                for key in self.args.affinity_labels:
                    if key not in labels and key in node_labels:
                        labels[key] = node_labels[key]
            matched = matching_labels(selector_from_labels(labels), nodes, rows[places])
            codes[places[~matched]] = Code.Unschedulable
        return Verdicts(codes)

    def reasons(
        self, state: AffinityState, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASON_NODE if code is Code.Error else AFFINITY_REASON,)

    def fork(self, state: AffinityState, nodes: WhatIf) -> AffinityState:
        return AffinityState(state.pod_ids, state.has_services)

    def add_pods(
        self, state: AffinityState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
            if self.args.affinity_labels and _is_like(nodes.pods[pod_id], pod):
                state.added.setdefault(row, []).append(pod_id)

    def remove_pods(
        self, state: AffinityState, pod: Pod, nodes: WhatIf, rows: Rows, pod_ids: NDArray[np.intp]
    ) -> None:
        known = dict.fromkeys(state.pod_ids)
        for row, pod_id in zip(rows.tolist(), pod_ids.tolist(), strict=True):
            added = state.added.get(row, [])
            if pod_id in added:
                added.remove(pod_id)
            elif pod_id in known:
                state.removed.setdefault(row, {})[pod_id] = None

    def _labels_under(self, pod_id: int, nodes: NodeColumns) -> Mapping[str, str] | None:
        """Labels of the node a pod is on; None for a pod that is only nominated."""
        table = nodes.base if isinstance(nodes, WhatIf) else nodes
        row = int(nodes.pods.row[pod_id])
        return None if row < 0 else table.node(row).labels

    # ---- scoring

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        services = self._services_of(pod, self.handle.snapshot)
        if not services:
            return np.zeros(len(rows), np.int64)
        selector = selector_from_labels(services[0])
        return count_matching_pods(pod.namespace, selector, nodes, rows)

    def normalize(
        self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        """Source: service_affinity.go updateNodeScoresForLabel, v1.20."""
        labels = self.args.anti_affinity_labels_preference
        total = np.zeros(len(rows), np.float64)
        n_pods = int(scores.sum())
        for key in labels:
            column = nodes.label_column(key)[rows]
            labelled = column >= 0
            share = np.full(len(rows), float(fw.MAX_NODE_SCORE))
            if n_pods > 0 and labelled.any():
                counts = np.bincount(column[labelled], weights=scores[labelled]).astype(np.int64)
                share = float(fw.MAX_NODE_SCORE) * (
                    (n_pods - counts[column]).astype(np.float64) / float(n_pods)
                )
            total += np.where(labelled, share / float(len(labels)), 0.0)
        return total.astype(np.int64)

    def _services_of(self, pod: Pod, snapshot: Snapshot) -> list[dict[str, str]]:
        """Selectors of the services that select the pod."""
        if self._selectors is None:
            self._selectors = DefaultSelectors(snapshot.listers)
        return [service.selector_labels for service in self._selectors.services_of(pod)]


def _is_like(other: Pod, pod: Pod) -> bool:
    """A pod of the same namespace with all labels of `pod`."""
    if other.namespace != pod.namespace:
        return False
    labels = other.labels
    return all(labels.get(key) == value for key, value in pod.labels.items())


def _own_labels(pod: Pod, keys: tuple[str, ...]) -> dict[str, str]:
    """What the pod's own nodeSelector says of the labels."""
    selector = string_map(mapping(pod.manifest, "spec", ""), "nodeSelector", "spec")
    return {key: selector[key] for key in keys if key in selector}


# --- NodePreferAvoidPods: nodes may ask to be spared the pods of a controller.


ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_CONTROLLERS = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods(fw.ScorePlugin[None]):
    """Scores 0 where the node's annotation names the pod's ReplicationController or ReplicaSet, else 100.

    Source: pkg/scheduler/framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go, v1.20
    """

    name: ClassVar[str] = "NodePreferAvoidPods"
    score_reads: ClassVar[fw.Reads] = fw.Reads.SPEC

    def sign(self, pod: Pod) -> Hashable:
        return _controller_of(pod) or ()

    @per_node
    def score(self, state: None, pod: Pod, node: NodeView) -> int:
        controller = _controller_of(pod)
        avoids = controller is not None and controller in avoided_controllers(node.object.manifest)
        return 0 if avoids else fw.MAX_NODE_SCORE


def _controller_of(pod: Pod) -> tuple[str, str] | None:
    """Kind and uid of a controller nodes may speak of."""
    controller = pod.meta.controller
    if controller is None or controller.kind not in _CONTROLLERS:
        return None
    return controller.kind, controller.uid


def avoided_controllers(node: Document) -> frozenset[tuple[str, str]]:
    """Kinds and uids a node's annotation names; an annotation that cannot be read names none."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return frozenset()
    try:
        entries = json.loads(text).get("preferAvoidPods") or []
        controllers = [(entry.get("podSignature") or {}).get("podController") or {} for entry in entries]
        return frozenset((str(one.get("kind", "")), str(one.get("uid", ""))) for one in controllers)
    except (ValueError, AttributeError, TypeError):
        return frozenset()


RETIRED: tuple[type[fw.Plugin], ...] = (
    SelectorSpread,
    NodeLabel,
    ServiceAffinity,
    NodePreferAvoidPods,
    EBSLimits,
    GCEPDLimits,
    AzureDiskLimits,
    CinderLimits,
)
"""Every retired plugin."""
