"""`plan`: questions about a cluster: what may be drained or lost, how many more fit, which nodes are wanted or spare,
what it would take to place a pod.

The file is a dump (`kubectl get nodes,pods,... -A -o yaml`), or a scenario, which is run to its end first. The exit
status is 0 when nothing is hurt (or something fits), 1 when it is, 2 when a file or a name cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scheduler_core.cli import reports
from scheduler_core.cli.manifests import named_by_file, notes_by_file, read_manifests, scenario_of_dump
from scheduler_core.errors import InvalidManifest, InvalidObject
from scheduler_core.framework.record import BOUND
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.reading import Posted
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import Scenario, ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.types import KIND
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.answers import answer_question, answer_text
from scheduler_core.whatif.prices import read_prices
from scheduler_core.whatif.questions import (
    GOOD,
)
from scheduler_core.whatif.take_away import BLOCKED, ENDING, LOST, PENDING, WITH_NODE
from scheduler_core.whatif.workload_edits import NotPending, edits_document, pending_pod

REFUSED = (InvalidObject, NotPending)
HARMLESS, HURT = 0, 1
_SHOWN = 40
_OUTCOMES = {
    PENDING: "finds no node",
    BLOCKED: "held up by a budget",
    LOST: "lost: nothing recreates it",
    WITH_NODE: "goes with its node",
    ENDING: "was terminating",
}
WHAT_WOULD_IT_TAKE = "what-would-it-take"


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    simulation = _cluster(options.file, options.release)
    if options.question == WHAT_WOULD_IT_TAKE:
        namespace, _, name = options.pod.rpartition("/")
        answer: Mapping[str, Any] = edits_document(
            simulation, pending_pod(simulation, namespace or "default", name)
        )
        lines, harmless = _edit_lines(answer), answer["outcome"] == BOUND
    else:
        answer = answer_question(simulation, _question(options))
        lines, harmless = _lines(answer), answer["tone"] == GOOD
    sys.stdout.write(answer_text(answer) if options.json else "\n".join([*lines, ""]))
    # Beside an answer whose bytes are those of the site.
    print(f"Decided as {simulation.release.title}.", file=sys.stderr if options.json else sys.stdout)
    return HARMLESS if harmless else HURT


def _cluster(name: str, release: str | None) -> Simulation:
    """The cluster of a dump, or that of a scenario at its end."""
    posted, notes = read_manifests([name], scenarios=True)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if not posted:
        raise reports.Unusable(f"{name}: there is no object")
    if posted[0].kind == KIND:
        if release is not None:
            raise reports.Unusable("--release: a scenario says its own (kubernetesRelease)")
        return _ran(load_scenario(posted[0].manifest))
    manifests = [item.manifest for item in posted]
    body = scenario_of_dump(manifests, kubernetesRelease=release or DEFAULT.name)
    try:
        return _ran(load_scenario(body), dict(enumerate(posted)))
    except ScenarioError as error:
        raise named_by_file(error, dict(enumerate(posted))) from None


def _ran(scenario: Scenario, came_from: Mapping[int, Posted] | None = None) -> Simulation:
    """The scenario's end; objects without effect become notes of the answer."""
    run = run_scenario(scenario, full_traces=False)
    for note in notes_by_file(run.notes, came_from or {}):
        print(f"note: {note}", file=sys.stderr)
    return run.simulation


def _question(options: argparse.Namespace) -> dict[str, Any]:
    """The question as a document."""
    found: dict[str, Any] = {"ask": options.question}
    for name in ("nodes", "label"):
        if getattr(options, name, None):
            found[name] = getattr(options, name)
    if getattr(options, "workload", None):
        kind, _, key = options.workload.partition("/")
        found["workload"] = f"{kind} {key}"
    if getattr(options, "like", None):
        namespace, _, name = options.like.rpartition("/")
        found["workload"] = f"Pod {namespace or 'default'}/{name}"
    if getattr(options, "pod", None):
        try:
            documents = load_documents(Path(options.pod).read_bytes())
        except InvalidManifest as error:
            raise reports.Unusable(f"{options.pod}: {error.in_text}") from None
        if len(documents) != 1 or documents[0].value.get("kind") != "Pod":
            raise reports.Unusable(f"{options.pod}: one manifest of kind Pod is needed")
        found["pod"] = documents[0].value
    if getattr(options, "prices", None):
        found["prices"] = read_prices(_text_of(options.prices))
    return found


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise reports.Unusable(f"{name}: byte {error.start} is not UTF-8") from None


def _lines(answer: Mapping[str, Any]) -> Iterator[str]:
    yield answer["verdict"]
    for line in answer["lines"][:_SHOWN]:
        where = f"{line['node']}: " if "node" in line else ""
        yield f"  {where}{line['text']}"
        if line["note"]:
            yield f"    {line['note']}"
    yield from reports.first((), _SHOWN, answer["nLines"], "lines ")
    yield from reports.first(map(_move, answer["moves"]), _SHOWN, answer["nMoves"], "pods ")
    luck = answer["luck"]
    if luck is not None and luck["holds"] < luck["seeds"]:
        yield f"It holds with {luck['holds']} of {luck['seeds']} seeds."


def _move(move: Mapping[str, Any]) -> str:
    preempted = f", preempted by {move['because']}" if move["because"] else ""
    came_from = f"{move['from']} -> " if move["from"] else ""
    return f"{move['pod']}: {came_from}{_OUTCOMES.get(move['to'], move['to'])}{preempted}"


def _edit_lines(found: Mapping[str, Any]) -> Iterator[str]:
    if found["node"]:
        yield f"{found['pod']} fits as things are, on {found['node']}."
    else:
        yield f"{found['pod']} waits: {found['message']}"
        yield from (f"  {cause}" for cause in found["causes"])
        if found["editedIn"]:
            yield f"  Edits of the pod are made in the template of {found['editedIn']}."
    for edit in found["edits"][:_SHOWN]:
        all_of_it = (
            f"; edited in all {edit['of']} pods, it places {edit['placed']} of them"
            if edit["of"] > 1 and edit["placed"]
            else ""
        )
        yield f"  {edit['title']}, then it goes to {edit['node']}{all_of_it}"
        if edit["note"]:
            yield f"    {edit['note']}"
    yield from reports.first((), _SHOWN, len(found["edits"]), "edits ")
    if found["nUnlooked"]:
        yield f"  {found['nUnlooked']} of them were not tried for all {found['nAlike']} pods: the limit was reached"
    if not found["edits"] and not found["node"]:
        yield f"  none of the {found['nTried']:,} edits that were tried helps"
