"""`compare`: run scenarios and put them side by side: figures, where each parts from the first, pods that moved.

With two releases it decides one scenario by both and says what causes each difference.

The exit status is 0 when all decide the same, 1 when they part, 2 when a file cannot be used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from scheduler_core.cli import release_options, reports
from scheduler_core.cli.manifests import read_scenario
from scheduler_core.releases import steps_between
from scheduler_core.scenario import ScenarioError, ScenarioRun, compare, run_scenario
from scheduler_core.scenario.upgrade import UpgradePreview, preview

SAME, DIFFERENT = 0, 1
LETTERS = "ABCDEF"


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    names: list[str] = options.scenarios
    if options.release or options.feature_gates:
        return _run_upgrade(options)
    if not 2 <= len(names) <= len(LETTERS):
        raise reports.Unusable(f"two to {len(LETTERS)} scenarios are compared, not {len(names)}")
    runs = []
    for name in names:
        try:
            runs.append(run_scenario(read_scenario(name)))
        except (OSError, ScenarioError) as error:
            return reports.unusable(options, error, name)
    found = document(names, runs)
    reports.show(options, found, _lines(found))
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
            pair and {"cycle": pair.number, "pod": pair.pod, "first": pair.a, "other": pair.b}
            for pair in pairs
        ],
        "moved": [{"pod": pod, "nodes": nodes} for pod, nodes in moved if len(set(nodes)) > 1],
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    names = found["scenarios"]
    for letter, name, release in zip(LETTERS, names, found["releases"], strict=False):
        yield f"{letter}: {name} (Kubernetes {release})"
    yield from reports.table(LETTERS[: len(names)], found["figures"])
    for letter, parted, digest in zip(LETTERS[1:], found["divergences"], found["digests"][1:], strict=False):
        if parted is None:
            other = "" if digest == found["digests"][0] else ", on other points"
            yield f"{letter} decides as A does{other}"
        else:
            yield f"{letter} parts from A at cycle {parted['cycle']}, {parted['pod']}"
            yield f"  A: {parted['first']}"
            yield f"  {letter}: {parted['other']}"
    if found["moved"]:
        yield "pods that are not in the same place:"
    moved = (
        f"{one['pod']}: " + ", ".join(node or "no node" for node in one["nodes"]) for one in found["moved"]
    )
    yield from reports.first(moved, 40, len(found["moved"]))


# --- `compare FILE --release A --release B`: what an upgrade changes, each difference under its proved cause.


SHOWN = 10


def _run_upgrade(options: argparse.Namespace) -> int:
    if len(options.scenarios) != 1:
        raise reports.Unusable("--release: releases are compared by one scenario")
    scenario = read_scenario(options.scenarios[0])
    *earlier, last = options.release or [None]
    first, *through = [release_options.named(name, None, scenario.release) for name in earlier or [None]]
    after = release_options.named(last, options.feature_gates, scenario.release)
    found = preview(scenario, first, after, through=through or steps_between(first, after)[1:-1])
    reports.show(options, found.document(), upgrade_lines(found))
    return DIFFERENT if found.differences else SAME


def upgrade_lines(found: UpgradePreview) -> Iterator[str]:
    """What an upgrade changes, for people: every difference under its cause, and in what the releases differ."""
    yield found.sentence
    yield f"pods without a node: {found.n_unbound[0]:,} before, {found.n_unbound[1]:,} after"
    for cause in found.causes:
        proof = f"verified by reverting only {'this change' if len(cause.toggles) == 1 else 'these changes'}"
        yield f"{cause.name}: {len(cause.differences):,}; {proof}"
        for toggle in cause.toggles:
            yield f"  {toggle.known}: {toggle.text}"
        pods = (
            f"  {one.pod}: {one.before or 'no node'} -> {one.after or 'no node'}" for one in cause.differences
        )
        yield from reports.first(pods, SHOWN, len(cause.differences))
    if found.unexplained:
        yield f"no gate and no change takes these away, which is a fault here: {len(found.unexplained):,}"
    parted = found.parted
    if parted is not None:
        yield f"first at cycle {parted.number}, {parted.pod}"
        yield f"  {found.before.title}: {parted.a}"
        yield f"  {found.after.title}: {parted.b}"
        yield from (f"    {one.plugin} of {one.node}: {one.a} -> {one.b}" for one in parted.scores[:6])
    for step in found.steps:
        yield f"from {step.before.name} to {step.after.name}: {step.sentence}"
        yield from (f"  {cause.name}: {len(cause.differences):,}" for cause in step.causes)
    between = found.between
    if between:
        yield f"{found.before.name} and {found.after.name} differ in"
    yield from (f"  {one.name} ({one.known}): {one.text}" for one in between)
