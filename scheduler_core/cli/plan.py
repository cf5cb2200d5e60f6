"""`plan`: questions about a cluster: what may be drained or lost, how many more fit, which nodes are wanted or spare,
what it would take to place a pod.

The file is a dump (`kubectl get nodes,pods,... -A -o yaml`), or a scenario, which is run to its end first. The exit
status is 0 when nothing is hurt (or something fits), 1 when it is, 2 when a file or a name cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
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
    ANY_DOMAIN,
    ANY_NODE,
    BACKLOG,
    CONSOLIDATE,
    DRAIN,
    GOOD,
    HEADROOM,
    LOSE,
)
from scheduler_core.whatif.take_away import BLOCKED, ENDING, LOST, PENDING, WITH_NODE
from scheduler_core.whatif.workload_edits import NotPending, edits_document, pending_pod

HARMLESS, HURT, UNUSABLE = 0, 1, 2
_SHOWN = 40
_OUTCOMES = {
    PENDING: "finds no node",
    BLOCKED: "held up by a budget",
    LOST: "lost: nothing recreates it",
    WITH_NODE: "goes with its node",
    ENDING: "was terminating",
}
WHAT_WOULD_IT_TAKE = "what-would-it-take"


class _Unusable(ValueError):
    """What the command line names cannot be used."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="dump or scenario (YAML or JSON); - for standard input")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "--release", help=f"the Kubernetes release that decides about a dump ({DEFAULT.name})"
    )
    questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for name, words in (
        (DRAIN, "cordon these nodes and evict their pods, as the budgets allow"),
        (LOSE, "these nodes are gone at once"),
    ):
        question = questions.add_parser(name, help=words)
        question.add_argument("nodes", metavar="NODE", nargs="*")
        question.add_argument(
            "-l", "--label", metavar="KEY=VALUE", help="all nodes with this label: a zone, a rack, a pool"
        )
    questions.add_parser(ANY_NODE, help="the loss of each node alone")
    question = questions.add_parser(ANY_DOMAIN, help="the loss of each zone, rack or pool alone")
    question.add_argument("-l", "--label", metavar="KEY", help="the label that tells them apart (the zone)")
    question = questions.add_parser(
        HEADROOM, help="how many more of a pod fit, and what stops the next one; of every workload by default"
    )
    template = question.add_mutually_exclusive_group()
    template.add_argument("--pod", metavar="FILE", help="manifest of the pod")
    template.add_argument("--like", metavar="NAMESPACE/NAME", help="a pod of the cluster")
    template.add_argument("--workload", metavar="KIND/NAMESPACE/NAME", help="a Deployment, StatefulSet, ...")
    for name, words in (
        (BACKLOG, "the cheapest nodes, and the edits beside them, that place all pending pods"),
        (CONSOLIDATE, "which nodes can go, in which order, and what keeps the rest"),
    ):
        question = questions.add_parser(name, help=words)
        question.add_argument("--prices", metavar="FILE", help="node types and prices, YAML or CSV")
        if name == BACKLOG:
            question.add_argument(
                "--workload", metavar="KIND/NAMESPACE/NAME", help="only the pending pods of a Deployment, ..."
            )

    question = questions.add_parser(
        WHAT_WOULD_IT_TAKE, help="edits after which a pending pod finds a node, those that hurt least first"
    )
    question.add_argument("pod", metavar="NAMESPACE/NAME", help="a pending pod of the cluster")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    try:
        simulation = _cluster(options.file, options.release)
        if options.question == WHAT_WOULD_IT_TAKE:
            outcome = _what_would_it_take(simulation, options)
            _print_release(simulation, options)
            return outcome
        answer = answer_question(simulation, _question(options))
        if options.json:
            sys.stdout.write(answer_text(answer))
        else:
            _print(answer)
        _print_release(simulation, options)
        return HARMLESS if answer["tone"] == GOOD else HURT
    except InvalidManifest as error:
        return reports.unusable(options, f"{options.pod}: {error.in_text}")
    except (OSError, InvalidObject, ScenarioError, _Unusable, NotPending) as error:
        return reports.unusable(options, error, options.file)


def _cluster(name: str, release: str | None) -> Simulation:
    """The cluster of a dump, or that of a scenario at its end."""
    posted, notes = read_manifests([name], scenarios=True)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if not posted:
        raise _Unusable(f"{name}: there is no object")
    if posted[0].kind == KIND:
        if release is not None:
            raise _Unusable("--release: a scenario says its own (kubernetesRelease)")
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


def _print_release(simulation: Simulation, options: argparse.Namespace) -> None:
    """Name the release that decided, beside an answer whose bytes are those of the site."""
    print(f"Decided as {simulation.release.title}.", file=sys.stderr if options.json else sys.stdout)


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
        documents = load_documents(Path(options.pod).read_bytes())
        if len(documents) != 1 or documents[0].value.get("kind") != "Pod":
            raise _Unusable(f"{options.pod}: one manifest of kind Pod is needed")
        found["pod"] = documents[0].value
    if getattr(options, "prices", None):
        found["prices"] = read_prices(_text_of(options.prices))
    return found


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _Unusable(f"{name}: byte {error.start} is not UTF-8") from None


def _print(answer: Mapping[str, Any]) -> None:
    print(answer["verdict"])
    for line in answer["lines"][:_SHOWN]:
        where = f"{line['node']}: " if "node" in line else ""
        print(f"  {where}{line['text']}")
        if line["note"]:
            print(f"    {line['note']}")
    _and_more(answer["nLines"], "lines")
    for move in answer["moves"][:_SHOWN]:
        preempted = f", preempted by {move['because']}" if move["because"] else ""
        came_from = f"{move['from']} -> " if move["from"] else ""
        print(f"  {move['pod']}: {came_from}{_OUTCOMES.get(move['to'], move['to'])}{preempted}")
    _and_more(answer["nMoves"], "pods")
    luck = answer["luck"]
    if luck is not None and luck["holds"] < luck["seeds"]:
        print(f"It holds with {luck['holds']} of {luck['seeds']} seeds.")


def _what_would_it_take(simulation: Simulation, options: argparse.Namespace) -> int:
    namespace, _, name = options.pod.rpartition("/")
    found = edits_document(simulation, pending_pod(simulation, namespace or "default", name))
    if options.json:
        sys.stdout.write(answer_text(found))
        return HARMLESS if found["outcome"] == BOUND else HURT
    if found["node"]:
        print(f"{found['pod']} fits as things are, on {found['node']}.")
    else:
        print(f"{found['pod']} waits: {found['message']}")
        for cause in found["causes"]:
            print(f"  {cause}")
        if found["editedIn"]:
            print(f"  Edits of the pod are made in the template of {found['editedIn']}.")
    for edit in found["edits"][:_SHOWN]:
        all_of_it = (
            f"; edited in all {edit['of']} pods, it places {edit['placed']} of them"
            if edit["of"] > 1 and edit["placed"]
            else ""
        )
        print(f"  {edit['title']}, then it goes to {edit['node']}{all_of_it}")
        if edit["note"]:
            print(f"    {edit['note']}")
    _and_more(len(found["edits"]), "edits")
    if found["nUnlooked"]:
        print(
            f"  {found['nUnlooked']} of them were not tried for all {found['nAlike']} pods: the limit was reached"
        )
    if not found["edits"] and not found["node"]:
        print(f"  none of the {found['nTried']:,} edits that were tried helps")
    return HARMLESS if found["outcome"] == BOUND else HURT


def _and_more(number: int, what: str) -> None:
    if number > _SHOWN:
        print(f"  and {number - _SHOWN} {what} more")
