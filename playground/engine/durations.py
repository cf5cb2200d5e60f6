"""How long simulated pods last, and what says so."""

from scheduler_core.sim.controllers.job import CLUSTER_NAMESPACE, DEFAULT_DURATION
from scheduler_core.sim.kubelet import DURATION

__all__ = ["CLUSTER_NAMESPACE", "DEFAULT_DURATION", "DURATION"]
