"""One loop of the autoscaler after the other, over a cluster that changes meanwhile.

Source: cluster-autoscaler/core/static_autoscaler.go, core/podlistprocessor, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.cluster_state import ClusterState, MachineGroup
from scheduler_core.autoscaler.estimate import MOST_GROUPS_OF_A_CONTROLLER, is_of_daemon_set, shape_of
from scheduler_core.autoscaler.expand import GPU_LABEL, Expander
from scheduler_core.autoscaler.scale_up import Orchestrator, Quotas, ScaleUp, not_triggered
from scheduler_core.autoscaler.snapshot import Cursor, GroupTemplate, NodesAndPods
from scheduler_core.autoscaler.templates import (
    TO_BE_DELETED,
    fresh_node,
    is_startup_taint,
    own_template,
    prepared,
    renamed,
    template_of,
)
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.schema.tables import table_beside

Document = Mapping[str, Any]
DEFAULTS: Final[Mapping[str, Any]] = table_beside(__package__ or __name__, "options.yaml")
_SECOND_NS: Final = 10**9
_STABLE_NS: Final = 60 * _SECOND_NS
_YOUNG_NS, _YOUNG_GPU_NS = 2 * _SECOND_NS, 30 * _SECOND_NS
_GIB: Final = 2**30
_GPU: Final = "nvidia.com/gpu"
_SCALE_UP_DELAY: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
_UNREADY_TAINTS: Final = frozenset({
    "node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/network-unavailable",
})  # fmt: skip


@dataclass
class Loop:
    """What one loop did."""

    pod_list: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Stage -> pods that it `removed` and `added`; a stage that changed nothing is left out."""
    schedulable_on: dict[str, str] = field(default_factory=dict)
    scale_ups: list[ScaleUp] = field(default_factory=list)
    upcoming_after: dict[str, int] = field(default_factory=dict)
    scale_down: str = "ScaleDownNotTried"
    target_sizes: dict[str, int] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)


class Autoscaler:
    """The program, from loop to loop.

    Parameters
    ----------
    options : mapping
        Flags that are not at their default.
    groups : sequence of MachineGroup
        As the provider has them; their target sizes change.
    prices : mapping of str to float
        Value of the label `price-class` -> price of a node-hour.
    """

    def __init__(
        self, options: Document, groups: Sequence[MachineGroup], prices: Mapping[str, float] = {}
    ) -> None:
        self._options = {**DEFAULTS, **options}
        self.groups = {group.name: group for group in sorted(groups, key=lambda group: group.name)}
        self._prices = prices
        self._state = ClusterState(self.groups, self._option, self._duration)
        self._cursor = Cursor()
        self._hints: dict[str, str] = {}
        self._older_hints: dict[str, str] = {}
        self._templates_seen: dict[str, GroupTemplate] = {}
        self._n_loops = 0
        self._upcoming: dict[str, tuple[str, int]] = {}
        """Upcoming node of this loop -> its group and number."""

    def _option(self, flag: str, group: str = "") -> Any:
        own = self.groups[group].options if group in self.groups else {}
        return own.get(flag, self._options[flag])

    def _duration(self, flag: str, group: str = "") -> int:
        return parse_duration_ns(str(self._option(flag, group)))

    def run_once(
        self,
        now_ns: int,
        objects: Iterable[Document],
        group_of: Mapping[str, str],
        *,
        refused: Collection[str] = (),
    ) -> Loop:
        """One loop.

        Parameters
        ----------
        objects : iterable of mapping
            All manifests of the cluster.
        group_of : mapping of str to str
            Node -> group; a node that is not named is not autoscaled.
        refused : collection of str
            Groups whose provider refuses to grow in this loop.
        """
        loop = Loop()
        lists = _Lists(objects, self._option)
        try:
            self._run(loop, lists, now_ns, group_of, refused)
        finally:
            loop.target_sizes = {name: group.target_size for name, group in self.groups.items()}
            loop.upcoming_after = self._state.upcoming(now_ns)
            lowered = [{"resize": name, "delta": -amount} for name, amount in self._state.lowered]
            loop.log = [*lowered, *loop.log]
            loop.events.sort()
        return loop

    def _run(
        self,
        loop: Loop,
        lists: _Lists,
        now_ns: int,
        group_of: Mapping[str, str],
        refused: Collection[str],
    ) -> None:
        self._n_loops += 1
        snapshot = NodesAndPods(self._cursor)
        for node in lists.nodes:
            snapshot.add(node)
        cutoff = self._option("expendable-pods-priority-cutoff")
        for pod, name in lists.placed:
            if name in snapshot.nodes and not _is_expendable(pod, cutoff):
                snapshot.put(pod, name)
        templates = self._templates(snapshot, lists, group_of, now_ns)
        self._state.update(lists.nodes, group_of, lists.is_ready, now_ns)
        if not self._state.is_healthy or self._state.fix_sizes(now_ns):
            loop.scale_ups = [ScaleUp("ScaleUpNotTried")]
            return
        self._add_upcoming(snapshot, templates, now_ns)
        pods = self._pods_to_help(loop, snapshot, lists, now_ns, cutoff)
        found = self._scale_up(loop, snapshot, templates, lists, pods, now_ns, group_of, refused)
        loop.scale_ups = [found]
        loop.events += found.events
        if found.result == "ScaleUpSuccessful":
            loop.scale_down = "ScaleDownInCooldown"
        if self._option("enforce-node-group-min-size"):
            orchestrator = self._orchestrator(snapshot, templates, group_of, now_ns, refused)
            least = orchestrator.to_min_size()
            loop.scale_ups = [*(one for one in loop.scale_ups if one.was_tried), least]
            loop.log += orchestrator.log

    # ---- templates

    def _templates(
        self, snapshot: NodesAndPods, lists: _Lists, group_of: Mapping[str, str], now_ns: int
    ) -> dict[str, GroupTemplate]:
        found: dict[str, GroupTemplate] = {}
        good = [node for node in lists.nodes if lists.is_good_example(node, now_ns)]
        for node in good:
            self._by_node(found, node, snapshot, lists, group_of)
        self._templates_seen |= found
        for name, group in self.groups.items():
            if name in found:
                continue
            if name in self._templates_seen:
                found[name] = self._templates_seen[name]
                continue
            node = node_from(prepared(group.template))
            pods = [pod_from(prepared(pod)) for pod in group.template_pods]
            template = template_of(node, pods, lists.daemon_sets, self._option, forced=True)
            found[name] = self._renamed(own_template(template), name)
        return found

    def _by_node(
        self,
        found: dict[str, GroupTemplate],
        node: Node,
        snapshot: NodesAndPods,
        lists: _Lists,
        group_of: Mapping[str, str],
    ) -> None:
        name = group_of.get(node.name)
        if not name or name in found:
            return
        forced = self._option("force-ds")
        template = template_of(node, snapshot.pods[node.name], lists.daemon_sets, self._option, forced=forced)
        found[name] = self._renamed(template, name)

    def _renamed(self, template: GroupTemplate, group: str) -> GroupTemplate:
        """Templates have another name in each loop: no hint of an earlier one leads to their nodes."""
        return renamed(template, f"template-node-for-{group}-{self._n_loops}")

    def _add_upcoming(
        self, snapshot: NodesAndPods, templates: Mapping[str, GroupTemplate], now_ns: int
    ) -> None:
        self._upcoming.clear()
        for name, count in self._state.upcoming(now_ns).items():
            for number in range(count):
                fresh = fresh_node(templates[name], f"upcoming-{number}")
                self._upcoming[fresh.node.name] = (name, number)
                snapshot.add(fresh.node, fresh.pods)
            for started in self._state.readiness[name].not_started if name in self._state.readiness else ():
                if started in snapshot.nodes:
                    snapshot.remove(started)

    # ---- pods to help

    def _pods_to_help(
        self, loop: Loop, snapshot: NodesAndPods, lists: _Lists, now_ns: int, cutoff: int
    ) -> list[Pod]:
        pods = lists.pending
        kept = [pod for pod in pods if not _is_expendable(pod, cutoff)]
        _tell(loop, "filter-expendable", pods, kept)
        left = self._without_schedulable(loop, snapshot, kept)
        _tell(loop, "filter-schedulable", kept, left)
        others = [pod for pod in left if not is_of_daemon_set(pod)]
        _tell(loop, "filter-daemonset", left, others)
        return [pod for pod in others if self._is_old_enough(pod, now_ns)]

    def _is_old_enough(self, pod: Pod, now_ns: int) -> bool:
        delay_ns = self._duration("new-pod-scale-up-delay")
        own = (pod.manifest["metadata"].get("annotations") or {}).get(_SCALE_UP_DELAY)
        if own is not None:
            with suppress(ValueError):  # upstream logs it, and the flag counts
                delay_ns = max(delay_ns, parse_duration_ns(own))
        return now_ns - (pod.meta.creation_ns or 0) > delay_ns

    def _without_schedulable(self, loop: Loop, snapshot: NodesAndPods, pods: Sequence[Pod]) -> list[Pod]:
        """Take out what fits on nodes that are there or on their way; it stays on them for the loop."""
        failed: dict[str, list[str]] = {}
        hints: dict[str, str] = {}
        placed = set()
        for pod in sorted(pods, key=lambda pod: -pod.priority):
            hinted = self._hints.get(pod.uid) or self._older_hints.get(pod.uid) or ""
            node = ""
            if hinted in snapshot.nodes and snapshot.try_on(pod, hinted) is None:
                node = hinted
            controller = pod.meta.controller
            shapes = failed.setdefault(controller.uid, []) if controller is not None else []
            if not node and not (shapes and shape_of(pod) in shapes):
                node = snapshot.try_any(pod, lambda _: True)
                is_told = controller is not None and not is_of_daemon_set(pod)
                if not node and is_told and len(shapes) < MOST_GROUPS_OF_A_CONTROLLER:
                    shapes.append(shape_of(pod))
            if node:
                hints[pod.uid] = node
                placed.add(pod.uid)
                group, number = self._upcoming.get(node, ("", 0))
                loop.schedulable_on[pod.key] = f"template:{group}-upcoming-{number}" if group else node
        self._older_hints, self._hints = hints, {}
        return [pod for pod in sorted(pods, key=lambda pod: -pod.priority) if pod.uid not in placed]

    # ---- scaling up

    def _orchestrator(
        self,
        snapshot: NodesAndPods,
        templates: Mapping[str, GroupTemplate],
        group_of: Mapping[str, str],
        now_ns: int,
        refused: Collection[str],
    ) -> Orchestrator:
        def owner(node: str) -> str:
            return group_of.get(node) or self._upcoming.get(node, ("", 0))[0]

        limits = {
            "cpu": int(str(self._option("cores-total")).rpartition(":")[2]),
            "memory": int(str(self._option("memory-total")).rpartition(":")[2]) * _GIB,
        }
        quotas = Quotas(limits, snapshot.nodes.values(), owner)
        return Orchestrator(
            snapshot, self.groups, templates, self._state, quotas, self._option, now_ns, refused=refused
        )

    def _scale_up(
        self,
        loop: Loop,
        snapshot: NodesAndPods,
        templates: Mapping[str, GroupTemplate],
        lists: _Lists,
        pods: Sequence[Pod],
        now_ns: int,
        group_of: Mapping[str, str],
        refused: Collection[str],
    ) -> ScaleUp:
        if not pods:
            return ScaleUp("ScaleUpNotNeeded")
        most = self._option("max-nodes-total")
        if most and lists.n_ready >= most:
            found = ScaleUp("ScaleUpLimitedByMaxNodesTotal", remaining={pod.key: ({}, {}) for pod in pods})
            words = "max total nodes in cluster reached"
            found.events = [not_triggered(pod.key, {}, {}, words) for pod in pods]
            return found
        if not self._option("bypassed-scheduler-names") and _are_new(pods, now_ns):
            return ScaleUp("ScaleUpInCooldown")
        orchestrator = self._orchestrator(snapshot, templates, group_of, now_ns, refused)
        names = str(self._option("expander")).split(",")
        expander = Expander(names, templates, self._prices, len(lists.nodes), lists.priorities)
        found = orchestrator.scale_up(pods, expander)
        loop.log += orchestrator.log
        return found


def _tell(loop: Loop, stage: str, before: Sequence[Pod], after: Sequence[Pod]) -> None:
    left = {pod.uid for pod in after}
    removed = sorted(pod.key for pod in before if pod.uid not in left)
    if removed:
        loop.pod_list[stage] = {"removed": removed}


def _is_expendable(pod: Pod, cutoff: int) -> bool:
    written = pod.manifest["spec"].get("priority")
    return written is not None and written < cutoff


def _are_new(pods: Sequence[Pod], now_ns: int) -> bool:
    """Whether even the oldest pod, or the oldest that asks for a GPU, is so young that others may follow."""
    if min(pod.meta.creation_ns or 0 for pod in pods) + _YOUNG_NS > now_ns:
        return True
    with_gpu = [pod.meta.creation_ns or 0 for pod in pods if pod.requests.get(_GPU)]
    return bool(with_gpu) and min(with_gpu) + _YOUNG_GPU_NS > now_ns


class _Lists:
    """The objects of a cluster as the autoscaler lists them, by name."""

    def __init__(self, objects: Iterable[Document], option: Any) -> None:
        found = sorted(
            (prepared(document) for document in objects),
            key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]),
        )
        self.nodes = [node_from(item) for item in found if item["kind"] == "Node"]
        self.daemon_sets = [item for item in found if item["kind"] == "DaemonSet"]
        self.priorities = next(
            (
                (item.get("data") or {}).get("priorities")
                for item in found
                if item["kind"] == "ConfigMap"
                and item["metadata"]["name"] == "cluster-autoscaler-priority-expander"
            ),
            None,
        )
        self.pending: list[Pod] = []
        scheduled: list[tuple[Pod, str]] = []
        nominated: list[tuple[Pod, str]] = []
        unprocessed: list[Pod] = []
        bypassed = option("bypassed-scheduler-names")
        for pod in (pod_from(item) for item in found if item["kind"] == "Pod"):
            if pod.is_terminal:
                continue
            condition = next(
                (
                    one
                    for one in (pod.manifest.get("status") or {}).get("conditions") or ()
                    if one.get("type") == "PodScheduled"
                ),
                None,
            )
            if pod.node_name:
                scheduled.append((pod, pod.node_name))
            elif pod.is_terminating:
                continue
            elif pod.nominated_node_name:
                nominated.append((pod, pod.nominated_node_name))
            elif (
                condition
                and condition.get("status") == "False"
                and condition.get("reason") == "Unschedulable"
            ):
                self.pending.append(pod)
            elif pod.scheduler_name in bypassed and (
                condition is None or (condition.get("status") == "False" and not condition.get("reason"))
            ):
                unprocessed.append(pod)
        self.placed = scheduled + nominated
        self.pending += unprocessed
        startup = [*option("startup-taint"), *option("ignore-taint")]
        self._replaced = {
            node.name
            for node in self.nodes
            if _base_ready(node)
            and not node.unschedulable
            and (
                (GPU_LABEL in node.labels and not node.allocatable.get(_GPU, 0))
                or any(is_startup_taint(taint.key, startup) for taint in node.taints)
            )
        }
        self.n_ready = sum(self.is_ready(node) and not node.unschedulable for node in self.nodes)

    def is_ready(self, node: Node) -> bool:
        return _base_ready(node) and node.name not in self._replaced

    def is_good_example(self, node: Node, now_ns: int) -> bool:
        """Whether a fresh node is taken to be like this one."""
        if not self.is_ready(node) or node.unschedulable:
            return False
        changed = [
            parse_time_ns(one["lastTransitionTime"])
            for one in (node.manifest.get("status") or {}).get("conditions") or ()
            if one.get("type") in ("Ready", "DiskPressure", "NetworkUnavailable")
            and one.get("lastTransitionTime")
        ]
        is_leaving = any(taint.key == TO_BE_DELETED for taint in node.taints)
        return max(changed, default=0) + _STABLE_NS < now_ns and not is_leaving


def _base_ready(node: Node) -> bool:
    bad = {("Ready", "False"), ("Ready", "Unknown"), ("DiskPressure", "True"), ("NetworkUnavailable", "True")}
    return not bad & set(node.conditions) and not any(taint.key in _UNREADY_TAINTS for taint in node.taints)
