"""Pod garbage collection: pods of nodes that are gone.

Source: pkg/controller/podgc/gc_controller.go gcOrphaned, v1.34
Differs: the 20 s period is left out, so a pod goes exactly when its node has been gone for 40 s; finished pods are
kept (upstream keeps 12,500 of them).
"""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.pod import DISRUPTION_TARGET, Pod
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.kubelet import remove_pod
from scheduler_core.sim.world import Noticed, with_condition

COLLECT = "pods-of-lost-node"
QUARANTINE_S = 40


class PodGarbageCollector(Controller):
    """Waits 40 s for a node to come back, then lets its pods go."""

    watches: ClassVar[tuple[str, ...]] = ("Pod", "Node")
    timer_names: ClassVar[tuple[str, ...]] = (COLLECT,)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._to_sync: dict[str, None] = {}

    def concerns(self, change: Noticed) -> bool:
        if change.kind != "Pod":
            return change.old is None or change.new is None
        old, new = change.old, change.new
        if new is None or not new.typed.node_name or (old is not None and old.typed.node_name):
            return False
        return self.world.node(new.typed.node_name) is None

    def noticed(self, change: Noticed) -> None:
        stored = change.new or change.old
        assert stored is not None
        # A node that came or went, or one that a pod came to and that is not there.
        self._to_sync[stored.typed.name if change.kind == "Node" else stored.typed.node_name] = None

    def restored(self) -> None:
        self._to_sync.clear()

    def sync(self) -> bool:
        if not self._to_sync:
            return False
        names, self._to_sync = list(self._to_sync), {}
        for name in names:
            if self.world.get("Node", "", name) is not None:
                self.timers.cancel(COLLECT, name)
            elif self.pods.on_node(name) and not self.timers.is_set(COLLECT, name):
                self.timers.add(self.world.clock.now_ns + QUARANTINE_S * SECOND_NS, COLLECT, name)
        return True

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        (name,) = subject
        if self.world.get("Node", "", name) is not None:
            return
        on_node = self.pods.on_node(name)
        for key in sorted(on_node):
            self._collect(on_node[key])

    def _collect(self, pod: Pod) -> None:
        now = format_seconds(self.world.clock.now_ns)
        live = pod
        if not pod.is_terminal:
            status = {**(pod.manifest.get("status") or {}), "phase": "Failed"}
            status["conditions"] = with_condition(
                status,
                {
                    "type": DISRUPTION_TARGET,
                    "status": "True",
                    "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists",
                    "lastTransitionTime": now,
                },
            )
            live = self.world.patch_status(pod, status, "node gone")
        remove_pod(self.world, live, "node gone")
