"""What the page's worker asks of the core: an answer to a text, and the text that a link carries."""

from __future__ import annotations

import json
from typing import Any

from scheduler_core.errors import InvalidManifest
from scheduler_core.objects.reading import read_posted
from scheduler_core.scenario.carried import CarriedError, carry, unfold
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.gallery import gallery_text
from scheduler_core.scenario.load import load_scenario
from scheduler_core.scenario.standalone import TooLargeForOneFile, standalone
from scheduler_core.scenario.types import API_VERSION, KIND, Scenario


def answer(text: str) -> str:
    """The answer to a scenario or to manifests, as JSON.

    It has `html`, the standalone file of the replay, `line`, which a link carries, and the digests; or `problems`,
    each with `line` (from 1, or None) and `words`.
    """
    try:
        scenario = scenario_of(text)
        shown = standalone(scenario)
    except ScenarioError as error:
        return json.dumps({"problems": [{"line": one.line, "words": str(one)} for one in error.problems]})
    except TooLargeForOneFile as error:
        return json.dumps({"problems": [{"line": None, "words": str(error)}]})
    line = carry(scenario)
    return json.dumps(
        {"html": shown.html, "line": line, "digest": line.split(".")[1], "decisions": shown.run.digest}
    )


def scenario_of(text: str) -> Scenario:
    """The scenario of a text; of manifests one in which their pending pods are scheduled.

    Raises
    ------
    ScenarioError
    """
    try:
        posted = read_posted(text)
    except InvalidManifest as error:
        raise ScenarioError([Problem(error.path, error.words, None, error.line, error.column)]) from None
    if len(posted) == 1 and (posted[0].kind in ("", KIND)):
        return load_scenario(text)
    manifests: list[dict[str, Any]] = [one.manifest for one in posted]
    return load_scenario({"apiVersion": API_VERSION, "kind": KIND, "objects": manifests})


def lesson(name: str) -> str:
    """The text of a lesson, as JSON: `text`."""
    return json.dumps({"text": gallery_text(name)})


def carried(line: str) -> str:
    """The text of the scenario that a link carries, as JSON: `text`, or `problems`."""
    try:
        return json.dumps({"text": unfold(line).text})
    except CarriedError as error:
        return json.dumps({"problems": [{"line": None, "words": str(error)}]})
