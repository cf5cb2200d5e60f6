"""The copy that questions are asked of."""

from __future__ import annotations

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.sim.simulation import Simulation


def copy_of_cluster(simulation: Simulation, transport: Transport = no_transport, *, seed: int = 0) -> Sandbox:
    """A cluster's copy on which draws depend on the seed alone, and not on what the cluster drew before.

    So one question has one answer, wherever the same objects are asked.
    """
    sandbox = Sandbox(simulation.scheduler, transport=transport)
    sandbox.pin(seed)
    return sandbox
