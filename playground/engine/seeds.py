"""How a scenario ends with one seed: what is counted when it is asked how much of a run was luck."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from playground.engine.batch import checkpoint_document
from scheduler_core.scenario.luck import end_state_digest, lucky_cycles, unexpecting, with_seed
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.run import run as run_scenario
from scheduler_core.scenario.types import Scenario
from scheduler_core.sim.checkpoint import is_before_chance, manifests_of, read_once

LAST_SEED: Final = 2**63 - 1
MOST_MARKS: Final = 500


@dataclass(frozen=True, slots=True)
class OpenDecision:
    """A decision that could have gone another way.

    Attributes
    ----------
    kind
        ``tie``, ``preemptionTie``, ``sampling`` or ``queueOrder`` (`scenario.luck.LuckyCycle`).
    n
        How many equals there were; for ``sampling``, nodes that were not looked at.
    """

    cycle: int
    pod: str
    kind: str
    n: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeedRun:
    """How a scenario ends with one seed.

    Attributes
    ----------
    digest
        Of where every pod ended.
    placement
        Pod -> node, of those that are on one they were not on at the beginning.
    stayed
        How many are where they were at the beginning.
    left
        Pod -> node it had at the beginning, of those that are not there.
    pending
        Pods that are on none, sorted.
    draws
        (cycle, pod, chosen node, number of equals) of each tie.
    marks
        What hung on chance, the first `MOST_MARKS`; of the scenario's own seed alone.
    n_marks
        Kind -> how many there are.
    """

    seed: int
    digest: str
    placement: dict[str, str]
    pending: tuple[str, ...]
    draws: tuple[tuple[int, str, str, int], ...]
    n_cycles: int
    stayed: int = 0
    left: dict[str, str] = field(default_factory=dict)
    marks: tuple[OpenDecision, ...] = ()
    n_marks: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SeedEnding:
    """What is kept of one seed: `end` as `end_of` gives it."""

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
    told = {**placement, **dict.fromkeys(pending, "")}
    draws = tuple(
        (trace.number, trace.pod, trace.tie.chosen, trace.tie.count)
        for trace in result.cycles
        if trace.tie is not None
    )
    marks, n_marks = _marks(result) if seed == scenario.seed else ((), ())
    before: Mapping[str, str] = {} if beginning is None else beginning.placement
    left = {pod: node for pod, node in before.items() if placement.get(pod) != node}
    return SeedRun(
        seed=seed,
        digest=end_state_digest(told),
        placement={pod: node for pod, node in placement.items() if before.get(pod) != node},
        pending=pending,
        draws=draws,
        n_cycles=len(result.cycles),
        stayed=len(before) - len(left),
        left=left,
        marks=marks,
        n_marks=n_marks,
    )


def _marks(result: ScenarioRun) -> tuple[tuple[OpenDecision, ...], tuple[tuple[str, int], ...]]:
    found = lucky_cycles(result)
    counts: dict[str, int] = {}
    for item in found:
        counts[item.kind] = counts.get(item.kind, 0) + 1
    marks = tuple(
        OpenDecision(item.cycle, item.pod, item.kind, item.n_alternatives, item.nodes[:8])
        for item in found[:MOST_MARKS]
    )
    return marks, tuple(counts.items())


def end_of(run: SeedRun) -> dict[str, object]:
    """What is kept of it until all seeds are there: JSON."""
    return {
        "placement": run.placement,
        "stayed": run.stayed,
        "left": run.left,
        "pending": list(run.pending),
        "draws": [list(draw) for draw in run.draws],
        "cycles": run.n_cycles,
        "marks": [
            {"cycle": mark.cycle, "pod": mark.pod, "kind": mark.kind, "n": mark.n, "nodes": list(mark.nodes)}
            for mark in run.marks
        ],
        "nMarks": dict(run.n_marks),
    }
