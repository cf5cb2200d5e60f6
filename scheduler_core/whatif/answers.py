"""Answers about nodes that go and pods that are added, as documents: page, REST and command line show the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import take_away
from scheduler_core.whatif.fork import ZONE, Sandbox, copy_of_cluster, cpu_share, group_of, nodes_of
from scheduler_core.whatif.headroom import Headroom, Report, headroom, silent
from scheduler_core.whatif.node_answers import answer_backlog, answer_fewer
from scheduler_core.whatif.questions import (
    ANY_DOMAIN,
    ANY_NODE,
    BACKLOG,
    BAD,
    CONSOLIDATE,
    DRAIN,
    GOOD,
    HEADROOM,
    LOSE,
    NO_TIME,
    OUTSIDE,
    WARNING,
    Answer,
    PlanQuestion,
    any_domain_verdict,
    any_node_verdict,
    causes,
    first_of,
    headroom_verdict,
    held_words,
    lost_words,
    names_of,
    node_map,
    question_from,
    room_verdict,
    taken_away_verdict,
    told_luck,
    until_deleted,
    without_label,
)
from scheduler_core.whatif.take_away import (
    BLOCKED,
    ENDING,
    LANDS,
    LOST,
    PENDING,
    WITH_NODE,
    TakenAway,
    UnknownNodes,
    held_up,
    lose_any,
    lose_each,
    nodes_with,
    nodes_without,
    taken_away,
)
from scheduler_core.whatif.workloads import template_from, template_of, workloads

MOST_WORKLOADS: Final = 60
MOST_MORE: Final = 400
"""Where `how many more` of every workload stops counting."""
MOST_BARE_COPIES: Final = 20_000


def answer_text(document: Mapping[str, Any]) -> str:
    """An answer's bytes, the same wherever it is given."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def answer_question(
    simulation: Simulation,
    document: Mapping[str, Any],
    *,
    transport: Transport = no_transport,
    report: Report = silent,
) -> dict[str, Any]:
    """Answer a question on a copy of a cluster.

    Parameters
    ----------
    simulation : Simulation
        Read, never changed.
    document : mapping
        As `question_from` reads it.
    report : callable
        Told of each step; may raise to end the question.

    Raises
    ------
    InvalidObject
        The question cannot be read, or names what is not there.
    """
    question = question_from(document)
    report(0, 0, "copying the cluster")
    sandbox = copy_of_cluster(simulation, transport)
    asked = _ANSWERS[question.ask]
    return asked(simulation, sandbox, question, report).document(question)


# ---- take away


def _named(sandbox: Sandbox, question: PlanQuestion) -> list[str]:
    nodes = list(question.nodes)
    if question.label:
        key, _, value = question.label.partition("=")
        found = nodes_with(sandbox, key, value)
        if not found:
            raise InvalidObject("label", question.label, "is on no node")
        nodes += [name for name in found if name not in nodes]
    return nodes


def _take_away(simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report) -> Answer:
    nodes = _named(sandbox, question)
    how = take_away.DRAIN if question.ask == DRAIN else take_away.LOSS
    report(0, 1, f"without {nodes[0]}" if len(nodes) == 1 else f"without {len(nodes):,} nodes")
    try:
        found = taken_away(sandbox, how, nodes)
    except UnknownNodes as error:
        raise InvalidObject("nodes", None, str(error)) from None
    answer = Answer(taken_away_verdict(found), tone_of(found), _figures(found))
    answer.decisions = found.n_decisions
    _lines_of(answer, found)
    if question.label:
        label = question.label.partition("=")[0]
        bare = nodes_without(sandbox, label)
        if bare:
            answer.line(WARNING, without_label(label, bare, len(sandbox.nodes_in_order())), nodes=len(bare))
    answer.moves = [item.document() for item in found.pods]
    stranded = Counter(item.origin for item in found.pods if item.outcome in (PENDING, BLOCKED, LOST))
    landed = Counter(item.node for item in found.pods if item.outcome == LANDS and item.node)
    gone = set(nodes)

    def state(name: str) -> tuple[str, int, int]:
        before = cpu_share(sandbox, name)
        if name in gone:
            return "gone", before, stranded[name]
        if landed[name]:
            return "takes", found.cpu_after.get(name, before), landed[name]
        return "same", before, 0

    answer.map = node_map(sandbox, state)
    if question.ask == DRAIN:
        answer.steps = [{"drain": name} for name in nodes]
        answer.test = {"drain": {"nodes": nodes}}
    else:
        answer.steps = [{"delete": {"kind": "Node", "name": name}} for name in nodes]
    answer.leaves_out = (NO_TIME, *OUTSIDE)
    shown = _signature(found)
    answer.luck = told_luck(
        sandbox,
        found.n_decisions,
        lambda: _signature(taken_away(sandbox, how, nodes)) == shown,
        report,
    )
    return answer


def _signature(found: TakenAway) -> tuple[int, ...]:
    """What the verdict counts; which pod of several alike is concerned may differ."""
    counts = (found.count(outcome) for outcome in (LANDS, PENDING, BLOCKED, LOST))
    n_later = sum(bool(item.once_deleted) for item in found.pods)
    return (*counts, n_later, len(found.preempted))


def tone_of(found: TakenAway) -> str:
    """Good when nothing is hurt, bad when a pod has no node, even once drained ones are deleted."""
    if found.is_harmless:
        return GOOD
    return BAD if any(not item.once_deleted for item in found.of(PENDING)) else WARNING


def _figures(found: TakenAway) -> list[tuple[str, Any]]:
    """The pods of the nodes, in numbers that add up, and apart from them those that are evicted elsewhere."""
    outcomes = Counter(item.outcome for item in found.own)
    later = sum(bool(item.once_deleted) for item in found.own if item.outcome == PENDING)
    elsewhere = found.elsewhere
    figures: list[tuple[str, Any]] = [
        ("pods on them" if len(found.nodes) > 1 else "pods on it", len(found.own)),
        ("land elsewhere", outcomes[LANDS]),
    ]
    for words, number in (
        (f"find no node {until_deleted(len(found.nodes))}", later),
        ("find no node", outcomes[PENDING] - later),
        ("held up by a budget", outcomes[BLOCKED]),
        ("without an owner", outcomes[LOST]),
        ("go with their node", outcomes[WITH_NODE]),
        ("were ending", outcomes[ENDING]),
        ("evicted elsewhere", len(elsewhere)),
        ("evicted elsewhere, without a node", sum(item.outcome == PENDING for item in elsewhere)),
    ):
        if number:
            figures.append((words, number))
    return figures


def _lines_of(answer: Answer, found: TakenAway) -> None:
    """A sentence for each cause of harm."""
    later, never = (
        [item for item in found.of(PENDING) if bool(item.once_deleted) is waits] for waits in (True, False)
    )
    for reason, pods in causes(later):
        names, until = names_of(pods), until_deleted(len(found.nodes))
        finds, lands = ("finds", "it lands") if len(pods) == 1 else ("find", "they land")
        where = first_of(sorted({item.once_deleted for item in pods}))
        text = f"{names} {finds} no node {until}; then {lands} on {where}."
        answer.line(WARNING, text, reason, count=len(pods))
    for reason, pods in causes(never):
        answer.line(
            BAD, f"{names_of(pods)} {'finds' if len(pods) == 1 else 'find'} no node.", reason, count=len(pods)
        )
    for reason, pods in causes(found.of(BLOCKED)):
        answer.line(WARNING, f"{names_of(pods)} {held_words(len(pods))}.", reason, count=len(pods))
    lost = found.of(LOST)
    if lost:
        answer.line(WARNING, f"{names_of(lost)} {lost_words(len(lost))}.", count=len(lost))
    for preemptor in dict.fromkeys(item.because for item in found.preempted):
        pods = [item for item in found.preempted if item.because == preemptor]
        answer.line(WARNING, f"{preemptor} preempts {names_of(pods)}.", count=len(pods))


def _any_node(simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report) -> Answer:
    found: dict[str, TakenAway] = {}
    for one in lose_any(sandbox, report=report):
        # What lands is counted and forgotten: at 60,000 pods the rest is enough.
        found[one.nodes[0]] = one
    answers = list(found.values())
    n_good = sum(one.is_harmless for one in answers)
    n_bad = sum(bool(one.count(PENDING)) for one in answers)
    answer = Answer(any_node_verdict(answers), BAD if n_bad else GOOD if n_good == len(answers) else WARNING)
    answer.figures = [("nodes", len(answers)), ("can go", n_good), ("leave pods without a node", n_bad)]
    answer.decisions = sum(one.n_decisions for one in answers)
    hurt = sorted(
        (one for one in answers if not one.is_harmless), key=lambda one: (-one.count(PENDING), one.nodes)
    )
    for one in hurt:
        reason = next((item.reason for item in one.of(PENDING)), "")
        answer.line(
            tone_of(one), taken_away_verdict(one), reason, node=one.nodes[0], count=one.count(PENDING)
        )
    holding = held_up(sandbox)
    if holding:
        n_held = len({name for names in holding.values() for name in names})
        answer.figures.append(("wait for a budget as a drain", n_held))
    for budget, names in sorted(holding.items(), key=lambda item: (-len(item[1]), item[0])):
        nodes = "1 node" if len(names) == 1 else f"{len(names):,} nodes"
        text = f"A loss does not ask budgets, but a drain of {nodes} has to wait for {budget}."
        answer.line(WARNING, text, "The budget allows no disruption now.", nodes=len(names), budget=budget)
    answer.more = {"heldUp": holding}

    def state(name: str) -> tuple[str, int, int]:
        one, before = found[name], cpu_share(sandbox, name)
        if one.count(PENDING):
            return "strands", before, one.count(PENDING)
        if one.preempted:
            return "evicts", before, len(one.preempted)
        return ("good", before, 0) if one.is_harmless else ("held", before, one.count(LOST))

    answer.map = node_map(sandbox, state)
    answer.test = {"survives": {"anyOneNode": True}}
    answer.leaves_out = (NO_TIME, *OUTSIDE)
    return answer


def _any_domain(simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report) -> Answer:
    label = question.label
    found = dict(lose_each(sandbox, label, report=report))
    if not found:
        raise InvalidObject("label", label, "is on no node")
    worst = max((one.count(PENDING) for one in found.values()), default=0)
    tones = [tone_of(one) for one in found.values()]
    answer = Answer(
        any_domain_verdict(label, found),
        BAD if worst else GOOD if all(tone == GOOD for tone in tones) else WARNING,
    )
    answer.figures = [
        ("values", len(found)),
        ("can go", sum(not one.count(PENDING) for one in found.values())),
    ]
    answer.decisions = sum(one.n_decisions for one in found.values())
    for value, one in found.items():
        reason = next((item.reason for item in one.of(PENDING)), "")
        left, moving = one.count(PENDING), one.count(PENDING) + one.count(LANDS)
        answer.line(
            tone_of(one), f"{value}: {taken_away_verdict(one)}", reason, value=value, nodes=len(one.nodes),
            count=left, of=moving,
        )  # fmt: skip
    bare, total = nodes_without(sandbox, label), len(sandbox.nodes_in_order())
    if bare:
        answer.line(WARNING, without_label(label, bare, total), nodes=len(bare))
    of_node = {name: one for one in found.values() for name in one.nodes}

    def state(name: str) -> tuple[str, int, int]:
        before = cpu_share(sandbox, name)
        if name not in of_node:
            return "same", before, 0
        stranded = sum(item.origin == name for item in of_node[name].of(PENDING))
        return ("strands", before, stranded) if stranded else ("good", before, 0)

    answer.map = node_map(sandbox, state)
    answer.test = {"survives": {"anyZone": True} if label == ZONE else {"anyOf": label}}
    answer.leaves_out = (NO_TIME, *OUTSIDE)
    return answer


# ---- headroom


def _headroom(simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report) -> Answer:
    if not question.workload and question.pod is None:
        return _room_of_all(simulation, sandbox, report)
    named = question.workload
    if question.pod is not None:
        template = template_from(simulation, dict(question.pod))
        named = f"Pod {template.key}"
    else:
        kind, _, key = question.workload.partition(" ")
        namespace, _, name = key.partition("/")
        try:
            template = template_of(simulation, kind, namespace, name)
        except KeyError as error:
            raise InvalidObject("workload", question.workload, f"is not here: {error.args[0]}") from None
    if template.scheduler_name not in simulation.scheduler.profiles:
        reason = f"waits for the scheduler {template.scheduler_name}, which is not here"
        raise InvalidObject("workload", named, reason)
    found = headroom(sandbox, template, report=report, max_copies=MOST_BARE_COPIES)
    found.pod = named
    answer = Answer(headroom_verdict(found), GOOD if found.replicas else BAD)
    answer.figures = [("more fit", found.replicas), ("nodes take them", len(found.by_node))]
    answer.decisions = found.n_decisions
    if found.stop:
        answer.line(WARNING, "What the scheduler says of the next one:", found.stop)
    for words, counts in _where(sandbox, found):
        for name, count in counts.items():
            answer.line(GOOD, f"{count:,} in {words} {name}.", count=count)

    def state(name: str) -> tuple[str, int, int]:
        count = found.by_node.get(name, 0)
        return "takes" if count else "same", cpu_share(sandbox, name), count

    answer.map = node_map(sandbox, state)
    kind, _, key = question.workload.partition(" ")
    field_of = {"Deployment": "deployment", "StatefulSet": "statefulSet", "Pod": "pod"}
    if kind in field_of:
        answer.test = {"fits": {field_of[kind]: key, "atLeast": max(1, found.replicas)}}
    answer.leaves_out = ("Preemption does not make room for copies.", *OUTSIDE)
    shown = found.replicas
    answer.luck = told_luck(
        sandbox,
        found.n_decisions,
        lambda: headroom(sandbox, template, max_copies=MOST_BARE_COPIES).replicas == shown,
        report,
    )
    return answer


def _where(sandbox: Sandbox, found: Headroom) -> Iterable[tuple[str, Counter[str]]]:
    """Copies by zone and by group."""
    zones: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for node in nodes_of(sandbox):
        count = found.by_node.get(node.name, 0)
        if count:
            zones[node.meta.labels.get(ZONE, "no zone")] += count
            groups[group_of(node.meta.labels).name] += count
    return ("zone", zones), ("group", groups)


def _room_of_all(simulation: Simulation, sandbox: Sandbox, report: Report) -> Answer:
    every = [one for one in workloads(simulation) if one.kind not in ("DaemonSet", "Node")]
    every.sort(key=lambda one: (-len(one.pods), one.key))
    asked = every[:MOST_WORKLOADS]
    found: list[tuple[str, Headroom]] = []
    skipped = 0
    for done, workload in enumerate(asked):
        report(done, len(asked), workload.key)
        try:
            template = template_of(simulation, workload.kind, workload.namespace, workload.name)
        except InvalidObject:
            skipped += 1
            continue
        if template.scheduler_name not in simulation.scheduler.profiles:
            skipped += 1
            continue
        found.append((workload.key, headroom(sandbox, template, max_copies=MOST_MORE)))
    answer = Answer(
        room_verdict(found, len(every)), GOOD if all(room.replicas for _, room in found) else WARNING
    )
    answer.figures = [("workloads", len(every)), ("asked", len(found))]
    answer.decisions = sum(room.n_decisions for _, room in found)
    for key, room in found:
        more = f"{room.replicas:,}" if room.limit is None else f"at least {room.limit:,}"
        text = f"{more} more of {key}" if room.replicas else f"no more of {key}"
        answer.line(GOOD if room.replicas else WARNING, text, room.stop, workload=key, count=room.replicas)
    answer.leaves_out = (
        "Preemption does not make room for copies; each workload is asked about alone.",
        f"Counting stops at {MOST_MORE} copies of each, and at {MOST_WORKLOADS} workloads, those of most pods first.",
        *OUTSIDE,
    )
    if skipped:
        answer.leaves_out += (f"{skipped} workloads have no template that a scheduler here would take.",)
    return answer


_Asked = Callable[[Simulation, Sandbox, PlanQuestion, Report], Answer]
_ANSWERS: dict[str, _Asked] = {
    DRAIN: _take_away,
    LOSE: _take_away,
    ANY_NODE: _any_node,
    ANY_DOMAIN: _any_domain,
    HEADROOM: _headroom,
    BACKLOG: answer_backlog,
    CONSOLIDATE: answer_fewer,
}
