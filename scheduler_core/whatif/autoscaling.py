"""What the cluster autoscaler would do: which groups grow and why, why each node stays or goes, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.autoscaler.cluster_state import DEFAULTS
from scheduler_core.autoscaler.estimate import equal_pods
from scheduler_core.autoscaler.pasted import Given, autoscaler_from
from scheduler_core.autoscaler.scale_up import ScaleUp
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import ZONE, Fork, Report
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.controllers.cluster_autoscaler import PROVISION_NS, groups_for
from scheduler_core.sim.outlook import group_words, node_words
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import backlog
from scheduler_core.whatif.fixes import counted, first_of, money, owner_words
from scheduler_core.whatif.questions import BAD, GOOD, WARNING, Answer, PlanQuestion, node_map
from scheduler_core.whatif.scaling import NodeFate, ScalingRun, run_loops
from scheduler_core.whatif.take_away import LANDS, PENDING, Followed, named_nodes
from scheduler_core.whatif.workloads import waiting_pods

MOST_BOUND_PODS: Final = 500
"""Pending pods above which no bound is looked for."""
MOST_BOUND_DECISIONS: Final = 400


def answer_autoscaling(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    """Run the loops to rest and say what they did.

    Raises
    ------
    InvalidObject
        A flag or a group cannot be used.
    """
    given = autoscaler_from(question.autoscaler or {})
    asked = named_nodes(fork, question.nodes, question.label)
    unknown = next((name for name in asked if simulation.world.node(name) is None), None)
    if unknown is not None:
        raise InvalidObject("nodes", unknown, "is no node of the cluster")
    pending = waiting_pods(simulation)
    run = run_loops(simulation, given, question.price_list, report)
    world = run.simulation.world
    now = {pod.uid: pod for pod in (stored.typed for stored in world.all("Pod"))}
    placed = {pod.uid: now[pod.uid].node_name for pod in pending if pod.uid in now and now[pod.uid].node_name}
    left = waiting_pods(run.simulation)
    answer = Answer(
        _verdict(run, len(pending), len(placed), len(left)),
        BAD if left else WARNING if run.limit else GOOD,
        [
            ("loops", run.n_loops),
            ("nodes", len(simulation.world.all("Node"))),
            ("nodes added", len(run.added)),
            ("nodes removed", len(run.removed)),
            ("evicted", run.evictions),
            ("pending", len(pending)),
            ("pending in the end", len(left)),
        ],
        decisions=run.n_cycles,
    )
    _tell_costs(answer, run, simulation, fork, question, report)
    if asked:
        answer.verdict = _going_words(run, asked)
        answer.tone = GOOD if set(asked) <= set(run.removed) else WARNING
    _tell_growth(answer, run, str(given.options.get("expander", DEFAULTS["expander"])))
    _tell_pods(answer, run, pending)
    nodes = _told_nodes(run)
    if asked:
        for one in nodes:
            if one["node"] in asked:
                answer.line(GOOD if one["goes"] else WARNING, one["text"], one["reason"], node=one["node"])
    else:
        _tell_nodes(answer, nodes)
    answer.more |= {"nodes": nodes, "groups": _told_groups(run)}
    for pod in pending:
        node = placed.get(pod.uid)
        moved = Followed(pod.key, owner_words(pod), "", LANDS if node else PENDING, node)
        answer.moves.append(moved.document())
    _draw(answer, run, fork, Counter(placed.values()))
    answer.leaves_out = tuple(_left_out(run, given))
    return answer


def _verdict(run: ScalingRun, n_pending: int, n_placed: int, n_left: int) -> str:
    did = []
    if run.added:
        did.append(f"adds {counted(len(run.added), 'node')}")
    if run.removed:
        did.append(f"removes {counted(len(run.removed), 'node')}")
    took = format_duration(run.acted_ns - run.began_ns)
    text = f"The autoscaler {' and '.join(did)} in {took}" if did else "The autoscaler changes nothing"
    if n_pending:
        text += (
            f"; {n_placed:,} of {counted(n_pending, 'pending pod')} find{'s' if n_placed == 1 else ''} a node"
        )
    elif n_left:
        text += f"; {counted(n_left, 'pod')} find{'s' if n_left == 1 else ''} no node in the end"
    return f"{text}{f', when the limit of {run.limit} ends the run' if run.limit else ''}."


def _going_words(run: ScalingRun, asked: Sequence[str]) -> str:
    """Of nodes that were asked about: which go, the last of them when, and which stay."""
    goes = [name for name in asked if name in run.removed]
    stays = [name for name in asked if name not in run.removed]
    ended = f" when the limit of {run.limit} ends the run" if run.limit else ""
    if not goes:
        verb = "stays" if len(stays) == 1 else "stay"
        return f"{first_of(stays)} {verb}{ended}."
    last_ns = max(run.fates[name].gone_ns or run.began_ns for name in goes) - run.began_ns
    text = f"{first_of(goes)} {'goes' if len(goes) == 1 else 'go'} within {format_duration(last_ns)}"
    return (
        f"{text}; {first_of(stays)} {'stays' if len(stays) == 1 else 'stay'}{ended}." if stays else f"{text}."
    )


# ---- money


def _tell_costs(
    answer: Answer,
    run: ScalingRun,
    simulation: Simulation,
    fork: Fork,
    question: PlanQuestion,
    report: Report,
) -> None:
    prices = question.price_list
    costs = []
    for world in (simulation.world, run.simulation.world):
        nodes: list[Node] = [stored.typed for stored in world.all("Node")]
        costs.append(sum(prices.price_of(node.meta.labels) or 0.0 for node in nodes))
    answer.figures += [("cost an hour", money(costs[0])), ("in the end", money(costs[1]))]
    answer.more["cost"] = round(costs[1], 6)
    pods = [pod for pod in waiting_pods(simulation) if not pod.scheduling_gates]
    if not pods or len(pods) > MOST_BOUND_PODS:
        return
    choices, _ = backlog.choices_of(fork, prices, pods)
    plan = backlog.cheapest_nodes(fork, pods, choices, most=MOST_BOUND_DECISIONS, report=report)
    added = sum(prices.price_of(_node(run, name)) or 0.0 for name in run.added if name not in run.removed)
    answer.figures += [("added an hour", money(added)), ("bound for the pending pods", money(plan.bound))]
    answer.more["bound"] = round(plan.bound, 6)


def _node(run: ScalingRun, name: str) -> Mapping[str, str]:
    node = run.simulation.world.node(name)
    return {} if node is None else node.meta.labels


# ---- growth


def _tell_growth(answer: Answer, run: ScalingRun, expander: str) -> None:
    for growing in run.grew:
        found, at = growing.found, format_duration(growing.at_ns - run.began_ns)
        for one in found.resizes:
            sizes = f"from {one.start:,} to {counted(one.end, 'node')} at {at}, of {one.most:,} at most"
            text = f"{one.group} grows {sizes}."
            answer.line(GOOD, text, _why(found, expander), count=one.end - one.start)


def _why(found: ScaleUp, expander: str) -> str:
    """The options, and by which expander one was chosen."""
    if found.choice is None:
        return "it was below its least size"
    options = "; ".join(
        f"{option.group}: {counted(option.n_nodes, 'node')} for {counted(len(option.pods), 'pod')}"
        for option in found.options
    )
    if len(found.options) == 1:
        return f"the only option, {options}"
    steps = "; ".join(f"{name} leaves {', '.join(left)}" for name, left in found.choice.filters)
    drawn = f"; drawn among {', '.join(found.choice.random_among)}" if found.choice.random_among else ""
    return f"--expander={expander}: {steps}{drawn}. Options: {options}" if steps else f"{options}{drawn}"


def _tell_pods(answer: Answer, run: ScalingRun, pending: Sequence[Pod]) -> None:
    """For pods that are alike: which groups help, and what keeps the others from it."""
    alike = equal_pods(sorted(pending, key=lambda pod: (-pod.priority, pod.key)))
    sizes = {group.name: group.max_size for group in run.groups.machines}
    for group in alike:
        keys = [pod.key for pod in group.pods]
        asked = next((item for item in run.asked if _is_about(item[1], keys)), None)
        if asked is None:
            answer.line(
                WARNING, f"{first_of(keys)}: no group is asked.", _unasked(run, group.pods), count=len(keys)
            )
            continue
        helps, others = groups_for(asked[1], keys, asked[2], sizes)
        verb = "helps" if len(helps) == 1 else "help"
        text = (
            f"{first_of(keys)}: {', '.join(helps)} {verb}." if helps else f"{first_of(keys)}: no group helps."
        )
        notes = [f"{', '.join(names)}: {why}" for why, names in others.items()]
        answer.line(GOOD if helps else BAD, text, "; ".join(notes), count=len(keys))


def _is_about(found: ScaleUp, keys: Sequence[str]) -> bool:
    return any(
        key in found.remaining or any(key in said for said in found.predicates.values()) for key in keys
    )


def _unasked(run: ScalingRun, pods: Iterable[Pod]) -> str:
    now = [run.simulation.world.pod(pod.namespace, pod.name) for pod in pods]
    return (
        "a node of the cluster takes them"
        if all(pod and pod.node_name for pod in now)
        else "they are held back"
    )


def _told_groups(run: ScalingRun) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "minSize": group.min_size,
            "maxSize": group.max_size,
            "targetSize": group.target_size,
            "added": sum(name == group.name for name in run.added.values()),
            "removed": sum(run.fates[name].group == group.name for name in run.removed),
        }
        for group in run.groups.machines
    ]


# ---- nodes


def _told_nodes(run: ScalingRun) -> list[dict[str, Any]]:
    """A sentence for each node."""
    found = []
    for name, fate in sorted(run.fates.items()):
        goes = name in run.removed
        why: dict[str, Any] = {} if goes else fate.why or {"reason": "NotLookedAt"}
        found.append(
            {
                "node": name,
                "group": fate.group,
                "goes": goes,
                "isNew": name in run.added,
                "reason": why.get("reason", ""),
                "podReason": why.get("podReason", ""),
                "utilization": fate.used.get("utilization"),
                "text": _gone_words(run, fate) if goes else node_words(why, run.began_ns),
            }
        )
    return found


def _gone_words(run: ScalingRun, fate: NodeFate) -> str:
    def at(moment_ns: int | None) -> str:
        return format_duration((moment_ns or run.began_ns) - run.began_ns)

    pods = sorted({place for _, place in fate.moves})
    moving = (
        f"room for its {counted(len(fate.moves), 'pod')} is on {first_of(pods)}"
        if pods
        else "no pod has to move"
    )
    return f"Goes at {at(fate.gone_ns)}: not needed since {at(fate.since_ns)}; {moving}."


def _tell_nodes(answer: Answer, nodes: Sequence[Mapping[str, Any]]) -> None:
    """One line for the nodes of a reason."""
    reasons: dict[tuple[bool, str, str], list[Mapping[str, Any]]] = {}
    for node in nodes:
        reasons.setdefault((node["goes"], node["reason"], node["podReason"]), []).append(node)
    for (goes, reason, pod_reason), some in sorted(
        reasons.items(), key=lambda item: (not item[0][0], item[0])
    ):
        names = [node["node"] for node in some]
        if len(some) == 1:
            answer.line(GOOD, str(some[0]["text"]), reason, node=names[0])
        elif goes:
            answer.line(GOOD, f"{first_of(names)} go.", str(some[0]["text"]), nodes=len(some))
        else:
            why = group_words({"reason": reason, "podReason": pod_reason})
            answer.line(GOOD, f"{first_of(names)} stay: {why}.", pod_reason or reason, nodes=len(some))


def _draw(answer: Answer, run: ScalingRun, fork: Fork, landed: Mapping[str, int]) -> None:
    removed = set(run.removed)

    def state(name: str) -> tuple[str, int]:
        return (
            ("gone", 0) if name in removed else ("takes" if landed.get(name) else "same", landed.get(name, 0))
        )

    answer.map = node_map(fork, state)
    kept = [name for name in run.added if name not in removed]
    if kept:
        nodes = [[name, "new", 0, landed.get(name, 0), _node(run, name).get(ZONE, "")] for name in kept]
        answer.map.append({"name": "added", "shape": "", "nodes": nodes})
    for name in kept:
        stored = run.simulation.world.get("Node", "", name)
        if stored is not None:
            answer.steps.append({"apply": dict(stored.manifest)})
    for name in run.removed:
        if name not in run.added:
            answer.steps += [{"drain": name}, {"delete": {"kind": "Node", "name": name}}]


def _left_out(run: ScalingRun, given: Given) -> Iterable[str]:
    if run.groups.guessed:
        yield (
            "No node groups were given: one for each pool and instance type of the cluster is guessed, "
            "from 0 to twice its nodes, 10 at least."
        )
    if given.not_modelled:
        names = ", ".join(f"--{name}" for name in sorted(set(given.not_modelled)))
        yield f"These flags are not modelled: {names}."
    took = format_duration(PROVISION_NS)
    yield f"A node is there {took} after it is asked for, always; evicted pods take their grace period."
    yield "Owners of pods that are not among the objects are taken to be there."
    yield "Groups of nodes without a price count as free in the costs; the bound is for the pending pods alone."
    if run.simulation.scheduler.extenders:
        yield "Extenders are not asked."
    yield "Where several groups are left the real autoscaler draws one; here it is the first by name."
