"""`python -m playground.engine.scenario_process`: one run of one scenario, asked on stdin, answered on stdout."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from playground.engine.entries import record_of
from playground.engine.moments import StateReader
from playground.engine.plugins import use
from playground.engine.scenarios import load, problems_data
from playground.engine.seeds import run_seed
from scheduler_core.errors import ConfigurationError
from scheduler_core.framework.record import BOUND
from scheduler_core.releases import release_from
from scheduler_core.scenario.canonical import scenario_digest
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.scenario.openb import lookalike
from scheduler_core.scenario.redact import redact, verify_redaction, without_failing
from scheduler_core.scenario.run import check_scenario, run, run_to_cycle, with_decisions
from scheduler_core.scenario.standalone import TooLargeForOneFile, standalone
from scheduler_core.scenario.upgrade import preview
from scheduler_core.sim.simulation import Simulation
from scheduler_core.version import ENGINE_VERSION


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run what was asked for."""
    scenario = load(request["document"])
    objects: dict[str, Any] = {}

    def look(simulation: Simulation) -> None:
        number = simulation.scheduler.cycle
        if number == request.get("objectsAt"):
            objects.update(
                config=simulation.config,
                release=simulation.release.document(),
                clock_ns=simulation.now_ns,
                manifests=[dict(stored.manifest) for stored in simulation.world.everything()],
            )

    result = run(scenario, after_cycle=look)
    cycles = []
    for trace in result.cycles:
        record = dataclasses.asdict(record_of(trace))
        kept = trace.number <= request["tracesUpTo"] or trace.outcome != BOUND
        record["trace"] = base64.b64encode(trace.to_bytes()).decode() if kept else None
        cycles.append(record)
    return {
        "engine": ENGINE_VERSION,
        "emulates": scenario.release.patch,
        "digest": scenario_digest(scenario),
        "decisionsDigest": result.digest,
        "cycles": cycles,
        "findings": [dataclasses.asdict(finding) for finding in result.findings],
        "figures": result.metrics(),
        "notes": list(result.notes),
        "stop": result.stop,
        "final": StateReader().read(result.simulation, with_figures=False) | {"figures": result.metrics()},
        "objects": objects or None,
    }


def redacted(request: dict[str, Any]) -> dict[str, Any]:
    """Take the names out, and see that nothing is decided otherwise."""
    original = load(request["document"])
    found = redact(original)
    check = verify_redaction(original, found.scenario)
    if not check.same:
        raise ScenarioError([Problem("", f"without its names it decides otherwise: {check.sentence}")])
    result = run(found.scenario)
    scenario, n_failing = without_failing(result)
    # Expectations are no part of what is run: the decisions are those of the shorter scenario too.
    scenario = dataclasses.replace(scenario, decisions=with_decisions(result).decisions)
    scenario = dataclasses.replace(scenario, title=request.get("title", ""))
    notes = [*found.notes, check.sentence]
    if n_failing:
        noun = "expectation that does" if n_failing == 1 else "expectations that do"
        notes.append(f"{n_failing} {noun} not hold without the names left out")
    return {"text": dump_scenario(scenario), "notes": notes}


def ends(request: dict[str, Any]) -> dict[str, Any]:
    """Run it with other seeds."""
    scenario = load(request["document"])
    runs = [run_seed(scenario, seed) for seed in request["seeds"]]
    return {"ends": [dataclasses.asdict(run) for run in runs]}


class _Enough(Exception):
    """The last state that was wanted has been read."""


def states(request: dict[str, Any]) -> dict[str, Any]:
    """Run it up to the last of some cycles, and read the state after each of them."""
    first, last = request["states"]
    reader = StateReader()
    found: dict[int, dict[str, Any]] = {}

    def look(simulation: Simulation) -> None:
        number = simulation.scheduler.cycle
        if first <= number <= last:
            found[number] = reader.read(simulation, with_figures=first == last)
        if number >= last:
            raise _Enough

    with contextlib.suppress(_Enough):
        run(load(request["document"]), full_traces=False, after_cycle=look)
    return {"states": found}


def traced(request: dict[str, Any]) -> dict[str, Any]:
    """Run it up to one cycle, which is kept with every verdict and score."""
    result, _ = run_to_cycle(load(request["document"]), request["traceOf"])
    trace = result.cycle(request["traceOf"])
    assert trace is not None
    return {"digest": trace.digest, "trace": base64.b64encode(trace.to_bytes()).decode()}


def modelled(request: dict[str, Any]) -> dict[str, Any]:
    """Run it with the formal model looking at every cycle."""
    return {"model": check_scenario(load(request["document"])).document()}


def upgraded(request: dict[str, Any]) -> dict[str, Any]:
    """Decide it by two releases; how far it is goes to the standard error, a line at a time."""

    def tell(step: str, share: float) -> None:
        print(json.dumps({"step": step, "share": share}), file=sys.stderr, flush=True)

    asked = request["upgrade"]
    try:
        found = preview(
            load(request["document"]),
            release_from(asked["before"]),
            release_from(asked["after"]),
            progress=tell,
        )
    except ConfigurationError as error:
        said = f"the configuration cannot be used with both releases: {error}"
        raise ScenarioError([Problem("scheduler", said)]) from None
    return {"upgrade": found.document(asked["limit"])}


def saved(request: dict[str, Any]) -> dict[str, Any]:
    """Run it and put the replay into one file."""
    try:
        made = standalone(load(request["document"]), **request["standalone"])
    except TooLargeForOneFile as error:
        return {"html": "", "decisionsDigest": "", "tooLarge": str(error)}
    return {"html": made.html, "decisionsDigest": made.run.digest, "tooLarge": ""}


_ANSWERS: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "lookalike": lambda request: {"text": dump_scenario(lookalike())},
    "seeds": ends,
    "states": states,
    "traceOf": traced,
    "upgrade": upgraded,
    "standalone": saved,
    "model": modelled,
    "redact": redacted,
}
"""Field of a request -> what answers it."""


def main() -> int:
    """Answer one request."""
    request = json.load(sys.stdin)
    use(**request.get("plugins", {"names": None}))
    try:
        found = next((does for name, does in _ANSWERS.items() if name in request), answer)(request)
    except ScenarioError as error:
        found = {"problems": problems_data(error)}
    json.dump(found, sys.stdout, separators=(",", ":"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
