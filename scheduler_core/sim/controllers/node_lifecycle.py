"""Node lifecycle: a node's conditions and cordon become taints.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, v1.34
Differs: taints appear at once (no monitor period), also when many nodes of a zone fail together (no rate limits, no
disruption modes); a node without a Ready condition counts as ready, as hand-written nodes have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.duration import duration_ns
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Node, Taint
from scheduler_core.objects.pod import DISRUPTION_TARGET, Pod
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.kubelet import delete_pod, is_heard_of, ready_status, remove_pod
from scheduler_core.sim.load import use_of
from scheduler_core.sim.world import Noticed, annotations_of, condition, is_ready

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
PRESSURE_TAINTS = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
}
SAID_BY = {
    NOT_READY: "Ready",
    UNREACHABLE: "Ready",
    TAINT_UNSCHEDULABLE: "",
    **{key: type_ for type_, key in PRESSURE_TAINTS.items()},
}
"""The condition a taint comes from; a hand-written taint stays as long as its node says nothing about that."""
MANAGED = {
    *(
        (key, "NoSchedule")
        for key in (NOT_READY, UNREACHABLE, TAINT_UNSCHEDULABLE, *PRESSURE_TAINTS.values())
    ),
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
}
"""(key, effect) of the taints that are put on and taken off here; all others are left alone."""


def wanted_taints(node: Node) -> dict[tuple[str, str], None]:
    """(key, effect) of the taints its conditions ask for, in a fixed order."""
    wanted: dict[tuple[str, str], None] = {}
    if node.unschedulable:
        wanted[(TAINT_UNSCHEDULABLE, "NoSchedule")] = None
    ready = ready_status(node)
    if ready != "True":
        key = NOT_READY if ready == "False" else UNREACHABLE
        wanted[(key, "NoSchedule")] = None
        wanted[(key, "NoExecute")] = None
    for type_, status in node.conditions:
        if status == "True" and type_ in PRESSURE_TAINTS:
            wanted[(PRESSURE_TAINTS[type_], "NoSchedule")] = None
    return wanted


class NodeLifecycleController(Controller):
    """Looks at nodes that changed."""

    watches: ClassVar[tuple[str, ...]] = ("Node",)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._turned: dict[str, None] = {}
        """Nodes whose readiness changed."""

    def noticed(self, change: Noticed) -> None:
        if change.new is None:
            return
        node: Node = change.new.typed
        old: Node | None = None if change.old is None else change.old.typed
        if old is None:
            if not node.unschedulable and not node.conditions and not node.taints:
                return
            turned = ready_status(node) != "True"
        else:
            if (
                old.unschedulable == node.unschedulable
                and old.conditions == node.conditions
                and old.taints == node.taints
            ):
                return
            turned = (ready_status(old) == "True") != (ready_status(node) == "True")
        self._to_sync[node.name] = None
        if turned:
            self._turned[node.name] = None

    def restored(self) -> None:
        super().restored()
        self._turned.clear()

    def sync_key(self, key: str) -> None:
        turned, node = key in self._turned, self.world.node(key)
        self._turned.pop(key, None)
        if node is not None:
            self._set_taints(node)
            if turned:
                self._turn_pods(key, ready_status(node) == "True")

    def _set_taints(self, node: Node) -> None:
        wanted = wanted_taints(node)
        present = [(taint.key, taint.effect) for taint in node.taints]
        missing = [item for item in wanted if item not in present]
        said = {type_ for type_, _ in node.conditions}
        surplus = [
            item
            for item in present
            if item in MANAGED and item not in wanted and SAID_BY[item[0]] in {"", *said}
        ]
        if not missing and not surplus:
            return
        now = format_seconds(self.world.clock.now_ns)
        spec = dict(node.manifest.get("spec") or {})
        taints: list[dict[str, Any]] = [
            dict(taint)
            for taint in spec.get("taints") or ()
            if (taint.get("key"), taint.get("effect")) not in surplus
        ]
        taints += [{"key": key, "effect": effect, "timeAdded": now} for key, effect in missing]
        spec.pop("taints", None)
        if taints:
            spec["taints"] = taints
        self.world.put({**node.manifest, "spec": spec}, "node lifecycle")

    def _turn_pods(self, node_name: str, ready: bool) -> None:
        """A node that is not ready has no ready pods. Source: node_lifecycle_controller.go MarkPodsNotReady."""
        turned = {"type": "Ready", "status": str(ready), **({} if ready else {"reason": "NodeNotReady"})}
        for _, pod in sorted(self.pods.on_node(node_name).items()):
            if not pod.is_terminal and pod.phase == "Running" and is_ready(pod) != ready:
                status = self.world.status_with(pod.manifest, turned)
                self.world.patch_status(pod, status, "node ready" if ready else "node not ready")


# --- Taint eviction: pods leave nodes whose NoExecute taints they do not tolerate, or not for so long.


EVICT = "taint-eviction"


class TaintEvictionController(Controller):
    """Looks at pods that came to a node, and at all pods of a node whose NoExecute taints changed."""

    watches: ClassVar[tuple[str, ...]] = ("Pod", "Node")
    timer_names: ClassVar[tuple[str, ...]] = (EVICT,)
    component = "taint-eviction-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._nodes: dict[str, None] = {}
        self._pods: dict[tuple[str, str], None] = {}
        self._tainted: dict[str, None] = {}
        """Nodes with NoExecute taints: a pod on any other node costs one look-up."""
        self.looks_at_pods = False

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Node":
            self._node_noticed(change)
            return
        if change.new is None:
            if change.old is not None and change.old.typed.node_name in self._tainted:
                self._cancel(change.old.typed)
            return
        pod: Pod = change.new.typed
        if pod.node_name not in self._tainted:
            return
        old: Pod | None = None if change.old is None else change.old.typed
        if (
            old is None
            or old.node_name != pod.node_name
            or old.tolerations != pod.tolerations
            or old.uid != pod.uid
        ):
            self._pods[(pod.namespace, pod.name)] = None

    def _node_noticed(self, change: Noticed) -> None:
        name: str = change.newest.typed.name
        if change.new is None:
            self._tainted.pop(name, None)
            return
        old, new = (() if item is None else _no_execute(item.typed) for item in (change.old, change.new))
        if new:
            self._tainted[name] = None
            self.looks_at_pods = True
        else:
            self._tainted.pop(name, None)
        if old != new:
            self._nodes[name] = None

    def restored(self) -> None:
        self._nodes.clear()
        self._pods.clear()

    def sync(self) -> bool:
        if not self._nodes and not self._pods:
            return False
        nodes, self._nodes = list(self._nodes), {}
        pods, self._pods = dict(self._pods), {}
        for name in nodes:
            for _, pod in sorted(self.pods.on_node(name).items()):
                pods[(pod.namespace, pod.name)] = None
        for key in pods:
            live = self.world.pod(*key)
            node = None if live is None else self.world.node(live.node_name)
            if live is not None and node is not None:
                self._look_at(live, node)
        return True

    def _look_at(self, pod: Pod, node: Node) -> None:
        taints = _no_execute(node)
        if not taints or pod.is_terminating or pod.is_terminal:
            self._cancel(pod)
            return
        used = [[item for item in pod.tolerations if item.tolerates(taint)] for taint in taints]
        limits = [item.toleration_seconds for items in used for item in items]
        seconds = min((limit for limit in limits if limit is not None), default=None)
        now_ns, made_ns = self.world.clock.now_ns, pod.meta.creation_ns or 0
        if not all(used) or (seconds is not None and seconds <= 0):
            if pod.meta.controller is not None and now_ns < made_ns + SECOND_NS:
                # Its template names the node: it would be made again without end in no time.
                self.timers.add(made_ns + SECOND_NS, EVICT, *_subject(pod))
            else:
                self._evict(pod)
        elif seconds is None:
            self._cancel(pod)
        elif not self.timers.is_set(EVICT, *_subject(pod)):
            # A timer that runs goes on: another taint does not begin the wait anew.
            self.timers.add(self.world.clock.now_ns + seconds * SECOND_NS, EVICT, *_subject(pod))

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        namespace, name, uid = subject
        pod = self.world.pod(namespace, name)
        if pod is not None and pod.uid == uid and not pod.is_terminating and not pod.is_terminal:
            self._evict(pod)

    def _cancel(self, pod: Pod) -> None:
        self.timers.cancel(EVICT, *_subject(pod))

    def _evict(self, pod: Pod) -> None:
        self._cancel(pod)
        message = f"Marking for deletion Pod {pod.key}"
        self.tell(pod.manifest, "TaintManagerEviction", message, action="Deleting")
        said = "Taint manager: deleting due to NoExecute taint"
        status = self.world.status_with(
            pod.manifest, condition(DISRUPTION_TARGET, True, "DeletionByTaintManager", said)
        )
        delete_pod(self.world, self.world.patch_status(pod, status, "taint eviction"), None, "taint eviction")


def _subject(pod: Pod) -> tuple[str, str, str]:
    return (pod.namespace, pod.name, pod.uid)


def _no_execute(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.effect == "NoExecute")


# --- Pod garbage collection: pods of nodes that are gone.


COLLECT = "pods-of-lost-node"
QUARANTINE_S = 40


class PodGarbageCollector(Controller):
    """Waits 40 s for a node to come back, then lets its pods go."""

    watches: ClassVar[tuple[str, ...]] = ("Pod", "Node")
    timer_names: ClassVar[tuple[str, ...]] = (COLLECT,)

    def concerns(self, change: Noticed) -> bool:
        if change.kind != "Pod":
            return change.old is None or change.new is None
        old, new = change.old, change.new
        if new is None or not new.typed.node_name or (old is not None and old.typed.node_name):
            return False
        return self.world.node(new.typed.node_name) is None

    def noticed(self, change: Noticed) -> None:
        # A node that came or went, or one that a pod came to and that is not there.
        typed = change.newest.typed
        self._to_sync[typed.name if change.kind == "Node" else typed.node_name] = None

    def sync_key(self, key: str) -> None:
        if self.world.node(key) is not None:
            self.timers.cancel(COLLECT, key)
        elif self.pods.on_node(key) and not self.timers.is_set(COLLECT, key):
            self.timers.add(self.world.clock.now_ns + QUARANTINE_S * SECOND_NS, COLLECT, key)

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        (name,) = subject
        if self.world.node(name) is None:
            for _, pod in sorted(self.pods.on_node(name).items()):
                self._collect(pod)

    def _collect(self, pod: Pod) -> None:
        live = pod
        if not pod.is_terminal:
            ends = condition(DISRUPTION_TARGET, True, "DeletionByPodGC", "PodGC: node no longer exists")
            status = {**self.world.status_with(pod.manifest, ends), "phase": "Failed"}
            live = self.world.patch_status(pod, status, "node gone")
        remove_pod(self.world, live, "node gone")


# --- Crashes: a node whose pods use too much of it stops, and comes back.


CRASHES: Final = "playground.dev/crashes"
LOADED, RESTARTS = "node-load", "node-restarts"
CRASHED, RESTARTED = "node crashed", "node restarted"
_LOOK_S: Final = 10
_AGAIN: Final = "5m"


@dataclass(frozen=True, slots=True)
class Crashes:
    """When a node crashes: at so many percent of its capacity of cpu, and for how long it is away then."""

    percent: int
    away_ns: int


def crashes_from(text: str) -> Crashes:
    """Read the annotation `CRASHES` of a node, such as `cpu=98%` or `cpu=98% for 10m`.

    Raises
    ------
    ValueError
    """
    found = re.fullmatch(r"cpu=([1-9]\d{0,2})%(?: for (\S+))?", text.strip())
    if found is None:
        raise ValueError("is not like cpu=98% or cpu=98% for 10m")
    away_ns = duration_ns(found[2] or _AGAIN)
    if away_ns <= 0:
        raise ValueError("must be away for longer than nothing")
    return Crashes(int(found[1]), away_ns)


class NodeCrashes(Controller):
    """Looks every 10 s at what the pods of nodes use that say when they crash."""

    watches: ClassVar[tuple[str, ...]] = ("Node",)
    timer_names: ClassVar[tuple[str, ...]] = (LOADED, RESTARTS)
    component = "kubelet"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._nodes: dict[str, None] = {}

    def concerns(self, change: Noticed) -> bool:
        return CRASHES in annotations_of(change.newest.manifest) or change.newest.typed.name in self._nodes

    def noticed(self, change: Noticed) -> None:
        name: str = change.newest.typed.name
        if change.new is None or CRASHES not in annotations_of(change.new.manifest):
            self._nodes.pop(name, None)
            if change.new is None:
                self.timers.cancel(RESTARTS, name)
            return
        self._nodes[name] = None
        if not self.timers.is_set(LOADED):
            self.timers.add(self.world.clock.now_ns + _LOOK_S * SECOND_NS, LOADED)

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        self._to_sync[subject] = None

    def sync_key(self, key: tuple[str, ...]) -> None:
        if not key:
            self._look()
            return
        node = self.world.node(*key)
        if node is not None and not is_heard_of(node):
            self._turn(node, condition("Ready", True, "KubeletReady", "It started again."), RESTARTED)

    def _look(self) -> None:
        if not self._nodes:
            return
        now_ns = self.world.clock.now_ns
        self.timers.add(now_ns + _LOOK_S * SECOND_NS, LOADED)
        # All pods are asked, as those of a workload share its load.
        used = use_of([stored.manifest for stored in self.world.all("Pod")], self.world.manifest, now_ns)
        for name in sorted(self._nodes):
            node = self.world.node(name)
            if node is None or not is_heard_of(node):
                continue
            crashes = crashes_from(str(annotations_of(node.manifest)[CRASHES]))
            on_node = ((pod.namespace, pod.name) for pod in self.pods.on_node(name).values())
            cpu = sum(part["cpu"] for key in on_node for part in used.get(key, {}).values())
            percent = cpu * 100 // max(_cpu_of(node), 1)
            if percent >= crashes.percent:
                self.timers.add(now_ns + crashes.away_ns, RESTARTS, name)
                said = f"Its pods use {percent}% of its cpu, and it crashes at {crashes.percent}%."
                away = {**condition("Ready", False, "NodeCrashed", said), "status": "Unknown"}
                self._turn(node, away, CRASHED)
                self.warn(node.manifest, "NodeCrashed", said)
                self.context.n_acts += 1

    def _turn(self, node: Node, ready: Mapping[str, str], reason: str) -> None:
        self.world.put({**node.manifest, "status": self.world.status_with(node.manifest, ready)}, reason)


def _cpu_of(node: Node) -> int:
    status = node.manifest.get("status") or {}
    written = (status.get("capacity") or status.get("allocatable") or {}).get("cpu") or "0"
    return quantity_from(written).nano_value()
