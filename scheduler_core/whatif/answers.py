"""Answers about nodes that go or are wanted and pods that are added: page, REST and command line show the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.fork import ZONE, Fork, Report, group_of, silent
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import backlog, questions, take_away, workloads
from scheduler_core.whatif.autoscaling import answer_autoscaling
from scheduler_core.whatif.consolidate import Fewer, fewer_nodes, replay_steps
from scheduler_core.whatif.descheduling import answer_descheduling
from scheduler_core.whatif.fixes import counted, first_of, money, owner_words
from scheduler_core.whatif.headroom import Headroom, headroom
from scheduler_core.whatif.questions import (
    BAD,
    GOOD,
    NO_TIME,
    OUTSIDE,
    WARNING,
    Answer,
    PlanQuestion,
    node_map,
    told_luck,
)
from scheduler_core.whatif.take_away import (
    BLOCKED,
    LANDS,
    LOST,
    PENDING,
    Followed,
    TakenAway,
    finds,
    held_words,
    lost_words,
    names_of,
    taken_away_verdict,
    until_deleted,
    without_label,
)
from scheduler_core.whatif.variants import answer_variants

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
    question = questions.question_from(document)
    report(0, 0, "copying the cluster")
    fork = Fork(simulation.scheduler, transport=transport, seed=0)
    asked = _ANSWERS[question.ask]
    return asked(simulation, fork, question, report).document(question)


# ---- take away


def _take_away(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    nodes = take_away.named_nodes(fork, question.nodes, question.label)
    how = take_away.DRAIN if question.ask == questions.DRAIN else take_away.LOSS
    report(0, 1, f"without {nodes[0]}" if len(nodes) == 1 else f"without {len(nodes):,} nodes")
    try:
        found = take_away.taken_away(fork, how, nodes)
    except take_away.UnknownNodes as error:
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
    if question.ask == questions.DRAIN:
        answer.steps = [{"drain": name} for name in nodes]
        answer.test = {"drain": {"nodes": nodes}}
    else:
        answer.steps = [{"delete": {"kind": "Node", "name": name}} for name in nodes]
    shown = _signature(found)
    answer.luck = told_luck(
        fork, found.n_decisions, lambda: _signature(take_away.taken_away(fork, how, nodes)) == shown, report
    )
    return answer


def _tell_bare(answer: Answer, fork: Fork, label: str) -> None:
    """Nodes without a label, which no loss of one of its values takes away."""
    bare = take_away.nodes_without(fork, label)
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
        ("go with their node", outcomes[take_away.WITH_NODE]),
        ("were ending", outcomes[take_away.ENDING]),
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
    found = {one.nodes[0]: one for one in take_away.lose_any(fork, report=report)}
    answers = list(found.values())
    n_good = sum(one.is_harmless for one in answers)
    n_bad = sum(bool(one.count(PENDING)) for one in answers)
    tone = BAD if n_bad else GOOD if n_good == len(answers) else WARNING
    answer = _lost(any_node_verdict(answers), answers, tone, "nodes")
    answer.figures += [("can go", n_good), ("leave pods without a node", n_bad)]
    hurt = (one for one in answers if not one.is_harmless)
    for one in sorted(hurt, key=lambda one: (-one.count(PENDING), one.nodes)):
        _tell_loss(answer, one, taken_away_verdict(one), node=one.nodes[0])
    holding = take_away.held_up(fork)
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
    found = dict(take_away.lose_each(fork, label, report=report))
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
        template = workloads.template_from(simulation, dict(question.pod))
        named = f"Pod {template.key}"
    else:
        named = question.workload
        kind, _, key = named.partition(" ")
        namespace, _, name = key.partition("/")
        try:
            template = workloads.template_of(simulation, kind, namespace, name)
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
        for workload, pods in workloads.workloads(simulation).items()
        if workload[0] not in take_away.OF_THE_NODE
    ]
    every.sort(key=lambda item: (-len(item[2]), item[0]))
    asked = every[:MOST_WORKLOADS]
    found: list[tuple[str, Headroom]] = []
    for done, (key, workload, pods) in enumerate(asked):
        report(done, len(asked), key)
        try:
            template = workloads.template_like(simulation, workload, pods[0])
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


# ---- nodes that are wanted or spare

MOST_NODES = 300
"""Added nodes that an answer holds as manifests."""


def answer_backlog(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    """Nodes that place all pending pods, or those of one workload; `fix` says what places them without a node."""
    pods, left_out, n_held = _asked_pods(simulation, question)
    choices, without_price = backlog.choices_of(fork, question.price_list, pods)
    plan = backlog.cheapest_nodes(fork, pods, choices, report=report)
    answer = Answer(
        f"{backlog_verdict(plan, question.workload)[:-1]}{workloads.left_out_words(n_held, 'more')}.",
        _backlog_tone(plan),
        [("pending", plan.pods + n_held), ("fit as things are", plan.fit_now), ("placed", len(plan.placed))],
        decisions=plan.n_decisions,
        test={"metric": "pending", "count": {"max": 0}},
    )
    gap = plan.cost - plan.bound
    if plan.nodes:
        answer.figures += [
            ("nodes to add", len(plan.nodes)),
            ("cost an hour", money(plan.cost)),
            ("bound", money(plan.bound)),
            ("gap", f"{money(gap)}, {100 * gap / plan.cost if plan.cost else 0:.0f}%"),
        ]
    kinds = Counter((choice.name, choice.price) for choice in plan.nodes)
    for (name, price), count in sorted(kinds.items(), key=lambda item: (-item[1] * item[0][1], item[0])):
        zones = Counter(choice.zone for choice in plan.nodes if choice.name == name and choice.zone)
        where = ", ".join(f"{number} in {zone}" for zone, number in sorted(zones.items()))
        answer.line(GOOD, f"{count} × {name}", where, price=money(count * price), count=count)
    fewest = _fewest(answer, plan, fork, pods, choices, report) if len(plan.nodes) > 1 else None
    by_reason: dict[str, list[str]] = {}
    for pod, message in plan.waiting:
        by_reason.setdefault(message, []).append(pod.key)
    for message, keys in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        text = f"{first_of(keys)} {finds(len(keys))} no node of the list."
        answer.line(BAD, text, message, count=len(keys))
    for pod in pods:
        node = plan.placed.get(pod.key)
        moved = Followed(pod.key, owner_words(pod), "", PENDING if node is None else LANDS, node)
        answer.moves.append(moved.document())
    new = dict(zip(backlog.names_of_nodes(fork, plan.nodes), plan.nodes, strict=True))
    takes = Counter(plan.placed.values())
    answer.map = node_map(fork, lambda name: ("takes" if takes[name] else "same", takes[name]))
    if new:
        added = [[name, "new", 0, takes[name], choice.zone] for name, choice in new.items()]
        answer.map.append({"name": "added", "shape": "", "nodes": added})
    answer.steps = _applied(fork, plan.nodes)
    figures = {"cost": plan.cost, "bound": plan.bound, "gap": gap}
    answer.more = {name: round(value, 6) for name, value in figures.items()}
    answer.more["fewest"] = fewest
    answer.leaves_out = (
        "The bound counts amounts, filters and what one node takes; rules between pending pods are left out of it.",
        "Prices are those of the list; images, start-up time and what a provider has in stock are left out.",
        *left_out,
        *OUTSIDE,
    )
    if without_price:
        answer.leaves_out += (f"No price is known of the nodes of {', '.join(without_price)}.",)
    n_placed = len(plan.placed)
    answer.luck = told_luck(
        fork, plan.pods, lambda: len(backlog.run_plan(fork, pods, plan.nodes)) == n_placed, report
    )
    return answer


def _applied(fork: Fork, nodes: Sequence[backlog.NodeChoice]) -> list[dict[str, Any]]:
    named = zip(backlog.names_of_nodes(fork, nodes), nodes, strict=True)
    return [{"apply": choice.manifest(name)} for name, choice in islice(named, MOST_NODES)]


def _types_of(nodes: Sequence[backlog.NodeChoice]) -> tuple[dict[str, int], str]:
    """How many nodes of each type, by name, and that in words."""
    kinds = dict(sorted(Counter(choice.name for choice in nodes).items()))
    return kinds, ", ".join(f"{count} × {name}" for name, count in kinds.items())


def _fewest(
    answer: Answer,
    plan: backlog.NodePlan,
    fork: Fork,
    pods: Sequence[Pod],
    choices: Sequence[backlog.NodeChoice],
    report: Report,
) -> dict[str, Any]:
    """The fewest nodes that place as many pods."""
    few = backlog.fewest_nodes(fork, pods, choices, report=report)
    answer.decisions += few.n_decisions
    if len(few.placed) < len(plan.placed) or len(few.nodes) >= len(plan.nodes):
        few.nodes = plan.nodes
    kinds, words = _types_of(few.nodes)
    than = "" if few.bound >= len(few.nodes) else f" than {few.bound:,.0f}"
    if few.nodes is plan.nodes:
        answer.line(GOOD, f"No fewer nodes were found: no plan has fewer{than}.")
    else:
        which = words if len(kinds) == 1 else f"{len(few.nodes):,}: {words}"
        text = f"Fewest nodes instead: {which}; no plan has fewer{than}."
        answer.line(GOOD, text, price=money(few.cost), count=len(few.nodes))
    return {
        "nodes": len(few.nodes),
        "bound": int(few.bound),
        "cost": round(few.cost, 6),
        "types": kinds,
        "steps": _applied(fork, few.nodes),
    }


def _asked_pods(simulation: Simulation, question: PlanQuestion) -> tuple[list[Pod], list[str], int]:
    """Pending pods that the question is about, what is left out, and how many scheduling gates hold back.

    Raises
    ------
    InvalidObject
        No pod of the workload is pending.
    """
    pods, left_out = workloads.pending_pods(simulation)
    if not question.workload:
        return pods, left_out, sum(bool(pod.scheduling_gates) for pod in workloads.waiting_pods(simulation))
    keys = {
        pod.uid: f"{kind} {pod.namespace}/{name}"
        for pod in pods
        for kind, name in [workloads.owner_of(simulation, pod)]
    }
    own = [pod for pod in pods if question.workload in (keys[pod.uid], f"Pod {pod.key}")]
    if not own:
        raise InvalidObject("workload", question.workload, "has no pending pod")
    if len(own) < len(pods):
        others = len(pods) - len(own)
        pod_words = (
            "The one other pending pod is" if others == 1 else f"The {others:,} other pending pods are"
        )
        left_out = [f"{pod_words} not asked about and take no room here.", *left_out]
    return own, left_out, 0


def _backlog_tone(plan: backlog.NodePlan) -> str:
    if plan.waiting:
        return BAD if len(plan.placed) == plan.fit_now else WARNING
    return GOOD


def backlog_verdict(plan: backlog.NodePlan, workload: str = "") -> str:
    """One sentence."""
    whose = f" of {workload}" if workload else ""
    if not plan.pods:
        return "No pod is pending."
    if plan.fit_now == plan.pods:
        if plan.pods == 1:
            return f"The one pending pod{whose} finds a node without any new node."
        return f"All {plan.pods:,} pending pods{whose} find a node without any new node."
    if not plan.nodes:
        return "No node type of the list takes a pod that finds no node."
    n_types = len({choice.name for choice in plan.nodes})
    nodes = counted(len(plan.nodes), "node") + (f" of {n_types} types" if n_types > 1 else "")
    place = "place" if len(plan.nodes) > 1 else "places"
    number = f"{len(plan.placed):,} of {plan.pods:,}" if plan.waiting else f"all {plan.pods:,}"
    whom = ("the one pending pod" if plan.pods == 1 else f"{number} pending pods") + whose
    than = "" if plan.cost - plan.bound < 0.005 else f" than {money(plan.bound)}"
    best = f"no plan costs less{than}"
    return f"{nodes} {place} {whom} for {money(plan.cost)} an hour; {best}."


def answer_fewer(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    """Which nodes can go."""
    found = fewer_nodes(fork, question.price_list, report=report)
    answer = Answer(fewer_verdict(found), GOOD if found.steps else WARNING)
    answer.decisions = found.n_decisions
    answer.figures = [
        ("nodes", found.nodes),
        ("can go", len(found.steps)),
        ("pods move", sum(item.goes_to is not None for step in found.steps for item in step.pods)),
        ("saved an hour" if found.has_prices else "nodes saved", _worth(found, found.saved)),
        ("bound", _worth(found, found.bound)),
    ]
    saved = 0.0
    # Steps that move no pod are one line as long as they follow each other.
    for (_, n_moves), run in groupby(enumerate(found.steps, start=1), _one_line):
        steps = list(run)
        first, number = steps[0][1], steps[-1][0]
        saved += sum(found.cost_of[step.nodes[0]] for _, step in steps)
        worth = f"{_worth(found, saved)} so far" if found.has_prices else f"{number} so far"
        if len(steps) == 1:
            text = f"step {number}: {counted(n_moves, 'pod')} {'moves' if n_moves == 1 else 'move'}"
            answer.line(*_step_words(text, first), node=first.nodes[0], price=worth, count=n_moves)
        else:
            text = f"and {len(steps) - 1:,} more, steps {steps[0][0]} to {number}: no pod moves"
            answer.line(GOOD, text, node=first.nodes[0], price=worth, count=0, nodes=len(steps))
    for number, step in enumerate(found.steps, start=1):
        name = step.nodes[0]
        answer.moves += [item.document() | {"step": number} for item in step.pods]
        answer.steps += [{"drain": name}, {"delete": {"kind": "Node", "name": name}}]
    by_cause: dict[str, list[str]] = {}
    for name, why in found.kept.items():
        by_cause.setdefault(why, []).append(name)
    for why, names in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[1][0])):
        more = f" and {len(names) - 1:,} more stay" if len(names) > 1 else " stays"
        answer.line(WARNING, f"{names[0]}{more}.", why, nodes=len(names), count=len(names))
    if found.limit is not None:
        answer.line(WARNING, limit_words(found), "More might go; the bound says how much at most.")
    gone = {step.nodes[0] for step in found.steps}
    takes = Counter(item.goes_to for step in found.steps for item in step.pods if item.goes_to)

    def state(name: str) -> tuple[str, int]:
        return ("gone", 0) if name in gone else ("takes" if takes[name] else "same", takes[name])

    answer.map = node_map(fork, state)
    figures = {"saved": found.saved, "bound": found.bound, "gap": found.bound - found.saved}
    answer.more = {name: round(value, 6) for name, value in figures.items()}
    if found.limit is not None:
        answer.more["limit"] = {"decisions": found.limit, "untried": found.untried}
    answer.leaves_out = (
        "Nodes go one at a time: a set that could only go together is not found.",
        "The bound says how much more could be saved at most.",
        NO_TIME,
        *OUTSIDE,
    )
    if not found.has_prices:
        answer.leaves_out += (
            "Some nodes are of types without a price in the list, so nodes are counted, not money.",
        )
    n_decisions = sum(step.n_decisions for step in found.steps)
    answer.luck = told_luck(fork, n_decisions, lambda: replay_steps(fork, found, report), report)
    return answer


def _one_line(item: tuple[int, TakenAway]) -> tuple[int, int]:
    """Of a step: the line that it is on, and how many pods move."""
    number, step = item
    n_moves = sum(pod.goes_to is not None for pod in step.pods)
    return (number if n_moves or step.of(BLOCKED) or step.of(PENDING) else 0), n_moves


def _step_words(text: str, step: TakenAway) -> tuple[str, str, str]:
    """Tone, sentence and note of one node that goes."""
    held = step.of(BLOCKED)
    if held:
        note = (
            f"{held[0].reason} It is taken by {names_of(step.of(PENDING))}, {until_deleted(1)}: that evicts"
        )
        return WARNING, f"{text}, {len(held):,} of them when the node is deleted", f"{note} {names_of(held)}."
    later = len(step.of(PENDING))
    return GOOD, f"{text}{f', {later:,} of them once the node is deleted' if later else ''}", ""


def _worth(found: Fewer, amount: float) -> Any:
    return money(amount) if found.has_prices else round(amount, 2)


def limit_words(found: Fewer) -> str:
    """Which limit ended the search, and what it did not come to."""
    ended = f"The search ended at its limit of {found.limit:,} decisions"
    if found.untried:
        return f"{ended}: {found.untried:,} of {found.nodes:,} nodes were not tried."
    return f"{ended}: {found.n_orders} of {found.of_orders} orders of the nodes were tried."


def fewer_verdict(found: Fewer) -> str:
    """One sentence."""
    left = found.nodes - len(found.steps)
    gap = found.bound - found.saved
    if not found.nodes:
        return "There is no node to remove."
    if not found.steps:
        which = "The one node cannot" if found.nodes == 1 else f"None of the {found.nodes:,} nodes can"
        return f"{which} be removed without harm."
    saved = f"{money(found.saved)} less an hour" if found.has_prices else f"{len(found.steps):,} fewer"
    enough = f"{left:,} of {found.nodes:,} nodes {'is' if left == 1 else 'are'} enough: {saved}"
    n_held = sum(bool(step.of(BLOCKED)) for step in found.steps)
    budgets = "no budget broken"
    if n_held:
        budgets = f"{n_held:,} of them {'has' if n_held == 1 else 'have'} pods that only the deletion evicts"
    if gap < 0.005:
        return f"{enough}, and {budgets}; no plan saves more."
    most = money(found.bound) if found.has_prices else f"{round(found.bound + 1e-9, 2):g} nodes"
    return f"{enough}, and {budgets}; no plan saves more than {most}."


# ---- sentences

NOUNS = {"topology.kubernetes.io/zone": "zone", "topology.kubernetes.io/region": "region"}


def any_node_verdict(answers: Sequence[TakenAway]) -> str:
    """One sentence for the loss of any one node."""
    n_nodes = len(answers)
    if not n_nodes:
        return "There is no node to lose."
    strands = [answer for answer in answers if answer.count(PENDING)]
    harmless = sum(answer.is_harmless for answer in answers)
    if harmless == n_nodes:
        return f"Any one of the {n_nodes:,} nodes can be lost: every pod finds another node."
    if strands:
        which = f"Losing any one of {len(strands):,} of the {n_nodes:,} nodes"
        if len(strands) == n_nodes:
            which = "Losing the only node" if n_nodes == 1 else f"Losing any one of the {n_nodes:,} nodes"
        elif len(strands) == 1:
            which = f"Losing {strands[0].nodes[0]}, 1 of the {n_nodes:,} nodes,"
        rest = [f"{which} leaves pods without a node"]
        if hurt := n_nodes - len(strands) - harmless:
            rest.append(f"the loss of {hurt:,} more preempts, holds back or loses pods")
        rest.append(f"{harmless:,} can be lost without harm" if harmless else "none can be lost without harm")
        return f"{'; '.join(rest)}."
    found = f"Whichever of the {n_nodes:,} nodes is lost, every pod that is recreated finds a node"
    return f"{found}; the loss of {n_nodes - harmless:,} of them preempts, holds back or loses pods."


def any_domain_verdict(label: str, answers: Mapping[str, TakenAway]) -> str:
    """One sentence for the loss of any one value of a label."""
    noun = NOUNS.get(label, f"value of {label}")
    total = len(answers)
    left = {value: answer.count(PENDING) for value, answer in answers.items()}
    kind = min(left, key=lambda value: (left[value], value))
    n_good = sum(not number for number in left.values())
    if n_good == total:
        if total == 1:
            return f"The one {noun} can be lost: every pod that is recreated finds a node."
        return f"Any one {noun} of {total} can be lost: every pod that is recreated finds a node."
    if not n_good:
        return f"No {noun} can be lost: even {kind} leaves {counted(left[kind], 'pod')} without a node."
    worst = max(left, key=lambda value: (left[value], value))
    return f"{n_good} of {total} {noun}s can be lost; {worst} leaves {counted(left[worst], 'pod')} without a node."


def room_verdict(rooms: Sequence[tuple[str, Headroom]], n_workloads: int) -> str:
    """One sentence for how many more of each workload fit."""
    if not rooms:
        return "There is no workload to ask about."
    full = [key for key, room in rooms if not room.replicas]
    asked = (
        f"{len(rooms):,} workloads"
        if len(rooms) == n_workloads
        else f"{len(rooms):,} workloads that were asked about ({n_workloads:,} in all)"
    )
    if not full:
        return f"At least one more pod of each of {asked} fits."
    named = first_of(full)
    have = "has" if len(full) == 1 else "have"
    return f"{len(full):,} of {asked} {have} no room for another pod: {named}."


def headroom_verdict(answer: Headroom) -> str:
    """One sentence: how many more fit."""
    if answer.limit is not None:
        return f"At least {answer.limit:,} more of {answer.pod} fit; the count was stopped there."
    if not answer.replicas:
        return f"No more of {answer.pod} fits."
    fits = "fits" if answer.replicas == 1 else "fit"
    return f"{answer.replicas:,} more of {answer.pod} {fits}, on {len(answer.by_node):,} of {answer.n_nodes:,} nodes."


def causes(pods: Sequence[Followed]) -> list[tuple[str, list[Followed]]]:
    """Pods grouped by the reason that they share, the commonest first."""
    counts = Counter(item.reason for item in pods)
    return [(reason, [item for item in pods if item.reason == reason]) for reason, _ in counts.most_common()]


_Asked = Callable[[Simulation, Fork, PlanQuestion, Report], Answer]
_ANSWERS: dict[str, _Asked] = {
    questions.DRAIN: _take_away,
    questions.LOSE: _take_away,
    questions.ANY_NODE: _any_node,
    questions.ANY_DOMAIN: _any_domain,
    questions.HEADROOM: _headroom,
    questions.BACKLOG: answer_backlog,
    questions.CONSOLIDATE: answer_fewer,
    questions.DESCHEDULE: answer_descheduling,
    questions.AUTOSCALE: answer_autoscaling,
    questions.COMPARE: answer_variants,
}
