"""Expectations about what a cluster bears: losses, drains and growth, each decided on a copy of it at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_core.config.duration import format_duration
from scheduler_core.errors import InvalidObject
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.record import Finding
from scheduler_core.scenario.transport import ScenarioTransport
from scheduler_core.scenario.types import FITTING, Draining, Fitting, Survival
from scheduler_core.whatif.fork import Fork
from scheduler_core.whatif.headroom import headroom
from scheduler_core.whatif.questions import names_of, taken_away_verdict, without_label
from scheduler_core.whatif.take_away import (
    BLOCKED,
    DRAIN,
    LOST,
    PENDING,
    TakenAway,
    UnknownNodes,
    drain_in_time,
    lose_any,
    lose_each,
    nodes_without,
    taken_away,
)
from scheduler_core.whatif.workloads import template_of

if TYPE_CHECKING:
    from scheduler_core.scenario.ran import ScenarioRun

ZONE = "topology.kubernetes.io/zone"
_KINDS = dict(zip(FITTING, ("Deployment", "StatefulSet", "Pod"), strict=True))


def survives(run: ScenarioRun, wanted: Survival, path: str) -> Finding:
    """Whether each loss leaves no more pods without a node than allowed."""
    fork = Fork(run.simulation.scheduler, transport=ScenarioTransport(run.scenario), seed=0)
    labels = [(ZONE, "zone")] if wanted.any_zone else []
    labels += [(wanted.any_of, wanted.any_of)] if wanted.any_of else []
    losses: list[tuple[str, list[TakenAway]]] = []
    if wanted.any_one_node:
        losses.append(("node", list(lose_any(fork))))
    losses += [(noun, [answer for _, answer in lose_each(fork, label)]) for label, noun in labels]
    for noun, answers in losses:
        if not answers:
            label = {noun: label for label, noun in labels}.get(noun)
            missing = f"no node carries {label}" if label else "there is no node"
            return Finding(path, False, f"A loss was to be survived, but {missing}.")
    total = len(fork.nodes_in_order())
    bare = [without_label(label, nodes_without(fork, label), total) for label, _ in labels]
    told = "".join(f" {said}" for said in bare if said)
    noun, worst = max(
        ((noun, answer) for noun, answers in losses for answer in answers),
        key=lambda item: item[1].count(PENDING),
    )
    found = worst.of(PENDING)
    pending, allowed, named = len(found), wanted.max_pending, _lost_words(noun, worst)
    if pending <= allowed:
        counts = " and any of ".join(f"{len(answers)} by {noun}" for noun, answers in losses)
        most = f"; {pending} pods find no node at most, without {named}" if pending else ""
        return Finding(path, True, f"any of {counts} can be lost{most}{'.' if told else ''}{told}")
    return Finding(
        path,
        False,
        f"The loss of {named} leaves {pending} pod{'' if pending == 1 else 's'} without a node, more than {allowed}:"
        f" {names_of(found)}. {found[0].pod}: {found[0].reason}{told}",
    )


def _lost_words(noun: str, answer: TakenAway) -> str:
    """What was lost: a node by its name, others by the first of their nodes."""
    if noun == "node":
        return f"node {answer.nodes[0]}"
    more = f" and {len(answer.nodes) - 1} more" if len(answer.nodes) > 1 else ""
    return f"the {noun} of {answer.nodes[0]}{more}"


def fits(run: ScenarioRun, wanted: Fitting, path: str) -> Finding:
    """Whether so many more pods find a node.

    Raises
    ------
    ScenarioError
        The workload is not there, or its template makes no pod.
    """
    field, kind, key = next(
        (name, _KINDS[name], value)
        for name, value in zip(FITTING, (wanted.deployment, wanted.stateful_set, wanted.pod), strict=True)
        if value
    )
    namespace, _, name = key.partition("/")
    try:
        template = template_of(run.simulation, kind, namespace, name)
    except KeyError as error:
        raise ScenarioError([Problem(f"{path}.fits.{field}", str(error.args[0]))]) from None
    except InvalidObject as error:
        raise ScenarioError(
            [Problem(f"{path}.fits.{field}: {error.path}", error.reason, error.value)]
        ) from None
    if template.scheduler_name not in run.simulation.scheduler.profiles:
        said = f"waits for the scheduler {template.scheduler_name}, which is not here"
        return Finding(path, False, f"{kind} {key} {said}.")
    fork = Fork(run.simulation.scheduler, transport=ScenarioTransport(run.scenario), seed=0)
    found = headroom(fork, template, max_copies=wanted.at_least)
    if found.replicas >= wanted.at_least:
        return Finding(path, True, f"{wanted.at_least} more of {kind} {key} fit")
    why = f" The next one: {found.stop}" if found.stop else ""
    return Finding(
        path,
        False,
        f"{wanted.at_least} more of {kind} {key} were to fit, but {found.replicas} do.{why}",
    )


def drains(run: ScenarioRun, wanted: Draining, path: str) -> Finding:
    """Whether nodes can be drained, in the time there is.

    Raises
    ------
    ScenarioError
        A node is not there.
    """
    fork = Fork(run.simulation.scheduler, transport=ScenarioTransport(run.scenario), seed=0)
    try:
        answer = taken_away(fork, DRAIN, wanted.nodes)
    except UnknownNodes as error:
        known = run.simulation.world.node
        unknown = next(place for place, name in enumerate(wanted.nodes) if known(name) is None)
        raise ScenarioError([Problem(f"{path}.drain.nodes[{unknown}]", str(error))]) from None
    named = ", ".join(wanted.nodes)
    held = answer.of(BLOCKED)
    if held or answer.of(LOST) or answer.count(PENDING) > wanted.max_pending:
        first = next((item.reason for item in (*answer.of(PENDING), *held) if item.reason), "")
        return Finding(
            path, False, f"{named} cannot be drained: {taken_away_verdict(answer)} {first}".rstrip()
        )
    if wanted.within_ns is None:
        return Finding(path, True, f"{named} can be drained: {taken_away_verdict(answer)}")
    done = drain_in_time(
        run.simulation, wanted.nodes, wanted.within_ns, transport=ScenarioTransport(run.scenario)
    )
    limit = format_duration(wanted.within_ns)
    if not done.left and len(done.waiting) <= wanted.max_pending:
        return Finding(path, True, f"{named} can be drained in {format_duration(done.took_ns)}")
    if done.left:
        first_left = done.left[0]
        more = f" and {len(done.left) - 1} more" if len(done.left) > 1 else ""
        why = done.refused.get(first_left, "It is ending.")
        said = f"after that time {first_left}{more} stays there. {why}"
        return Finding(path, False, f"{named} cannot be drained within {limit}: {said}")
    return Finding(
        path,
        False,
        f"{named} cannot be drained within {limit}: {', '.join(done.waiting[:3])} has no node yet.",
    )
