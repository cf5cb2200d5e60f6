"""`optimum`: run a scenario, and place its pods again, all at once: how far one pod at a time is from the best.

Affinity, anti-affinity, topology spread, host ports, taints, node selectors and resources are constraints. HiGHS finds
the placement and proves a bound (`pip install highspy`). The exit status is 0 when the best is proved, 1 when the time
limit came first (the gap to the bound is told), 2 when the file cannot be used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.manifests import read_scenario
from scheduler_core.scenario import ScenarioError, run_scenario
from scheduler_core.whatif.optimum import Unsolvable, joint_problem, optimum_document, solve

PROVED, NOT_PROVED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="FILE", help="scenario (YAML or JSON); - for standard input")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--time-limit", type=float, default=30.0, metavar="S", help="seconds the solver may take (30)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    name = options.scenario
    if options.time_limit <= 0:
        return reports.unusable(options, f"--time-limit {options.time_limit:g}: must be above 0")
    try:
        result = run_scenario(read_scenario(name))
        manifests = [stored.manifest for stored in result.simulation.world.everything()]
        movable = frozenset(trace.pod for trace in result.cycles)
        problem = joint_problem(manifests, result.simulation.config, movable, result.simulation.release)
        solution = solve(problem, time_limit_s=options.time_limit, progress=lambda step, share: None)
        found = optimum_document(problem, manifests, solution)
    except (OSError, ScenarioError) as error:
        return reports.unusable(options, error, name)
    except Unsolvable as error:
        return reports.unusable(options, f"{name}: {error}")
    if options.json:
        print(json.dumps({"scenario": name, **found}, ensure_ascii=False))
    else:
        _print(name, found)
    return PROVED if found["proved"] else NOT_PROVED


def _print(name: str, found: Mapping[str, Any]) -> None:
    now, best = found["placed"]
    proof = "proved to be the best" if found["proved"] else "the best found in time"
    print(f"{name}: {best} pods can be placed, {now} are; {proof}")
    for level in found["levels"]:
        print(
            f"  priority {level['priority']}: {level['now']} one by one, {level['best']} together, at most"
            f" {level['atMost']} of {level['pods']}"
        )
    gap = "" if found["proved"] else f" (gap {100 * found['gap']:.2f} %)"
    one_by_one, together = found["score"]
    print(
        f"  sum of scores: {one_by_one} one by one, {together} together, at most {found['scoreAtMost']}{gap}"
    )
    for pod in found["pods"]:
        if pod["now"] != pod["best"]:
            print(f"  {pod['pod']}: {pod['now'] or 'pending'} -> {pod['best'] or 'pending'}")
    if found["coupled"]:
        print(
            f"  claims are no constraint here, so this is an upper bound: {', '.join(found['coupled'][:8])}"
        )
