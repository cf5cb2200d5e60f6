"""What one loop of the autoscaler sees.

Source: cluster-autoscaler/core/static_autoscaler.go, utils/kubernetes/{listers,ready}.go, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import Flags
from scheduler_core.autoscaler.drainability import Drainability
from scheduler_core.autoscaler.snapshot import NodesAndPods
from scheduler_core.autoscaler.templates import GPU, GPU_LABEL, TO_BE_DELETED, is_expendable, is_startup_taint
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

Document = Mapping[str, Any]
_SECOND_NS: Final = 10**9
_STABLE_NS: Final = 60 * _SECOND_NS
_MOST_NODES: Final = 8192
_YOUNG_NS, _YOUNG_GPU_NS = 2 * _SECOND_NS, 30 * _SECOND_NS
_UNREADY_TAINTS: Final = frozenset({
    "node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/network-unavailable",
})  # fmt: skip


class LoopView:
    """What one loop sees: the objects as the autoscaler lists them, by name, and nodes and pods to try on.

    Attributes
    ----------
    group_of : mapping of str to str
        Node -> group.
    snapshot : NodesAndPods
        Begins with the nodes and the pods on them that count; as `rules`, it is the one of the loop before.
    """

    def __init__(
        self,
        cluster: LiveCluster,
        flags: Flags,
        snapshot: NodesAndPods,
        rules: Drainability,
        now_ns: int,
    ) -> None:
        self.now_ns = now_ns
        self.flags = flags
        self.group_of: Mapping[str, str] = cluster.group_of
        self.rules = rules
        self.snapshot = snapshot
        self.nodes = cluster.nodes()
        self.daemon_sets = _in_order(cluster.of_kind("DaemonSet"))
        self.priorities = next(
            (
                (item.get("data") or {}).get("priorities")
                for item in _in_order(cluster.of_kind("ConfigMap"))
                if item["metadata"]["name"] == "cluster-autoscaler-priority-expander"
            ),
            None,
        )
        self.pending: list[Pod] = []
        nominated, unprocessed = dict[str, tuple[Pod, ...]](), list[Pod]()
        bypassed, allowed = flags("bypassed-scheduler-names"), flags("allowed-scheduler-names")
        cutoff = flags("expendable-pods-priority-cutoff")
        for pod in cluster.unplaced():
            if pod.is_terminal or pod.is_terminating or (allowed and pod.scheduler_name not in allowed):
                continue
            conditions = (pod.manifest.get("status") or {}).get("conditions") or ()
            condition = next((one for one in conditions if one.get("type") == "PodScheduled"), None)
            said = condition and (condition.get("status"), condition.get("reason") or "")
            if name := pod.nominated_node_name:
                if not is_expendable(pod, cutoff):
                    nominated[name] = (*nominated.get(name, ()), pod)
            elif said == ("False", "Unschedulable"):
                self.pending.append(pod)
            elif pod.scheduler_name in bypassed and said in (None, ("False", "")):
                unprocessed.append(pod)
        self.pending += unprocessed
        snapshot.settle(
            (node, _of(cluster.pods_on(node.name, cutoff), allowed) + nominated.get(node.name, ()))
            for node in self.nodes
        )

    @property
    def n_ready(self) -> int:
        """Nodes that are ready and take pods."""
        return sum(self.is_ready(node) and not node.unschedulable for node in self.nodes)

    def is_ready(self, node: Node) -> bool:
        return _is_ready(node, self.flags)

    def is_new(self, pods: Sequence[Pod]) -> bool:
        """Whether even the oldest pod, or the oldest that asks for a GPU, is so young that others may follow."""
        with_gpu = [pod for pod in pods if pod.requests.get(GPU)]
        return any(
            some and min(pod.meta.creation_ns or 0 for pod in some) + young_ns > self.now_ns
            for some, young_ns in ((pods, _YOUNG_NS), (with_gpu, _YOUNG_GPU_NS))
        )

    def is_good_example(self, node: Node) -> bool:
        """Whether a fresh node is taken to be like this one."""
        if not self.is_ready(node) or node.unschedulable:
            return False
        is_leaving = any(taint.key == TO_BE_DELETED for taint in node.taints)
        return _changed_ns(node) + _STABLE_NS < self.now_ns and not is_leaving


def _of(pods: tuple[Pod, ...], schedulers: Sequence[str]) -> tuple[Pod, ...]:
    """Pods of some schedulers, or of any: the same tuple."""
    return tuple(pod for pod in pods if pod.scheduler_name in schedulers) if schedulers else pods


def _in_order(documents: Iterable[Document]) -> list[Document]:
    return sorted(
        documents, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"])
    )


@lru_cache(_MOST_NODES)
def _changed_ns(node: Node) -> int:
    changed = [
        parse_time_ns(one["lastTransitionTime"])
        for one in (node.manifest.get("status") or {}).get("conditions") or ()
        if one.get("type") in ("Ready", "DiskPressure", "NetworkUnavailable")
        and one.get("lastTransitionTime")
    ]
    return max(changed, default=0)


@lru_cache(_MOST_NODES)
def _is_ready(node: Node, flags: Flags) -> bool:
    bad = {("Ready", "False"), ("Ready", "Unknown"), ("DiskPressure", "True"), ("NetworkUnavailable", "True")}
    if bad & set(node.conditions) or any(taint.key in _UNREADY_TAINTS for taint in node.taints):
        return False
    lacks_gpu = GPU_LABEL in node.labels and not node.allocatable.get(GPU, 0)
    is_starting = lacks_gpu or any(is_startup_taint(taint.key, flags) for taint in node.taints)
    return node.unschedulable or not is_starting
