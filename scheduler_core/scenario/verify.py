"""Proof: a fresh run compared with the decisions a scenario carries."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from scheduler_core.framework.words import sentence
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.types import Decisions, Scenario
from scheduler_core.version import ENGINE_VERSION

LINES_UP_TO_CYCLES = 2_000
"""Longer runs are recorded by their digest alone unless lines are asked for."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a run made the decisions that were recorded.

    Attributes
    ----------
    n_recorded, n_same : int
        Cycles recorded, and how many from the first on are the same (known only where lines were recorded,
        or all are).
    first_difference : int or None
        Number of the first cycle that differs; None when all are the same, or it cannot be told.
    sentence : str
    """

    same: bool
    n_recorded: int
    n_same: int
    first_difference: int | None
    sentence: str


def decisions_of(run: ScenarioRun, *, lines: bool | None = None) -> Decisions:
    """What a run decided, to be kept with its scenario."""
    with_lines = len(run.cycles) <= LINES_UP_TO_CYCLES if lines is None else lines
    return Decisions(
        digest=run.digest,
        count=len(run.cycles),
        engine=ENGINE_VERSION,
        cycles=tuple(run.cycle_lines()) if with_lines else (),
    )


def with_decisions(run: ScenarioRun, *, lines: bool | None = None) -> Scenario:
    """The run's scenario, carrying what was decided."""
    return dataclasses.replace(run.scenario, decisions=decisions_of(run, lines=lines))


def verify(run: ScenarioRun, recorded: Decisions | None = None) -> Verification | None:
    """Compare a run with recorded decisions (the scenario's own by default); None when there are none."""
    decisions = recorded or run.scenario.decisions
    if decisions is None:
        return None
    count = decisions.count
    if decisions.digest == run.digest:
        return Verification(True, count, count, None, f"reproduced {count}/{count} decisions")
    ours = run.cycle_lines()
    if not decisions.cycles:
        said = (
            f"the decisions differ: {len(ours)} cycles with digest {run.digest[:12]} instead of {count} with "
            f"{decisions.digest[:12]}; which differs first was not recorded"
        )
        return Verification(False, count, 0, None, said)
    n_same = 0
    for was, is_now in zip(decisions.cycles, ours, strict=False):
        if was[:12] != is_now[:12]:
            break
        n_same += 1
    number = n_same + 1
    was = decisions.cycles[n_same][13:] if n_same < len(decisions.cycles) else "nothing, the run was over"
    trace = run.cycles[n_same] if n_same < len(run.cycles) else None
    now = sentence(trace) if trace is not None else "nothing, the run is over."
    engine = f" (engine {decisions.engine})" if decisions.engine not in ("", ENGINE_VERSION) else ""
    if n_same == len(ours) == len(decisions.cycles):
        said = "every cycle is as recorded, but the recorded digest is not theirs"
        return Verification(False, count, n_same, None, said)
    said = (
        f"reproduced {n_same}/{count} decisions; cycle {number} differs. Recorded{engine}: {was}. Now: {now}"
    )
    return Verification(False, count, n_same, number, said)
