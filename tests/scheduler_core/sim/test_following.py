"""A log replayed as recorded: the same cluster to the last byte, and next to nothing is decided."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scheduler_core.framework.record import BOUND, CycleTrace
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from scheduler_core.scenario.run import run
from scheduler_core.schedule_one import Algorithm, Placement, Recorded
from scheduler_core.sim.changes import SetConfiguration
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import PERMIT_CONFIG, make_cluster, make_pod, reborn, write
from tests.scheduler_core.sim.test_determinism import eventful_cluster
from tests.scheduler_core.whatif.random_scenarios import draw_scenario


class Lived:
    """What became of a simulation, and how many of its cycles were decided."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, recorded: Recorded | None) -> None:
        self.simulation: Simulation | None = None
        self.traces: dict[int, CycleTrace] = {}
        self.n_decided = 0
        self._monkeypatch, self._recorded = monkeypatch, recorded

    @contextmanager
    def watching(self) -> Iterator[Lived]:
        set_up, drain, schedule = Simulation._set_up, Simulation.drain_cycles, Algorithm.schedule

        def watched_set_up(simulation: Simulation, config: Any) -> None:
            set_up(simulation, config)
            self.simulation = self.simulation or simulation
            if simulation is self.simulation:  # an expectation may have others run
                simulation.keep_full_traces(False)
                simulation.follow(self._recorded)

        def watched_drain(simulation: Simulation) -> list[CycleTrace]:
            found = drain(simulation)
            if simulation is self.simulation:
                self.traces |= {trace.number: trace for trace in found}
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.n_decided += 1
            return schedule(*args, **kwargs)

        with self._monkeypatch.context() as patched:
            patched.setattr(Simulation, "_set_up", watched_set_up)
            patched.setattr(Simulation, "drain_cycles", watched_drain)
            patched.setattr(Algorithm, "schedule", counted)
            yield self

    @property
    def end(self) -> str:
        """All that a checkpoint holds."""
        assert self.simulation is not None
        return json.dumps(self.simulation.checkpoint(), sort_keys=True)

    @property
    def told(self) -> list[tuple[Any, ...]]:
        return [
            (trace.number, trace.digest, trace.at_ns, trace.n_evaluated, trace.n_feasible, trace.n_viable)
            for trace in self.traces.values()
        ]

    def recorded(self, number: int) -> Placement | None:
        trace = self.traces.get(number)
        if trace is None or trace.outcome != BOUND or trace.node is None:
            return None
        return Placement(
            trace.uid, trace.node, trace.n_evaluated, trace.n_feasible, trace.n_viable, trace.best_total
        )


def live_twice(monkeypatch: pytest.MonkeyPatch, live: Callable[[], Any]) -> tuple[Lived, Lived]:
    with Lived(monkeypatch, None).watching() as first:
        live()
    with Lived(monkeypatch, first.recorded).watching() as again:
        live()
    assert again.told == first.told
    assert again.end == first.end
    return first, again


@pytest.mark.parametrize("name", ORDER)
def test_every_gallery_scenario_is_the_same_when_followed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live_twice(monkeypatch, lambda: run(gallery_scenario(name)))


@pytest.mark.parametrize("seed", range(12))
def test_random_scenarios_are_the_same_when_followed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    live_twice(monkeypatch, lambda: run(draw_scenario(seed)))


@pytest.mark.parametrize("seed", range(3))
def test_volumes_devices_permits_preemption_and_faults_are_the_same_when_followed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def live() -> None:
        simulation = eventful_cluster(seed)
        simulation.run_until_idle(max_cycles=400)
        simulation.drain_cycles()

    first, again = live_twice(monkeypatch, live)
    assert again.n_decided < first.n_decided


def replicas() -> None:
    simulation = make_cluster(4, *(make_pod(f"p{index}") for index in range(40)))
    simulation.run_until_idle(max_cycles=20)
    simulation.submit(SetConfiguration(PERMIT_CONFIG, None))
    simulation.run_until_idle()
    simulation.drain_cycles()


def test_pods_that_simply_got_a_node_are_not_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = live_twice(monkeypatch, replicas)
    assert (first.n_decided, again.n_decided) == (40, 0)


def test_a_wanted_cycle_is_decided_and_says_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with Lived(monkeypatch, None).watching() as first:
        replicas()
    simulation = make_cluster(4, *(make_pod(f"p{index}") for index in range(40)))
    simulation.keep_full_traces((17,))
    simulation.follow(first.recorded)
    simulation.run_until_idle(max_cycles=20)
    traces = {trace.number: trace for trace in simulation.drain_cycles()}
    assert traces[17].is_full and traces[17].digest == first.traces[17].digest
    assert not traces[16].is_full and traces[16].node == first.traces[16].node


def test_what_is_recorded_of_another_pod_is_not_followed() -> None:
    simulation = make_cluster(2, make_pod("a"))
    simulation.follow(lambda number: Placement("another-uid", "node-1", 2, 2, 2, 100))
    simulation.run_until_idle()
    [trace] = simulation.drain_cycles()
    assert trace.is_full or trace.n_feasible == 2
    again = reborn(simulation)
    write(again, make_pod("b"))
    again.follow(None)
    again.run_until_idle()
    assert again.drain_cycles()
