"""How long simulated pods last, and what says so."""

from scheduler_core.sim.controllers.job import CLUSTER_NAMESPACE, DEFAULT_DURATION
from scheduler_core.sim.kubelet import DURATION
from scheduler_core.sim.world import ACTS as JOBS_END_SINCE

__all__ = ["CLUSTER_NAMESPACE", "DEFAULT_DURATION", "DURATION", "JOBS_END_SINCE"]
