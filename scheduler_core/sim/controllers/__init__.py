"""Controllers of the simulated cluster, in the order they are run.

A controller is told every change (`noticed`), remembers which of its objects to look at, and brings those in order
when `sync` is called: nothing else has happened in between, so it sees a settled world.
"""

from __future__ import annotations

from scheduler_core.sim.controllers.autoscaler import AutoscalerController
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.controllers.cron_job import CronJobController
from scheduler_core.sim.controllers.daemon_set import DaemonSetController
from scheduler_core.sim.controllers.deployment import DeploymentController
from scheduler_core.sim.controllers.device_driver import DeviceDriver
from scheduler_core.sim.controllers.disruption_budget import DisruptionController
from scheduler_core.sim.controllers.garbage_collector import GarbageCollector
from scheduler_core.sim.controllers.job import JobController
from scheduler_core.sim.controllers.node_lifecycle import NodeLifecycleController
from scheduler_core.sim.controllers.pod_garbage_collector import PodGarbageCollector
from scheduler_core.sim.controllers.replica_set import ReplicaSetController, ReplicationControllerController
from scheduler_core.sim.controllers.resource_claim import ResourceClaimController
from scheduler_core.sim.controllers.stateful_set import StatefulSetController
from scheduler_core.sim.controllers.taint_eviction import TaintEvictionController
from scheduler_core.sim.controllers.volume_binder import VolumeBinder

CONTROLLERS: tuple[type[Controller], ...] = (
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
    CronJobController,
    JobController,
    VolumeBinder,
    DeviceDriver,
    ResourceClaimController,
    DisruptionController,
)

__all__ = ["CONTROLLERS", "Controller", "ControllerContext"]
