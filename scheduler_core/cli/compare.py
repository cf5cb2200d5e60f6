"""`compare`: run scenarios and put them side by side: figures, where each parts from the first, pods that moved.

With two releases it decides one scenario by both and says what causes each difference.

The exit status is 0 when all decide the same, 1 when they part, 2 when a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from scheduler_core.cli import release_options, reports
from scheduler_core.cli.manifests import read_scenario
from scheduler_core.scenario import (
    Problem,
    ScenarioError,
    ScenarioRun,
    compare,
    run_scenario,
)
from scheduler_core.scenario.upgrade import UpgradePreview, preview

SAME, DIFFERENT = 0, 1
LETTERS = "ABCDEF"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenarios",
        metavar="FILE",
        nargs="+",
        help="two to six scenarios (YAML or JSON); one with --release",
    )
    parser.add_argument(
        "--release",
        metavar="NAME",
        action="append",
        default=[],
        help="decide one scenario as this release and as the next one; given once, the scenario's own is the first",
    )
    parser.add_argument(
        "--feature-gates", metavar="NAME=BOOL,...", help="switch feature gates of the last release"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    names: list[str] = options.scenarios
    if options.release or options.feature_gates:
        return run_upgrade(options)
    if not 2 <= len(names) <= len(LETTERS):
        return reports.unusable(options, f"two to {len(LETTERS)} scenarios are compared, not {len(names)}")
    runs = []
    for name in names:
        try:
            runs.append(run_scenario(read_scenario(name)))
        except (OSError, ScenarioError) as error:
            return reports.unusable(options, error, name)
    found = document(names, runs)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        _print(found)
    return SAME if found["same"] else DIFFERENT


def document(names: Sequence[str], runs: Sequence[ScenarioRun]) -> dict[str, Any]:
    """The comparison, JSON-able: lists have an entry a run, in order."""
    metrics = [result.metrics() for result in runs]
    pairs = [compare(runs[0], other) for other in runs[1:]]
    places = [result.placement() for result in runs]
    pods = sorted({pod for place in places for pod in place})
    moved = [(pod, [place.get(pod) for place in places]) for pod in pods]
    digests = [result.digest for result in runs]
    return {
        "same": len(set(digests)) == 1,
        "scenarios": list(names),
        "releases": [result.release.name for result in runs],
        "digests": digests,
        "figures": {name: [found[name] for found in metrics] for name in metrics[0]},
        "divergences": [
            None
            if pair.divergence is None
            else {
                "cycle": pair.divergence.number,
                "pod": pair.divergence.pod,
                "first": pair.divergence.a,
                "other": pair.divergence.b,
            }
            for pair in pairs
        ],
        "moved": [{"pod": pod, "nodes": nodes} for pod, nodes in moved if len(set(nodes)) > 1],
    }


def _print(found: dict[str, Any]) -> None:
    names = found["scenarios"]
    for letter, name, release in zip(LETTERS, names, found["releases"], strict=False):
        print(f"{letter}: {name} (Kubernetes {release})")
    width = max(len(name) for name in found["figures"])
    print(f"{'':{width}}  " + "  ".join(f"{letter:>10}" for letter in LETTERS[: len(names)]))
    for name, values in found["figures"].items():
        if any(values):
            print(f"{name:{width}}  " + "  ".join(f"{round(value, 3):>10g}" for value in values))
    for letter, parted, digest in zip(LETTERS[1:], found["divergences"], found["digests"][1:], strict=False):
        if parted is None:
            other = "" if digest == found["digests"][0] else ", on other points"
            print(f"{letter} decides as A does{other}")
        else:
            print(f"{letter} parts from A at cycle {parted['cycle']}, {parted['pod']}")
            print(f"  A: {parted['first']}")
            print(f"  {letter}: {parted['other']}")
    if found["moved"]:
        print("pods that are not in the same place:")
    for moved in found["moved"][:40]:
        print(f"  {moved['pod']}: " + ", ".join(node or "no node" for node in moved["nodes"]))
    if len(found["moved"]) > 40:
        print(f"  and {len(found['moved']) - 40} more")


# --- `compare FILE --release A --release B`: what an upgrade changes, each difference under its proved cause.


SHOWN = 10


def run_upgrade(options: argparse.Namespace) -> int:
    """Run the command: 0 when nothing is decided otherwise, 1 when something is, 2 when it cannot be used."""
    try:
        if len(options.scenarios) != 1 or len(options.release) > 2:
            raise ScenarioError([Problem("--release", "one scenario is decided by at most two releases")])
        scenario = read_scenario(options.scenarios[0])
        first = options.release[0] if len(options.release) == 2 else None
        before = release_options.named(first, None, scenario.release)
        last = options.release[-1] if options.release else None
        after = release_options.named(last, options.feature_gates, scenario.release)
        found = preview(scenario, before, after)
    except (OSError, KeyError, ValueError) as error:
        return reports.unusable(options, error)
    if options.json:
        print(json.dumps(found.document(), ensure_ascii=False))
    else:
        _print_upgrade(found)
    return DIFFERENT if found.differences else SAME


def _print_upgrade(found: UpgradePreview) -> None:
    print(found.sentence)
    print(f"pods without a node: {found.n_unbound[0]:,} before, {found.n_unbound[1]:,} after")
    for cause in found.causes:
        proof = f"with {'this' if len(cause.toggles) == 1 else 'these'} put back they do not differ"
        print(f"{cause.name}: {len(cause.differences):,}; {proof}")
        for toggle in cause.toggles:
            print(f"  {toggle.sentence or f'the feature gate {toggle.name}'}")
        for one in cause.differences[:SHOWN]:
            print(f"    {one.pod}: {one.before or 'no node'} -> {one.after or 'no node'}")
        if len(cause.differences) > SHOWN:
            print(f"    and {len(cause.differences) - SHOWN:,} more")
    if found.unexplained:
        print(f"no gate and no change takes these away, which is a fault here: {len(found.unexplained):,}")
    parted = found.comparison.divergence
    if parted is not None:
        print(f"first at cycle {parted.number}, {parted.pod}")
        print(f"  {found.before.title}: {parted.a}")
        print(f"  {found.after.title}: {parted.b}")
        for score in parted.scores[:6]:
            print(f"    {score.plugin} of {score.node}: {score.a} -> {score.b}")
