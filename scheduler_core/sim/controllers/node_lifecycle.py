"""Node lifecycle: a node's conditions and cordon become taints.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go, v1.34
Differs: taints appear at once (no monitor period), also when many nodes of a zone fail together (no rate limits, no
disruption modes); a node without a Ready condition counts as ready, as hand-written nodes have none.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Node
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.kubelet import ready_status
from scheduler_core.sim.pod_index import is_ready
from scheduler_core.sim.world import Noticed, with_condition

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
        self._to_sync: dict[str, bool] = {}
        """Node -> whether its readiness changed."""

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
        self._to_sync[node.name] = self._to_sync.get(node.name, False) or turned

    def restored(self) -> None:
        self._to_sync.clear()

    def sync(self) -> bool:
        if not self._to_sync:
            return False
        nodes, self._to_sync = self._to_sync, {}
        for name, turned in nodes.items():
            stored = self.world.get("Node", "", name)
            if stored is None:
                continue
            node: Node = stored.typed
            self._set_taints(node)
            if turned:
                self._turn_pods(name, ready_status(node) == "True")
        return True

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
        now = format_seconds(self.world.clock.now_ns)
        pods = self.pods.on_node(node_name)
        for key in sorted(pods):
            pod = pods[key]
            if pod.is_terminal or pod.phase != "Running" or is_ready(pod) == ready:
                continue
            condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}
            if not ready:
                condition["reason"] = "NodeNotReady"
            status = dict(pod.manifest.get("status") or {})
            status["conditions"] = with_condition(status, condition)
            self.world.patch_status(pod, status, "node ready" if ready else "node not ready")
