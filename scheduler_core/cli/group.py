"""`group`: run a scenario, and tell the story of a pod group: who of it fits where, and what would place it.

The exit status is 0 when the group holds its nodes or can be scheduled, 1 when it waits, 2 when the file or the group
cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from scheduler_core.whatif.pod_group import GroupStory, UnknownGroup, group_story


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="FILE", help="scenario (YAML or JSON); - for standard input")
    parser.add_argument("group", metavar="[NAMESPACE/]NAME", help="the PodGroup")
    parser.add_argument("--json", action="store_true", help="print the story as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    name = options.scenario
    namespace, _, group = options.group.rpartition("/")
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        result = run_scenario(load_scenario(text))
        story = group_story(result.simulation.scheduler, namespace or "default", group)
    except OSError as error:
        print(f"group: {name}: {error.strerror}", file=sys.stderr)
        return 2
    except ScenarioError as error:
        for problem in error.problems[:20]:
            print(f"group: {name}: {problem}", file=sys.stderr)
        return 2
    except UnknownGroup as error:
        print(f"group: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(story.document(), ensure_ascii=False))
    else:
        _print(story)
    return 1 if story.n_missing else 0


def _print(story: GroupStory) -> None:
    print(story.sentence)
    for member in story.members:
        if member["node"]:
            said = f"{member['state']} on {member['node']}"
        elif member["fits"]:
            said = f"fits on {member['fits']}"
        else:
            said = member["heldBy"] or member["message"] or "waits"
        print(f"  {member['pod']}: {said}")
    for remedy in story.remedies:
        print(f"  -> {remedy.sentence}")
