"""Nodes that are being deleted: tainted, looked at once more, drained, and their machines given back.

Source: cluster-autoscaler/core/scaledown/{actuation,budgets}, k8s 1.36
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import MachineGroup
from scheduler_core.autoscaler.drainability import DrainBudgets, pods_to_move
from scheduler_core.autoscaler.estimate import is_of_daemon_set
from scheduler_core.autoscaler.scale_down import Removal, is_mirror
from scheduler_core.autoscaler.templates import DELETION_CANDIDATE, TO_BE_DELETED
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from

Document = Mapping[str, Any]
_SECOND_NS: Final = 10**9
_RETRY_NS: Final = 10 * _SECOND_NS
_DAEMON_EVICTION: Final = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"


@dataclass
class LeavingNode:
    """A node on its way out."""

    node: str
    group: str
    is_drain: bool
    next_ns: int
    until_ns: int = 0
    """When evictions are given up; 0 before the first."""
    left: list[str] = field(default_factory=list)
    best_effort: list[str] = field(default_factory=list)


class NodeDeletions:
    """NodeDeletions in progress, from loop to loop."""

    def __init__(
        self,
        cluster: LiveCluster,
        groups: Mapping[str, MachineGroup],
        option: Callable[[str, str], Any],
        duration: Callable[[str, str], int],
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._option = option
        self._duration = duration
        self.in_progress: dict[str, LeavingNode] = {}
        self.results: dict[str, str] = {}
        self.events: list[str] = []
        self.went_ns: dict[str, int] = {}
        self.failed_ns: dict[str, int] = {}
        """Group -> when a node of it went last, and when one failed to."""

    @property
    def of_group(self) -> Counter[str]:
        return Counter(one.group for one in self.in_progress.values())

    @property
    def drained(self) -> list[str]:
        return sorted(one.node for one in self.in_progress.values() if one.is_drain)

    # ---- starting

    def start(
        self, empty: Sequence[Removal], drains: Sequence[Removal], now_ns: int
    ) -> tuple[list[Removal], list[Removal]]:
        """Begin as many as the budgets allow; those that were begun."""
        n_drains = len(self.drained)
        parallel = self._option("max-scale-down-parallelism", "") - len(self.in_progress)
        n_drain = self._option("max-drain-parallelism", "") - n_drains
        chosen_empty, chosen_drains, parallel, n_drain = self._wholes(empty, drains, parallel, n_drain)
        single_empty, single_drains = (self._single(some) for some in (empty, drains))
        some = _cropped(single_empty, parallel, self._cluster.group_of)
        chosen_empty += some
        parallel -= len(some)
        chosen_drains += _cropped(single_drains, min(parallel, n_drain), self._cluster.group_of)
        for removal in (*chosen_empty, *chosen_drains):
            self._begin(removal, now_ns)
        return chosen_empty, chosen_drains

    def _single(self, removals: Sequence[Removal]) -> list[Removal]:
        group_of = self._cluster.group_of
        return [one for one in removals if not self._option("zero-or-max-node-scaling", group_of[one.node])]

    def _wholes(
        self, empty: Sequence[Removal], drains: Sequence[Removal], parallel: int, n_drain: int
    ) -> tuple[list[Removal], list[Removal], int, int]:
        """Groups that go as a whole; one of them may go beyond the budget."""
        group_of = self._cluster.group_of
        buckets: dict[str, tuple[list[Removal], list[Removal]]] = {}
        for removals, place in ((empty, 0), (drains, 1)):
            for one in removals:
                group = group_of[one.node]
                if self._option("zero-or-max-node-scaling", group):
                    buckets.setdefault(group, ([], []))[place].append(one)
        some_empty, some_drains, may_overflow = list[Removal](), list[Removal](), True
        for group, (of_empty, of_drains) in buckets.items():
            count, to_drain = len(of_empty) + len(of_drains), len(of_drains)
            is_spent = parallel <= 0 or (to_drain and n_drain <= 0) or not may_overflow
            if (parallel < count or n_drain < to_drain) and is_spent:
                break
            registered = sum(other == group for other in group_of.values())
            if count not in (self._groups[group].target_size, registered):
                continue
            some_empty += of_empty
            some_drains += of_drains
            parallel, n_drain, may_overflow = parallel - count, n_drain - to_drain, False
        return some_empty, some_drains, parallel, n_drain

    def _begin(self, removal: Removal, now_ns: int) -> None:
        name = removal.node
        taints, is_cordoned = self._taints(name)
        if not any(taint["key"] == TO_BE_DELETED for taint in taints):
            taint = {"key": TO_BE_DELETED, "value": str(now_ns // _SECOND_NS), "effect": "NoSchedule"}
            cordons = self._option("cordon-node-before-terminating", "")
            self._cluster.set_taints(name, [*taints, taint], bool(is_cordoned or cordons), now_ns)
        self.events.append(f"Node {name} Normal ScaleDown: marked the node as toBeDeleted/unschedulable")
        delay_ns = self._duration("node-delete-delay-after-taint", "")
        group = self._cluster.group_of[name]
        self.in_progress[name] = LeavingNode(name, group, bool(removal.pods), now_ns + delay_ns)

    def _taints(self, name: str) -> tuple[list[Document], bool]:
        spec = (self._cluster.get("Node", "", name) or {}).get("spec") or {}
        return list(spec.get("taints") or ()), bool(spec.get("unschedulable"))

    # ---- going on

    def advance(self, now_ns: int) -> None:
        """What happens until now."""
        while True:
            due = [one for one in self.in_progress.values() if one.next_ns <= now_ns]
            if not due:
                return
            self._go_on(min(due, key=lambda one: (one.next_ns, one.node)))

    def _go_on(self, one: LeavingNode) -> None:
        at_ns = one.next_ns
        if not one.until_ns:
            if not self._look_again(one, at_ns):
                return
            one.until_ns = at_ns + self._duration("max-pod-eviction-time", "")
        elif at_ns >= one.until_ns:
            if one.left:
                self._give_up(one, at_ns)
                return
            one.best_effort = []
        one.left = [key for key in one.left if not self._cluster.evict(key, at_ns)]
        one.best_effort = [key for key in one.best_effort if not self._cluster.evict(key, at_ns)]
        if one.left or one.best_effort:
            one.next_ns = at_ns + _RETRY_NS
            return
        self._cluster.delete_node(one.node, one.group, at_ns)
        self._groups[one.group].target_size -= 1
        self.went_ns[one.group] = at_ns
        self._end(one, "NodeDeleteOk")
        self.events.append(f"Node {one.node} Normal ScaleDown: nodes removed by cluster autoscaler")

    def _look_again(self, one: LeavingNode, at_ns: int) -> bool:
        """Whether the node may still go; what is to be evicted."""
        pods = self._pods_on(one.node)
        controllers = budgets = None
        if one.is_drain:
            controllers = {
                (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
                for item in self._cluster.objects()
            }
            budgets = DrainBudgets(
                item for item in self._cluster.objects() if item["kind"] == "PodDisruptionBudget"
            )
        moving = pods_to_move(pods, at_ns, lambda flag: self._option(flag, ""), controllers, budgets)
        blocked = moving.blocking is not None
        if blocked or (not one.is_drain and (moving.pods or moving.on_completion)):
            self._abort(one, "NodeDeleteErrorInternal", at_ns)
            return False
        flag = f"daemonset-eviction-for-{'occupied' if one.is_drain else 'empty'}-nodes"
        one.best_effort = [
            pod.key for pod in pods if is_of_daemon_set(pod) and self._evicts(pod, self._option(flag, ""))
        ]
        if one.is_drain:
            one.left = [pod.key for pod in pods if not is_of_daemon_set(pod) and not is_mirror(pod)]
        for key in (*one.left, *one.best_effort):
            self.events.append(f"Pod {key} Normal ScaleDown: deleting pod for node scale down")
        return True

    @staticmethod
    def _evicts(pod: Pod, by_default: bool) -> bool:
        own = (pod.manifest["metadata"].get("annotations") or {}).get(_DAEMON_EVICTION)
        return {"true": True, "false": False}.get(own or "", by_default)

    def _pods_on(self, node: str) -> list[Pod]:
        cutoff = self._option("expendable-pods-priority-cutoff", "")
        found = [pod_from(item) for item in self._cluster.objects() if item["kind"] == "Pod"]
        kept = [
            pod
            for pod in found
            if pod.node_name == node
            and not pod.is_terminal
            and not (
                pod.manifest["spec"].get("priority") is not None and pod.manifest["spec"]["priority"] < cutoff
            )
        ]
        return sorted(kept, key=lambda pod: (pod.namespace, pod.name))

    def _give_up(self, one: LeavingNode, at_ns: int) -> None:
        errors = [
            f"failed to evict pod {key} within allowed timeout (last error: disruption budget)"
            for key in one.left
        ]
        for key in one.left:
            self.events.append(f"Pod {key} Warning ScaleDownFailed: failed to delete pod for ScaleDown")
        self.events.append(
            f"Node {one.node} Warning ScaleDownFailed: failed to drain and delete node: Failed to drain node "
            f"/{one.node}, due to following errors: [{' '.join(errors)}]"
        )
        self._abort(one, "NodeDeleteErrorFailedToEvictPods", at_ns)

    def _abort(self, one: LeavingNode, result: str, at_ns: int) -> None:
        taints, _ = self._taints(one.node)
        kept = [taint for taint in taints if taint["key"] != TO_BE_DELETED]
        still_cordoned = self._taints(one.node)[1] and not self._option("cordon-node-before-terminating", "")
        self._cluster.set_taints(one.node, kept, still_cordoned, at_ns)
        self.failed_ns[one.group] = at_ns
        self._end(one, result)

    def _end(self, one: LeavingNode, result: str) -> None:
        del self.in_progress[one.node]
        self.results[one.node] = result

    # ---- taints that only prefer

    def mark_candidates(self, nodes: Sequence[Node], unneeded: Sequence[str], now_ns: int) -> None:
        """Put the soft taint on nodes that are not needed, and take it off the others; so many in a loop.

        Nodes are written as the loop listed them: what was written meanwhile is lost, as it is upstream.
        """
        left = self._option("max-bulk-soft-taint-count", "")
        if not left:
            return
        for wanted in (False, True):
            for node in nodes:
                name = node.name
                if (name in unneeded) is not wanted or self._cluster.get("Node", "", name) is None:
                    continue
                taints = list((node.manifest.get("spec") or {}).get("taints") or ())
                is_cordoned = node.unschedulable
                keys = [taint["key"] for taint in taints]
                if TO_BE_DELETED in keys or (DELETION_CANDIDATE in keys) is wanted or left <= 0:
                    continue
                left -= 1
                soft = {
                    "key": DELETION_CANDIDATE, "value": str(now_ns // _SECOND_NS), "effect": "PreferNoSchedule",
                }  # fmt: skip
                others = [taint for taint in taints if taint["key"] != DELETION_CANDIDATE]
                self._cluster.set_taints(name, [*others, soft] if wanted else others, is_cordoned, now_ns)

    def clean_up(self, now_ns: int) -> None:
        """Take off what an earlier process left on the nodes."""
        for name in sorted(self._cluster.group_of):
            if self._cluster.get("Node", "", name) is None:
                continue
            taints, is_cordoned = self._taints(name)
            kept = [taint for taint in taints if taint["key"] != TO_BE_DELETED]
            if len(kept) < len(taints):
                cordons = self._option("cordon-node-before-terminating", "")
                self._cluster.set_taints(name, kept, is_cordoned and not cordons, now_ns)
                self._tell_cleaned(name, TO_BE_DELETED)
            if self._option("max-bulk-soft-taint-count", "") == 0:
                self._clean_soft(name, now_ns)

    def _clean_soft(self, name: str, now_ns: int) -> None:
        taints, is_cordoned = self._taints(name)
        ttl_ns = self._duration("node-deletion-candidate-ttl", "")
        kept = [
            taint
            for taint in taints
            if taint["key"] != DELETION_CANDIDATE
            or int(taint.get("value") or 0) * _SECOND_NS + ttl_ns > now_ns
        ]
        if len(kept) < len(taints):
            self._cluster.set_taints(name, kept, is_cordoned, now_ns)
            self._tell_cleaned(name, DELETION_CANDIDATE)

    def _tell_cleaned(self, name: str, key: str) -> None:
        self.events.append(
            f"Node {name} Normal ClusterAutoscalerCleanup: removed {key} taint from node {name}"
        )


def _cropped(removals: Sequence[Removal], most: int, group_of: Mapping[str, str]) -> list[Removal]:
    """The first, group by group in the order of their first node."""
    groups: dict[str, list[Removal]] = {}
    for one in removals:
        groups.setdefault(group_of[one.node], []).append(one)
    return [one for some in groups.values() for one in some][: max(0, most)]
