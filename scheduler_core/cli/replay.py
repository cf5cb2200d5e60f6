"""`replay`: run a scenario from its file, check what it expects, and compare with the decisions it carries.

The exit status is 0 when every expectation holds and the decisions are the recorded ones, 1 when not (the first
failing cycle is explained), 2 when the file cannot be used.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler_core import installed_plugins
from scheduler_core.cli import release_options, reports
from scheduler_core.cli.manifests import named_by_file, read_file, read_manifests, with_manifests
from scheduler_core.clock import SECOND_NS, measure_ns
from scheduler_core.config.wire import encode
from scheduler_core.errors import InvalidManifest, PluginDeclarationError
from scheduler_core.framework.limit import limit_plugins
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.scenario import (
    Scenario,
    ScenarioError,
    ScenarioRun,
    Verification,
    dump_scenario,
    load_scenario,
    run_scenario,
    scenario_digest,
    verify,
    with_decisions,
    with_seed,
)
from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.carried import CarriedError, carried_in, check_words
from scheduler_core.scenario.load import schema_text
from scheduler_core.scenario.standalone import TooLargeForOneFile, standalone
from scheduler_core.sim.outlook import outlook_of, reason_words, run_lines
from scheduler_core.sim.trace_events import trace_events
from scheduler_core.version import ENGINE_VERSION

REFUSED = (CarriedError, TooLargeForOneFile)
HOLDS, FAILS = 0, 1
NOTHING = "nothing to check: the scenario has no `expect` and no `decisions` (--record writes them)"


def _text(place: str) -> bytes:
    """What is at a place: standard input, a link itself, or a file."""
    return place.encode() if place.startswith(("http://", "https://")) else read_file(place)


def _load(text: bytes, apply: list[str], bounds: RunBounds) -> Scenario:
    """The scenario, with the manifests of files beside its own."""
    carried = carried_in(text)
    if carried is not None:
        text = carried.text.encode()
        check_words(carried, scenario_digest(load_scenario(text, bounds=bounds)))
    if not apply:
        return load_scenario(text, bounds=bounds)
    try:
        document = load_documents(text)[0].value
    except (InvalidManifest, IndexError):
        return load_scenario(text, bounds=bounds)  # which says what is wrong with it
    posted, notes = read_manifests(apply)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    whole, came_from = with_manifests(document, posted)
    try:
        return load_scenario(whole, bounds=bounds)
    except ScenarioError as error:
        raise named_by_file(error, came_from) from None


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.schema:
        sys.stdout.write(schema_text())
        return HOLDS
    started_ns = measure_ns()
    # A document is a tree of up to a million small values, and no garbage: walking it again and again would
    # take as long as reading it.
    gc.disable()
    try:
        limit_plugins(options.plugin_seconds)
        for reference in options.plugin:
            try:
                installed_plugins.add(reference)
            except PluginDeclarationError as error:
                raise reports.Unusable(f"--plugin {error}") from None
        text = _text(options.scenario)
        bounds = RunBounds(options.max_objects, options.max_time)
        scenario = _load(text, options.apply, bounds)
        digest = scenario_digest(scenario)
        scenario = release_options.with_release(scenario, options)
        if options.seed is not None:
            scenario = with_seed(scenario, options.seed)
        page = ""
        if options.html:
            made = standalone(scenario, note=options.note, opens_at=options.opens_at, bounds=bounds)
            result, page = made.run, made.html
        else:
            result = run_scenario(scenario, bounds=bounds, timed=bool(options.trace))
    finally:
        # Nor is what came of it: the first look would be as long as a tenth of the run.
        gc.freeze()
        gc.enable()
    if options.opens_at is not None and not 1 <= options.opens_at <= len(result.cycles):
        said = f"--opens-at {options.opens_at}: there is no such cycle, the run has {len(result.cycles)}"
        raise reports.Unusable(said)
    verification = verify(result)
    took_s = (measure_ns() - started_ns) / SECOND_NS
    cases = _cases(result, verification, check=options.check)
    headline = _headline(result, cases, options.scenario)
    name = result.scenario.name
    reports.write(
        options,
        reports.Report(headline, name, options.scenario, cases, took_s=took_s, ground=_ground(result)),
    )
    recorded = dump_scenario(with_decisions(result)) if options.record else ""
    trace = json.dumps(trace_events(result.timeline(), scenario.name)) if options.trace else ""
    for place, written in ((options.record, recorded), (options.html, page), (options.trace, trace)):
        if place == "-":
            sys.stdout.write(written)
        elif place:
            Path(place).write_text(written, "utf-8")
    if "-" not in (options.html, options.record, options.trace):
        document = _document(result, verification, digest, cases)
        reports.show(options, document, _lines(options, result, document, cases), indent=1)
    print(f"took {took_s:.1f} s", file=sys.stderr)
    return HOLDS if all(case.holds for case in cases) else FAILS


def _lines(
    options: argparse.Namespace, result: ScenarioRun, found: dict[str, Any], cases: list[reports.Case]
) -> Iterator[str]:
    scenario = result.scenario
    title = ": ".join(filter(None, (scenario.name, scenario.title))) or options.scenario
    yield f"{title} ({found['scenarioDigest'][:12]}, {scenario.release.title}, engine {ENGINE_VERSION})"
    if options.cycles:
        for trace, line in zip(result.cycles, result.cycle_lines(), strict=True):
            yield f"  {trace.number}: {line}"
        for ran in result.runs:
            after = format_duration(ran.at_ns - scenario.start_ns)
            yield from (f"  {after} {ran.controller}: {line}" for line in run_lines(ran, scenario.start_ns))
        yield from (f"  {line}" for line in outlook_of(result.runs, scenario.start_ns).lines())
    figures = found["figures"]
    yield (
        f"{figures['cycles']:g} cycles: {figures['bound']:g} pods bound, {figures['pending']:g} pending, "
        f"{figures['preemptions']:g} preemptions; decisions {result.digest[:12]}"
    )
    yield from reports.waiting_lines(found["waiting"])
    for plugin in scenario.plugins:
        yield f"with the plugin {plugin.name} of {plugin.requirement or 'no package'}"
    yield from (f"note: {note}" for note in result.notes)
    if result.findings:
        n_held = sum(finding.holds for finding in result.findings)
        yield f"{n_held} of {len(result.findings)} expectations hold"
    if found["reproduced"] is not None:
        yield found["reproduced"]["sentence"]
    if any(case.name == "check" for case in cases):
        yield NOTHING
    if found["firstFailingCycle"] is not None:
        yield f"first failing cycle: {found['firstFailingCycle']}"
    for finding in result.findings:
        if not finding.holds:
            yield f"FAILED {finding.path}: {finding.sentence}"


def _document(
    result: ScenarioRun, verification: Verification | None, digest: str, cases: list[reports.Case]
) -> dict[str, Any]:
    failing = [case for case in cases if not case.holds]
    return {
        "status": "fails" if failing else "holds",
        "name": result.scenario.name,
        "title": result.scenario.title,
        "scenarioDigest": digest,
        "decisionsDigest": result.digest,
        "emulates": result.scenario.release.patch,
        "engine": ENGINE_VERSION,
        "figures": result.metrics(),
        "findings": list(map(asdict, result.findings)),
        "reproduced": None
        if verification is None
        else {
            "same": verification.same,
            "recorded": verification.n_recorded,
            "firstDifference": verification.first_difference,
            "sentence": verification.sentence,
        },
        "firstFailingCycle": min((case.cycle for case in failing if case.cycle is not None), default=None),
        "placement": result.placement(),
        "waiting": result.waiting(),
        "controllers": [
            {
                "at": format_time_ns(ran.at_ns),
                "controller": ran.controller,
                "subject": ran.subject,
                "did": list(map(str, ran.did)),
                "whyNot": {
                    name: reason_words(facts, result.scenario.start_ns) for name, facts in ran.why_not.items()
                },
            }
            for ran in result.runs
        ],
        "outlook": outlook_of(result.runs, result.scenario.start_ns).document(),
        "plugins": [encode(plugin) for plugin in result.scenario.plugins],
        "notes": result.notes,
    }


def _cases(result: ScenarioRun, verification: Verification | None, *, check: bool) -> list[reports.Case]:
    """What the scenario claims; with `check` it has to claim something."""
    cases = [
        reports.Case(finding.path, finding.holds, finding.sentence, cycle=finding.cycle)
        for finding in result.findings
    ]
    if verification is not None:
        cases.append(
            reports.Case(
                "decisions", verification.same, verification.sentence, cycle=verification.first_difference
            )
        )
    if check and not cases:
        cases.append(reports.Case("check", False, NOTHING))
    return cases


def _headline(result: ScenarioRun, cases: list[reports.Case], name: str) -> str:
    title = result.scenario.title or result.scenario.name or name
    failing = sum(not case.holds for case in cases)
    if not cases:
        return f"{title}: nothing was expected"
    held = f"{len(cases) - failing} of {len(cases)} expectations hold"
    return f"{title}: {held if failing else f'all {len(cases)} hold' if len(cases) > 1 else 'it holds'}"


def _ground(result: ScenarioRun) -> str:
    """Inputs of a report."""
    return (
        f"Decided by engine {ENGINE_VERSION} as kube-scheduler {result.release.patch}, "
        f"{len(result.cycles):,} decisions, digest {result.digest[:12]}"
    )
