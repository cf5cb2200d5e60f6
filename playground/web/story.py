"""A pod's story: its log entries, queue moves, cycles and events as one list of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from playground.clusters.choices import CycleOutcome, DecisionKind, EntryKind, EntrySource
from playground.clusters.selectors.pod_traces import PodTraces
from playground.web.explanation import Outcome, outcome_of
from playground.web.judge import DecisionView, view_decision

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle, Event, ForeignDecision, LogEntry, Pod, QueueMove

# Events that repeat what a cycle in the same list says better.
_TOLD_BY_CYCLES = ("FailedScheduling", "Scheduled")


@dataclass(frozen=True)
class StoryStep:
    """One thing that happened; `order` sorts steps of the same moment.

    Attributes
    ----------
    asked
        The plugin that was asked about the event behind a queue move; empty without one.
    quiet
        Events that left the pod where this step had put it.
    stayed_ns
        How long it stayed in the lane this step is about; None for other steps.
    posted
        Written through the API and not by the scheduler.
    decision
        Of another scheduler.
    """

    at_ns: int
    order: float
    css: str
    title: str
    detail: str
    cycle: int | None = None
    outcome: Outcome | None = None
    asked: str = ""
    hint: str = ""
    why: str = ""
    quiet: tuple[QueueMove, ...] = ()
    stayed_ns: int | None = None
    posted: bool = False
    decision: DecisionView | None = None


# lane of a move -> (title, class of the timeline's dot)
_LANES = {
    "activeQ": ("Into activeQ", "k-a"),
    "backoffQ": ("Into backoffQ", "k-ev"),
    "errorBackoffQ": ("Into backoffQ", "k-ev"),
    "unschedulable": ("Into Unschedulable", "k-u"),
    "expired": ("Expired", "k-u"),
}
# What the queue calls its own doings, in words.
_OWN_EVENTS = {
    "ScheduleAttemptFailure": "the attempt failed",
    "BackoffComplete": "its backoff is over",
    "UnschedulablePodAdd": "it is new",
    "UnscheduledPodAdd": "it is new",
    "UnschedulableTimeout": "it has waited for long enough to be tried anyway",
    "ForceActivate": "a plugin asked for it",
    "AssumedPodExpired": "its Binding was not heard of in time: it no longer counts on its node",
}

_AFTER_ERROR = "the attempt ended with an error"
# A member of a gang whose others found no room: it was told to wait at Permit, and its wait ended with theirs.
_REJECTED_BY_NONE = (
    "no plugin rejected this pod itself; kube-scheduler lets such a pod back off, as it does after an error"
)


def story_steps(story: PodTraces, *, now_ns: int | None = None) -> list[StoryStep]:
    """Put everything in order of virtual time, oldest first.

    Parameters
    ----------
    now_ns
        The cluster's time, until which the last lane lasts.
    """
    steps = _moves_and_cycles(story, now_ns)
    steps += [_event(event) for event in story.events if event.reason not in _TOLD_BY_CYCLES]
    steps += _entries(story.entries)
    steps += [_decision(row) for row in story.decisions]
    return sorted(steps, key=lambda step: (step.at_ns, step.order))


def story_sentence(story: PodTraces, *, is_foreign: bool = False) -> tuple[Outcome, str]:
    """Say in one sentence where the pod is now; `is_foreign` says that no profile here has its schedulerName."""
    pod = story.pod
    n = sum(1 + cycle.repeats for cycle in story.cycles)
    tries = f"after {n} attempt{'' if n == 1 else 's'}" if n else "without an attempt of this scheduler"
    if pod is None:
        return outcome_of("gone"), f"is gone; {n} attempt{' is' if n == 1 else 's are'} on record."
    if pod.terminating:
        return outcome_of("error"), f"is terminating on {pod.node_name or 'no node'}."
    theirs = story.decisions[-1] if story.decisions else None
    if pod.node_name and not n and theirs is not None:
        return outcome_of("bound"), f"is on {pod.node_name}, where {theirs.program} bound it."
    if pod.node_name and pod.waits_for:
        return outcome_of("waiting"), f"is on {pod.node_name}, where its kubelet does not start it."
    if pod.node_name:
        word = "ran" if pod.phase in ("Succeeded", "Failed") else "is"
        return outcome_of("bound"), f"{word} on {pod.node_name} {tries}."
    if pod.waits_for and theirs is not None:
        if pod.nominated_node:
            return outcome_of(
                "preempting"
            ), f"waits for {pod.nominated_node}, where {theirs.program} made room."
        return outcome_of("unschedulable"), f"waits for {theirs.program}, which found no node for it."
    if pod.waits_for and is_foreign:
        return outcome_of("pending"), f"waits for the scheduler {pod.scheduler_name}."
    if pod.waits_for:
        return outcome_of("error"), "is never scheduled here."
    if pod.lane == "permit":
        return outcome_of("waiting"), f"waits at Permit {tries}."
    if pod.lane == "binding":
        return outcome_of(
            "binding"
        ), f"is assumed on {pod.reserved_node} {tries}; its Binding is not heard of yet."
    if story.cycles and story.cycles[-1].outcome == CycleOutcome.EXPIRED and pod.lane in ("", "foreign"):
        node = story.cycles[-1].node
        return (
            outcome_of("expired"),
            f"was assumed on {node} {tries} and expired; it is tried again when it changes.",
        )
    if pod.nominated_node:
        return outcome_of("preempting"), f"waits for {pod.nominated_node} to be freed, {tries}."
    where = {"active": "in activeQ", "backoff": "in backoffQ", "gated": "held by a gate"}.get(pod.lane)
    if pod.lane == "unschedulable":
        return outcome_of("unschedulable"), f"fits nowhere {tries}; it waits for an event that could help."
    return outcome_of("pending"), f"is pending{', ' + where if where else ''}, {tries}."


def cache_state(pod: Pod | None, last: Cycle | None) -> str:
    """Say what the scheduler's cache holds of a pod with that last cycle: added, assumed, expired, or nothing."""
    if pod is None or pod.phase in ("Succeeded", "Failed"):
        return "removed: what has ended takes no room"
    if pod.node_name:
        return f"added: counted on {pod.node_name}"
    is_its = last is not None and last.pod_uid == pod.uid
    if (
        last is not None
        and is_its
        and last.node
        and last.outcome in (CycleOutcome.BOUND, CycleOutcome.WAITING, CycleOutcome.BINDING)
    ):
        return f"assumed: counted on {last.node} until its binding is heard of"
    if last is not None and is_its and last.outcome == CycleOutcome.EXPIRED:
        return f"expired: it was counted on {last.node}, and is no longer"
    return "not in it: pending pods take no room"


def group_of(pod: Pod | None) -> str:
    """The PodGroup the pod names, where its API does (1.36)."""
    spec = {} if pod is None else pod.manifest.get("spec") or {}
    return str((spec.get("schedulingGroup") or {}).get("podGroupName") or "")


def _words(cycle: Cycle) -> str:
    """The message where it is the news, else the sentence."""
    if cycle.outcome == CycleOutcome.UNSCHEDULABLE and cycle.message:
        return cycle.message
    return cycle.sentence or cycle.message


def _cycle(cycle: Cycle) -> StoryStep:
    repeats = (
        f" The same {cycle.repeats} more time{'' if cycle.repeats == 1 else 's'}." if cycle.repeats else ""
    )
    return StoryStep(
        at_ns=cycle.at_ns,
        order=1,
        css="k-cyc",
        title=f"Attempt {cycle.attempt}, cycle {cycle.number}",
        detail=f"{_words(cycle)}{repeats}",
        cycle=cycle.number,
        outcome=outcome_of(cycle.outcome),
    )


def _moves_and_cycles(story: PodTraces, now_ns: int | None) -> list[StoryStep]:
    """Queue moves and attempts in the order they took turns, which virtual time alone does not tell."""
    steps: list[StoryStep] = []
    cycles = iter(story.cycles)
    cycle = next(cycles, None)
    last_lane = -1  # place in `steps` of the newest move
    ended = ""  # outcome of the newest attempt
    known: dict[str, str] = {}  # uid -> lane of its newest move
    for move in story.moves:
        started_anew = not move.source and move.pod_uid in known
        if started_anew and known[move.pod_uid] == move.target and steps and last_lane == len(steps) - 1:
            # Read again by a scheduler with another configuration, and where it was: nothing to tell.
            continue
        came_back = move.source == "inFlight"
        while cycle is not None and (cycle.at_ns < move.at_ns or (came_back and cycle.at_ns == move.at_ns)):
            steps.append(_cycle(cycle))
            ended = cycle.outcome
            cycle = next(cycles, None)
            came_back = False
        if move.source == move.target:
            if last_lane >= 0:
                steps[last_lane] = replace(steps[last_lane], quiet=(*steps[last_lane].quiet, move))
            continue
        steps.append(_move(move, started_anew=started_anew, ended=ended))
        known[move.pod_uid] = move.target
        last_lane = len(steps) - 1
    while cycle is not None:
        steps.append(_cycle(cycle))
        cycle = next(cycles, None)
    end_ns = _left_queue_ns(story, now_ns)
    after: int | None = end_ns
    for i in range(len(steps) - 1, -1, -1):
        if steps[i].stayed_ns is not None:
            steps[i] = replace(steps[i], stayed_ns=max(0, (after or steps[i].at_ns) - steps[i].at_ns))
        after = steps[i].at_ns
    return [replace(step, order=1 + i * 1e-6) for i, step in enumerate(steps)]


def _left_queue_ns(story: PodTraces, now_ns: int | None) -> int | None:
    """When the last lane ended: with the attempt that placed the pod, its end, or not yet."""
    if story.pod is not None and not story.pod.node_name:
        return now_ns
    known = [cycle.at_ns for cycle in story.cycles[-1:]] + [entry.at_ns for entry in story.entries[-1:]]
    return min(known, default=now_ns)


def _move(move: QueueMove, *, started_anew: bool, ended: str) -> StoryStep:
    """One move; `ended` is the outcome of the attempt before it."""
    title, css = _LANES.get(move.target, (f"Into {move.target}", "k-none"))
    if started_anew:
        detail = "the scheduler started anew, with another configuration"
    elif move.event in _OWN_EVENTS:
        detail = _OWN_EVENTS[move.event]
        if move.source == "inFlight" and move.target == "errorBackoffQ":
            detail = _AFTER_ERROR if ended == CycleOutcome.ERROR else _REJECTED_BY_NONE
        if move.cause and move.cause != move.event:
            detail += f"; {move.cause} came during it"
    else:
        detail = f"event {move.event}"
    return StoryStep(
        at_ns=move.at_ns,
        order=1,
        css=css,
        title=title,
        detail=detail,
        asked=move.plugin,
        hint=move.hint,
        why=move.reason,
        stayed_ns=0,
    )


def _event(event: Event) -> StoryStep:
    return StoryStep(event.at_ns, 3, "k-ev", f"Event {event.reason}", event.message)


def _decision(row: ForeignDecision) -> StoryStep:
    """What another scheduler decided, and how that stands beside our own decision."""
    if row.kind == DecisionKind.EVICT:
        return StoryStep(
            row.at_ns, 1.5, "k-u", "Evicted", f"by {row.program}, for a pod that is not known yet"
        )
    css = {"bind": "k-b", "preempt": "k-p"}.get(row.kind, "k-u")
    title = {
        "bind": f"{row.program} chose {row.node}",
        "preempt": f"{row.program} made room on {row.node}",
    }.get(row.kind, f"{row.program} found no node")
    told = view_decision(row)
    return StoryStep(row.at_ns, 1.5, css, title, told.why or row.message, decision=told)


def _entries(entries: Sequence[LogEntry]) -> list[StoryStep]:
    steps = []
    before: dict[str, Any] = {}
    for entry in entries:
        manifest = entry.payload.get("manifest") or {}
        by_engine = entry.source == EntrySource.ENGINE
        reason = str(entry.payload.get("reason") or "")
        who = (
            f"by the cluster ({reason})"
            if by_engine and reason
            else "by the cluster"
            if by_engine
            else f"by {by.partition(' ')[0]}"
            if (by := str(entry.payload.get("by") or ""))
            else "by a person"
        )
        if entry.kind == EntryKind.DELETE:
            steps.append(StoryStep(entry.at_ns, 4, "k-u", "Deleted", who))
        elif entry.kind == EntryKind.WRITE:
            steps += _written(entry, before, manifest, who)
        before = manifest or before
    return steps


def _written(entry: LogEntry, before: dict[str, Any], manifest: dict[str, Any], who: str) -> list[StoryStep]:
    """Name what a write changed, as far as it matters to scheduling."""
    if entry.created:
        return [StoryStep(entry.at_ns, 0, "k-none", "Created", who)]
    spec, old_spec = manifest.get("spec") or {}, before.get("spec") or {}
    status, old_status = manifest.get("status") or {}, before.get("status") or {}
    steps = []
    if spec.get("nodeName") and not old_spec.get("nodeName"):
        words, posted = f"spec.nodeName: {spec['nodeName']}", entry.source == EntrySource.API
        steps.append(StoryStep(entry.at_ns, 2, "k-b", "Bound", words, posted=posted))
    nominated, old = status.get("nominatedNodeName"), old_status.get("nominatedNodeName")
    if nominated != old and not spec.get("nodeName"):
        words = f"to {nominated}" if nominated else f"to {old} was cleared"
        steps.append(StoryStep(entry.at_ns, 2, "k-p", "Nominated" if nominated else "Nomination", words))
    if status.get("phase") != old_status.get("phase") and status.get("phase"):
        css = "k-r" if status["phase"] == "Running" else "k-none"
        steps.append(StoryStep(entry.at_ns, 2, css, str(status["phase"]), who))
    going = (manifest.get("metadata") or {}).get("deletionTimestamp")
    if going and not (before.get("metadata") or {}).get("deletionTimestamp"):
        steps.append(StoryStep(entry.at_ns, 2, "k-u", "Terminating", f"until {going}, {who}"))
    if not steps and entry.source == EntrySource.API:
        steps.append(StoryStep(entry.at_ns, 2, "k-none", "Edited", who))
    return steps
