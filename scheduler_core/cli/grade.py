"""`grade`: run answers to a task and say which of its checks hold.

The exit status is 0 when every check of every answer holds, 1 when not, 2 when the task or an answer cannot be read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.manifests import read_file
from scheduler_core.scenario import ScenarioError
from scheduler_core.scenario.tasks import grade, tasks, unpacked

LINK = "?a="
"""What the address of an answer has before it."""


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    known = tasks()
    if options.task == "list":
        reports.show(
            options,
            {name: {"title": task.title, "goal": task.goal} for name, task in known.items()},
            [f"{name}: {task.title}" for name, task in known.items()],
        )
        return 0
    if options.task not in known:
        raise reports.Unusable(f"there is no task {options.task!r}; `grade list` names them")
    found = {}
    for place in options.answers:
        try:
            found[place] = grade(known[options.task], _answer(place)).document()
        except (ScenarioError, ValueError) as error:
            raise reports.Unusable(f"{place}: {error}") from None
    reports.show(options, found, _lines(found))
    return 0 if all(one["points"] == one["of"] for one in found.values()) else 1


def _answer(place: str) -> str | bytes:
    """The text of a file, of a link, or of a link in a file."""
    text = place.encode() if place.startswith(("http://", "https://")) else read_file(place)
    if LINK.encode() not in text:
        return text
    return unpacked(text.decode().partition(LINK)[2].partition("#")[0].strip())


def _lines(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for place, one in found.items():
        yield f"{place}  {one['points']} of {one['of']}  {one['digest']}"
        for check in one["checks"]:
            if not check["holds"]:
                yield f"  {check['title']}: {check['found']}"
