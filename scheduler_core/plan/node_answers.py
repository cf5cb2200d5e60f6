"""Answers about nodes that are wanted or spare."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.plan.answer import BAD, GOOD, NO_TIME, OUTSIDE, WARNING, Answer, node_map, told_luck
from scheduler_core.plan.backlog import NodePlan, cheapest_nodes, name_of_node, run_plan
from scheduler_core.plan.consolidate import Fewer, fewer_nodes, replay_steps
from scheduler_core.plan.headroom import Report
from scheduler_core.plan.node_groups import cpu_share
from scheduler_core.plan.pending import pending_pods
from scheduler_core.plan.question import PlanQuestion
from scheduler_core.plan.take_away import LANDS, PENDING
from scheduler_core.sim.simulation import Simulation

MOST_NODES = 300
"""Added nodes that an answer holds as manifests."""


def money(amount: float) -> str:
    """`$31.64`."""
    return f"${amount:,.2f}"


def answer_backlog(
    simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report
) -> Answer:
    """Nodes that place all pending pods."""
    pods, left_out = pending_pods(simulation)
    plan = cheapest_nodes(sandbox, pods, question.price_list, report=report)
    answer = Answer(backlog_verdict(plan), _backlog_tone(plan))
    answer.decisions = plan.n_decisions
    answer.figures = [
        ("pending", plan.pods),
        ("fit as things are", plan.fit_now),
        ("placed", len(plan.placed)),
    ]
    if plan.nodes:
        gap = plan.cost - plan.bound
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
    by_reason: dict[str, list[str]] = {}
    for pod, message in plan.waiting:
        by_reason.setdefault(message, []).append(pod.key)
    for message, keys in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
        verb = "finds" if len(keys) == 1 else "find"
        answer.line(BAD, f"{', '.join(keys[:3])}{more} {verb} no node of the list.", message, count=len(keys))
    answer.moves = [
        {"pod": pod.key, "owner": _owner(pod), "from": "", "outcome": LANDS if pod.key in plan.placed else PENDING,
         "node": plan.placed.get(pod.key), "reason": "", "because": ""}
        for pod in pods
    ]  # fmt: skip
    new = {name_of_node(place): choice for place, choice in enumerate(plan.nodes)}
    takes = Counter(plan.placed.values())
    answer.map = node_map(
        sandbox, lambda name: ("takes" if takes[name] else "same", cpu_share(sandbox, name), takes[name])
    )
    if new:
        added = [[name, "new", 0, takes[name], choice.zone] for name, choice in new.items()]
        answer.map.append({"name": "added", "shape": "", "nodes": added})
    answer.steps = [{"apply": choice.manifest(name)} for name, choice in list(new.items())[:MOST_NODES]]
    answer.test = {"metric": "pending", "count": {"max": plan.pods - len(plan.placed)}}
    answer.more = {
        "cost": round(plan.cost, 6),
        "bound": round(plan.bound, 6),
        "gap": round(plan.cost - plan.bound, 6),
    }
    answer.leaves_out = (
        "The bound counts amounts, filters and what one node takes; rules between pending pods are left out of it.",
        "Prices are those of the list; images, start-up time and what a provider has in stock are left out.",
        *left_out,
        *OUTSIDE,
    )
    if plan.without_price:
        answer.leaves_out += (f"No price is known of the nodes of {', '.join(plan.without_price)}.",)
    n_placed = len(plan.placed)
    answer.luck = told_luck(
        sandbox, plan.pods, lambda: len(run_plan(sandbox, pods, plan.nodes)) == n_placed, report
    )
    return answer


def _owner(pod: Any) -> str:
    controller = pod.meta.controller
    return "" if controller is None else f"{controller.kind} {controller.name}"


def _backlog_tone(plan: NodePlan) -> str:
    if plan.waiting:
        return BAD if len(plan.placed) == plan.fit_now else WARNING
    return GOOD


def backlog_verdict(plan: NodePlan) -> str:
    """One sentence."""
    if not plan.pods:
        return "No pod is pending."
    if plan.fit_now == plan.pods:
        return f"{_all(plan.pods)} without any new node."
    if not plan.nodes:
        return "No node type of the list takes a pod that finds no node."
    n_types = len({choice.name for choice in plan.nodes})
    nodes = f"{len(plan.nodes):,} node{'' if len(plan.nodes) == 1 else 's'}"
    if n_types > 1:
        nodes += f" of {n_types} types"
    place = "place" if len(plan.nodes) > 1 else "places"
    whom = (
        f"all {plan.pods:,} pending pods"
        if not plan.waiting
        else f"{len(plan.placed):,} of {plan.pods:,} pending pods"
    )
    if plan.pods == 1:
        whom = "the one pending pod"
    gap = plan.cost - plan.bound
    if gap < 0.005:
        best = "no plan costs less"
    else:
        best = f"no plan costs less than {money(plan.bound)}"
    return f"{nodes} {place} {whom} for {money(plan.cost)} an hour; {best}."


def _all(number: int) -> str:
    return "The one pending pod finds a node" if number == 1 else f"All {number:,} pending pods find a node"


def answer_fewer(simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report) -> Answer:
    """Which nodes can go."""
    found = fewer_nodes(sandbox, question.price_list, report=report)
    answer = Answer(fewer_verdict(found), GOOD if found.steps else WARNING)
    answer.decisions = found.n_decisions
    answer.figures = [
        ("nodes", found.nodes),
        ("can go", len(found.steps)),
        ("pods move", sum(step.count(LANDS) for step in found.steps)),
        ("saved an hour" if found.has_prices else "nodes saved", _worth(found, found.saved)),
        ("bound", _worth(found, found.bound)),
    ]
    saved = 0.0
    for number, step in enumerate(found.steps, start=1):
        name = step.nodes[0]
        saved += found.cost_of[name]
        n_moves = step.count(LANDS)
        text = (
            f"step {number}: {n_moves:,} pod{'' if n_moves == 1 else 's'} move{'s' if n_moves == 1 else ''}"
        )
        worth = f"{_worth(found, saved)} so far" if found.has_prices else f"{number} so far"
        answer.line(GOOD, text, "", node=name, price=worth, count=n_moves)
    by_cause: dict[str, list[str]] = {}
    for name, why in found.kept.items():
        by_cause.setdefault(why, []).append(name)
    for why, names in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[1][0])):
        more = f" and {len(names) - 1:,} more stay" if len(names) > 1 else " stays"
        answer.line(WARNING, f"{names[0]}{more}.", why, nodes=len(names), count=len(names))
    for number, step in enumerate(found.steps, start=1):
        answer.moves += [item.document() | {"step": number} for item in step.pods]
    gone = {step.nodes[0] for step in found.steps}
    takes = Counter(
        item.node for step in found.steps for item in step.pods if item.outcome == LANDS and item.node
    )

    def state(name: str) -> tuple[str, int, int]:
        share = cpu_share(sandbox, name)
        return (
            ("gone", share, 0) if name in gone else ("takes" if takes[name] else "same", share, takes[name])
        )

    answer.map = node_map(sandbox, state)
    answer.steps = [{"drain": step.nodes[0]} for step in found.steps]
    gap = found.bound - found.saved
    answer.more = {"saved": round(found.saved, 6), "bound": round(found.bound, 6), "gap": round(gap, 6)}
    answer.leaves_out = (
        "Nodes go one at a time: a set that could only go together is not found.",
        "The bound says what is missed at most.",
        NO_TIME,
        *OUTSIDE,
    )
    if not found.has_prices:
        answer.leaves_out += (
            "Some nodes are of types without a price in the list, so nodes are counted, not money.",
        )
    n_decisions = sum(step.n_decisions for step in found.steps)
    answer.luck = told_luck(sandbox, n_decisions, lambda: replay_steps(sandbox, found), report)
    return answer


def _worth(found: Fewer, amount: float) -> Any:
    return money(amount) if found.has_prices else round(amount, 6)


def fewer_verdict(found: Fewer) -> str:
    """One sentence."""
    left = found.nodes - len(found.steps)
    gap = found.bound - found.saved
    if not found.steps:
        return f"No node of {found.nodes:,} can go without harm."
    saved = f"{money(found.saved)} less an hour" if found.has_prices else f"{len(found.steps):,} fewer"
    enough = f"{left:,} of {found.nodes:,} nodes {'is' if left == 1 else 'are'} enough: {saved}"
    if gap < 0.005:
        return f"{enough}, and no budget broken; no plan saves more."
    most = money(found.bound) if found.has_prices else f"{round(found.bound + 1e-9, 2):g} nodes"
    return f"{enough}, and no budget broken; no plan saves more than {most}."
