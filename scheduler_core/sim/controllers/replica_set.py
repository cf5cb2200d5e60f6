"""ReplicaSet: keeps so many pods of a template.

Source: pkg/controller/replicaset/replica_set.go, pkg/controller/controller_utils.go ActivePodsWithRanks, v1.34
Differs: all missing pods are made at once (no slow start); minReadySeconds is not waited for; restarts do not occur;
ages are compared exactly, not by their logarithm; only pods of the same ReplicaSet count as neighbours.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.controllers.base import WorkloadController
from scheduler_core.sim.controllers.workload import Workload
from scheduler_core.sim.pod_index import condition_of, is_ready

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSetController(WorkloadController):
    """A pod that goes away comes back under a new name."""

    kind: ClassVar[str] = "ReplicaSet"
    watches: ClassVar[tuple[str, ...]] = ("ReplicaSet", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("ReplicaSet",)

    def sync_one(self, workload: Workload) -> None:
        group = self.pods.of_owner(workload.owner)
        missing = workload.replicas - group.n_active
        if missing > 0:
            for _ in range(missing):
                self.make_pod(workload)
        elif missing < 0:
            for pod in in_order_of_deletion(group.active())[:-missing]:
                self.delete_pod(pod, "scaled down")

    def status_of(self, workload: Workload) -> dict[str, Any]:
        group = self.pods.of_owner(workload.owner)
        before = dict(workload.manifest.get("status") or {})
        wanted = {
            "fullyLabeledReplicas": group.n_active,
            "readyReplicas": group.n_ready,
            "availableReplicas": group.n_ready,
        }
        for name, number in wanted.items():
            # As Go writes them: zeros are left out.
            before.pop(name, None)
            if number:
                before[name] = number
        before["replicas"] = group.n_active
        before["observedGeneration"] = int((workload.manifest.get("metadata") or {}).get("generation") or 1)
        return before


class ReplicationControllerController(ReplicaSetController):
    """The same under its older name. Source: pkg/controller/replication/replication_controller.go, v1.34."""

    kind: ClassVar[str] = "ReplicationController"
    watches: ClassVar[tuple[str, ...]] = ("ReplicationController", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("ReplicationController",)


def in_order_of_deletion(pods: list[Pod]) -> list[Pod]:
    """Pods in the order a scale-down takes them: those that serve least first."""
    neighbours = Counter(pod.node_name for pod in pods if pod.node_name)

    def rank(pod: Pod) -> tuple[Any, ...]:
        ready = is_ready(pod)
        return (
            bool(pod.node_name),
            {"Pending": 0, "": 0, "Unknown": 1}.get(pod.phase, 2),
            ready,
            _deletion_cost(pod),
            -neighbours[pod.node_name] if pod.node_name else 0,
            -_ready_since_ns(pod) if ready else 0,
            -(pod.meta.creation_ns or 0),
            pod.name,
        )

    return sorted(pods, key=rank)


def _deletion_cost(pod: Pod) -> int:
    annotations = pod.manifest["metadata"].get("annotations") or {}
    try:
        return int(annotations.get(DELETION_COST, 0))
    except (TypeError, ValueError):
        return 0


def _ready_since_ns(pod: Pod) -> int:
    condition = condition_of(pod.manifest, "Ready") or {}
    text = condition.get("lastTransitionTime")
    try:
        return parse_time_ns(text) if isinstance(text, str) else 0
    except ValueError:
        return 0
