"""How a scenario ends with one seed: what is counted when it is asked how much of a run was luck."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler_core.scenario.canonical import effective_steps
from scheduler_core.scenario.luck import end_state_digest, lucky_cycles, with_seed
from scheduler_core.scenario.run import ScenarioRun
from scheduler_core.scenario.run import run as run_scenario
from scheduler_core.scenario.types import Scenario

LAST_SEED: Final = 2**63 - 1
MOST_MARKS: Final = 500


@dataclass(frozen=True, slots=True)
class Mark:
    """A decision that could have gone another way.

    Attributes
    ----------
    kind
        ``tie``, ``preemptionTie``, ``sampling`` or ``queueOrder`` (`scenario.luck.LuckyCycle`).
    n
        How many equals there were; for ``sampling``, nodes nobody looked at.
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
        Pod -> node, of those that are on one.
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
    marks: tuple[Mark, ...] = ()
    n_marks: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SeedEnding:
    """What is kept of one seed: `end` as `end_of` gives it."""

    seed: int
    digest: str
    end: Mapping[str, Any]


def run_seed(scenario: Scenario, seed: int) -> SeedRun:
    """Run a scenario with a seed.

    Raises
    ------
    ScenarioError
    """
    result = run_scenario(with_seed(_unexpecting(scenario), seed), full_traces=False)
    placement = result.placement()
    pending = tuple(
        sorted(key for key, facts in result.pods().items() if facts.state not in ("bound", "gone"))
    )
    told = {**placement, **dict.fromkeys(pending, "")}
    draws = tuple(
        (trace.number, trace.pod, str(tie["chosen"]), int(tie["count"]))
        for trace in result.cycles
        if (tie := trace.header.get("tie"))
    )
    marks, n_marks = _marks(result) if seed == scenario.seed else ((), ())
    return SeedRun(
        seed, end_state_digest(told), placement, pending, draws, len(result.cycles), marks, n_marks
    )


def _unexpecting(scenario: Scenario) -> Scenario:
    """What is expected of the scenario's own seed says nothing about others."""
    steps = tuple(step for step in effective_steps(scenario) if step.expect is None)
    return replace(scenario, expect=(), steps=steps)


def _marks(result: ScenarioRun) -> tuple[tuple[Mark, ...], tuple[tuple[str, int], ...]]:
    found = lucky_cycles(result)
    counts: dict[str, int] = {}
    for item in found:
        counts[item.kind] = counts.get(item.kind, 0) + 1
    marks = tuple(
        Mark(item.cycle, item.pod, item.kind, item.n_alternatives, item.nodes[:8])
        for item in found[:MOST_MARKS]
    )
    return marks, tuple(counts.items())


def end_of(run: SeedRun) -> dict[str, object]:
    """What is kept of it until all seeds are there: JSON."""
    return {
        "placement": run.placement,
        "pending": list(run.pending),
        "draws": [list(draw) for draw in run.draws],
        "cycles": run.n_cycles,
        "marks": [
            {"cycle": mark.cycle, "pod": mark.pod, "kind": mark.kind, "n": mark.n, "nodes": list(mark.nodes)}
            for mark in run.marks
        ],
        "nMarks": dict(run.n_marks),
    }
