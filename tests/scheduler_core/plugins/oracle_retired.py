"""The retired plugins one node at a time, as the Go of v1.20 is written: twins to compare the columns with.

Source: pkg/scheduler/framework/plugins/{selectorspread,nodelabel,serviceaffinity,nodepreferavoidpods,
nodevolumelimits}, v1.20
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence

from scheduler_core.cluster.listers import Listers
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.retired import NodeLabelArgs, ServiceAffinityArgs
from tests.scheduler_core.plugins.storage_clusters import NodeInfo

Rejection = tuple[str, tuple[str, ...]]


def node_label_filter(args: NodeLabelArgs, node: Node) -> Rejection | None:
    present = all(label in node.labels for label in args.present_labels)
    absent = all(label not in node.labels for label in args.absent_labels)
    if present and absent:
        return None
    return "UnschedulableAndUnresolvable", ("node(s) didn't have the requested labels",)


def node_label_score(args: NodeLabelArgs, node: Node) -> int:
    score = 0
    for label in args.present_labels_preference:
        if label in node.labels:
            score += 100
    for label in args.absent_labels_preference:
        if label not in node.labels:
            score += 100
    return score // (len(args.present_labels_preference) + len(args.absent_labels_preference))


def avoid_pods_score(pod: Pod, node: Node) -> int:
    controller = pod.meta.controller
    if controller is None or controller.kind not in ("ReplicationController", "ReplicaSet"):
        return 100
    text = (node.manifest["metadata"].get("annotations") or {}).get(
        "scheduler.alpha.kubernetes.io/preferAvoidPods"
    )
    try:
        avoids = json.loads(text or "{}").get("preferAvoidPods", [])
    except ValueError:
        return 100
    for avoid in avoids:
        named = avoid["podSignature"]["podController"]
        if named["kind"] == controller.kind and named["uid"] == controller.uid:
            return 0
    return 100


def matching_pods(namespace: str, selector: LabelSelector, pods: Sequence[Pod]) -> int:
    if not pods or selector.is_everything:
        return 0
    return sum(
        pod.namespace == namespace and not pod.is_terminating and selector.matches(pod.labels) for pod in pods
    )


def spread_normalize(nodes: Sequence[Node], scores: Sequence[int]) -> list[int]:
    counts_by_zone: dict[str, int] = {}
    for node, score in zip(nodes, scores, strict=True):
        if node.zone_key:
            counts_by_zone[node.zone_key] = counts_by_zone.get(node.zone_key, 0) + score
    most = max(scores, default=0)
    most_by_zone = max(counts_by_zone.values(), default=0)
    result = []
    for node, score in zip(nodes, scores, strict=True):
        value = 100.0
        if most > 0:
            value = 100.0 * (float(most - score) / float(most))
        if counts_by_zone and node.zone_key:
            zone_score = 100.0
            if most_by_zone > 0:
                zone_score = 100.0 * (
                    float(most_by_zone - counts_by_zone[node.zone_key]) / float(most_by_zone)
                )
            value = (value * (1.0 - 2.0 / 3.0)) + (2.0 / 3.0 * zone_score)
        result.append(int(value))
    return result


class AffinityTwin:
    """ServiceAffinity's PreFilter state, and Filter, AddPod and RemovePod on it."""

    def __init__(
        self, args: ServiceAffinityArgs, pod: Pod, infos: Sequence[NodeInfo], has_services: bool
    ) -> None:
        self.args = args
        self.pod = pod
        self.nodes = {info.node.name: info.node for info in infos}
        self.has_services = has_services
        self.pods = [other for info in infos for other in info.pods if self._is_like(other)]

    def clone(self) -> AffinityTwin:
        clone = copy.copy(self)
        clone.pods = list(self.pods)
        return clone

    def add(self, pod: Pod) -> None:
        if self._is_like(pod):
            self.pods.append(pod)

    def remove(self, pod: Pod) -> None:
        for index, other in enumerate(self.pods):
            if other.key == pod.key:
                del self.pods[index]
                return

    def filter(self, info: NodeInfo) -> Rejection | None:
        if not self.args.affinity_labels:
            return None
        here = {pod.key for pod in info.pods}
        pods = [pod for pod in self.pods if pod.node_name != info.node.name or pod.key in here]
        own: Mapping[str, str] = self.pod.manifest["spec"].get("nodeSelector") or {}
        wanted = {key: own[key] for key in self.args.affinity_labels if key in own}
        if len(self.args.affinity_labels) > len(wanted) and self.has_services and pods:
            node = self.nodes.get(pods[0].node_name)
            if node is None:
                return "Error", ("node not found",)
            for key in self.args.affinity_labels:
                if key not in wanted and key in node.labels:
                    wanted[key] = node.labels[key]
        if all(info.node.labels.get(key) == value for key, value in wanted.items()):
            return None
        return "Unschedulable", ("node(s) didn't match service affinity",)

    def _is_like(self, other: Pod) -> bool:
        return other.namespace == self.pod.namespace and self.pod.labels.items() <= other.labels.items()


def affinity_normalize(args: ServiceAffinityArgs, nodes: Sequence[Node], scores: Sequence[int]) -> list[int]:
    labels = args.anti_affinity_labels_preference
    result = [0.0] * len(scores)
    for label in labels:
        total = sum(scores)
        counts: dict[str, int] = {}
        for node, score in zip(nodes, scores, strict=True):
            if label in node.labels:
                counts[node.labels[label]] = counts.get(node.labels[label], 0) + score
        for index, node in enumerate(nodes):
            if label not in node.labels:
                continue
            value = 100.0
            if total > 0:
                value = 100.0 * (float(total - counts[node.labels[label]]) / float(total))
            result[index] += value / float(len(labels))
    return [int(value) for value in result]


DISKS = {
    "EBSLimits": (
        "awsElasticBlockStore",
        "volumeID",
        "kubernetes.io/aws-ebs",
        "attachable-volumes-aws-ebs",
        39,
    ),
    "GCEPDLimits": ("gcePersistentDisk", "pdName", "kubernetes.io/gce-pd", "attachable-volumes-gce-pd", 16),
}


def disk_limits_filter(plugin: str, pod: Pod, info: NodeInfo, listers: Listers) -> Rejection | None:
    source, field, in_tree, resource, limit = DISKS[plugin]

    def volumes_of(other: Pod, new: bool) -> set[str]:
        found = set()
        for volume in other.volumes:
            if volume.get(source) is not None:
                found.add(volume[source][field])
                continue
            if volume.get("persistentVolumeClaim") is None:
                continue
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = listers.get("PersistentVolumeClaim", other.namespace, name)
            if claim is None:
                if new:
                    raise LookupError(
                        f'looking up PVC {other.namespace}/{name}: persistentvolumeclaim "{name}" not found'
                    )
                continue
            spec = claim.manifest["spec"]
            bound = listers.get("PersistentVolume", "", spec.get("volumeName", ""))
            if bound is None:
                storage_class = listers.get("StorageClass", "", spec.get("storageClassName", ""))
                if storage_class is not None and storage_class.manifest["provisioner"] == in_tree:
                    found.add(f"random-{other.namespace}/{name}")
            elif bound.manifest["spec"].get(source) is not None:
                found.add(bound.manifest["spec"][source][field])
        return found

    try:
        new = volumes_of(pod, True)
    except LookupError as error:
        return "Error", (str(error),)
    if not new:
        return None
    csi_node = listers.get("CSINode", "", info.node.name)
    if csi_node is not None:
        annotations = csi_node.manifest["metadata"].get("annotations") or {}
        if in_tree in annotations.get("storage.alpha.kubernetes.io/migrated-plugins", "").split(","):
            return None
    existing: set[str] = set()
    for other in info.pods:
        existing |= volumes_of(other, False)
    if plugin == "EBSLimits":
        kind = info.node.labels.get("node.kubernetes.io/instance-type", "")
        if re.search(r"^[cmr]5.*|t3|z1d", kind):
            limit = 25
    limit = info.node.allocatable.get(resource, limit)
    if len(existing) + len(new - existing) > limit:
        return "Unschedulable", ("node(s) exceed max volume count",)
    return None
