"""`replay`: run a scenario from its file, check what it expects, and compare with the decisions it carries.

The exit status is 0 when every expectation holds and the decisions are the recorded ones, 1 when not (the first
failing cycle is explained), 2 when the file cannot be used.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
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
from scheduler_core.scenario import (
    Finding,
    Scenario,
    ScenarioError,
    ScenarioRun,
    Verification,
    dump_scenario,
    first_failing,
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
            result = run_scenario(scenario, bounds=bounds)
    finally:
        # Nor is what came of it: the first look would be as long as a tenth of the run.
        gc.freeze()
        gc.enable()
    if options.opens_at is not None and not 1 <= options.opens_at <= len(result.cycles):
        said = f"--opens-at {options.opens_at}: there is no such cycle, the run has {len(result.cycles)}"
        raise reports.Unusable(said)
    verification = verify(result)
    took_s = (measure_ns() - started_ns) / SECOND_NS
    holds = all(finding.holds for finding in result.findings) and (verification is None or verification.same)
    claims_nothing = not result.findings and verification is None
    if options.check and claims_nothing:
        holds = False
    cases = _cases(result, verification, options.check and claims_nothing)
    headline = _headline(result, cases, options.scenario)
    reports.write(
        options,
        reports.Report(
            headline, result.scenario.name, options.scenario, cases, took_s=took_s, ground=_ground(result)
        ),
    )
    if options.record:
        recorded = dump_scenario(with_decisions(result))
        if options.record == "-":
            sys.stdout.write(recorded)
        else:
            Path(options.record).write_text(recorded)
    if options.html == "-":
        sys.stdout.write(page)
    elif options.html:
        Path(options.html).write_text(page, "utf-8")
    if "-" in (options.html, options.record):
        pass
    elif options.json:
        print(json.dumps(_document(result, verification, digest, holds), indent=1, ensure_ascii=False))
    else:
        _print(options, result, verification, digest, holds, claims_nothing)
    print(f"took {took_s:.1f} s", file=sys.stderr)
    return HOLDS if holds else FAILS


def _print(
    options: argparse.Namespace,
    result: ScenarioRun,
    verification: Verification | None,
    digest: str,
    holds: bool,
    claims_nothing: bool,
) -> None:
    scenario = result.scenario
    title = ": ".join(filter(None, (scenario.name, scenario.title))) or options.scenario
    print(f"{title} ({digest[:12]}, {scenario.release.title}, engine {ENGINE_VERSION})")
    if options.cycles:
        for trace, line in zip(result.cycles, result.cycle_lines(), strict=True):
            print(f"  {trace.number}: {line}")
    figures = result.metrics()
    print(
        f"{figures['cycles']:g} cycles: {figures['bound']:g} pods bound, {figures['pending']:g} pending, "
        f"{figures['preemptions']:g} preemptions; decisions {result.digest[:12]}"
    )
    for line in reports.waiting_lines(result.waiting()):
        print(line)
    for plugin in result.scenario.plugins:
        print(f"with the plugin {plugin.name} of {plugin.requirement or 'no package'}")
    for note in result.notes:
        print(f"note: {note}")
    n_failing = sum(not finding.holds for finding in result.findings)
    if result.findings:
        print(f"{len(result.findings) - n_failing} of {len(result.findings)} expectations hold")
    if verification is not None:
        print(verification.sentence)
    if claims_nothing and options.check:
        print(NOTHING)
    if holds or (claims_nothing and options.check):
        return
    first = _first_failing_cycle(result.findings, verification)
    if first is not None:
        print(f"first failing cycle: {first}")
    for finding in result.findings:
        if not finding.holds:
            print(f"FAILED {finding.path}: {finding.sentence}")


def _first_failing_cycle(findings: list[Finding], verification: Verification | None) -> int | None:
    failing = first_failing(findings)
    cycles = [
        failing.cycle if failing is not None else None,
        verification.first_difference if verification else None,
    ]
    return min((number for number in cycles if number is not None), default=None)


def _document(
    result: ScenarioRun, verification: Verification | None, digest: str, holds: bool
) -> dict[str, Any]:
    return {
        "status": "holds" if holds else "fails",
        "name": result.scenario.name,
        "title": result.scenario.title,
        "scenarioDigest": digest,
        "decisionsDigest": result.digest,
        "emulates": result.scenario.release.patch,
        "engine": ENGINE_VERSION,
        "figures": result.metrics(),
        "findings": [
            {"path": item.path, "holds": item.holds, "sentence": item.sentence, "cycle": item.cycle}
            for item in result.findings
        ],
        "reproduced": None
        if verification is None
        else {
            "same": verification.same,
            "recorded": verification.n_recorded,
            "firstDifference": verification.first_difference,
            "sentence": verification.sentence,
        },
        "firstFailingCycle": _first_failing_cycle(result.findings, verification),
        "placement": result.placement(),
        "waiting": result.waiting(),
        "plugins": [encode(plugin) for plugin in result.scenario.plugins],
        "notes": result.notes,
    }


def _cases(
    result: ScenarioRun, verification: Verification | None, claims_nothing: bool
) -> list[reports.Case]:
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
    if claims_nothing:
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
