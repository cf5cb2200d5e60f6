"""Answers about nodes that are wanted or spare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.backlog import NodePlan, cheapest_nodes, fewest_nodes, name_of_node, run_plan
from scheduler_core.whatif.consolidate import Fewer, fewer_nodes, replay_steps
from scheduler_core.whatif.edits import Edit
from scheduler_core.whatif.fork import Sandbox, Trial, cpu_share
from scheduler_core.whatif.headroom import Report
from scheduler_core.whatif.questions import (
    BAD,
    GOOD,
    MOST_MOVES,
    NO_TIME,
    OUTSIDE,
    WARNING,
    Answer,
    PlanQuestion,
    names_of,
    node_map,
    told_luck,
    until_deleted,
)
from scheduler_core.whatif.take_away import BLOCKED, LANDS, PENDING, Followed, TakenAway, owner_words
from scheduler_core.whatif.workload_edits import MOST_DECISIONS, MOST_WORKLOADS, EditPlan, edits_for, make
from scheduler_core.whatif.workloads import owner_of, pending_pods

MOST_NODES = 300
"""Added nodes that an answer holds as manifests."""
_GIVEN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


def money(amount: float) -> str:
    """`$31.64`."""
    return f"${amount:,.2f}"


def answer_backlog(
    simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report
) -> Answer:
    """Nodes that place all pending pods, or those of one workload, and the edits beside them."""
    pods, left_out = _asked_pods(simulation, question)
    plan = cheapest_nodes(sandbox, pods, question.price_list, report=report)
    answer = Answer(backlog_verdict(plan, question.workload), _backlog_tone(plan))
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
    fewest = _tell_fewest(answer, plan, sandbox, pods, question, report)
    by_reason: dict[str, list[str]] = {}
    for pod, message in plan.waiting:
        by_reason.setdefault(message, []).append(pod.key)
    for message, keys in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
        verb = "finds" if len(keys) == 1 else "find"
        answer.line(BAD, f"{', '.join(keys[:3])}{more} {verb} no node of the list.", message, count=len(keys))
    edits = _tell_edits(answer, plan, simulation, sandbox, pods, question, report)
    if edits is not None and edits["together"] > plan.fit_now:
        answer.verdict += f" {_edits_words(edits, plan)}"
        if edits["together"] == plan.pods:
            answer.tone = GOOD
    answer.moves = [
        Followed(
            pod.key,
            owner_words(pod),
            "",
            LANDS if pod.key in plan.placed else PENDING,
            plan.placed.get(pod.key),
        ).document()
        for pod in pods
    ]
    new = {name_of_node(place): choice for place, choice in enumerate(plan.nodes)}
    takes = Counter(plan.placed.values())
    answer.map = node_map(
        sandbox, lambda name: ("takes" if takes[name] else "same", cpu_share(sandbox, name), takes[name])
    )
    if new:
        added = [[name, "new", 0, takes[name], choice.zone] for name, choice in new.items()]
        answer.map.append({"name": "added", "shape": "", "nodes": added})
    answer.steps = [{"apply": choice.manifest(name)} for name, choice in list(new.items())[:MOST_NODES]]
    answer.test = {"metric": "pending", "count": {"max": 0}}
    answer.more = {
        "cost": round(plan.cost, 6),
        "bound": round(plan.bound, 6),
        "gap": round(plan.cost - plan.bound, 6),
        "fewest": fewest,
        "edits": edits,
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


def _tell_fewest(
    answer: Answer, plan: NodePlan, sandbox: Sandbox, pods: list[Pod], question: PlanQuestion, report: Report
) -> dict[str, Any] | None:
    """The fewest nodes that place as many pods, beside the cheapest; None where one node or none is enough."""
    if len(plan.nodes) < 2:
        return None
    few = fewest_nodes(sandbox, pods, question.price_list, report=report)
    answer.decisions += few.n_decisions
    if len(few.placed) < len(plan.placed) or len(few.nodes) >= len(plan.nodes):
        few.nodes = plan.nodes
    kinds = Counter(choice.name for choice in few.nodes)
    words = ", ".join(f"{count} × {name}" for name, count in sorted(kinds.items()))
    at_least = (
        "no plan has fewer" if few.bound >= len(few.nodes) else f"no plan has fewer than {few.bound:,.0f}"
    )
    if few.nodes is plan.nodes:
        answer.line(GOOD, f"No fewer nodes were found: {at_least}.")
    else:
        which = words if len(kinds) == 1 else f"{len(few.nodes):,}: {words}"
        text = f"Fewest nodes instead: {which}; {at_least}."
        answer.line(GOOD, text, price=money(few.cost), count=len(few.nodes))
    return {
        "nodes": len(few.nodes),
        "bound": int(few.bound),
        "cost": round(few.cost, 6),
        "types": dict(sorted(kinds.items())),
        "steps": [
            {"apply": choice.manifest(name_of_node(place))}
            for place, choice in enumerate(few.nodes[:MOST_NODES])
        ],
    }


def _asked_pods(simulation: Simulation, question: PlanQuestion) -> tuple[list[Pod], list[str]]:
    """Pending pods that the question is about, and what is left out.

    Raises
    ------
    InvalidObject
        No pod of the workload is pending.
    """
    pods, left_out = pending_pods(simulation)
    if not question.workload:
        return pods, left_out
    keys = {
        pod.uid: f"{kind} {pod.namespace}/{name}"
        for pod in pods
        for kind, name, _ in [owner_of(simulation, pod)]
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
    return own, left_out


def _tell_edits(
    answer: Answer,
    plan: NodePlan,
    simulation: Simulation,
    sandbox: Sandbox,
    pods: list[Pod],
    question: PlanQuestion,
    report: Report,
) -> dict[str, Any] | None:
    """What places pods without a new node, and what is still to be bought then; None where all fit as things are."""
    if plan.fit_now == plan.pods:
        return None
    found = edits_for(simulation, sandbox, pods, run_plan(sandbox, pods, ()), report)
    answer.decisions += found.n_decisions
    for workload in found.edits:
        best = workload.edits[0]
        whom = _workload_words(simulation, workload.pods)
        answer.line(
            GOOD if best.placed == best.of else WARNING,
            f"Without a new node: {_lower_first(best.edit.title)}, and {_find(best.placed, best.of)}.",
            f"{whom}. {best.edit.note}" if best.edit.note else f"{whom}.",
            price=best.edit.price,
            count=best.of,
        )
    for alike, claims in found.without:
        whom, text = _workload_words(simulation, alike.pods), ""
        if claims is None:
            text = f"No edit places {whom} without harm to other pods."
        else:
            first = "it" if len(alike.pods) == 1 else "the first of its pods"
            text = (
                f"{whom}: {_lower_first(claims.edit.title)}, and {first} finds a node. The sums leave it out."
            )
        answer.line(WARNING, text, claims.edit.note if claims else "", count=len(alike.pods))
    if found.unlooked:
        answer.line(WARNING, _unlooked_words(found), count=sum(len(alike.pods) for alike in found.unlooked))
    rest = None
    if found.edits:
        one = len(found.edits) == 1
        text = f"With {'this edit' if one else f'these {len(found.edits):,} edits'} and no new node"
        tone = GOOD if not found.left else WARNING
        answer.line(
            tone, f"{text}, {_find(found.n_together, plan.pods, 'pending pods')}.", count=found.n_together
        )
        rest = _tell_rest(answer, plan, found, sandbox, question, report)
    return {
        "workloads": [
            {
                "workload": _workload_words(simulation, workload.pods),
                "pods": [pod.key for pod in workload.pods[:MOST_MOVES]],
                "nPods": len(workload.pods),
                "edits": [
                    {
                        "kind": item.edit.kind,
                        "title": item.edit.title,
                        "note": item.edit.note,
                        "removed": list(item.edit.removed),
                        "added": list(item.edit.added),
                        "cost": item.edit.cost,
                        "price": item.edit.price,
                        "change": _to_write(item.edit),
                        "placed": item.placed,
                    }
                    for item in workload.edits
                ],
            }
            for workload in found.edits
        ],
        "without": [_workload_words(simulation, alike.pods) for alike, _ in found.without],
        "unasked": len(found.unlooked),
        "together": found.n_together,
        "rest": rest,
    }


def _edits_words(edits: dict[str, Any], plan: NodePlan) -> str:
    """`Without a new node 5 edits place 22 of 25 pending pods.`."""
    number, placed = len(edits["workloads"]), edits["together"]
    whom = f"all {plan.pods:,}" if placed == plan.pods else f"{placed:,} of {plan.pods:,}"
    whom = "the one pending pod" if plan.pods == 1 else f"{whom} pending pods"
    return f"Without a new node {number} edit{' places' if number == 1 else 's place'} {whom}."


def _unlooked_words(found: EditPlan) -> str:
    """What the search for edits did not come to, and the limit that ended it."""
    n_looked, n_pods = len(found.edits) + len(found.without), sum(len(alike.pods) for alike in found.unlooked)
    limit = (
        f"{MOST_WORKLOADS} workloads, those with the most pending pods,"
        if n_looked == MOST_WORKLOADS
        else f"{MOST_DECISIONS:,} decisions"
    )
    pods = f"{n_pods:,} pod{'' if n_pods == 1 else 's'}"
    workloads = f"{len(found.unlooked):,} more workload{'' if len(found.unlooked) == 1 else 's'}"
    return f"Edits for {workloads} ({pods}) were not looked for: the limit of {limit} was reached."


def _tell_rest(
    answer: Answer, plan: NodePlan, found: EditPlan, sandbox: Sandbox, question: PlanQuestion, report: Report
) -> dict[str, Any] | None:
    """The nodes that pods want who find none with the edits made either; None where there are none to tell."""
    if not found.left or not plan.nodes:
        return None
    with Trial(sandbox) as trial:
        make(trial, found)
        for pod, node in found.placed:
            trial.put_pod(pod, node)
        rest = cheapest_nodes(sandbox, found.left, question.price_list, report=report)
    answer.decisions += rest.n_decisions
    if not rest.nodes:
        return None
    kinds = Counter(choice.name for choice in rest.nodes)
    words = ", ".join(f"{count} × {name}" for name, count in sorted(kinds.items()))
    answer.line(
        GOOD if not rest.waiting else WARNING,
        f"With the edits and {words}, {_find(found.n_together + len(rest.placed), plan.pods, 'pending pods')}.",
        price=money(rest.cost),
        count=len(rest.nodes),
    )
    return {"cost": round(rest.cost, 6), "types": dict(sorted(kinds.items())), "placed": len(rest.placed)}


def _to_write(edit: Edit) -> dict[str, Any]:
    """The manifest after the edit, without what a server gave it: an answer follows from what was written alone."""
    written = edit.change["write"]
    kept = {key: value for key, value in written["metadata"].items() if key not in _GIVEN}
    found = {key: value for key, value in written.items() if key != "status" or written["kind"] != "Pod"}
    return {"write": {**found, "metadata": kept}}


def _find(number: int, of: int, what: str = "") -> str:
    noun = f" {what}" if what else ""
    if number == of:
        return "it finds a node" if of == 1 else f"all {of:,}{noun} find a node"
    return f"{number:,} of {of:,}{noun} find{'s' if number == 1 else ''} a node"


def _lower_first(words: str) -> str:
    return words[:1].lower() + words[1:]


def _workload_words(simulation: Simulation, pods: Sequence[Pod]) -> str:
    """`Deployment shop/web, 9 pods`."""
    kind, name, _ = owner_of(simulation, pods[0])
    if kind == "Pod" and len(pods) > 1:
        return f"{len(pods):,} pods like {pods[0].key}"
    many = f", {len(pods):,} pods" if len(pods) > 1 else ""
    return f"{kind} {pods[0].namespace}/{name}{many}"


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
        return f"{_all(plan.pods, whose)} without any new node."
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
    whom += whose
    gap = plan.cost - plan.bound
    if gap < 0.005:
        best = "no plan costs less"
    else:
        best = f"no plan costs less than {money(plan.bound)}"
    return f"{nodes} {place} {whom} for {money(plan.cost)} an hour; {best}."


def _all(number: int, whose: str) -> str:
    if number == 1:
        return f"The one pending pod{whose} finds a node"
    return f"All {number:,} pending pods{whose} find a node"


def answer_fewer(simulation: Simulation, sandbox: Sandbox, question: PlanQuestion, report: Report) -> Answer:
    """Which nodes can go."""
    found = fewer_nodes(sandbox, question.price_list, report=report)
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
    for number, step in enumerate(found.steps, start=1):
        name = step.nodes[0]
        saved += found.cost_of[name]
        n_moves = sum(item.goes_to is not None for item in step.pods)
        text = (
            f"step {number}: {n_moves:,} pod{'' if n_moves == 1 else 's'} move{'s' if n_moves == 1 else ''}"
        )
        worth = f"{_worth(found, saved)} so far" if found.has_prices else f"{number} so far"
        answer.line(*_step_words(text, step), node=name, price=worth, count=n_moves)
    by_cause: dict[str, list[str]] = {}
    for name, why in found.kept.items():
        by_cause.setdefault(why, []).append(name)
    for why, names in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[1][0])):
        more = f" and {len(names) - 1:,} more stay" if len(names) > 1 else " stays"
        answer.line(WARNING, f"{names[0]}{more}.", why, nodes=len(names), count=len(names))
    if found.limit is not None:
        answer.line(WARNING, limit_words(found), "More might go; the bound says how much at most.")
    for number, step in enumerate(found.steps, start=1):
        answer.moves += [item.document() | {"step": number} for item in step.pods]
    gone = {step.nodes[0] for step in found.steps}
    takes = Counter(item.goes_to for step in found.steps for item in step.pods if item.goes_to)

    def state(name: str) -> tuple[str, int, int]:
        share = cpu_share(sandbox, name)
        return (
            ("gone", share, 0) if name in gone else ("takes" if takes[name] else "same", share, takes[name])
        )

    answer.map = node_map(sandbox, state)
    answer.steps = [
        done
        for name in (step.nodes[0] for step in found.steps)
        for done in ({"drain": name}, {"delete": {"kind": "Node", "name": name}})
    ]
    gap = found.bound - found.saved
    answer.more = {"saved": round(found.saved, 6), "bound": round(found.bound, 6), "gap": round(gap, 6)}
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
    answer.luck = told_luck(sandbox, n_decisions, lambda: replay_steps(sandbox, found, report), report)
    return answer


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
    return money(amount) if found.has_prices else round(amount, 6)


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
    if not found.steps:
        return f"No node of {found.nodes:,} can go without harm."
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
