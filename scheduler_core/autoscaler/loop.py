"""One loop of the autoscaler after the other, over a cluster that changes meanwhile.

Source: cluster-autoscaler/core/static_autoscaler.go, core/podlistprocessor, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.actuation import NodeDeletions
from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import ClusterState, MachineGroup
from scheduler_core.autoscaler.drainability import DrainBudgets, pods_to_move
from scheduler_core.autoscaler.estimate import (
    DRAINED,
    MOST_GROUPS_OF_A_CONTROLLER,
    hint_of,
    is_of_daemon_set,
    shape_of,
)
from scheduler_core.autoscaler.expand import GPU_LABEL, Expander
from scheduler_core.autoscaler.scale_down import Planner, ScaleDown, is_mirror
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
    scale_down: ScaleDown = field(default_factory=ScaleDown)
    target_sizes: dict[str, int] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)


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
        self,
        options: Document,
        groups: Sequence[MachineGroup],
        cluster: LiveCluster,
        prices: Mapping[str, float] = {},
    ) -> None:
        self._options = {**DEFAULTS, **options}
        self.groups = {group.name: group for group in sorted(groups, key=lambda group: group.name)}
        self._prices = prices
        self._cluster = cluster
        self._state = ClusterState(self.groups, self._option, self._duration)
        self._planner = Planner(self.groups, self._option, self._duration)
        self.deletions = NodeDeletions(cluster, self.groups, self._option, self._duration)
        self._grew_ns: dict[str, int] = {}
        self._last_up_ns: int | None = None
        self._last_delete_ns: int | None = None
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

    def advance(self, now_ns: int) -> None:
        """What goes on between loops: nodes that are being deleted."""
        self.deletions.advance(now_ns)

    def run_once(self, now_ns: int, *, refused: Collection[str] = ()) -> Loop:
        """One loop.

        Parameters
        ----------
        refused : collection of str
            Groups whose provider refuses to grow in this loop.
        """
        loop = Loop()
        if not self._n_loops:
            self.deletions.clean_up(now_ns)
        lists = _Lists(self._cluster.objects(), self._option)
        if not self._n_loops:
            self._planner.remember(lists.nodes, now_ns)
        loop.scale_down.delete_results = dict(self.deletions.results)
        self.deletions.results.clear()
        try:
            self._run(loop, lists, now_ns, refused)
        finally:
            loop.target_sizes = {name: group.target_size for name, group in self.groups.items()}
            loop.upcoming_after = self._state.upcoming(now_ns)
            for name, amount in self._state.lowered:
                self._cluster.log.append((now_ns, {"resize": name, "delta": -amount}))
            loop.events = sorted([*loop.events, *self.deletions.events])
            self.deletions.events.clear()
        return loop

    def _run(self, loop: Loop, lists: _Lists, now_ns: int, refused: Collection[str]) -> None:
        self._n_loops += 1
        group_of = self._cluster.group_of
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
            if not self._state.is_healthy:
                self._planner.forget()
            loop.scale_ups = [ScaleUp("ScaleUpNotTried")]
            return
        gone = self._add_upcoming(snapshot, templates, now_ns)
        pods = self._pods_to_help(loop, snapshot, lists, now_ns, cutoff)
        found = self._scale_up(loop, snapshot, templates, lists, pods, now_ns, group_of, refused)
        loop.scale_ups = [found]
        loop.events += found.events
        if found.result == "ScaleUpSuccessful":
            loop.scale_down.result = "ScaleDownInCooldown"
            self._last_up_ns = now_ns
        if self._option("scale-down-enabled"):
            nodes = [node.name for node in lists.nodes if node.name not in gone]
            is_young = found.result == "ScaleUpInCooldown"
            self._scale_down(loop.scale_down, snapshot, lists, nodes, is_young, now_ns)
        if self._option("enforce-node-group-min-size"):
            orchestrator = self._orchestrator(snapshot, templates, group_of, now_ns, refused)
            least = orchestrator.to_min_size()
            loop.scale_ups = [*(one for one in loop.scale_ups if one.was_tried), least]
            self._log(orchestrator, now_ns)
            if least.result == "ScaleUpSuccessful":
                self._last_up_ns = now_ns

    def _log(self, orchestrator: Orchestrator, now_ns: int) -> None:
        for entry in orchestrator.log:
            self._cluster.log.append((now_ns, entry))
            if "resize" in entry:
                self._grew_ns[entry["resize"]] = now_ns

    # ---- scaling down

    def _scale_down(
        self,
        found: ScaleDown,
        snapshot: NodesAndPods,
        lists: _Lists,
        nodes: Sequence[str],
        is_young: bool,
        now_ns: int,
    ) -> None:
        group_of, leaving = self._cluster.group_of, self.deletions.in_progress
        found.candidates = self._candidates(snapshot, nodes, now_ns)
        self._planner.update(
            found,
            snapshot,
            [name for name in found.candidates if name not in leaving],
            [name for name in nodes if name not in leaving],
            group_of,
            lists.is_ready,
            lists.controllers,
            DrainBudgets(lists.budgets),
            now_ns,
        )
        if self._is_cooling_down(is_young, now_ns):
            found.result = "ScaleDownInCooldown"
        elif not found.candidates:
            found.result = "ScaleDownNoCandidates"
        else:
            self._start_deletions(found, snapshot, lists, now_ns)
        self.deletions.mark_candidates(
            [node for node in lists.nodes if node.name in nodes and node.name in group_of],
            self._planner.unneeded,
            now_ns,
        )

    def _start_deletions(self, found: ScaleDown, snapshot: NodesAndPods, lists: _Lists, now_ns: int) -> None:
        limits = {
            "cpu": int(str(self._option("cores-total")).partition(":")[0]),
            "memory": int(str(self._option("memory-total")).partition(":")[0]) * _GIB,
        }
        empty, drains = self._planner.to_delete(
            found,
            snapshot,
            self._cluster.group_of,
            lists.is_ready,
            self.deletions.of_group,
            limits,
            now_ns,
        )
        started_empty, started_drains = self.deletions.start(empty, drains, now_ns)
        for removal in (*started_empty, *started_drains):
            told: dict[str, Any] = {
                "node": removal.node,
                "utilization": self._planner.utilization_of(
                    snapshot, removal.node, self._cluster.group_of, now_ns
                ),
            }
            if removal in started_drains:
                pods = snapshot.pods[removal.node]
                told["evicts"] = [pod.key for pod in pods if not is_of_daemon_set(pod) and not is_mirror(pod)]
            found.deleting.append(told)
        started = bool(found.deleting)
        found.result = "ScaleDownNodeDeleteStarted" if started else "ScaleDownNoNodeDeleted"
        if started:
            self._last_delete_ns = now_ns

    def _is_cooling_down(self, is_young: bool, now_ns: int) -> bool:
        if is_young or self._option("scale-down-delay-type-local"):
            return is_young
        return any(
            last_ns is not None and last_ns + self._duration(flag) > now_ns
            for last_ns, flag in (
                (self._last_up_ns, "scale-down-delay-after-add"),
                (self._last_delete_ns, "scale-down-delay-after-delete"),
            )
        )

    def _candidates(self, snapshot: NodesAndPods, nodes: Sequence[str], now_ns: int) -> list[str]:
        """Nodes of groups above their least size: the empty ones, then those of the last loop, first."""
        group_of = self._cluster.group_of
        unneeded = set(self._planner.unneeded)
        found = []
        for name in nodes:
            group = self.groups.get(group_of.get(name, ""))
            if group is None or group.target_size <= group.min_size:
                continue
            if self._option("scale-down-delay-type-local") and self._is_delayed(group.name, now_ns):
                continue
            moving = (
                pods_to_move(snapshot.pods[name], now_ns, self._option, None, None)
                if name in snapshot.nodes
                else None
            )
            is_empty = moving is not None and moving.blocking is None and not moving.pods
            waits = bool(is_empty and moving is not None and moving.on_completion)
            found.append(((not is_empty, waits, name not in unneeded), name))
        return [name for _, name in sorted(found, key=lambda item: item[0])]

    def _is_delayed(self, group: str, now_ns: int) -> bool:
        return any(
            group in times and times[group] + self._duration(flag) > now_ns
            for times, flag in (
                (self._grew_ns, "scale-down-delay-after-add"),
                (self.deletions.went_ns, "scale-down-delay-after-delete"),
                (self.deletions.failed_ns, "scale-down-delay-after-failure"),
            )
        )

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
    ) -> set[str]:
        """Add what is on its way, and take out what has not started yet; the latter's names."""
        gone = set()
        self._upcoming.clear()
        for name, count in self._state.upcoming(now_ns).items():
            for number in range(count):
                fresh = fresh_node(templates[name], f"upcoming-{number}")
                self._upcoming[fresh.node.name] = (name, number)
                snapshot.add(fresh.node, fresh.pods)
            for started in self._state.readiness[name].not_started if name in self._state.readiness else ():
                if started in snapshot.nodes:
                    snapshot.remove(started)
                    gone.add(started)
        return gone

    # ---- pods to help

    def _pods_to_help(
        self, loop: Loop, snapshot: NodesAndPods, lists: _Lists, now_ns: int, cutoff: int
    ) -> list[Pod]:
        pods = lists.pending
        kept = [pod for pod in pods if not _is_expendable(pod, cutoff)]
        _tell(loop, "filter-expendable", pods, kept)
        drained = self._currently_drained(snapshot)
        if drained:
            loop.pod_list["currently-drained"] = {"added": sorted(pod.key for pod in drained)}
        kept += drained
        left = self._without_schedulable(loop, snapshot, kept)
        _tell(loop, "filter-schedulable", kept, left)
        others = [pod for pod in left if not is_of_daemon_set(pod)]
        _tell(loop, "filter-daemonset", left, others)
        return [pod for pod in others if self._is_old_enough(pod, now_ns)]

    def _currently_drained(self, snapshot: NodesAndPods) -> list[Pod]:
        """Pods of nodes that are being drained, as if they were on none."""
        return [
            _without_node(pod)
            for name in self.deletions.drained
            for pod in snapshot.pods.get(name, ())
            if not (pod.is_terminating or is_of_daemon_set(pod) or is_mirror(pod))
        ]

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
            hinted = self._hints.get(hint_of(pod)) or self._older_hints.get(hint_of(pod)) or ""
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
                hints[hint_of(pod)] = node
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
        self._log(orchestrator, now_ns)
        return found


def _tell(loop: Loop, stage: str, before: Sequence[Pod], after: Sequence[Pod]) -> None:
    left = {pod.uid for pod in after}
    removed = sorted(pod.key for pod in before if pod.uid not in left)
    if removed:
        loop.pod_list[stage] = {"removed": removed}


def _without_node(pod: Pod) -> Pod:
    """The pod once more, on no node."""
    spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeName"}
    metadata = {**pod.manifest["metadata"], "uid": f"{pod.uid}{DRAINED}"}
    return pod_from({**pod.manifest, "metadata": metadata, "spec": spec})


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
        self.budgets = [item for item in found if item["kind"] == "PodDisruptionBudget"]
        self.controllers = {
            (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
            for item in found
        }
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
