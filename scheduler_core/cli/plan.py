"""`plan`: questions about a cluster: what may be drained or lost, how many more fit, which nodes are wanted or spare,
why pods wait and what places them.

The file is a dump (`kubectl get nodes,pods,... -A -o yaml`), or a scenario, which is run to its end first. The exit
status is 0 when nothing is hurt (or something fits), 1 when it is, 2 when a file or a name cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler_core.autoscaler.pasted import read_autoscaler
from scheduler_core.cli import reports
from scheduler_core.cli.manifests import (
    named_by_file,
    notes_by_file,
    read_manifests,
    scenario_among,
    scenario_of_dump,
)
from scheduler_core.descheduler.policy import PolicyError, read_policy
from scheduler_core.errors import InvalidManifest, InvalidObject
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.prices import read_prices
from scheduler_core.objects.reading import Posted
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario import Scenario, ScenarioError, load_scenario, run_scenario
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.answers import answer_question, answer_text
from scheduler_core.whatif.fix import NotPending, fix
from scheduler_core.whatif.fixes import FixAnswer, first_of
from scheduler_core.whatif.questions import DRAIN, GOOD, LOSE, read_variants
from scheduler_core.whatif.take_away import BLOCKED, ENDING, LOST, PENDING, WITH_NODE

REFUSED = (InvalidObject, NotPending)
HARMLESS, HURT = 0, 1
_SHOWN = 40
_OUTCOMES = {
    PENDING: ("finds no node", "find no node"),
    BLOCKED: ("held up by a budget", "are held up by a budget"),
    LOST: ("lost: nothing recreates it", "are lost: nothing recreates them"),
    WITH_NODE: ("goes with its node", "go with their nodes"),
    ENDING: ("was terminating", "were terminating"),
}
FIX = "fix"
_KINDS = {
    "keeps": "Keeps what was asked for",
    "changes": "Changes what was asked for",
    "harms": "Harms other pods",
}


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    simulation = _cluster(options.file, options.release)
    if options.question == FIX:
        found = fix(simulation, _question(options))
        answer: Mapping[str, Any] = found.document()
        lines, harmless = _fix_lines(found), bool(found.node or not found.pods)
    else:
        answer = answer_question(simulation, _question(options))
        lines, harmless = _lines(answer), answer["tone"] == GOOD
    sys.stdout.write(answer_text(answer) if options.json else "\n".join([*lines, ""]))
    # Beside an answer whose bytes are those of the site.
    print(f"Decided as {simulation.release.title}.", file=sys.stderr if options.json else sys.stdout)
    return HARMLESS if harmless else HURT


def _cluster(name: str, release: str | None) -> Simulation:
    """The cluster of a dump, or that of a scenario at its end."""
    scenario, came_from = read_cluster(name, release)
    try:
        return _ran(scenario, came_from)
    except ScenarioError as error:
        raise named_by_file(error, came_from) from None


def read_cluster(name: str, release: str | None) -> tuple[Scenario, Mapping[int, Posted]]:
    """A scenario, or one of the objects of a dump, with the place of each."""
    posted, notes = read_manifests([name], scenarios=True)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if not posted:
        raise reports.Unusable(f"{name}: there is no object")
    if (whole := scenario_among(posted)) is not None:
        if release is not None:
            raise reports.Unusable("--release: a scenario says its own (kubernetesRelease)")
        try:
            return load_scenario(whole.manifest), {}
        except ScenarioError as error:
            raise named_by_file(error, {}, whole) from None
    manifests = [item.manifest for item in posted]
    body = scenario_of_dump(manifests, kubernetesRelease=release or DEFAULT.name)
    try:
        return load_scenario(body), dict(enumerate(posted))
    except ScenarioError as error:
        raise named_by_file(error, dict(enumerate(posted))) from None


def _ran(scenario: Scenario, came_from: Mapping[int, Posted]) -> Simulation:
    """The scenario's end; objects without effect become notes of the answer."""
    run = run_scenario(scenario, full_traces=False)
    for note in notes_by_file(run.notes, came_from):
        print(f"note: {note}", file=sys.stderr)
    return run.simulation


def _question(options: argparse.Namespace) -> dict[str, Any]:
    """The question as a document."""
    found: dict[str, Any] = {} if options.question == FIX else {"ask": options.question}
    if getattr(options, "subject", None):
        namespace, _, name = options.subject.rpartition("/")
        found["pod"] = f"{namespace or 'default'}/{name}"
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
    if getattr(options, "policy", None):
        try:
            found["policy"] = read_policy(Path(options.policy).read_bytes())
        except PolicyError as error:
            raise reports.Unusable(f"{options.policy}: {error}") from None
    if getattr(options, "autoscaler", None):
        found["autoscaler"] = read_autoscaler(Path(options.autoscaler).read_bytes())
    if getattr(options, "variants", None):
        found |= {"variants": read_variants(Path(options.variants).read_bytes()), "time": options.time}
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
    yield from _counts(answer)
    if "comparison" in answer:
        yield from reports.table(answer["comparison"]["variants"], answer["comparison"]["figures"])
    moves = list(_moves(answer["moves"]))
    yield from reports.first(moves, _SHOWN, len(moves), "groups of pods ")
    if (hidden := answer["nMoves"] - len(answer["moves"])) > 0:
        yield f"  and {hidden:,} pods more"
    luck = answer["luck"]
    if luck is not None and luck["holds"] < luck["seeds"]:
        yield f"It holds with {luck['holds']} of {luck['seeds']} seeds."


def _counts(answer: Mapping[str, Any]) -> Iterator[str]:
    """What becomes of the pods of nodes that go, in numbers that add up."""
    if answer["question"]["ask"] not in (DRAIN, LOSE):
        return
    whole, *parts = ((one["words"], one["value"]) for one in answer["figures"])
    own = [f"{words}: {number:,}" for words, number in parts if number and not words.startswith("evicted")]
    if own:
        yield f"  {whole[0].capitalize()}: {whole[1]:,} ({', '.join(own)})."
    yield from (
        f"  {words.capitalize()}: {number:,}." for words, number in parts if words.startswith("evicted")
    )


def _moves(moves: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Pods of one owner that end alike on a line, with where they go."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for move in moves:
        namespace = move["pod"].partition("/")[0]
        whose = (namespace, move["owner"]) if move["owner"] else ("", move["pod"])
        groups.setdefault((*whose, move["outcome"], move["because"]), []).append(move)
    for (namespace, owner, _, because), same in groups.items():
        preempted, outcome = f", preempted by {because}" if because else "", _OUTCOMES.get(same[0]["to"])
        if len(same) == 1:
            came_from = f"{same[0]['from']} -> " if same[0]["from"] else ""
            yield f"{same[0]['pod']}: {came_from}{outcome[0] if outcome else same[0]['to']}{preempted}"
            continue
        kind, _, name = owner.partition(" ")
        ends = Counter(move["to"] for move in same).most_common()
        nodes = [f"{end} ({count})" if count > 1 else end for end, count in ends]
        where = outcome[1] if outcome else f"land on {first_of(nodes)}"
        yield f"{kind} {namespace}/{name}: {len(same):,} pods {where}{preempted}"


def _fix_lines(found: FixAnswer, indent: str = "") -> Iterator[str]:
    yield f"{indent}{found.headline}"
    yield from (f"{indent}  {cause}" for cause in found.causes if cause != found.headline)
    alike: dict[str, list[str]] = {}
    for group in found.groups:
        alike.setdefault(group.sentence, []).append(f"{group.nodes:,} × {group.shape or group.pool}")
    yield from (f"{indent}  {', '.join(nodes)}: {sentence}" for sentence, nodes in alike.items())
    if found.best is not None:
        bound = f"; {found.bound_words}" if found.bound_words else ""
        yield f"{indent}  Best fix: {found.best.title}, {found.best.price}{bound}"
    elif found.pods and not found.node:
        yield f"{indent}  Nothing that keeps what was asked for places it."
    kind = ""
    for one in found.fixes[:_SHOWN]:
        if one.kind != kind:
            kind = one.kind
            yield f"{indent}  {_KINDS[kind]}:"
        yield f"{indent}    {one.title}: {one.placed} of {one.of} placed, {one.price}, {one.harm}"
        if one.note:
            yield f"{indent}      {one.note}"
    if found.limit:
        yield f"{indent}  Not looked for: {found.untried} changes; {found.limit}"
    for workload in found.workloads:
        yield f"{indent}{workload.name}:"
        yield from _fix_lines(workload, f"{indent}  ")
