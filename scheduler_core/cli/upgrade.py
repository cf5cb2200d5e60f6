"""`compare FILE --release A --release B`: what an upgrade changes, each difference under its proved cause."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from scheduler_core.cli import release_options, reports
from scheduler_core.scenario import Problem, ScenarioError, load_scenario
from scheduler_core.scenario.upgrade import UpgradePreview, preview

SAME, DIFFERENT = 0, 1
SHOWN = 10


def run(options: argparse.Namespace) -> int:
    """Run the command: 0 when nothing is decided otherwise, 1 when something is, 2 when it cannot be used."""
    try:
        if len(options.scenarios) != 1 or len(options.release) > 2:
            raise ScenarioError([Problem("--release", "one scenario is decided by at most two releases")])
        name = Path(options.scenarios[0])
        scenario = load_scenario(name.read_bytes())
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
        _print(found)
    return DIFFERENT if found.differences else SAME


def _print(found: UpgradePreview) -> None:
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
