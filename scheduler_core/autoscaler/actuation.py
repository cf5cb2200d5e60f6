"""Nodes that are being deleted: tainted, looked at once more, drained, and their machines given back.

Source: cluster-autoscaler/core/scaledown/{actuation,budgets}, k8s 1.36
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.cluster import LiveCluster, ProgramEvent
from scheduler_core.autoscaler.cluster_state import Flags, MachineGroup
from scheduler_core.autoscaler.drainability import Drainability
from scheduler_core.autoscaler.scale_down import Removal
from scheduler_core.autoscaler.templates import DELETION_CANDIDATE, TO_BE_DELETED, is_daemon
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

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
        flags: Flags,
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._flags = flags
        self.in_progress: dict[str, LeavingNode] = {}
        self.results: dict[str, str] = {}
        self.events: list[ProgramEvent] = []
        self.went_ns: dict[str, int] = {}
        """Group -> when a node of it went last."""

    @property
    def of_group(self) -> Counter[str]:
        return Counter(one.group for one in self.in_progress.values())

    @property
    def drained(self) -> list[str]:
        return sorted(one.node for one in self.in_progress.values() if one.is_drain)

    def state(self) -> dict[str, Any]:
        """What outlasts a loop, JSON-able."""
        return {
            "inProgress": [asdict(one) for one in self.in_progress.values()],
            "results": self.results,
            "events": self.events,
            "wentNs": self.went_ns,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.in_progress = {one["node"]: LeavingNode(**one) for one in state["inProgress"]}
        self.results = dict(state["results"])
        self.events = [ProgramEvent(*event) for event in state["events"]]
        self.went_ns = dict(state["wentNs"])

    def _tell(
        self, kind: str, key: str, message: str, type_: str = "Normal", reason: str = "ScaleDown"
    ) -> None:
        self.events.append(ProgramEvent(kind, key, type_, reason, message))

    # ---- starting

    def start(self, removals: Sequence[Removal], now_ns: int) -> list[Removal]:
        """Begin as many as the budgets allow; those that were begun, the empty nodes first."""
        parallel = self._flags("max-scale-down-parallelism") - len(self.in_progress)
        n_drain = self._flags("max-drain-parallelism") - len(self.drained)
        group_of = self._cluster.group_of
        chosen, single = list[Removal](), list[Removal]()
        buckets: dict[str, list[Removal]] = {}
        for one in removals:
            group = group_of[one.node]
            is_whole = self._flags("zero-or-max-node-scaling", group)
            (buckets.setdefault(group, []) if is_whole else single).append(one)
        may_overflow = True
        for group, members in buckets.items():  # one group that goes as a whole may go beyond the budget
            count, to_drain = len(members), sum(bool(one.pods) for one in members)
            is_spent = parallel <= 0 or (to_drain and n_drain <= 0) or not may_overflow
            if (parallel < count or n_drain < to_drain) and is_spent:
                break
            if count in (self._groups[group].target_size, list(group_of.values()).count(group)):
                chosen += members
                parallel, n_drain, may_overflow = parallel - count, n_drain - to_drain, False
        empty = self._cropped([one for one in single if not one.pods], parallel)
        most = min(parallel - len(empty), n_drain)
        chosen += [*empty, *self._cropped([one for one in single if one.pods], most)]
        chosen.sort(key=lambda one: bool(one.pods))
        for removal in chosen:
            self._begin(removal, now_ns)
        return chosen

    def _cropped(self, removals: Sequence[Removal], most: int) -> list[Removal]:
        """The first, group by group in the order of their first node."""
        groups: dict[str, list[Removal]] = {}
        for one in removals:
            groups.setdefault(self._cluster.group_of[one.node], []).append(one)
        return [one for some in groups.values() for one in some][: max(0, most)]

    def _begin(self, removal: Removal, now_ns: int) -> None:
        name = removal.node
        taints, is_cordoned = self._taints(name)
        if not any(taint["key"] == TO_BE_DELETED for taint in taints):
            taint = {"key": TO_BE_DELETED, "value": str(now_ns // _SECOND_NS), "effect": "NoSchedule"}
            cordons = self._flags("cordon-node-before-terminating")
            self._cluster.set_taints(name, [*taints, taint], bool(is_cordoned or cordons), now_ns)
        self._tell("Node", name, "marked the node as toBeDeleted/unschedulable")
        delay_ns = self._flags.ns("node-delete-delay-after-taint")
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
            one.until_ns = at_ns + self._flags.ns("max-pod-eviction-time")
        elif at_ns >= one.until_ns:
            if any(not self._cluster.is_ending(key) for key in one.left):
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
        self._tell("Node", one.node, "nodes removed by cluster autoscaler")

    def _look_again(self, one: LeavingNode, at_ns: int) -> bool:
        """Whether the node may still go; what is to be evicted."""
        pods = self._pods_on(one.node)
        rules = Drainability(self._flags, self._cluster if one.is_drain else None)
        moving = rules.pods_to_move(pods, at_ns)
        blocked = moving.blocking is not None
        if blocked or (not one.is_drain and (moving.pods or moving.on_completion)):
            if not blocked:
                why = "new pods scheduled" if moving.pods else "active on-completion pods present"
                told = f'failed to delete empty node: failed to delete empty node "{one.node}", {why}'
                self._tell("Node", one.node, told, "Warning", "ScaleDownFailed")
            self._abort(one, "NodeDeleteErrorInternal", at_ns)
            return False
        flag = f"daemonset-eviction-for-{'occupied' if one.is_drain else 'empty'}-nodes"
        one.best_effort = [pod.key for pod in pods if is_daemon(pod) and self._evicts(pod, self._flags(flag))]
        if one.is_drain:
            one.left = [pod.key for pod in pods if not is_daemon(pod) and not pod.is_mirror]
        for key in (*one.left, *one.best_effort):
            self._tell("Pod", key, "deleting pod for node scale down")
        return True

    @staticmethod
    def _evicts(pod: Pod, by_default: bool) -> bool:
        own = pod.annotations.get(_DAEMON_EVICTION, "")
        return {"true": True, "false": False}.get(own, by_default)

    def _pods_on(self, node: str) -> tuple[Pod, ...]:
        return self._cluster.pods_on(node, self._flags("expendable-pods-priority-cutoff"))

    def _give_up(self, one: LeavingNode, at_ns: int) -> None:
        errors = [
            f"failed to evict pod {key} within allowed timeout (last error: disruption budget)"
            for key in one.left
        ]
        for key in one.left:
            self._tell("Pod", key, "failed to delete pod for ScaleDown", "Warning", "ScaleDownFailed")
        told = (
            f"failed to drain and delete node: Failed to drain node /{one.node}, "
            f"due to following errors: [{' '.join(errors)}]"
        )
        self._tell("Node", one.node, told, "Warning", "ScaleDownFailed")
        self._abort(one, "NodeDeleteErrorFailedToEvictPods", at_ns)

    def _abort(self, one: LeavingNode, result: str, at_ns: int) -> None:
        self._unmark(one.node, at_ns)
        self._end(one, result)

    def _unmark(self, name: str, now_ns: int) -> None:
        """Take the taint of a node that is to go off, and the cordon that came with it."""
        taints, is_cordoned = self._taints(name)
        kept = [taint for taint in taints if taint["key"] != TO_BE_DELETED]
        cordons = self._flags("cordon-node-before-terminating")
        self._cluster.set_taints(name, kept, is_cordoned and not cordons, now_ns)

    def _end(self, one: LeavingNode, result: str) -> None:
        del self.in_progress[one.node]
        self.results[one.node] = result

    # ---- taints that only prefer

    def mark_candidates(self, nodes: Sequence[Node], unneeded: Sequence[str], now_ns: int) -> None:
        """Put the soft taint on nodes that are not needed, and take it off the others; so many in a loop.

        Nodes are written as the loop listed them: what was written meanwhile is lost, as it is upstream.
        """
        left = self._flags("max-bulk-soft-taint-count")
        if not left:
            return
        wished = set(unneeded)
        for wanted in (False, True):
            for node in nodes:
                name = node.name
                if (name in wished) is not wanted or _is_marked(node) is not (not wanted) or left <= 0:
                    continue
                if self._cluster.get("Node", "", name) is None:
                    continue
                taints = list((node.manifest.get("spec") or {}).get("taints") or ())
                is_cordoned = node.unschedulable
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
            if any(taint["key"] == TO_BE_DELETED for taint in self._taints(name)[0]):
                self._unmark(name, now_ns)
                self._tell_cleaned(name, TO_BE_DELETED)
            if self._flags("max-bulk-soft-taint-count") == 0:
                self._clean_soft(name, now_ns)

    def _clean_soft(self, name: str, now_ns: int) -> None:
        taints, is_cordoned = self._taints(name)
        ttl_ns = self._flags.ns("node-deletion-candidate-ttl")
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
        message = f"removed {key} taint from node {name}"
        self._tell("Node", name, message, reason="ClusterAutoscalerCleanup")


def _is_marked(node: Node) -> bool | None:
    """Whether it has the soft taint; None where it is being deleted."""
    keys = {taint.key for taint in node.taints}
    return None if TO_BE_DELETED in keys else DELETION_CANDIDATE in keys
