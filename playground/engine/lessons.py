"""A lesson's questions: a cluster right before one of its cycles, and what the scheduler then decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from playground.engine.moments import StateReader
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.gallery import gallery_scenario
from scheduler_core.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Prediction:
    """One stop of a lesson's path, asked before it is shown.

    Attributes
    ----------
    number, of : int
        Which of the lesson's questions.
    state : mapping
        As `StateReader.read`, right before the cycle.
    cycle : mapping
        The cycle's explanation.
    spec : mapping
        The pod's.
    text : str
        What the stop teaches.
    """

    number: int
    of: int
    state: Mapping[str, Any]
    cycle: Mapping[str, Any]
    spec: Mapping[str, Any]
    text: str


@lru_cache(maxsize=128)
def questions(name: str) -> tuple[Prediction, ...]:
    """The questions of a teaching scenario, which is run for them.

    Raises
    ------
    KeyError
        There is no such scenario.
    """
    scenario = gallery_scenario(name)
    states: dict[int, tuple[dict[str, Any], dict[str, Mapping[str, Any]]]] = {}
    stops = sorted({stop.cycle for stop in scenario.path})
    reader = StateReader()

    def look(simulation: Simulation) -> None:
        # The cycles of a pod group are one turn of the scheduler: all but the first keep its state.
        for number in stops:
            if number > simulation.scheduler.cycle:
                pods = simulation.world.all("Pod")
                specs = {stored.typed.uid: stored.manifest["spec"] for stored in pods}
                states[number] = (reader.read(simulation, with_figures=False), specs)

    run = run_scenario(scenario, full_traces=True, before_cycle=look)
    found = []
    for number, stop in enumerate(scenario.path, 1):
        record = run.cycle(stop.cycle)
        assert record is not None
        state, specs = states[stop.cycle]
        spec = specs.get(record.uid, {})
        found.append(Prediction(number, len(scenario.path), state, record.explain(), spec, stop.text))
    return tuple(found)
