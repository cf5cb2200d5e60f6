"""The controllers: which there are, what each is sent, and in which order they act.

A controller is sent every change (`noticed`), remembers which of its objects to look at, and brings those in order
when `sync` is called: nothing else has happened in between, so it sees a settled world.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.admission import LIMITING
from scheduler_core.sim.controllers.autoscaler import AutoscalerController
from scheduler_core.sim.controllers.base import Controller, ControllerContext, WorkloadController
from scheduler_core.sim.controllers.cluster_autoscaler import ClusterAutoscaler
from scheduler_core.sim.controllers.daemon_set import DaemonSetController
from scheduler_core.sim.controllers.deployment import (
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
)
from scheduler_core.sim.controllers.descheduler import Descheduler
from scheduler_core.sim.controllers.device_driver import DeviceDriver
from scheduler_core.sim.controllers.disruption_budget import DisruptionController
from scheduler_core.sim.controllers.garbage_collector import GarbageCollector
from scheduler_core.sim.controllers.job import JobController
from scheduler_core.sim.controllers.karpenter import Karpenter
from scheduler_core.sim.controllers.node_lifecycle import (
    NodeCrashes,
    NodeLifecycleController,
    PodGarbageCollector,
    TaintEvictionController,
)
from scheduler_core.sim.controllers.resource_claim import ResourceClaimController
from scheduler_core.sim.controllers.stateful_set import StatefulSetController
from scheduler_core.sim.controllers.vertical_pod_autoscaler import VerticalPodAutoscaler
from scheduler_core.sim.controllers.volume_binder import VolumeBinder
from scheduler_core.sim.timers import Timer, Timers
from scheduler_core.sim.world import Noticed, World

CONTROLLERS: tuple[type[Controller], ...] = (
    NodeCrashes,
    NodeLifecycleController,
    TaintEvictionController,
    GarbageCollector,
    PodGarbageCollector,
    AutoscalerController,
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
    StatefulSetController,
    DaemonSetController,
    JobController,
    VolumeBinder,
    DeviceDriver,
    ResourceClaimController,
    DisruptionController,
    VerticalPodAutoscaler,
    Descheduler,
    ClusterAutoscaler,
    Karpenter,
)
"""In the order in which they act: the programs that move pods and nodes come when all others have acted."""


class ControlPlane:
    """The controllers of one cluster."""

    def __init__(
        self,
        world: World,
        timers: Timers,
        randomness: Randomness,
        *,
        controllers: bool = True,
        release: Release = OLDEST,
    ) -> None:
        self.world = world
        self.context = ControllerContext(world, timers, randomness, release)
        self.controllers: list[Controller] = [kind(self.context) for kind in CONTROLLERS if controllers]
        self._told: dict[str, list[Controller]] = {}
        self._told_of_pods_of: dict[str, list[Controller]] = {}
        for controller in self.controllers:
            for kind in controller.watches:
                self._told.setdefault(kind, []).append(controller)
            for kind in controller.watches_pods_of:
                self._told_of_pods_of.setdefault(kind, []).append(controller)
        self._adopters = [
            item for item in self.controllers if isinstance(item, WorkloadController) and item.adopts
        ]
        self._by_timer = {
            what: controller for controller in self.controllers for what in controller.timer_names
        }
        # A controller finds work in what it is told alone: one that was told nothing is not asked.
        self._place = {controller: place for place, controller in enumerate(self.controllers)}
        self._to_sync: dict[Controller, None] = {}
        self._to_report: dict[Controller, None] = {}

    def noticed(self, change: Noticed) -> None:
        """Tell those who watch this kind."""
        is_pod = change.kind == "Pod"
        if is_pod:
            old_owner, new_owner = self.context.pods.noticed(change)
            if old_owner is not None:
                for controller in self._told_of_pods_of.get(old_owner[0], ()):
                    self._tell(controller, change)
            if new_owner is not None and (old_owner is None or new_owner[0] != old_owner[0]):
                for controller in self._told_of_pods_of.get(new_owner[0], ()):
                    self._tell(controller, change)
            elif new_owner is None and change.new is not None and change.new.typed.labels:
                for adopter in self._adopters:
                    adopter.orphan_noticed(change.new.typed)
                    self._to_sync[adopter] = None
        if change.new is None or change.kind in LIMITING or (is_pod and _ends(change)):
            self._limits_noticed(change)
        for controller in self._told.get(change.kind, ()):
            if (controller.looks_at_pods or not is_pod) and controller.concerns(change):
                self._tell(controller, change)

    def _limits_noticed(self, change: Noticed) -> None:
        """What a namespace's limits refused is tried again when they change, or when there is more room."""
        stored = change.new or change.old
        assert stored is not None
        namespace = str(stored.manifest["metadata"].get("namespace") or "")
        if change.kind not in LIMITING and not self.world.limits.limit(namespace):
            return
        for controller in self.controllers:
            if isinstance(controller, WorkloadController) and controller.look_again(namespace):
                self._to_sync[controller] = self._to_report[controller] = None

    def _tell(self, controller: Controller, change: Noticed) -> None:
        controller.noticed(change)
        self._to_sync[controller] = self._to_report[controller] = None

    def sync(self) -> bool:
        """Let every controller act on what it noticed; True when any had something to look at."""
        if not self._to_sync:
            return False
        told = sorted(self._to_sync, key=self._place.__getitem__)
        # A controller that acted is asked once more, and owes a status perhaps.
        self._to_sync = {controller: None for controller in told if controller.sync()}
        self._to_report.update(self._to_sync)
        return bool(self._to_sync)

    def report(self) -> bool:
        """Let every controller write the statuses it owes; True when anything was written."""
        if not self._to_report:
            return False
        told, self._to_report = sorted(self._to_report, key=self._place.__getitem__), {}
        wrote = False
        for controller in told:
            wrote |= controller.report()
        return wrote

    def timer(self, timer: Timer) -> bool:
        """Hand a timer to its controller; False when none here has such timers."""
        controller = self._by_timer.get(timer.what)
        if controller is None:
            return False
        controller.timer(timer.what, timer.subject)
        self._to_sync[controller] = self._to_report[controller] = None
        return True

    def state(self) -> dict[str, Any]:
        """What controllers remember that no object tells; empty in most clusters."""
        found = {type(item).__name__: item.state() for item in self.controllers if item.remembers}
        found["acts"] = {"n": self.context.n_acts} if self.context.n_acts else {}
        return {name: state for name, state in found.items() if state}

    def restore(self, world: World, state: Mapping[str, Any]) -> None:
        """Learn everything that is there, from a world in which nothing was left to do, and what `state` gave."""
        pods = self.context.pods
        for stored in world.everything():
            if stored.manifest["kind"] != "Pod":
                self.noticed(Noticed(str(stored.manifest["kind"]), None, stored))
                continue
            pod: Pod = stored.typed
            if not pod.meta.owners:
                pods.put_orphan(pod)
                continue
            owner = pods.put(pod)
            if owner is not None:
                for controller in self._told_of_pods_of.get(owner[0], ()):
                    self._tell(controller, Noticed("Pod", None, stored))
        for controller in self.controllers:
            controller.restored()
            controller.restore_state(state.get(type(controller).__name__, {}))
        self.context.n_acts = state.get("acts", {}).get("n", 0)


def _ends(change: Noticed) -> bool:
    """Whether a pod ends, which makes room in a quota."""
    old, new = change.old, change.new
    return old is not None and new is not None and new.typed.is_terminal and not old.typed.is_terminal
