"""`model`, `group` and `optimum`: run a scenario, and ask about the run.

`model` checks the formal model on every cycle: the exit status is 0 when nothing is violated, 1 when something is (with
a counterexample). Where Kubernetes leaves the model on purpose is no violation. `group` gives 0 when a pod group holds
its nodes or can be scheduled, 1 when it waits. `optimum` places the pods again, all at once, under affinity,
anti-affinity, topology spread, host ports, taints, node selectors and resources: HiGHS finds the placement and proves a
bound (`pip install highspy`); 0 when the best is proved, 1 when the time limit came first. All give 2 for a file that
cannot be used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.manifests import read_file, read_scenario
from scheduler_core.scenario.errors import ScenarioError
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.run import check_scenario
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.model import ModelReport
from scheduler_core.whatif.model_filters import FAILS, NOT_COMPUTED, PROPERTIES
from scheduler_core.whatif.optimum import Unsolvable, joint_problem, optimum_document, solve
from scheduler_core.whatif.pod_group import UnknownGroup, group_story

REFUSED = (UnknownGroup, Unsolvable)
_PROPERTIES = {"order": "Order", "placement": "Placement", "casualty": "Minimal casualty"}
_STATUSES = {"leaves": "left on purpose", FAILS: "violated", NOT_COMPUTED: "not computed"}


def model(options: argparse.Namespace) -> int:
    """Run the command."""
    sources: list[tuple[str, Callable[[str], str | bytes]]] = [
        (name, read_file) for name in options.scenarios
    ]
    if options.gallery:
        sources += [(name, gallery_text) for name in ORDER]
    if not sources:
        raise reports.Unusable("name a scenario, or --gallery")
    worst = 0
    for name, read in sources:
        try:
            scenario = load_scenario(read(name))
            report = check_scenario(scenario)
        except (OSError, ScenarioError) as error:
            worst = max(worst, reports.unusable(options, error, name))
            continue
        document = {
            "scenario": name, "emulates": scenario.release.patch, "engine": ENGINE_VERSION, **report.document(),
        }  # fmt: skip
        reports.show(options, document, _model_lines(name, report, every=options.cycles))
        worst = max(worst, 0 if report.holds else 1)
    return worst


def _model_lines(name: str, report: ModelReport, *, every: bool) -> Iterator[str]:
    yield f"{name}: {report.sentence}"
    counts = report.counts()
    for key in PROPERTIES:
        words = ", ".join(f"{n:,} {_STATUSES.get(status, status)}" for status, n in counts[key].items() if n)
        yield f"  {_PROPERTIES[key]}: {words or 'nothing to check'}"
    for entry in report.departures():
        yield f"  {entry['departure']} ({entry['count']}x): {entry['why']}"
        yield f"    cycle {entry['first']['cycle']}: {entry['first']['sentence']}"
    for cycle, verdict in report.with_status(NOT_COMPUTED)[:5]:
        yield f"  not computed, cycle {cycle.number}, {verdict.property}: {verdict.sentence}"
    for cycle, verdict in report.with_status(FAILS)[:20]:
        yield f"  VIOLATED, cycle {cycle.number} ({cycle.pod}), {verdict.property}: {verdict.sentence}"
        if verdict.counterexample:
            yield f"    counterexample: {json.dumps(dict(verdict.counterexample), ensure_ascii=False)}"
    for cycle in report.cycles if every else ():
        numbers = ", ".join(f"{cycle.counts[key]} {key}" for key in ("possible", "feasible", "viable"))
        yield f"  {cycle.number}: {cycle.pod} {cycle.outcome}; {numbers}"
        for verdict in cycle.verdicts:
            status = _STATUSES.get(verdict.status, verdict.status)
            told = status.upper() if verdict.status == FAILS else status
            yield f"    {verdict.property} {told}: {verdict.sentence}"


def group(options: argparse.Namespace) -> int:
    """Run the command."""
    namespace, _, name = options.group.rpartition("/")
    result = run_scenario(read_scenario(options.scenario))
    story = group_story(result.simulation.scheduler, namespace or "default", name)
    reports.show(options, story, _group_lines(story))
    return 1 if story["missing"] else 0


def _group_lines(story: Mapping[str, Any]) -> Iterator[str]:
    yield story["sentence"]
    for member in story["members"]:
        if member["node"]:
            said = f"{member['state']} on {member['node']}"
        elif member["fits"]:
            said = f"fits on {member['fits']}"
        else:
            said = member["heldBy"] or member["message"] or "waits"
        yield f"  {member['pod']}: {said}"
    for remedy in story["remedies"]:
        yield f"  -> {remedy['sentence']}"


def optimum(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.time_limit <= 0:
        raise reports.Unusable(f"--time-limit {options.time_limit:g}: must be above 0")
    result = run_scenario(read_scenario(options.scenario))
    manifests = [stored.manifest for stored in result.simulation.world.everything()]
    movable = frozenset(trace.pod for trace in result.cycles)
    problem = joint_problem(manifests, result.simulation.config, movable, result.simulation.release)
    solution = solve(problem, time_limit_s=options.time_limit, progress=lambda step, share: None)
    found = {"scenario": options.scenario, **optimum_document(problem, manifests, solution)}
    reports.show(options, found, _optimum_lines(found))
    return 0 if found["proved"] else 1


def _optimum_lines(found: Mapping[str, Any]) -> Iterator[str]:
    now, best = found["placed"]
    proof = "proved to be the best" if found["proved"] else "the best found in time"
    yield f"{found['scenario']}: {best} pods can be placed, {now} are; {proof}"
    for level in found["levels"]:
        one_by_one = f"  priority {level['priority']}: {level['now']} one by one, {level['best']} together"
        yield f"{one_by_one}, at most {level['atMost']} of {level['pods']}"
    gap = "" if found["proved"] else f" (gap {100 * found['gap']:.2f} %)"
    alone, together = found["score"]
    yield f"  sum of scores: {alone} one by one, {together} together, at most {found['scoreAtMost']}{gap}"
    for pod in found["pods"]:
        if pod["now"] != pod["best"]:
            yield f"  {pod['pod']}: {pod['now'] or 'pending'} -> {pod['best'] or 'pending'}"
    if found["coupled"]:
        yield f"  claims are no constraint here, so this is an upper bound: {', '.join(found['coupled'][:8])}"
