"""`group`: run a scenario, and tell the story of a pod group: who of it fits where, and what would place it.

The exit status is 0 when the group holds its nodes or can be scheduled, 1 when it waits, 2 when the file or the group
cannot be used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.manifests import read_scenario
from scheduler_core.scenario import ScenarioError, run_scenario
from scheduler_core.whatif.pod_group import UnknownGroup, group_story


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="FILE", help="scenario (YAML or JSON); - for standard input")
    parser.add_argument("group", metavar="[NAMESPACE/]NAME", help="the PodGroup")
    parser.add_argument("--json", action="store_true", help="print the story as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    name = options.scenario
    namespace, _, group = options.group.rpartition("/")
    try:
        result = run_scenario(read_scenario(name))
        story = group_story(result.simulation.scheduler, namespace or "default", group)
    except (OSError, ScenarioError, UnknownGroup) as error:
        return reports.unusable(options, error, name)
    if options.json:
        print(json.dumps(story, ensure_ascii=False))
    else:
        _print(story)
    return 1 if story["missing"] else 0


def _print(story: Mapping[str, Any]) -> None:
    print(story["sentence"])
    for member in story["members"]:
        if member["node"]:
            said = f"{member['state']} on {member['node']}"
        elif member["fits"]:
            said = f"fits on {member['fits']}"
        else:
            said = member["heldBy"] or member["message"] or "waits"
        print(f"  {member['pod']}: {said}")
    for remedy in story["remedies"]:
        print(f"  -> {remedy['sentence']}")
