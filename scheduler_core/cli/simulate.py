"""`simulate`: what the scheduler does with the pending pods of a dump or of manifests.

Files are dumps (`kubectl get nodes,pods,... -A -o yaml`), manifests, or folders of them. Workloads make their pods, all
pending pods are scheduled, and time goes on until nothing is left to happen. The exit status is 0 when every pod has a
node, 1 when some wait, 2 when a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from scheduler_core.cli import release_options, reports
from scheduler_core.cli.manifests import (
    add_config_conversion,
    named_by_file,
    notes_by_file,
    read_configuration,
    read_manifests,
    scenario_of_dump,
)
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import ScenarioError, ScenarioRun, load_scenario, run_scenario

ALL_BOUND, SOME_WAIT = 0, 1
_SHOWN = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="dump, manifests (YAML or JSON, also packed by gzip) or a folder; - for standard input",
    )
    parser.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration, or a legacy Policy")
    add_config_conversion(parser)
    parser.add_argument("--seed", type=int, default=0, help="decides between equals (0)")
    release_options.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    try:
        found = _run(options)
    except (OSError, ScenarioError) as error:
        return reports.unusable(options, error)
    result = _result(found)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    print(json.dumps(result, ensure_ascii=False, indent=1) if options.json else _text(result))
    return SOME_WAIT if result["waiting"] else ALL_BOUND


def _run(options: argparse.Namespace) -> ScenarioRun:
    posted, notes = read_manifests(options.files)
    document = scenario_of_dump(
        [item.manifest for item in posted],
        kubernetesRelease=options.release or DEFAULT.name,
        seed=options.seed,
    )
    if options.config:
        release = release_options.release_of(options, DEFAULT)
        document["scheduler"] = read_configuration(options.config, release, convert=options.convert_config)
    try:
        scenario = release_options.with_release(load_scenario(document), options)
        found = run_scenario(scenario, full_traces=False)
    except ScenarioError as error:
        raise named_by_file(error, dict(enumerate(posted))) from None
    found.notes[:] = [*notes, *notes_by_file(found.notes, dict(enumerate(posted)))]
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


def _text(result: dict[str, Any]) -> str:
    bound, waiting = result["bound"], result["waiting"]
    count = f"{len(bound):,} pod{'' if len(bound) == 1 else 's'} bound in {result['cycles']:,} cycles"
    rest = f"{len(waiting):,} wait{'s' if len(waiting) == 1 else ''}" if waiting else "none waits"
    lines = [f"{count}; {rest}. Kubernetes {result['kubernetesRelease']}, seed {result['seed']}."]
    lines += [f"  {one['pod']} -> {one['node']}" for one in bound[:_SHOWN]]
    if len(bound) > _SHOWN:
        lines.append(f"  and {len(bound) - _SHOWN:,} more")
    lines += [f"  {one['pod']} evicted for {one['for']}" for one in result["evicted"][:_SHOWN]]
    return "\n".join([*lines, *reports.waiting_lines({one["pod"]: one["message"] for one in waiting})])
