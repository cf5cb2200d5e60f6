"""Which nodes are not needed, since when, and what keeps the others; which of them go now.

Source: cluster-autoscaler/core/scaledown/{planner,unneeded,unremovable,eligibility}, simulator/cluster.go, k8s 1.36
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from scheduler_core.autoscaler.cluster_state import Flags, MachineGroup
from scheduler_core.autoscaler.drainability import is_long_terminating
from scheduler_core.autoscaler.estimate import MOVED, hint_of, shape_of
from scheduler_core.autoscaler.scale_up import Quotas
from scheduler_core.autoscaler.snapshot import NodesAndPods
from scheduler_core.autoscaler.templates import DELETION_CANDIDATE, GPU, TO_BE_DELETED, has_gpu, is_daemon
from scheduler_core.autoscaler.view import LoopView
from scheduler_core.fork import homeless
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod, pod_like
from scheduler_core.objects.resources import CPU, MEMORY

_SECOND_NS: Final = 10**9
_BEING_DELETED_NS: Final = 5 * 60 * _SECOND_NS
_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True)
class Removal:
    """A node that could go, and its pods that move."""

    node: str
    pods: tuple[Pod, ...]
    on_completion: bool
    risky: bool


@dataclass
class ScaleDown:
    """What one loop found."""

    result: str = "ScaleDownNotTried"
    candidates: list[str] | None = None
    simulations: list[dict[str, Any]] = field(default_factory=list)
    unneeded: list[str] = field(default_factory=list)
    unremovable: dict[str, dict[str, str]] = field(default_factory=dict)
    utilization: dict[str, dict[str, Any]] = field(default_factory=dict)
    deleting: list[dict[str, Any]] = field(default_factory=list)
    delete_results: dict[str, str] = field(default_factory=dict)


class _Judged(NamedTuple):
    """Verdict on a node with these pods: why it stays, empty if it may go, and its utilization where computed."""

    node: Node
    pods: tuple[Pod, ...]
    group: str
    reason: str
    used: dict[str, Any] | None


class Planner:
    """Nodes that are not needed, from loop to loop."""

    def __init__(self, groups: Mapping[str, MachineGroup], flags: Flags) -> None:
        self._groups = groups
        self._flags = flags
        self._since_ns: dict[str, int] = {}
        self._n_remembered = 0
        self._removals: dict[str, Removal] = {}
        self._recheck_ns: dict[str, int] = {}
        self._hints: dict[str, str] = {}
        self._latest_ns: int | None = None
        self._interval_ns = flags.ns("scale-down-unneeded-time")
        self._judged: dict[str, _Judged] = {}
        self._homeless: dict[Pod, Pod] = {}
        """Pods that were tried elsewhere, without their nodes; those of the last loop."""

    @property
    def unneeded(self) -> list[str]:
        return sorted(self._removals)

    def forget(self) -> None:
        """No node counts as unneeded any longer."""
        self._removals, self._since_ns = {}, {}

    def remember(self, nodes: Iterable[Node], now_ns: int) -> None:
        """Take over from an earlier process since when nodes are not needed, if their taints are not too old."""
        ttl_ns = self._flags.ns("node-deletion-candidate-ttl")
        if ttl_ns <= 0:
            return
        for node in nodes:
            for taint in node.taints:
                if taint.key == DELETION_CANDIDATE and taint.value.isdecimal():
                    since_ns = int(taint.value) * _SECOND_NS
                    if now_ns - since_ns <= ttl_ns:
                        self._since_ns[node.name] = since_ns
                        self._n_remembered += 1

    def state(self) -> dict[str, Any]:
        """What outlasts a loop, JSON-able: of nodes that are not needed their names, as each loop judges them anew."""
        return {
            "sinceNs": self._since_ns,
            "nRemembered": self._n_remembered,
            "unneeded": list(self._removals),
            "recheckNs": self._recheck_ns,
            "hints": self._hints,
            "latestNs": self._latest_ns,
            "intervalNs": self._interval_ns,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._since_ns, self._n_remembered = dict(state["sinceNs"]), state["nRemembered"]
        self._removals = {name: Removal(name, (), False, False) for name in state["unneeded"]}
        self._recheck_ns, self._hints = dict(state["recheckNs"]), dict(state["hints"])
        self._latest_ns, self._interval_ns = state["latestNs"], state["intervalNs"]

    # ---- looking

    def update(
        self, found: ScaleDown, view: LoopView, candidates: Sequence[str], others: Iterable[str]
    ) -> None:
        """Judge the candidates, in order; pods may go to the others, too."""
        now_ns, snapshot = view.now_ns, view.snapshot
        if self._latest_ns is not None:
            self._interval_ns = min(self._interval_ns, now_ns - self._latest_ns)
        self._latest_ns = now_ns
        self._recheck_ns = {
            name: until_ns
            for name, until_ns in self._recheck_ns.items()
            if name in snapshot.nodes and until_ns > now_ns
        }
        if len(self._judged) > 2 * len(snapshot.nodes):
            self._judged = {name: kept for name, kept in self._judged.items() if name in snapshot.nodes}
        eligible = []
        for name in candidates:
            reason = self._ineligible(found, view, name)
            if reason:
                found.unremovable[name] = {"reason": reason}
            else:
                eligible.append(name)
        recheck_ns = now_ns + self._flags.ns("unremovable-node-recheck-timeout")
        removals: dict[str, Removal] = {}
        hints: dict[str, str] = {}
        open_nodes, n_single = set(others), 0
        known, self._homeless = self._homeless, {}
        limit = self._limit()
        with snapshot.fork():
            for name in eligible:
                if n_single >= limit:
                    break
                removal = self._simulate(found, view, name, open_nodes, hints, known)
                if removal is None:
                    self._recheck_ns[name] = recheck_ns
                    continue
                open_nodes.discard(name)
                view.rules.budgets.take(removal.pods)
                removals[name] = removal
                n_single += not self._flags("zero-or-max-node-scaling", view.group_of[name])
        self._hints = hints
        self._since_ns = {name: self._since_ns.get(name, now_ns) for name in removals}
        self._removals = removals
        found.unneeded = sorted(removals)

    def _limit(self) -> int:
        parallel = self._flags("max-scale-down-parallelism")
        interval_ns = max(1, self._interval_ns)
        longest_ns = max(self._flags.ns("scale-down-unneeded-time"), interval_ns)
        bound = parallel * (longest_ns // interval_ns) + parallel
        n_unneeded, self._n_remembered = len(self._removals) + self._n_remembered, 0
        return int(min(n_unneeded + 2 * parallel, bound))

    def _ineligible(self, found: ScaleDown, view: LoopView, name: str) -> str:
        node = view.snapshot.nodes.get(name)
        if node is None:
            return "UnexpectedError"
        if name in self._recheck_ns:
            return "RecentlyUnremovable"
        pods, group, kept = view.snapshot.pods[name], view.group_of.get(name, ""), self._judged.get(name)
        if kept is None or kept.node is not node or kept.pods is not pods or kept.group != group:
            kept = self._judge(view, node, pods, group)
            goes_by_time = any(taint.key == TO_BE_DELETED for taint in node.taints)
            if not goes_by_time and not any(pod.is_terminating for pod in pods):
                self._judged[name] = kept
        if kept.used is not None:
            found.utilization[name] = kept.used
        return kept.reason

    def _judge(self, view: LoopView, node: Node, pods: tuple[Pod, ...], group: str) -> _Judged:
        reason, used = "", None
        if _is_being_deleted(node, view.now_ns):
            reason = "CurrentlyBeingDeleted"
        elif _is_disabled(node):
            reason = "ScaleDownDisabledAnnotation"
        elif not group:
            reason = "NotAutoscaled"
        elif (used := self._find_utilization(view, node)) is None:
            reason = "UnexpectedError"
        elif not self._flags("scale-down-unready-enabled") and not view.is_ready(node):
            reason, used = "ScaleDownUnreadyDisabled", None
        else:
            flag = f"scale-down-{'gpu-' if has_gpu(node) else ''}utilization-threshold"
            reason = "NotUnderutilized" if used["utilization"] > self._flags(flag, group) else ""
        return _Judged(node, pods, group, reason, used)

    def _find_utilization(self, view: LoopView, node: Node) -> dict[str, Any] | None:
        if has_gpu(node):
            share = self._share(view, node, GPU) or 0
            return {"gpu": share, "resource": GPU, "utilization": share}
        cpu, memory = (self._share(view, node, name) for name in (CPU, MEMORY))
        if cpu is None or memory is None:
            return None
        larger = "cpu" if cpu > memory else "memory"
        return {"cpu": cpu, "memory": memory, "resource": larger, "utilization": max(cpu, memory)}

    def _share(self, view: LoopView, node: Node, resource: str) -> float | None:
        allocatable = node.allocatable.get(resource, 0)
        if not allocatable:
            return None
        asked = left_out = 0
        no_daemons = self._flags("ignore-daemonsets-utilization", view.group_of[node.name])
        no_mirrors = self._flags("ignore-mirror-pods-utilization")
        for pod in view.snapshot.pods[node.name]:
            amount = pod.requests.get(resource, 0)
            if (no_daemons and is_daemon(pod)) or (no_mirrors and pod.is_mirror):
                left_out += amount
            elif not is_long_terminating(pod, view.now_ns):
                asked += amount
        return asked / (allocatable - left_out) if allocatable != left_out else None

    def utilization_of(self, view: LoopView, name: str) -> float:
        """A node's utilization, named beside its deletion."""
        used = self._find_utilization(view, view.snapshot.nodes[name])
        return 0 if used is None else float(used["utilization"])

    # ---- simulating

    def _simulate(
        self,
        found: ScaleDown,
        view: LoopView,
        name: str,
        open_nodes: set[str],
        hints: dict[str, str],
        known: Mapping[Pod, Pod],
    ) -> Removal | None:
        snapshot = view.snapshot
        moving = view.rules.pods_to_move(snapshot.pods[name], view.now_ns)
        if moving.blocking is not None:
            reason = {"reason": "BlockedByPod", "pod": moving.blocking.key, "podReason": moving.reason}
            found.unremovable[name] = reason
            return None
        moves: list[list[str]] = []
        kept = snapshot.keep()
        snapshot.make_ghost(name, partial(ghost_of, snapshot.nodes[name], view.now_ns))
        failed: dict[str, list[str]] = {}
        for pod in moving.pods:
            moved = self._homeless[pod] = known.get(pod) or _moved(pod)
            place = self._place(snapshot, moved, name, open_nodes, hints, failed)
            if not place:
                break
            moves.append([pod.key, place])
        ok = len(moves) == len(moving.pods)
        found.simulations.append({"node": name, "moves": moves, "ok": ok})
        if not ok:
            snapshot.go_back(kept)
            found.unremovable[name] = {"reason": "NoPlaceToMovePods"}
            return None
        snapshot.remove(name)
        risky = not view.rules.budgets.allows_together(moving.pods)
        return Removal(name, tuple(moving.pods), bool(moving.on_completion), risky)

    def _place(
        self,
        snapshot: NodesAndPods,
        pod: Pod,
        leaving: str,
        open_nodes: set[str],
        hints: dict[str, str],
        failed: dict[str, list[str]],
    ) -> str:
        def accepts(name: str) -> bool:
            return name != leaving and name in open_nodes

        hint = hint_of(pod)
        hinted = hints.get(hint) or self._hints.get(hint) or ""
        if hinted in snapshot.nodes and accepts(hinted) and snapshot.try_on(pod, hinted) is None:
            hints[hint] = hinted
            return hinted
        controller = pod.meta.controller
        shapes = failed.setdefault(controller.uid, []) if controller is not None else []
        if shapes and shape_of(pod) in shapes:
            return ""
        place = snapshot.try_any(pod, accepts)
        if place:
            hints[hint] = place
        elif controller is not None:
            shapes.append(shape_of(pod))
        return place

    # ---- going

    def to_delete(self, found: ScaleDown, view: LoopView, deleting: Counter[str]) -> list[Removal]:
        """Nodes that may go now: the empty ones, and those that are drained."""
        sizes = {name: group.target_size - deleting[name] for name, group in self._groups.items()}
        quotas = Quotas.at_least(self._flags, list(view.snapshot.nodes.values()), view.group_of)
        ready: list[Removal] = []
        for is_drain in (False, True):
            some = []
            for name in sorted(self._removals):
                removal = self._removals[name]
                if bool(removal.pods) != is_drain:
                    continue
                reason = self._stays(view, view.snapshot.nodes[name], sizes, quotas)
                if reason:
                    found.unremovable[name] = {"reason": reason}
                else:
                    some.append(removal)
            ready += sorted(some, key=lambda removal: removal.risky) if is_drain else some
        ready = self._without_parts(found, view, ready)
        for removal in ready:
            if removal.on_completion:
                found.unremovable[removal.node] = {"reason": "BlockedByOnCompletionPod"}
        return [removal for removal in ready if not removal.on_completion]

    def _stays(self, view: LoopView, node: Node, sizes: dict[str, int], quotas: Quotas) -> str:
        group, is_ready = view.group_of[node.name], view.is_ready(node)
        if _is_disabled(node):
            return "ScaleDownDisabledAnnotation"
        flag = "scale-down-unneeded-time" if is_ready else "scale-down-unready-time"
        wait_ns = self._flags.ns(flag, group)
        if wait_ns > 0 and not self._since_ns[node.name] + wait_ns < view.now_ns:
            return "NotUnneededLongEnough" if is_ready else "NotUnreadyLongEnough"
        if sizes[group] <= self._groups[group].min_size:
            return "NodeGroupMinSizeReached"
        if quotas.check(group, node, 1)[1]:
            return "MinimalResourceLimitExceeded"
        quotas.consume(group, node, 1)
        sizes[group] -= 1
        return ""

    def _without_parts(self, found: ScaleDown, view: LoopView, ready: Sequence[Removal]) -> list[Removal]:
        """Groups that go as a whole, or not at all."""
        single, whole = [], dict[str, list[Removal]]()
        for removal in ready:
            group = view.group_of[removal.node]
            if self._flags("zero-or-max-node-scaling", group):
                whole.setdefault(group, []).append(removal)
            else:
                single.append(removal)
        for group, removals in sorted(whole.items()):
            registered = sum(view.group_of.get(name) == group for name in view.snapshot.nodes)
            if len(removals) in (self._groups[group].target_size, registered):
                single += removals
            else:
                for removal in removals:
                    found.unremovable[removal.node] = {"reason": "AtomicScaleDownFailed"}
        return single


def _is_disabled(node: Node) -> bool:
    return node.annotations.get(_DISABLED) == "true"


def _is_being_deleted(node: Node, now_ns: int) -> bool:
    for taint in node.taints:
        if taint.key == TO_BE_DELETED:
            try:
                since_ns = int(taint.value) * _SECOND_NS
            except ValueError:
                return False
            return now_ns - since_ns < _BEING_DELETED_NS
    return False


def _moved(pod: Pod) -> Pod:
    """Return a copy on no node, with another uid: the original may still count on the node it leaves."""
    made = homeless(pod)
    return pod_like(made, made.manifest, made.meta.with_uid(pod.uid + MOVED), "")


def ghost_of(node: Node, now_ns: int) -> Node:
    """A node that is leaving, as an empty domain."""
    spec = dict(node.manifest.get("spec") or {})
    taint = {"key": TO_BE_DELETED, "value": str(now_ns // _SECOND_NS), "effect": "NoSchedule"}
    spec["taints"] = [*(spec.get("taints") or ()), taint]
    return node_from({**node.manifest, "spec": spec})
