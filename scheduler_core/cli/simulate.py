"""`simulate`: what the scheduler does with the pending pods of a dump or of manifests.

Files are dumps (`kubectl get nodes,pods,... -A -o yaml`), manifests, or folders of them. Workloads make their pods, all
pending pods are scheduled, and time goes on until nothing is left to happen. The exit status is 0 when every pod has a
node, 1 when some wait, 2 when a file cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from scheduler_core.cli import manifests, release_options, reports
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import ScenarioError, ScenarioRun, load_scenario, run_scenario

ALL_BOUND, SOME_WAIT = 0, 1
_SHOWN = 40


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    found = _run(options)
    result = _result(found)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    reports.show(options, result, _lines(result), indent=1)
    return SOME_WAIT if result["waiting"] else ALL_BOUND


def _run(options: argparse.Namespace) -> ScenarioRun:
    posted, notes = manifests.read_manifests(options.files)
    document = manifests.scenario_of_dump(
        [item.manifest for item in posted],
        kubernetesRelease=options.release or DEFAULT.name,
        seed=options.seed,
    )
    if options.config:
        release = release_options.named(options.release, options.feature_gates, DEFAULT)
        document["scheduler"] = manifests.read_configuration(
            options.config, release, convert=options.convert_config
        )
    try:
        scenario = release_options.with_release(load_scenario(document), options)
        found = run_scenario(scenario, full_traces=False)
    except ScenarioError as error:
        raise manifests.named_by_file(error, dict(enumerate(posted))) from None
    found.notes[:] = [*notes, *manifests.notes_by_file(found.notes, dict(enumerate(posted)))]
    return found


def _result(found: ScenarioRun) -> dict[str, Any]:
    return {
        "kubernetesRelease": found.release.name,
        "seed": found.scenario.seed,
        "cycles": len(found.cycles),
        "bound": [{"pod": one.pod, "node": one.node} for one in found.placements],
        "evicted": [{"pod": one.pod, "for": one.preemptor} for one in found.evictions],
        "waiting": [{"pod": pod, "message": reason} for pod, reason in found.waiting().items()],
        "digest": found.digest,
    }


def _lines(result: dict[str, Any]) -> Iterator[str]:
    bound, waiting = result["bound"], result["waiting"]
    count = f"{len(bound):,} pod{'' if len(bound) == 1 else 's'} bound in {result['cycles']:,} cycles"
    rest = f"{len(waiting):,} wait{'s' if len(waiting) == 1 else ''}" if waiting else "none waits"
    yield f"{count}; {rest}. Kubernetes {result['kubernetesRelease']}, seed {result['seed']}."
    yield from reports.first((f"{one['pod']} -> {one['node']}" for one in bound), _SHOWN, len(bound))
    yield from (f"  {one['pod']} evicted for {one['for']}" for one in result["evicted"][:_SHOWN])
    yield from reports.waiting_lines({one["pod"]: one["message"] for one in waiting})
