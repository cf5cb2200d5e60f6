"""The cluster autoscaler beside the cluster: its loops, nodes that come a minute after the request, and drains.

A loop that would see what the last one saw, while no delay of the flags is over, is not run: it decides the same.

Source: cluster-autoscaler/core/static_autoscaler.go, k8s 1.36
Differs: machines register ready a minute after the request, always; no machine fails to come.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Final

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import DEFAULTS, MachineGroup
from scheduler_core.autoscaler.groups import Groups, groups_of, new_node, priced
from scheduler_core.autoscaler.loop import Autoscaler, Loop
from scheduler_core.autoscaler.pasted import PRIORITIES, Given
from scheduler_core.autoscaler.scale_up import NOT_TRIGGERED
from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import EvictionBudget
from scheduler_core.objects.prices import PriceList, shipped_prices
from scheduler_core.sim.changes import Act, Mention
from scheduler_core.sim.controllers.base import ControllerContext
from scheduler_core.sim.controllers.programs import (
    BY_AUTOSCALER,
    CLUSTER_AUTOSCALER,
    NAMESPACE,
    ClusterProgram,
    given_from,
)
from scheduler_core.sim.kubelet import delete_pod, remove_pod
from scheduler_core.sim.world import Noticed, World

Document = Mapping[str, Any]
LOOPS, DRAINS, ARRIVES = "cluster-autoscaler-loops", "cluster-autoscaler-drains", "machine-arrives"
PROVISION_NS: Final = 60 * SECOND_NS
"""From the request for a node to the node."""
_KINDS: Final = (
    "Node", "Pod", "PodDisruptionBudget", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "ReplicationController",
)  # fmt: skip
NEW_NODE: Final = "-new-"
"""Between the group and the number in the name of a node that was added."""
WAITS: Final = (
    "scale-down-unneeded-time",
    "scale-down-unready-time",
    "scale-down-delay-after-add",
    "scale-down-delay-after-delete",
    "scale-down-delay-after-failure",
    "unremovable-node-recheck-timeout",
)
"""Flags after whose time a loop may decide otherwise although nothing else has changed."""


class _Hands(LiveCluster):
    """The cluster as the autoscaler lists it; what it writes is written into the world.

    Attributes
    ----------
    evicting : dict of str to str
        Pods whose eviction was accepted -> their uids: a later pod of the name is another one.
    """

    def __init__(self, world: World, group_of: Mapping[str, str], more: Iterable[Document]) -> None:
        super().__init__(more, group_of)
        self._world = world
        self.changed: dict[tuple[str, str, str], None] = {
            (kind, *stored.key): None for kind in _KINDS for stored in world.all(kind)
        }
        """Kind, namespace and name of objects to list again."""
        self._budgets: list[EvictionBudget] | None = None
        self.evicting: dict[str, str] = {}
        self.on_evicted: Callable[[Pod], None] | None = None

    def look(self) -> None:
        """List the objects as they are now; evictions of this moment go by its budgets."""
        for change in self._world.noticed:  # what was written in this moment was not told yet
            if change.kind in _KINDS:
                self.changed[change.kind, *change.newest.key] = None
        for kind, namespace, name in self.changed:
            stored = self._world.get(kind, namespace, name)
            if stored is None:
                self.delete(kind, namespace, name)
            elif kind == "Pod":
                self.put(stored.manifest, stored.typed)
            else:
                self.put(priced(stored.manifest) if kind == "Node" else stored.manifest)
        self.changed.clear()
        self._budgets = None

    def set_taints(self, name: str, taints: list[Document], unschedulable: bool, now_ns: int) -> None:
        super().set_taints(name, taints, unschedulable, now_ns)
        stored = self._world.get("Node", "", name)
        if stored is not None:
            spec = {**(stored.manifest.get("spec") or {}), "taints": taints, "unschedulable": unschedulable}
            kept = {key: value for key, value in spec.items() if value}
            self._world.put({**stored.manifest, "spec": kept}, "tainted by the cluster autoscaler")

    def evict(self, key: str, now_ns: int) -> bool:
        """Evict a pod; whether it is gone."""
        namespace, _, name = key.partition("/")
        pod = self._world.pod(namespace, name)
        if pod is None or pod.uid != self.evicting.get(key, pod.uid):
            self.evicting.pop(key, None)
            return True
        if key in self.evicting or pod.is_terminating:
            return False
        if self._budgets is None:
            listed = self._world.all("PodDisruptionBudget")
            self._budgets = [EvictionBudget(stored.manifest) for stored in listed]
        budgets = [budget for budget in self._budgets if budget.selects(pod)]
        if len(budgets) > 1 or any(budget.left <= 0 for budget in budgets):
            self.log.append((now_ns, {"evictRefused": key}))
            return False
        for budget in budgets:
            budget.left -= 1
        self.log.append((now_ns, {"evict": key}))
        self.evicting[key] = pod.uid
        delete_pod(self._world, pod, None, BY_AUTOSCALER)
        if self.on_evicted is not None:
            self.on_evicted(pod)
        return self._world.live(pod) is None

    def is_ending(self, key: str) -> bool:
        namespace, _, name = key.partition("/")
        pod = self._world.pod(namespace, name)
        return pod is None or pod.is_terminating

    def delete_node(self, name: str, group: str, now_ns: int) -> None:
        super().delete_node(name, group, now_ns)
        for stored in self._world.all("Pod"):
            if stored.typed.node_name == name:
                remove_pod(self._world, stored.typed, "its node was removed")
        self._world.remove("Node", "", name, "removed by the cluster autoscaler")


class ClusterAutoscaler(ClusterProgram):
    """Adds nodes for pods that wait, and removes nodes that are not needed.

    Attributes
    ----------
    groups : Groups or None
        None while it is off.
    prices : PriceList
        By which it chooses when it starts.
    on_loop : callable, optional
        Looks at each loop, with the entries of its log; changes nothing.
    """

    watches: ClassVar[tuple[str, ...]] = ("Namespace", *_KINDS)
    timer_names: ClassVar[tuple[str, ...]] = (LOOPS, DRAINS, ARRIVES)
    annotation: ClassVar[str] = CLUSTER_AUTOSCALER
    component = "cluster-autoscaler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.groups: Groups | None = None
        self.prices = shipped_prices()
        self.on_loop: Callable[[Loop, Sequence[tuple[int, Mapping[str, Any]]]], None] | None = None
        self._reset()

    def concerns(self, change: Noticed) -> bool:
        return super().concerns(change) if change.kind == "Namespace" else self.groups is not None

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Namespace":
            super().noticed(change)
        else:
            self.hands.changed[change.kind, *change.newest.key] = None

    def _reset(self) -> None:
        self._seen, self._n_born, self._last = -1, 0, ""
        self._last_loop: tuple[Any, ...] | None = None
        self._wakes: set[int] = set()

    def stop(self) -> None:
        self.groups = None
        self._reset()

    def start(self, given: Given, prices: PriceList, more: Iterable[Document] = ()) -> None:
        """Start with a first loop now.

        Parameters
        ----------
        more : iterable of mapping
            Objects that are taken to be there besides the cluster's own.

        Raises
        ------
        InvalidObject
            A group cannot be used.
        """
        nodes: list[Node] = sorted(
            (stored.typed for stored in self.world.all("Node")), key=lambda node: node.name
        )
        groups = groups_of(nodes, given, prices)
        under_way = Counter(timer.subject[0] for timer in self.timers.all() if timer.what == ARRIVES)
        for machine in groups.machines:
            machine.target_size += under_way[machine.name]
        self._build(given, prices, groups, more)
        self.timers.add(self.world.clock.now_ns, LOOPS)

    def _build(self, given: Given, prices: PriceList, groups: Groups, more: Iterable[Document]) -> None:
        options = {**DEFAULTS, **given.options}
        self.interval_ns = parse_duration_ns(str(options["scan-interval"]))
        self.waits_ns = sorted(parse_duration_ns(str(options[flag])) for flag in WAITS)
        objects = [*more]
        if given.priorities:
            meta = {"name": PRIORITIES, "namespace": NAMESPACE}
            objects.append(object_of("v1", "ConfigMap", meta, data={"priorities": given.priorities}))
        self.groups = groups
        self.hands = _Hands(self.world, groups.group_of, objects)
        groups.group_of = self.hands.group_of
        costs = {kind.name: kind.price for kind in prices.types}
        self.autoscaler = Autoscaler(given.options, groups.machines, self.hands, costs)

    def act(self, key: tuple[str, ...]) -> None:
        now_ns, what = self.world.clock.now_ns, key[0]
        if self.groups is None:
            try:
                if what == LOOPS:
                    self.start(given_from(self.text or ""), self.prices)
            except InvalidObject as error:
                self.refused(error)
            return
        if what == ARRIVES:
            self._bear(key[1], key[2])
            return
        if what == DRAINS:
            self.hands.look()
            self.autoscaler.advance(now_ns)
        else:
            self.timers.add(now_ns + self.interval_ns, LOOPS)
            due = {at_ns for at_ns in self._wakes if at_ns <= now_ns}
            self._wakes -= due
            if self.world.changes == self._seen and not due and not self.autoscaler.deletions.in_progress:
                return
            self._loop(now_ns)
        leaving = [one.next_ns for one in self.autoscaler.deletions.in_progress.values()]
        if leaving:
            self.timers.add(max(min(leaving), now_ns), DRAINS)

    def _bear(self, group: str, name: str) -> None:
        assert self.groups is not None
        machine = next((one for one in self.groups.machines if one.name == group), None)
        if machine is not None:
            now = format_seconds(self.world.clock.now_ns)
            self.world.create(new_node(machine.template, name, now), "added by the cluster autoscaler")
            self.hands.group_of[name] = group

    def _loop(self, now_ns: int) -> None:
        self.hands.look()
        self.autoscaler.advance(now_ns)
        self.hands.look()
        assert self.groups is not None
        self.groups.adopt(stored.typed for stored in self.world.all("Node"))
        loop = self.autoscaler.run_once(now_ns)
        log, self.hands.log = self.hands.log, []
        for _, entry in log:
            for _ in range(entry.get("delta", 0) if "resize" in entry else 0):
                self.timers.add(
                    now_ns + PROVISION_NS, ARRIVES, entry["resize"], self._new_name(entry["resize"])
                )
        if not self._is_as_last(loop):
            step_ns = self.interval_ns
            for wait_ns in (0, *self.waits_ns):
                due_ns = now_ns + -(-wait_ns // step_ns) * step_ns
                self._wakes |= {due_ns, due_ns + step_ns}
        self._record(loop, log)
        self._seen = self.world.changes
        if self.on_loop is not None:
            self.on_loop(loop, log)

    def _is_as_last(self, loop: Loop) -> bool:
        """Whether it found what the loop before did, of which a checkpoint has only a digest."""
        before, self._last_loop = (
            self._last_loop,
            (loop.scale_ups[0].result, loop.scale_down, loop.target_sizes),
        )
        return self._last == _digest(self._last_loop) if before is None else before == self._last_loop

    def _new_name(self, group: str) -> str:
        while True:
            self._n_born += 1
            name = f"{group}{NEW_NODE}{self._n_born}".lower()
            if self.world.node(name) is None:
                return name

    def _record(self, loop: Loop, log: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        did, before = list[Act](), self.reasons.get("", {})
        why_not = {
            f"Node {name}": " ".join(filter(None, (one["reason"], one.get("podReason"), one.get("pod"))))
            for name, one in loop.scale_down.unremovable.items()
            if one["reason"] != "RecentlyUnremovable"
        }
        for name, one in loop.scale_down.unremovable.items():
            if one["reason"] == "RecentlyUnremovable" and f"Node {name}" in before:
                why_not[f"Node {name}"] = before[f"Node {name}"]
        for event in loop.events:
            kind, key, type_, reason, message = event
            if kind == "ConfigMap":  # the cluster has none: its settings hold the priorities
                continue
            if reason == NOT_TRIGGERED:
                why_not[f"Pod {key}"] = message
                if before.get(f"Pod {key}") == message:
                    continue
            namespace, _, name = key.rpartition("/")
            stored = self.world.get(kind, namespace, name)
            about = stored.manifest if stored is not None else {"kind": kind, "metadata": {"name": name}}
            self.tell(about, reason, message, type_=type_)
        for _, entry in log:
            if "resize" in entry:
                did.append(Act((f"{entry['resize']} is resized by {entry['delta']:+}",)))
            elif "evict" in entry:
                did.append(Act(("evicts ", Mention("Pod", entry["evict"]))))
            elif "evictRefused" in entry:
                did.append(Act(("may not evict ", Mention("Pod", entry["evictRefused"]), " now")))
            elif "deleteNode" in entry:
                node = Mention("Node", entry["deleteNode"])
                did.append(Act(("removes ", node, f" of {entry['group']}")))
        for one in loop.scale_down.deleting:
            used = f", {100 * one['utilization']:.0f}% used"
            did.append(Act(("begins to remove ", Mention("Node", one["node"]), used)))
        self.ran(did, why_not)

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        if self.groups is None:
            return super().state()
        return {
            **super().state(),
            "machines": [asdict(one) for one in self.groups.machines],
            "groupOf": self.hands.group_of,
            "guessed": self.groups.guessed,
            "evicting": self.hands.evicting,
            "log": self.hands.log,
            "autoscaler": self.autoscaler.state(),
            "seen": self._seen,
            "born": self._n_born,
            "last": self._last if self._last_loop is None else _digest(self._last_loop),
            "wakes": sorted(self._wakes),
        }

    def restore_state(self, state: Mapping[str, Any]) -> None:
        super().restore_state(state)
        self.groups = None
        if self.text is None or "machines" not in state:
            return
        machines = [MachineGroup(**one) for one in state["machines"]]
        groups = Groups(machines, dict(state["groupOf"]), state["guessed"])
        self._build(given_from(self.text), self.prices, groups, ())
        self.hands.evicting = dict(state["evicting"])
        self.hands.log = [(at_ns, entry) for at_ns, entry in state["log"]]
        self.autoscaler.restore(state["autoscaler"])
        self._seen, self._n_born, self._last = state["seen"], state["born"], state["last"]
        self._wakes = set(state["wakes"])


def _digest(seen: object) -> str:
    return hashlib.sha256(repr(seen).encode()).hexdigest()
