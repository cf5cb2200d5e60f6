"""What one cycle of the descheduler would evict, and where the scheduler puts the pods that are made in their place."""

from __future__ import annotations

from collections import Counter
from typing import Final

from scheduler_core.descheduler.cycle import DeschedulerCycle, deschedule
from scheduler_core.descheduler.plugins import PluginRun
from scheduler_core.descheduler.policy import PolicyError, StartError
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import Fork, Report
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.fixes import counted, first_of
from scheduler_core.whatif.questions import (
    BAD,
    GOOD,
    NO_TIME,
    OUTSIDE,
    WARNING,
    Answer,
    PlanQuestion,
    node_map,
)
from scheduler_core.whatif.take_away import LANDS, LOST, PENDING, Followed, evicted

_KINDS: Final = (
    "Node",
    "Pod",
    "Namespace",
    "PriorityClass",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
)
_FATES: Final = (
    ("lands on another node", "land on other nodes"),
    ("comes back to the node it left", "come back to the node they left"),
    ("finds no node", "find no node"),
    ("has no owner that recreates it", "have no owner that recreates them"),
)
"""What becomes of an evicted pod, and of several."""


def answer_descheduling(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    """Run a policy's cycle once, dry, and follow the pods.

    Raises
    ------
    InvalidObject
        The policy cannot be used, in the descheduler's words.
    """
    report(0, 1, "running the descheduler's cycle")
    objects = [stored.manifest for kind in _KINDS for stored in simulation.world.all(kind)]
    try:
        cycle = deschedule(question.policy or {}, objects, simulation.now_ns)
    except (PolicyError, StartError) as error:
        raise InvalidObject("policy", None, f"cannot be used: {error}") from None
    keys = [pod for _, run in cycle.runs for pod in run.evicted]
    pods = {pod.key: pod for name in fork.nodes_in_order() for pod in fork.pods_on(name)}
    with fork.changes():
        found = evicted(fork, [pods[key] for key in keys])
    fates = {item.pod: item for item in found.pods if not item.because}
    returning = [item for item in fates.values() if item.node is not None and item.node == item.origin]
    answer = Answer(
        _verdict(cycle, list(fates.values()), returning),
        _tone(list(fates.values()), returning, found.preempted),
        [("nodes looked at", len(cycle.nodes)), ("evicted", len(fates))],
        decisions=found.n_decisions,
        leaves_out=(NO_TIME, *OUTSIDE),
    )
    numbers = _counts(list(fates.values()), returning)
    answer.figures += [(words[1], number) for words, number in zip(_FATES, numbers, strict=True) if number]
    for _, run in cycle.runs:
        _tell_run(answer, run, fates)
    for text, keys in _protected(cycle):
        said = "is not evicted" if len(keys) == 1 else "are not evicted"
        answer.line(WARNING, f"{first_of(keys)} {said}.", text, count=len(keys))
    answer.moves = [item.document() for item in found.pods]
    answer.steps = [{"delete": _object_of(key)} for key in fates]
    landed = Counter(item.node for item in found.pods if item.outcome == LANDS)
    answer.map = node_map(fork, lambda name: ("takes" if landed[name] else "same", landed[name]))
    answer.more = {"evictability": cycle.evictability}
    return answer


def _object_of(key: str) -> dict[str, str]:
    namespace, _, name = key.partition("/")
    return {"kind": "Pod", "namespace": namespace, "name": name}


def _verdict(cycle: DeschedulerCycle, fates: list[Followed], returning: list[Followed]) -> str:
    if len(cycle.nodes) < 2:
        return f"The descheduler does nothing: it needs two ready nodes and has {len(cycle.nodes)}."
    if not fates:
        return "The descheduler evicts no pod."
    parts = [
        f"{number:,} {words[number != 1]}"
        for number, words in zip(_counts(fates, returning), _FATES, strict=True)
        if number
    ]
    return f"The descheduler evicts {counted(len(fates), 'pod')}: {', '.join(parts)}."


def _counts(fates: list[Followed], returning: list[Followed]) -> tuple[int, ...]:
    """How many of each of `_FATES`."""
    outcomes = Counter(item.outcome for item in fates)
    return outcomes[LANDS] - len(returning), len(returning), outcomes[PENDING], outcomes[LOST]


def _tone(fates: list[Followed], returning: list[Followed], preempted: list[Followed]) -> str:
    if any(item.outcome in (PENDING, LOST) for item in fates):
        return BAD
    return WARNING if returning or preempted else GOOD


def _tell_run(answer: Answer, run: PluginRun, fates: dict[str, Followed]) -> None:
    """What a plugin did, what was refused, and why it did not more."""
    name = run.plugin if run.profile == "default" else f"{run.profile}/{run.plugin}"
    notes = list(dict.fromkeys([*run.messages, *([run.error] if run.error else [])]))
    if not run.evicted:
        answer.line(WARNING if run.error else GOOD, f"{name} evicts no pod.", "; ".join(notes), count=0)
    for fate, keys in _by_fate(run, fates).items():
        tone = WARNING if fate else GOOD
        text = f"{name} evicts {first_of(keys)}, which {_FATES[fate][len(keys) != 1]}."
        answer.line(tone, text, "; ".join(notes), count=len(keys))
    errors: dict[str, list[str]] = {}
    for failure in run.failed:
        errors.setdefault(failure["error"], []).append(failure["pod"])
    for text, keys in errors.items():
        answer.line(WARNING, f"{name} may not evict {first_of(keys)}.", text, count=len(keys))


def _by_fate(run: PluginRun, fates: dict[str, Followed]) -> dict[int, list[str]]:
    """Place in `_FATES` -> the pods of a plugin."""
    found: dict[int, list[str]] = {}
    for key in run.evicted:
        item = fates[key]
        place = {LANDS: 0, PENDING: 2}.get(item.outcome, 3)
        found.setdefault(1 if place == 0 and item.node == item.origin else place, []).append(key)
    return found


def _protected(cycle: DeschedulerCycle) -> list[tuple[str, list[str]]]:
    """Reasons of the evictors, each with its pods, the commonest first."""
    reasons: dict[str, list[str]] = {}
    for verdicts in cycle.evictability.values():
        for verdict in verdicts:
            for text in verdict.get("checks") or [verdict.get("text")]:
                if text and verdict["pod"] not in reasons.setdefault(text, []):
                    reasons[text].append(verdict["pod"])
    return sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
