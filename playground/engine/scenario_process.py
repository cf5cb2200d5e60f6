"""`python -m playground.engine.scenario_process`: one run of one scenario, asked on stdin, answered on stdout."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from playground.engine.compressed import to_json
from playground.engine.entries import record_of
from playground.engine.moments import StateReader
from playground.engine.plugins import use
from playground.engine.scenarios import FreshRun, Graded, MadeText, SavedReplay, load, problems_data
from playground.engine.seeds import SeedRun, run_seed
from scheduler_core.errors import ConfigurationError
from scheduler_core.framework.record import BOUND
from scheduler_core.releases import release_from, steps_between
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.scenario.loops import document_of, find_loops
from scheduler_core.scenario.openb import lookalike
from scheduler_core.scenario.redact import redact, verify_redaction, without_failing
from scheduler_core.scenario.run import check_scenario, run_to_cycle, with_decisions
from scheduler_core.scenario.standalone import TooLargeForOneFile, standalone
from scheduler_core.scenario.tasks import grade, tasks
from scheduler_core.scenario.types import Expectation
from scheduler_core.scenario.upgrade import preview
from scheduler_core.sim.simulation import Simulation
from scheduler_core.version import ENGINE_VERSION

MOST_EXPECTED: Final = 2_000


def decided(document: str, objects_at: int | None, traces_up_to: int) -> FreshRun:
    """Run it; traces are kept of the first cycles, and of those that bound no pod."""
    objects: dict[str, Any] = {}

    def look(simulation: Simulation) -> None:
        if simulation.scheduler.cycle == objects_at:
            objects.update(
                config=simulation.config,
                release=simulation.release.document(),
                clock_ns=simulation.now_ns,
                manifests=[dict(stored.manifest) for stored in simulation.world.everything()],
            )

    result = run_scenario(load(document), after_cycle=look, timed=True)
    figures = result.metrics()
    return FreshRun(
        engine=ENGINE_VERSION,
        decisions_digest=result.digest,
        cycles=tuple(
            dataclasses.replace(
                record_of(trace),
                trace=trace.to_bytes() if trace.number <= traces_up_to or trace.outcome != BOUND else None,
            )
            for trace in result.cycles
        ),
        findings=tuple(dataclasses.asdict(finding) for finding in result.findings),
        figures=figures,
        notes=tuple(result.notes),
        stop=result.stop,
        final=StateReader().read(result.simulation, with_figures=False) | {"figures": figures},
        timeline=result.timeline(),
        objects=objects or None,
    )


def redacted(document: str, title: str) -> MadeText:
    """Take the names out, and see that nothing is decided otherwise."""
    original = load(document)
    found = redact(original)
    check = verify_redaction(original, found.scenario)
    if not check.same:
        raise ScenarioError([Problem("", f"without its names it decides otherwise: {check.sentence}")])
    result = run_scenario(found.scenario)
    scenario, n_failing = without_failing(result)
    scenario = dataclasses.replace(scenario, decisions=with_decisions(result).decisions, title=title)
    notes = [*found.notes, check.sentence]
    if n_failing:
        noun = "expectation that does" if n_failing == 1 else "expectations that do"
        notes.append(f"{n_failing} {noun} not hold without the names left out")
    return MadeText(dump_scenario(scenario), tuple(notes))


def as_test(document: str) -> MadeText:
    """Run it, and expect where each pod ends."""
    scenario = load(document)
    result = run_scenario(scenario, full_traces=False)
    expect = [Expectation(pod=one.key, state=one.state, node=one.node) for one in result.pods().values()]
    left = max(0, len(expect) - MOST_EXPECTED)
    notes = [f"{left:,} more pods are not expected anywhere"] if left else []
    made = dataclasses.replace(scenario, expect=tuple(expect[:MOST_EXPECTED]), decisions=None)
    return MadeText(dump_scenario(made), (f"{len(made.expect):,} expectations, which hold now", *notes))


def ends(document: str, seeds: Sequence[int]) -> list[SeedRun]:
    """Run it with other seeds."""
    scenario = load(document)
    return [run_seed(scenario, seed) for seed in seeds]


class _Enough(Exception):
    """The last state that was wanted has been read."""


def states(document: str, first: int, last: int) -> dict[int, dict[str, Any]]:
    """Run it up to the last of some cycles, and read the state after each of them."""
    reader = StateReader()
    found: dict[int, dict[str, Any]] = {}

    def look(simulation: Simulation) -> None:
        number = simulation.scheduler.cycle
        if first <= number <= last:
            found[number] = reader.read(simulation, with_figures=first == last)
        if number >= last:
            raise _Enough

    with contextlib.suppress(_Enough):
        run_scenario(load(document), full_traces=False, after_cycle=look)
    return found


def traced(document: str, number: int) -> tuple[str, bytes]:
    """Run it up to one cycle, which is kept with every verdict and score."""
    result, _ = run_to_cycle(load(document), number)
    trace = result.cycle(number)
    assert trace is not None
    return trace.digest, trace.to_bytes()


def graded(document: str, task: str) -> Graded:
    """Run an answer to a task."""
    return Graded(**grade(tasks()[task], document).document())


def modelled(document: str) -> dict[str, Any]:
    """Run it with the formal model looking at every cycle."""
    return check_scenario(load(document)).document()


def upgraded(
    document: str, before: Mapping[str, Any], after: Mapping[str, Any], limit: int
) -> dict[str, Any]:
    """Decide it by two releases; how far it is goes to the standard error, a line at a time."""

    def tell(step: str, share: float) -> None:
        print(json.dumps({"step": step, "share": share}), file=sys.stderr, flush=True)

    try:
        older, newer = release_from(before), release_from(after)
        through = steps_between(older, newer)[1:-1]
        found = preview(load(document), older, newer, through=through, progress=tell)
    except ConfigurationError as error:
        said = f"the configuration cannot be used with both releases: {error}"
        raise ScenarioError([Problem("scheduler", said)]) from None
    return found.document(limit)


def looped(document: str, horizon_ns: int) -> dict[str, Any]:
    """Look for a loop of its controllers, and try every change that may end it."""
    return document_of(find_loops(load(document), horizon_ns=horizon_ns, all_cures=True))


def saved(document: str, **how: Any) -> SavedReplay:
    """Run it and put the replay into one file."""
    try:
        made = standalone(load(document), **how)
    except TooLargeForOneFile as error:
        return SavedReplay("", "", str(error))
    return SavedReplay(made.html, made.run.digest, "")


_DOES: Final[Mapping[str, Callable[..., Any]]] = {
    "run": decided,
    "lookalike": lambda: dump_scenario(lookalike()),
    "seeds": ends,
    "states": states,
    "trace": traced,
    "upgrade": upgraded,
    "loops": looped,
    "standalone": saved,
    "grade": graded,
    "model": modelled,
    "redact": redacted,
    "test": as_test,
}


def main() -> int:
    """Answer one request: `do` names what is to be done, `plugins` what may be used; the rest are arguments."""
    request = json.load(sys.stdin)
    use(**request.pop("plugins", {"names": None}))
    try:
        found = {"answer": _DOES[request.pop("do")](**request)}
    except ScenarioError as error:
        found = {"problems": problems_data(error)}
    sys.stdout.write(to_json(msgspec.to_builtins(found)).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
