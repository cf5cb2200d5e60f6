"""How a scenario ends with one seed: what is counted when it is asked how much of a run was luck."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from playground.engine.batch import checkpoint_document
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.luck import end_state_digest, lucky_cycles, unexpecting, with_seed
from scheduler_core.scenario.types import Scenario
from scheduler_core.sim.checkpoint import is_before_chance, manifests_of, read_once

LAST_SEED: Final = 2**63 - 1
MOST_MARKS: Final = 500


@dataclass(frozen=True, slots=True)
class SeedRun:
    """How a scenario ends with one seed.

    Attributes
    ----------
    digest
        Of where every pod ended.
    end
        JSON, kept until all seeds are there: ``placement`` (pod -> node, of those that are on one they were not on at
        the beginning), ``stayed`` (how many are where they were), ``left`` (pod -> its node at the beginning, of those
        that are not there), ``pending`` (pods that are on none, sorted), ``draws`` ([cycle, pod, chosen node, number of
        equals] of each tie), ``cycles``; ``marks`` (the first `MOST_MARKS` `LuckyCycle`s) and ``nMarks`` (kind -> how
        many) of the scenario's own seed alone.
    """

    seed: int
    digest: str
    end: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Beginning:
    """A checkpoint from before anything was decided or drawn: every seed's run of the log comes by it.

    Attributes
    ----------
    read_seq
        The newest input it has read.
    simulation
        The simulation's document.
    objects
        All there are.
    placement
        Pod -> node, of those that were on one already.
    """

    read_seq: int
    simulation: Mapping[str, Any]
    objects: Sequence[Mapping[str, Any]]
    placement: Mapping[str, str]


def beginning_of(data: bytes) -> Beginning | None:
    """What `Engine.checkpoint` wrote, if it was early enough for that.

    Raises
    ------
    CheckpointError
    """
    document = checkpoint_document(data)
    if not is_before_chance(document["simulation"]):
        return None
    simulation = read_once(document["simulation"])
    objects = tuple(manifests_of(simulation))
    placement = {
        f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}": manifest["spec"]["nodeName"]
        for manifest in objects
        if manifest["kind"] == "Pod" and manifest["spec"].get("nodeName")
    }
    return Beginning(document["readSeq"], simulation, objects, placement)


def run_seed(scenario: Scenario, seed: int, beginning: Beginning | None = None) -> SeedRun:
    """Run a scenario with a seed, or what is left of it after its beginning.

    Raises
    ------
    ScenarioError
    """
    checkpoint = None if beginning is None else beginning.simulation
    result = run_scenario(with_seed(unexpecting(scenario), seed), full_traces=False, checkpoint=checkpoint)
    placement = result.placement()
    there = (stored.typed for stored in result.simulation.world.all("Pod"))
    pending = tuple(sorted(pod.key for pod in there if not pod.node_name))
    before: Mapping[str, str] = {} if beginning is None else beginning.placement
    left = {pod: node for pod, node in before.items() if placement.get(pod) != node}
    marks = lucky_cycles(result) if seed == scenario.seed else []
    end = {
        "placement": {pod: node for pod, node in placement.items() if before.get(pod) != node},
        "stayed": len(before) - len(left),
        "left": left,
        "pending": list(pending),
        "draws": [
            [trace.number, trace.pod, trace.tie.chosen, trace.tie.count]
            for trace in result.cycles
            if trace.tie is not None
        ],
        "cycles": len(result.cycles),
        "marks": [
            {
                "cycle": mark.cycle,
                "pod": mark.pod,
                "kind": mark.kind,
                "n": mark.n_alternatives,
                "nodes": list(mark.nodes[:8]),
            }
            for mark in marks[:MOST_MARKS]
        ],
        "nMarks": dict(Counter(mark.kind for mark in marks)),
    }
    return SeedRun(seed, end_state_digest({**placement, **dict.fromkeys(pending, "")}), end)
