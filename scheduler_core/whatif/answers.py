"""Answers about nodes that go and pods that are added, as documents: page, REST and command line show the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import take_away
from scheduler_core.whatif.fork import ZONE, Fork, Report, group_of, silent
from scheduler_core.whatif.headroom import Headroom, headroom
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
    counted,
    finds,
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
    OF_THE_NODE,
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
from scheduler_core.whatif.workloads import template_from, template_like, template_of, workloads

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
    fork = Fork(simulation.scheduler, transport=transport, seed=0)
    asked = _ANSWERS[question.ask]
    return asked(simulation, fork, question, report).document(question)


# ---- take away


def _named(fork: Fork, question: PlanQuestion) -> list[str]:
    nodes = list(question.nodes)
    if question.label:
        key, _, value = question.label.partition("=")
        found = nodes_with(fork, key, value)
        if not found:
            raise InvalidObject("label", question.label, "is on no node")
        nodes += [name for name in found if name not in nodes]
    return nodes


def _take_away(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    nodes = _named(fork, question)
    how = take_away.DRAIN if question.ask == DRAIN else take_away.LOSS
    report(0, 1, f"without {nodes[0]}" if len(nodes) == 1 else f"without {len(nodes):,} nodes")
    try:
        found = taken_away(fork, how, nodes)
    except UnknownNodes as error:
        raise InvalidObject("nodes", None, str(error)) from None
    answer = Answer(taken_away_verdict(found), tone_of(found), _figures(found), decisions=found.n_decisions)
    answer.leaves_out = (NO_TIME, *OUTSIDE)
    _lines_of(answer, found)
    if question.label:
        _tell_bare(answer, fork, question.label.partition("=")[0])
    answer.moves = [item.document() for item in found.pods]
    stranded = Counter(item.origin for item in found.pods if item.outcome in (PENDING, BLOCKED, LOST))
    landed = Counter(item.node for item in found.pods if item.outcome == LANDS and item.node)
    gone = set(nodes)

    def state(name: str) -> tuple[str, int]:
        if name in gone:
            return "gone", stranded[name]
        return "takes" if landed[name] else "same", landed[name]

    cpu_after = {name: share for name, share in found.cpu_after.items() if landed[name] and name not in gone}
    answer.map = node_map(fork, state, cpu_after)
    if question.ask == DRAIN:
        answer.steps = [{"drain": name} for name in nodes]
        answer.test = {"drain": {"nodes": nodes}}
    else:
        answer.steps = [{"delete": {"kind": "Node", "name": name}} for name in nodes]
    shown = _signature(found)
    answer.luck = told_luck(
        fork, found.n_decisions, lambda: _signature(taken_away(fork, how, nodes)) == shown, report
    )
    return answer


def _tell_bare(answer: Answer, fork: Fork, label: str) -> None:
    """Nodes without a label, which no loss of one of its values takes away."""
    bare = nodes_without(fork, label)
    if bare:
        answer.line(WARNING, without_label(label, bare, len(fork.nodes_in_order())), nodes=len(bare))


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
        lands = "it lands" if len(pods) == 1 else "they land"
        then = f"{lands} on {first_of(sorted({item.once_deleted for item in pods}))}"
        text = f"{names_of(pods)} {finds(len(pods))} no node {until_deleted(len(found.nodes))}; then {then}."
        answer.line(WARNING, text, reason, count=len(pods))
    for reason, pods in causes(never):
        answer.line(BAD, f"{names_of(pods)} {finds(len(pods))} no node.", reason, count=len(pods))
    for reason, pods in causes(found.of(BLOCKED)):
        answer.line(WARNING, f"{names_of(pods)} {held_words(len(pods))}.", reason, count=len(pods))
    lost = found.of(LOST)
    if lost:
        answer.line(WARNING, f"{names_of(lost)} {lost_words(len(lost))}.", count=len(lost))
    for preemptor in dict.fromkeys(item.because for item in found.preempted):
        pods = [item for item in found.preempted if item.because == preemptor]
        answer.line(WARNING, f"{preemptor} preempts {names_of(pods)}.", count=len(pods))


def _lost(verdict: str, answers: Sequence[TakenAway], tone: str, noun: str) -> Answer:
    """The beginning of an answer about losses, each alone."""
    answer = Answer(verdict, tone, decisions=sum(one.n_decisions for one in answers))
    answer.figures = [(noun, len(answers))]
    answer.leaves_out = (NO_TIME, *OUTSIDE)
    return answer


def _tell_loss(answer: Answer, one: TakenAway, text: str, **more: Any) -> None:
    reason = next((item.reason for item in one.of(PENDING)), "")
    answer.line(tone_of(one), text, reason, count=one.count(PENDING), **more)


def _any_node(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    found = {one.nodes[0]: one for one in lose_any(fork, report=report)}
    answers = list(found.values())
    n_good = sum(one.is_harmless for one in answers)
    n_bad = sum(bool(one.count(PENDING)) for one in answers)
    tone = BAD if n_bad else GOOD if n_good == len(answers) else WARNING
    answer = _lost(any_node_verdict(answers), answers, tone, "nodes")
    answer.figures += [("can go", n_good), ("leave pods without a node", n_bad)]
    hurt = (one for one in answers if not one.is_harmless)
    for one in sorted(hurt, key=lambda one: (-one.count(PENDING), one.nodes)):
        _tell_loss(answer, one, taken_away_verdict(one), node=one.nodes[0])
    holding = held_up(fork)
    if holding:
        n_held = len({name for names in holding.values() for name in names})
        answer.figures.append(("wait for a budget as a drain", n_held))
    for budget, names in sorted(holding.items(), key=lambda item: (-len(item[1]), item[0])):
        nodes = counted(len(names), "node")
        text = f"A loss does not ask budgets, but a drain of {nodes} has to wait for {budget}."
        answer.line(WARNING, text, "The budget allows no disruption now.", nodes=len(names), budget=budget)
    answer.more = {"heldUp": holding}

    def state(name: str) -> tuple[str, int]:
        one = found[name]
        if one.count(PENDING):
            return "strands", one.count(PENDING)
        if one.preempted:
            return "evicts", len(one.preempted)
        return ("good", 0) if one.is_harmless else ("held", one.count(LOST))

    answer.map = node_map(fork, state)
    answer.test = {"survives": {"anyOneNode": True}}
    return answer


def _any_domain(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    label = question.label
    found = dict(lose_each(fork, label, report=report))
    if not found:
        raise InvalidObject("label", label, "is on no node")
    tones = [tone_of(one) for one in found.values()]
    n_good = sum(not one.count(PENDING) for one in found.values())
    tone = BAD if n_good < len(found) else GOOD if all(tone == GOOD for tone in tones) else WARNING
    answer = _lost(any_domain_verdict(label, found), list(found.values()), tone, "values")
    answer.figures.append(("can go", n_good))
    for value, one in found.items():
        moving = one.count(PENDING) + one.count(LANDS)
        text = f"{value}: {taken_away_verdict(one)}"
        _tell_loss(answer, one, text, value=value, nodes=len(one.nodes), of=moving)
    _tell_bare(answer, fork, label)
    of_node = {name: one for one in found.values() for name in one.nodes}

    def state(name: str) -> tuple[str, int]:
        if name not in of_node:
            return "same", 0
        stranded = sum(item.origin == name for item in of_node[name].of(PENDING))
        return "strands" if stranded else "good", stranded

    answer.map = node_map(fork, state)
    answer.test = {"survives": {"anyZone": True} if label == ZONE else {"anyOf": label}}
    return answer


# ---- headroom


def _copied(simulation: Simulation, question: PlanQuestion) -> tuple[Pod, str]:
    """The pod whose copies are counted, and what it is called.

    Raises
    ------
    InvalidObject
    """
    if question.pod is not None:
        template = template_from(simulation, dict(question.pod))
        named = f"Pod {template.key}"
    else:
        named = question.workload
        kind, _, key = named.partition(" ")
        namespace, _, name = key.partition("/")
        try:
            template = template_of(simulation, kind, namespace, name)
        except KeyError as error:
            raise InvalidObject("workload", named, f"is not here: {error.args[0]}") from None
    if template.scheduler_name not in simulation.scheduler.profiles:
        reason = f"waits for the scheduler {template.scheduler_name}, which is not here"
        raise InvalidObject("workload", named, reason)
    return template, named


def _headroom(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    if not question.workload and question.pod is None:
        return _room_of_all(simulation, fork, report)
    template, named = _copied(simulation, question)
    found = headroom(fork, template, report=report, max_copies=MOST_BARE_COPIES)
    found.pod = named
    answer = Answer(
        headroom_verdict(found), GOOD if found.replicas else BAD, decisions=found.n_decisions,
        figures=[("more fit", found.replicas), ("nodes take them", len(found.by_node))],
        leaves_out=("Preemption does not make room for copies.", *OUTSIDE),
    )  # fmt: skip
    if found.stop:
        answer.line(WARNING, "What the scheduler says of the next one:", found.stop)
    zones: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for node in fork.nodes():
        if count := found.by_node.get(node.name, 0):
            zones[node.meta.labels.get(ZONE, "no zone")] += count
            groups[group_of(node.meta.labels).name] += count
    for words, counts in (("zone", zones), ("group", groups)):
        for name, count in counts.items():
            answer.line(GOOD, f"{count:,} in {words} {name}.", count=count)

    def state(name: str) -> tuple[str, int]:
        count = found.by_node.get(name, 0)
        return "takes" if count else "same", count

    answer.map = node_map(fork, state)
    kind, _, key = question.workload.partition(" ")
    field_of = {"Deployment": "deployment", "StatefulSet": "statefulSet", "Pod": "pod"}
    if kind in field_of:
        answer.test = {"fits": {field_of[kind]: key, "atLeast": max(1, found.replicas)}}
    shown = found.replicas
    answer.luck = told_luck(
        fork,
        found.n_decisions,
        lambda: headroom(fork, template, max_copies=MOST_BARE_COPIES).replicas == shown,
        report,
    )
    return answer


def _room_of_all(simulation: Simulation, fork: Fork, report: Report) -> Answer:
    every = [
        (f"{workload[0]} {workload[1]}/{workload[2]}", workload, pods)
        for workload, pods in workloads(simulation).items()
        if workload[0] not in OF_THE_NODE
    ]
    every.sort(key=lambda item: (-len(item[2]), item[0]))
    asked = every[:MOST_WORKLOADS]
    found: list[tuple[str, Headroom]] = []
    for done, (key, workload, pods) in enumerate(asked):
        report(done, len(asked), key)
        try:
            template = template_like(simulation, workload, pods[0])
        except InvalidObject:
            continue
        if template is not None and template.scheduler_name in simulation.scheduler.profiles:
            found.append((key, headroom(fork, template, max_copies=MOST_MORE)))
    answer = Answer(
        room_verdict(found, len(every)),
        GOOD if all(room.replicas for _, room in found) else WARNING,
        [("workloads", len(every)), ("asked", len(found))],
        decisions=sum(room.n_decisions for _, room in found),
    )
    for key, room in found:
        more = f"{room.replicas:,}" if room.limit is None else f"at least {room.limit:,}"
        text = f"{more} more of {key}" if room.replicas else f"no more of {key}"
        answer.line(GOOD if room.replicas else WARNING, text, room.stop, workload=key, count=room.replicas)
    answer.leaves_out = (
        "Preemption does not make room for copies; each workload is asked about alone.",
        f"Counting stops at {MOST_MORE} copies of each, and at {MOST_WORKLOADS} workloads, those of most pods first.",
        *OUTSIDE,
    )
    if skipped := len(asked) - len(found):
        answer.leaves_out += (f"{skipped} workloads have no template that a scheduler here would take.",)
    return answer


_Asked = Callable[[Simulation, Fork, PlanQuestion, Report], Answer]
_ANSWERS: dict[str, _Asked] = {
    DRAIN: _take_away,
    LOSE: _take_away,
    ANY_NODE: _any_node,
    ANY_DOMAIN: _any_domain,
    HEADROOM: _headroom,
    BACKLOG: answer_backlog,
    CONSOLIDATE: answer_fewer,
}
