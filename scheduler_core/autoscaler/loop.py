"""One loop of the autoscaler after the other, over a cluster that changes meanwhile.

Source: cluster-autoscaler/core/static_autoscaler.go, core/podlistprocessor, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.actuation import NodeDeletions
from scheduler_core.autoscaler.cluster import LiveCluster, ProgramEvent
from scheduler_core.autoscaler.cluster_state import ClusterState, Flags, MachineGroup
from scheduler_core.autoscaler.drainability import Drainability
from scheduler_core.autoscaler.estimate import DRAINED, MOST_GROUPS_OF_A_CONTROLLER, hint_of, shape_of
from scheduler_core.autoscaler.expand import Expander
from scheduler_core.autoscaler.scale_down import Planner, ScaleDown
from scheduler_core.autoscaler.scale_up import Orchestrator, Quotas, ScaleUp, not_triggered
from scheduler_core.autoscaler.snapshot import Cursor, GroupTemplate, NodesAndPods
from scheduler_core.autoscaler.templates import (
    fresh_node,
    is_daemon,
    is_expendable,
    own_template,
    prepared,
    renamed,
    template_of,
)
from scheduler_core.autoscaler.view import LoopView
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from

Document = Mapping[str, Any]
_SCALE_UP_DELAY: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"


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
    events: list[ProgramEvent] = field(default_factory=list)


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
        self.groups = {group.name: group for group in sorted(groups, key=lambda group: group.name)}
        self._flags = Flags(options, self.groups)
        self._prices = prices
        self._cluster = cluster
        self._state = ClusterState(self.groups, self._flags)
        self._planner = Planner(self.groups, self._flags)
        self.deletions = NodeDeletions(cluster, self.groups, self._flags)
        self._grew_ns: dict[str, int] = {}
        self._last_up_ns: int | None = None
        self._last_delete_ns: int | None = None
        self._cursor = Cursor()
        self._snapshot = NodesAndPods(self._cursor)
        self._rules, self._rules_alone = Drainability(flags := self._flags, cluster), Drainability(flags)
        self._hints: dict[str, str] = {}
        self._older_hints: dict[str, str] = {}
        self._templates_seen: dict[str, GroupTemplate] = {}
        self._n_loops = 0
        self._upcoming: dict[str, tuple[str, int]] = {}
        """Upcoming node of this loop -> its group and number."""

    def state(self) -> dict[str, Any]:
        """What outlasts a loop, JSON-able; the cluster's objects are not in it."""
        return {
            "targets": {name: group.target_size for name, group in self.groups.items()},
            "groups": self._state.state(),
            "planner": self._planner.state(),
            "deletions": self.deletions.state(),
            "grewNs": self._grew_ns,
            "lastUpNs": self._last_up_ns,
            "lastDeleteNs": self._last_delete_ns,
            "cursor": self._cursor.last,
            "hints": [self._hints, self._older_hints],
            "templates": {
                name: [one.node.manifest, [pod.manifest for pod in one.pods]]
                for name, one in self._templates_seen.items()
            },
            "loops": self._n_loops,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state` was taken."""
        for name, size in state["targets"].items():
            self.groups[name].target_size = size
        self._state.restore(state["groups"])
        self._planner.restore(state["planner"])
        self.deletions.restore(state["deletions"])
        self._grew_ns, self._n_loops = dict(state["grewNs"]), state["loops"]
        self._last_up_ns, self._last_delete_ns = state["lastUpNs"], state["lastDeleteNs"]
        self._cursor.last = state["cursor"]
        self._hints, self._older_hints = (dict(hints) for hints in state["hints"])
        self._templates_seen = {
            name: GroupTemplate(node_from(node), tuple(map(pod_from, pods)))
            for name, (node, pods) in state["templates"].items()
        }

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
        self._rules.look()
        view = LoopView(self._cluster, self._flags, self._snapshot, self._rules, now_ns)
        if not self._n_loops:
            self._planner.remember(view.nodes, now_ns)
        loop.scale_down.delete_results = dict(self.deletions.results)
        self.deletions.results.clear()
        try:
            self._run(loop, view, refused)
        finally:
            loop.target_sizes = {name: group.target_size for name, group in self.groups.items()}
            loop.upcoming_after = self._state.upcoming(now_ns)
            for name, amount in self._state.lowered:
                self._cluster.log.append((now_ns, {"resize": name, "delta": -amount}))
            loop.events = sorted([*loop.events, *self.deletions.events], key=str)
            self.deletions.events.clear()
        return loop

    def _run(self, loop: Loop, view: LoopView, refused: Collection[str]) -> None:
        now_ns = view.now_ns
        self._n_loops += 1
        if not view.n_ready and not self._flags("scale-up-from-zero"):
            self._planner.forget()
            loop.scale_ups = [ScaleUp("ScaleUpNotTried")]
            return
        templates = self._templates(view)
        self._state.update(view.nodes, view.group_of, view.is_ready, now_ns)
        if not self._state.is_healthy or self._state.fix_sizes(now_ns):
            if not self._state.is_healthy:
                self._planner.forget()
            loop.scale_ups = [ScaleUp("ScaleUpNotTried")]
            return
        gone = self._add_upcoming(view, templates)
        pods = self._pods_to_help(loop, view)
        found = self._scale_up(view, templates, pods, refused)
        loop.scale_ups = [found]
        if found.result == "ScaleUpSuccessful":
            loop.scale_down.result = "ScaleDownInCooldown"
            self._last_up_ns = now_ns
        if self._flags("scale-down-enabled"):
            nodes = [node.name for node in view.nodes if node.name not in gone]
            self._scale_down(loop.scale_down, view, nodes, found.result == "ScaleUpInCooldown")
        if self._flags("enforce-node-group-min-size"):
            orchestrator = self._orchestrator(view, templates, refused)
            least = orchestrator.to_min_size()
            loop.scale_ups = [*(one for one in loop.scale_ups if one.was_tried), least]
            self._log(orchestrator, now_ns)
            if least.result == "ScaleUpSuccessful":
                self._last_up_ns = now_ns
        loop.events += [event for one in loop.scale_ups for event in one.events]

    def _log(self, orchestrator: Orchestrator, now_ns: int) -> None:
        for entry in orchestrator.log:
            self._cluster.log.append((now_ns, entry))
            if "resize" in entry:
                self._grew_ns[entry["resize"]] = now_ns

    # ---- scaling down

    def _scale_down(self, found: ScaleDown, view: LoopView, nodes: Sequence[str], is_young: bool) -> None:
        leaving = self.deletions.in_progress
        found.candidates = self._candidates(view, nodes)
        candidates, others = (
            [name for name in some if name not in leaving] for some in (found.candidates, nodes)
        )
        self._planner.update(found, view, candidates, others)
        if self._is_cooling_down(is_young, view.now_ns):
            found.result = "ScaleDownInCooldown"
        elif not found.candidates:
            found.result = "ScaleDownNoCandidates"
        else:
            self._start_deletions(found, view)
        there = set(nodes)
        self.deletions.mark_candidates(
            [node for node in view.nodes if node.name in there and node.name in view.group_of],
            self._planner.unneeded,
            view.now_ns,
        )

    def _start_deletions(self, found: ScaleDown, view: LoopView) -> None:
        going = self._planner.to_delete(found, view, self.deletions.of_group)
        for removal in self.deletions.start(going, view.now_ns):
            told: dict[str, Any] = {
                "node": removal.node, "utilization": self._planner.utilization_of(view, removal.node),
            }  # fmt: skip
            if removal.pods:
                pods = view.snapshot.pods[removal.node]
                told["evicts"] = [pod.key for pod in pods if not is_daemon(pod) and not pod.is_mirror]
            found.deleting.append(told)
        started = bool(found.deleting)
        found.result = "ScaleDownNodeDeleteStarted" if started else "ScaleDownNoNodeDeleted"
        if started:
            self._last_delete_ns = view.now_ns

    def _is_cooling_down(self, is_young: bool, now_ns: int) -> bool:
        if is_young or self._flags("scale-down-delay-type-local"):
            return is_young
        return any(
            last_ns is not None and last_ns + self._flags.ns(flag) > now_ns
            for last_ns, flag in (
                (self._last_up_ns, "scale-down-delay-after-add"),
                (self._last_delete_ns, "scale-down-delay-after-delete"),
            )
        )

    def _candidates(self, view: LoopView, nodes: Sequence[str]) -> list[str]:
        """Nodes of groups above their least size: the empty ones, then those of the last loop, first."""
        unneeded, rules = set(self._planner.unneeded), self._rules_alone
        is_local = self._flags("scale-down-delay-type-local")
        found = []
        for name in nodes:
            group = self.groups.get(view.group_of.get(name, ""))
            if group is None or group.target_size <= group.min_size:
                continue
            if is_local and self._is_delayed(group.name, view.now_ns):
                continue
            awaited = rules.awaited(view.snapshot.pods.get(name, ()), view.now_ns)
            is_empty = name in view.snapshot.nodes and awaited is not None
            found.append((not is_empty, is_empty and bool(awaited), name not in unneeded, name))
        return [name for *_, name in sorted(found, key=lambda item: item[:3])]

    def _is_delayed(self, group: str, now_ns: int) -> bool:
        return any(
            group in times and times[group] + self._flags.ns(flag) > now_ns
            for times, flag in (
                (self._grew_ns, "scale-down-delay-after-add"),
                (self.deletions.went_ns, "scale-down-delay-after-delete"),
            )
        )

    # ---- templates

    def _templates(self, view: LoopView) -> dict[str, GroupTemplate]:
        found: dict[str, GroupTemplate] = {}
        forced = self._flags("force-ds")
        for node in view.nodes:
            name = view.group_of.get(node.name)
            if name and name not in found and view.is_good_example(node):
                pods = view.snapshot.pods[node.name]
                template = template_of(node, pods, view.daemon_sets, self._flags, forced=forced)
                found[name] = self._renamed(template, name)
        self._templates_seen |= found
        for name, group in self.groups.items():
            if name not in found and name in self._templates_seen:
                found[name] = self._templates_seen[name]
            elif name not in found:
                node = node_from(prepared(group.template))
                given = [pod_from(prepared(pod)) for pod in group.template_pods]
                template = template_of(node, given, view.daemon_sets, self._flags, forced=True)
                found[name] = self._renamed(own_template(template), name)
        return found

    def _renamed(self, template: GroupTemplate, group: str) -> GroupTemplate:
        """Templates have another name in each loop: no hint of an earlier one leads to their nodes."""
        return renamed(template, f"template-node-for-{group}-{self._n_loops}")

    def _add_upcoming(self, view: LoopView, templates: Mapping[str, GroupTemplate]) -> set[str]:
        """Add what is on its way, and take out what has not started yet; the latter's names."""
        snapshot = view.snapshot
        gone = set()
        self._upcoming.clear()
        for name, count in self._state.upcoming(view.now_ns).items():
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

    def _pods_to_help(self, loop: Loop, view: LoopView) -> list[Pod]:
        pods, snapshot, cutoff = view.pending, view.snapshot, self._flags("expendable-pods-priority-cutoff")
        kept = [pod for pod in pods if not is_expendable(pod, cutoff)]
        _tell(loop, "filter-expendable", pods, kept)
        drained = self._currently_drained(snapshot)
        if drained:
            loop.pod_list["currently-drained"] = {"added": sorted(pod.key for pod in drained)}
        kept += drained
        left = self._without_schedulable(loop, snapshot, kept)
        _tell(loop, "filter-schedulable", kept, left)
        others = [pod for pod in left if not is_daemon(pod)]
        _tell(loop, "filter-daemonset", left, others)
        return [pod for pod in others if self._is_old_enough(pod, view.now_ns)]

    def _currently_drained(self, snapshot: NodesAndPods) -> list[Pod]:
        """Pods of nodes that are being drained, as if they were on none."""
        return [
            _without_node(pod)
            for name in self.deletions.drained
            for pod in snapshot.pods.get(name, ())
            if not (pod.is_terminating or is_daemon(pod) or pod.is_mirror)
        ]

    def _is_old_enough(self, pod: Pod, now_ns: int) -> bool:
        delay_ns = self._flags.ns("new-pod-scale-up-delay")
        own = pod.annotations.get(_SCALE_UP_DELAY)
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
                is_told = controller is not None and not is_daemon(pod)
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
        self, view: LoopView, templates: Mapping[str, GroupTemplate], refused: Collection[str]
    ) -> Orchestrator:
        upcoming = {node: group for node, (group, _) in self._upcoming.items()}
        quotas = Quotas.at_most(self._flags, view.snapshot.nodes.values(), {**upcoming, **view.group_of})
        return Orchestrator(view, self.groups, templates, self._state, quotas, refused)

    def _scale_up(
        self,
        view: LoopView,
        templates: Mapping[str, GroupTemplate],
        pods: Sequence[Pod],
        refused: Collection[str],
    ) -> ScaleUp:
        if not pods:
            return ScaleUp("ScaleUpNotNeeded")
        most = self._flags("max-nodes-total")
        if most and view.n_ready >= most:
            found = ScaleUp("ScaleUpLimitedByMaxNodesTotal", remaining={pod.key: ({}, {}) for pod in pods})
            words = "max total nodes in cluster reached"
            found.events = [not_triggered(pod.key, {}, {}, words) for pod in pods]
            return found
        if not self._flags("bypassed-scheduler-names") and view.is_new(pods):
            return ScaleUp("ScaleUpInCooldown")
        orchestrator = self._orchestrator(view, templates, refused)
        names = str(self._flags("expander")).split(",")
        expander = Expander(names, templates, self._prices, len(view.nodes), view.priorities)
        found = orchestrator.scale_up(pods, expander)
        self._log(orchestrator, view.now_ns)
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
