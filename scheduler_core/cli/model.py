"""`model`: run a scenario and check the formal model on every cycle: order, placement, minimal casualty.

The exit status is 0 when nothing is violated, 1 when something is (a counterexample is told), 2 when a file cannot be
used. Where Kubernetes leaves the model on purpose is told and is no violation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.manifests import read_file
from scheduler_core.scenario import ScenarioError, load_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.run import check_scenario
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.model import ModelReport
from scheduler_core.whatif.model_filters import FAILS, NOT_COMPUTED, PROPERTIES

HOLDS, VIOLATED = 0, 1
_WORDS = {"order": "Order", "placement": "Placement", "casualty": "Minimal casualty"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenarios",
        metavar="SCENARIO",
        nargs="*",
        help="file (YAML or JSON); - for standard input",
    )
    parser.add_argument("--gallery", action="store_true", help="check all scenarios of the gallery, too")
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON, one document a scenario"
    )
    parser.add_argument("--cycles", action="store_true", help="print one line a cycle and property")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    sources: list[tuple[str, Callable[[str], str | bytes]]] = [
        (name, read_file) for name in options.scenarios
    ]
    if options.gallery:
        sources += [(name, gallery_text) for name in ORDER]
    if not sources:
        print("name a scenario, or --gallery", file=sys.stderr)
        return reports.UNUSABLE
    worst = HOLDS
    for name, read in sources:
        try:
            scenario = load_scenario(read(name))
            report = check_scenario(scenario)
        except (OSError, ScenarioError) as error:
            worst = max(worst, reports.unusable(options, error, name))
            continue
        if options.json:
            document = {
                "scenario": name, "emulates": scenario.release.patch, "engine": ENGINE_VERSION, **report.document(),
            }  # fmt: skip
            print(json.dumps(document, ensure_ascii=False))
        else:
            _print(name, report, every=options.cycles)
        worst = max(worst, HOLDS if report.holds else VIOLATED)
    return worst


def _print(name: str, report: ModelReport, *, every: bool) -> None:
    print(f"{name}: {report.sentence}")
    counts = report.counts()
    for key in PROPERTIES:
        found = {status: n for status, n in counts[key].items() if n}
        told: dict[str, Any] = {
            "holds": "holds",
            "leaves": "left on purpose",
            FAILS: "violated",
            NOT_COMPUTED: "not computed",
        }
        words = ", ".join(f"{n:,} {told[status]}" for status, n in found.items())
        print(f"  {_WORDS[key]}: {words or 'nothing to check'}")
    for entry in report.departures():
        print(f"  {entry['departure']} ({entry['count']}x): {entry['why']}")
        print(f"    cycle {entry['first']['cycle']}: {entry['first']['sentence']}")
    for cycle, verdict in report.with_status(NOT_COMPUTED)[:5]:
        print(f"  not computed, cycle {cycle.number}, {verdict.property}: {verdict.sentence}")
    for cycle, verdict in report.with_status(FAILS)[:20]:
        print(f"  VIOLATED, cycle {cycle.number} ({cycle.pod}), {verdict.property}: {verdict.sentence}")
        if verdict.counterexample:
            print(f"    counterexample: {json.dumps(dict(verdict.counterexample), ensure_ascii=False)}")
    for cycle in report.cycles if every else ():
        numbers = cycle.counts
        print(
            f"  {cycle.number}: {cycle.pod} {cycle.outcome}; {numbers['possible']} possible, {numbers['feasible']}"
            f" feasible, {numbers['viable']} viable"
        )
        for verdict in cycle.verdicts:
            print(f"    {verdict.property} {told_of(verdict.status)}: {verdict.sentence}")


def told_of(status: str) -> str:
    """A status in words."""
    return {"leaves": "left on purpose", FAILS: "VIOLATED", NOT_COMPUTED: "not computed"}.get(status, status)
