"""Answers about nodes that are wanted or spare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, islice
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.backlog import (
    NodeChoice,
    NodePlan,
    cheapest_nodes,
    choices_of,
    fewest_nodes,
    names_of_nodes,
    run_plan,
)
from scheduler_core.whatif.consolidate import Fewer, fewer_nodes, replay_steps
from scheduler_core.whatif.fixes import money, owner_words
from scheduler_core.whatif.fork import Fork, Report
from scheduler_core.whatif.questions import (
    BAD,
    GOOD,
    NO_TIME,
    OUTSIDE,
    WARNING,
    Answer,
    PlanQuestion,
    counted,
    finds,
    names_of,
    node_map,
    told_luck,
    until_deleted,
)
from scheduler_core.whatif.take_away import BLOCKED, LANDS, PENDING, Followed, TakenAway
from scheduler_core.whatif.workloads import left_out_words, owner_of, pending_pods, waiting_pods

MOST_NODES = 300
"""Added nodes that an answer holds as manifests."""


def answer_backlog(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    """Nodes that place all pending pods, or those of one workload; `fix` says what places them without a node."""
    pods, left_out, n_held = _asked_pods(simulation, question)
    choices, without_price = choices_of(fork, question.price_list, pods)
    plan = cheapest_nodes(fork, pods, choices, report=report)
    answer = Answer(
        f"{backlog_verdict(plan, question.workload)[:-1]}{left_out_words(n_held, 'more')}.",
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
        more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
        text = f"{', '.join(keys[:3])}{more} {finds(len(keys))} no node of the list."
        answer.line(BAD, text, message, count=len(keys))
    for pod in pods:
        node = plan.placed.get(pod.key)
        moved = Followed(pod.key, owner_words(pod), "", PENDING if node is None else LANDS, node)
        answer.moves.append(moved.document())
    new = dict(zip(names_of_nodes(fork, plan.nodes), plan.nodes, strict=True))
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
        fork, plan.pods, lambda: len(run_plan(fork, pods, plan.nodes)) == n_placed, report
    )
    return answer


def _applied(fork: Fork, nodes: Sequence[NodeChoice]) -> list[dict[str, Any]]:
    named = zip(names_of_nodes(fork, nodes), nodes, strict=True)
    return [{"apply": choice.manifest(name)} for name, choice in islice(named, MOST_NODES)]


def _types_of(nodes: Sequence[NodeChoice]) -> tuple[dict[str, int], str]:
    """How many nodes of each type, by name, and that in words."""
    kinds = dict(sorted(Counter(choice.name for choice in nodes).items()))
    return kinds, ", ".join(f"{count} × {name}" for name, count in kinds.items())


def _fewest(
    answer: Answer,
    plan: NodePlan,
    fork: Fork,
    pods: Sequence[Pod],
    choices: Sequence[NodeChoice],
    report: Report,
) -> dict[str, Any]:
    """The fewest nodes that place as many pods."""
    few = fewest_nodes(fork, pods, choices, report=report)
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
    pods, left_out = pending_pods(simulation)
    if not question.workload:
        return pods, left_out, sum(bool(pod.scheduling_gates) for pod in waiting_pods(simulation))
    keys = {
        pod.uid: f"{kind} {pod.namespace}/{name}"
        for pod in pods
        for kind, name in [owner_of(simulation, pod)]
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


def _backlog_tone(plan: NodePlan) -> str:
    if plan.waiting:
        return BAD if len(plan.placed) == plan.fit_now else WARNING
    return GOOD


def backlog_verdict(plan: NodePlan, workload: str = "") -> str:
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
