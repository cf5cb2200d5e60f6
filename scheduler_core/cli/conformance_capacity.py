"""Compare how many more of a pod fit with what kubernetes-sigs/cluster-capacity recorded (family `capacity`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.cli.case_release import release_of
from scheduler_core.cli.difference import Difference
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.pod import pod_from
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.fork import Sandbox
from scheduler_core.whatif.headroom import headroom


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case."""
    simulation = Simulation(options=SimulationOptions(controllers=False), release=release_of(case))
    for manifest in case["objects"]:
        simulation.submit(WriteObject(prepare(manifest)))
    simulation.advance(0, max_cycles=0)
    pod = pod_from(prepare(case["pod"], simulation.world.priority_classes))
    found = headroom(Sandbox(simulation.scheduler), pod)
    expected = case["expect"]
    got = {"replicas": found.replicas, "stop": found.stop}
    return [Difference(key, expected[key], got[key]) for key in got if expected[key] != got[key]]
