"""Durations by extension point: a point once for each time it runs, plugins one by one, those from outside too."""

from collections import Counter
from typing import Any

from playground.engine.timing import ExtensionPointTimes
from scheduler_core.framework import interface
from scheduler_core.framework.status import SUCCESS
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.manifests import scheduler_config
from tests.scheduler_core.sim.builders import make_node, make_pod


class Outside(interface.PreEnqueuePlugin, interface.PreScorePlugin[None], interface.ReservePlugin):
    name = "Outside"

    def pre_enqueue(self, pod: Any) -> Any:
        return SUCCESS

    def pre_score(self, pod: Any, snapshot: Any, rows: Any) -> Any:
        return interface.PreScoreResult()

    def reserve(self, pod: Any, node_name: str) -> Any:
        raise RuntimeError("still watched")


def test_a_point_is_told_once_for_each_run_and_a_plugin_from_outside_by_its_name() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "Outside"}]}}
    config = scheduler_config(profiles=[{"plugins": plugins}])
    simulation = Simulation(config, seed=1, plugins=[Outside])
    seen: list[tuple[str, str, str, str]] = []
    times = ExtensionPointTimes()
    times.watch(simulation.scheduler)
    times.observe = lambda profile, point, status, seconds, plugin: seen.append(
        (profile, point, status, plugin)
    )
    for manifest in (make_node("n1"), make_node("n2"), make_pod("a"), make_pod("b")):
        simulation.submit(WriteObject(manifest))
    simulation.step()
    simulation.step()
    found = Counter(seen)
    for point in ("PreScore", "Score"):
        assert found["default-scheduler", point, "Success", ""] == 2, point
    # Each pod entered the queue when it came, and again after its cycle failed.
    assert found["default-scheduler", "PreEnqueue", "Success", ""] == 4
    # The first attempt is the one that is sampled.
    assert found["", "PreScore", "Success", "Outside"] == 1
    # A plugin from outside is watched when it is timed and when it is no more.
    errors = [trace.error for trace in simulation.drain_cycles()]
    assert errors == ['running Reserve plugin "Outside": RuntimeError: still watched'] * 2
