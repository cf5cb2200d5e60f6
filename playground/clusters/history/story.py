"""A pod's story: its log entries, queue moves, cycles, events and what other schedulers decided, in the log's order.

The one story there is: pages, REST and tools show its steps. The timeline is the same of all pods.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from playground.clusters.choices import CycleOutcome, DecisionKind, EntryKind, EntrySource
from playground.clusters.errors import NotFound
from playground.clusters.foreign.agreement import decisions_about
from playground.clusters.foreign.words import why
from playground.clusters.history.controllers import controller_runs, said_of
from playground.clusters.history.queue import QueueItem, lanes_of
from playground.clusters.memo import Memo
from playground.clusters.models import (
    Cluster,
    ControllerRecord,
    Cycle,
    Event,
    ForeignDecision,
    LogEntry,
    Pod,
    QueueMove,
)
from playground.engine.entries import Lane
from playground.engine.entries import QueueMove as Move
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.timeline import PodSeen, Timeline, pod_seen, timeline_of

STORY_LIMIT = 200


@dataclass(frozen=True)
class PodTraces:
    """What is known; `pod` is None when the pod is gone and only its traces are left."""

    namespace: str
    name: str
    pod: Pod | None
    manifest: dict[str, Any] | None
    cycles: list[Cycle]
    events: list[Event]
    entries: list[LogEntry]
    moves: list[QueueMove] = field(default_factory=list)
    decisions: list[ForeignDecision] = field(default_factory=list)
    runs: list[ControllerRecord] = field(default_factory=list)
    began_ns: int = 0


def find_pod(cluster: Cluster, namespace: str, name: str) -> Pod | None:
    """A pod as it is now, None if there is none. One query."""
    return Pod.objects.filter(cluster=cluster, namespace=namespace, name=name).first()


def pod_traces(cluster: Cluster, namespace: str, name: str) -> PodTraces:
    """Return the newest `STORY_LIMIT` of each kind of trace, oldest first: seven queries."""
    pod = find_pod(cluster, namespace, name)
    cycles = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name).defer("trace")
    events = Event.objects.filter(
        cluster=cluster, involved_kind="Pod", involved_namespace=namespace, involved_name=name
    )
    entries = LogEntry.objects.filter(
        cluster=cluster, object_kind="Pod", object_namespace=namespace, object_name=name
    )
    moves = QueueMove.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name)
    found = [*entries.order_by("-seq")[:STORY_LIMIT]][::-1]
    manifest = pod.manifest if pod else _last_manifest(found)
    return PodTraces(
        namespace=namespace,
        name=name,
        pod=pod,
        manifest=manifest,
        cycles=[*cycles.order_by("-number")[:STORY_LIMIT]][::-1],
        events=[*events.order_by("-resource_version")[:STORY_LIMIT]][::-1],
        entries=found,
        decisions=decisions_about(cluster, namespace, name),
        moves=[*moves.order_by("-id")[:STORY_LIMIT]][::-1],
        runs=controller_runs(cluster, about=f"Pod {namespace}/{name}", limit=STORY_LIMIT)[::-1],
        began_ns=cluster.start_ns,
    )


def _last_manifest(entries: list[LogEntry]) -> dict[str, Any] | None:
    for entry in reversed(entries):
        manifest = entry.payload.get("manifest")
        if manifest:
            return dict(manifest)
    return None


# Events that repeat what a cycle in the same list says better.
_TOLD_BY_CYCLES: Final = ("FailedScheduling", "Scheduled")


@dataclass(frozen=True, kw_only=True)
class PodStory:
    """A pod and everything that happened to it, oldest first; `queue` is where it waits now, if it does."""

    traces: PodTraces
    queue: QueueItem | None
    steps: list[StoryStep]


@dataclass(frozen=True)
class StoryStep:
    """One thing that happened.

    Attributes
    ----------
    what
        ``written``, ``deleted``, ``move``, ``cycle``, ``event``, ``decision`` (of another scheduler) or ``controller``.
    cycle, outcome
        Of an attempt.
    asked, hint, why
        The plugin that was asked about the event behind a queue move, its answer and reason; empty without one.
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
    what: str
    title: str
    detail: str
    cycle: int | None = None
    outcome: str = ""
    asked: str = ""
    hint: str = ""
    why: str = ""
    quiet: tuple[QueueMove, ...] = ()
    stayed_ns: int | None = None
    posted: bool = False
    decision: ForeignDecision | None = None


_Placed = tuple[int, StoryStep]
"""A step with its place in the log; 0 where that is not known."""
_TABLES: Final = table_beside(__package__, "tables.yaml")
_LANES: Final[Mapping[str, str]] = _TABLES["moves"]
_OWN_EVENTS: Final[Mapping[str, str]] = _TABLES["own_events"]

_AFTER_ERROR = "the attempt ended with an error"
# A member of a gang whose others found no room: it was told to wait at Permit, and its wait ended with theirs.
_REJECTED_BY_NONE = (
    "no plugin rejected this pod itself; kube-scheduler lets such a pod back off, as it does after an error"
)


def pod_story(cluster: Cluster, namespace: str, name: str) -> PodStory:
    """The story of a pod, there or gone. Nine queries.

    Raises
    ------
    NotFound
        There never was one of that name.
    """
    traces = pod_traces(cluster, namespace, name)
    steps = story_steps(traces, now_ns=cluster.now_ns)
    if traces.pod is None and not steps:
        raise NotFound(f'pods "{name}" not found', kind="Pod", namespace=namespace, name=name)
    queue = None
    if traces.pod is not None and not traces.pod.node_name:
        lanes, _ = lanes_of(cluster, full=True)
        wanted = f"{namespace}/{name}"
        queue = next((item for items in lanes.values() for item in items if item.pod == wanted), None)
    return PodStory(traces=traces, queue=queue, steps=steps)


def story_steps(story: PodTraces, *, now_ns: int | None = None) -> list[StoryStep]:
    """Everything in the order of the log.

    What came from outside parts it into stretches: the engine wrote what lies between two of these in one go or more,
    and within such a stretch virtual time orders its entries, moves and attempts.

    Parameters
    ----------
    now_ns
        The cluster's time, until which the last lane lasts.
    """
    inputs, entries = _entries(story.entries)
    inputs = sorted([(row.seq, _decision(row)) for row in story.decisions] + inputs, key=lambda item: item[0])
    entries += [
        (event.resource_version, _event(event))
        for event in story.events
        if event.reason not in _TOLD_BY_CYCLES
    ]
    entries += [(run.ran_seq, step) for run in story.runs for step in _run(run, story)]
    entries.sort(key=lambda item: item[0])
    stretches: list[tuple[list[StoryStep], list[StoryStep]]] = [([], []) for _ in range(len(inputs) + 1)]
    seqs = [seq for seq, _ in inputs]
    for which, placed in enumerate((_moves_and_cycles(story, now_ns), entries)):
        for seq, step in placed:
            # An attempt that waited at Permit is of the batch that ended it; it began before what came meanwhile.
            stretch = bisect_left(seqs, seq) if seq else len(inputs)
            while stretch and inputs[stretch - 1][1].at_ns > step.at_ns:
                stretch -= 1
            stretches[stretch][which].append(step)
    steps = _woven(*stretches[0])
    for (_, step), stretch_of in zip(inputs, stretches[1:], strict=True):
        steps += [step, *_woven(*stretch_of)]
    return steps


def _woven(turns: Sequence[StoryStep], written: Sequence[StoryStep]) -> list[StoryStep]:
    """Moves and attempts in order, and what was written and decided by controllers meanwhile: one list by virtual time.

    At one moment a pod is created before its first turn, and what an attempt wrote follows it.
    """
    steps: list[StoryStep] = []
    place = 0
    for step in sorted(written, key=lambda one: one.at_ns):
        while place < len(turns) and turns[place].at_ns < step.at_ns:
            steps.append(turns[place])
            place += 1
        last = -1
        for number in range(place, len(turns)):
            if turns[number].at_ns != step.at_ns:
                break
            if step.what == "deleted" or (step.cycle is not None and turns[number].cycle == step.cycle):
                last = number
        steps += turns[place : last + 1]
        place = max(place, last + 1)
        steps.append(step)
    return [*steps, *turns[place:]]


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
        what="cycle",
        title=f"Attempt {cycle.attempt}, cycle {cycle.number}",
        detail=f"{_words(cycle)}{repeats}",
        cycle=cycle.number,
        outcome=cycle.outcome,
    )


def _moves_and_cycles(story: PodTraces, now_ns: int | None) -> list[_Placed]:
    """Queue moves and attempts in the order they took turns, which virtual time alone does not tell."""
    steps: list[StoryStep] = []
    ran: list[int] = []  # place in the log, a step
    cycles = iter(story.cycles)
    cycle = next(cycles, None)
    last_lane = -1  # place in `steps` of the newest move
    ended = ""  # outcome of the newest attempt
    known: dict[str, str] = {}  # uid -> lane of its newest move
    for move in story.moves:
        started_anew = move.event == "SchedulerStarted"
        if started_anew and known[move.pod_uid] == move.target and steps and last_lane == len(steps) - 1:
            # Read again by a scheduler with another configuration, and where it was: nothing to tell.
            continue
        came_back = move.source == "inFlight"
        while cycle is not None and (cycle.at_ns < move.at_ns or (came_back and cycle.at_ns == move.at_ns)):
            steps.append(_cycle(cycle))
            ran.append(cycle.ran_seq)
            ended = cycle.outcome
            cycle = next(cycles, None)
            came_back = False
        if move.source == move.target:
            if last_lane >= 0:
                steps[last_lane] = replace(steps[last_lane], quiet=(*steps[last_lane].quiet, move))
            continue
        steps.append(_move(move, started_anew=started_anew, ended=ended))
        ran.append(move.ran_seq)
        known[move.pod_uid] = move.target
        last_lane = len(steps) - 1
    while cycle is not None:
        steps.append(_cycle(cycle))
        ran.append(cycle.ran_seq)
        cycle = next(cycles, None)
    end_ns = _left_queue_ns(story, now_ns)
    after: int | None = end_ns
    for i in range(len(steps) - 1, -1, -1):
        if steps[i].stayed_ns is not None:
            steps[i] = replace(steps[i], stayed_ns=max(0, (after or steps[i].at_ns) - steps[i].at_ns))
        after = steps[i].at_ns
    return list(zip(ran, steps, strict=True))


def _left_queue_ns(story: PodTraces, now_ns: int | None) -> int | None:
    """When the last lane ended: with the attempt that placed the pod, its end, or not yet."""
    if story.pod is not None and not story.pod.node_name:
        return now_ns
    known = [cycle.at_ns for cycle in story.cycles[-1:]] + [entry.at_ns for entry in story.entries[-1:]]
    return min(known, default=now_ns)


def _move(move: QueueMove, *, started_anew: bool, ended: str) -> StoryStep:
    """One move; `ended` is the outcome of the attempt before it."""
    title = _LANES.get(move.target, f"Into {move.target}")
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
        what="move",
        title=title,
        detail=detail,
        asked=move.plugin,
        hint=move.hint,
        why=move.reason,
        stayed_ns=0,
    )


def _run(record: ControllerRecord, story: PodTraces) -> Iterator[StoryStep]:
    """What a controller did with the pod, or why it left it."""
    by = record.controller.rpartition("/")[2].replace("-", " ")
    words = "; ".join(said_of(record, f"Pod {story.namespace}/{story.name}", story.began_ns))
    if words:
        yield StoryStep(record.at_ns, "controller", f"Seen by the {by}", words)


def _event(event: Event) -> StoryStep:
    return StoryStep(event.at_ns, "event", f"Event {event.reason}", event.message)


def _decision(row: ForeignDecision) -> StoryStep:
    """What another scheduler decided."""
    if row.kind == DecisionKind.EVICT:
        return StoryStep(
            row.at_ns, "decision", "Evicted", f"by {row.program}, for a pod that is not known yet"
        )
    title = {
        "bind": f"{row.program} chose {row.node}",
        "preempt": f"{row.program} made room on {row.node}",
    }.get(row.kind, f"{row.program} found no node")
    return StoryStep(row.at_ns, "decision", title, why(row) or row.message, decision=row)


def _entries(entries: Sequence[LogEntry]) -> tuple[list[_Placed], list[_Placed]]:
    """What the entries say: of those from outside, and of the engine's."""
    found: tuple[list[_Placed], list[_Placed]] = ([], [])
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
        steps: list[StoryStep] = []
        if entry.kind == EntryKind.DELETE:
            title = "Deleted" if entry.payload.get("gone", True) else "Asked to terminate"
            steps = [StoryStep(entry.at_ns, "deleted", title, who)]
        elif entry.kind == EntryKind.WRITE:
            steps = _written(entry, before, manifest, who)
        found[by_engine].extend((entry.seq, replace(step, cycle=entry.cycle)) for step in steps)
        before = manifest or before
    return found


def _written(entry: LogEntry, before: dict[str, Any], manifest: dict[str, Any], who: str) -> list[StoryStep]:
    """Name what a write changed, as far as it matters to scheduling."""
    if entry.created:
        return [StoryStep(entry.at_ns, "written", "Created", who)]
    spec, old_spec = manifest.get("spec") or {}, before.get("spec") or {}
    status, old_status = manifest.get("status") or {}, before.get("status") or {}
    steps = []
    if spec.get("nodeName") and not old_spec.get("nodeName"):
        words, posted = f"spec.nodeName: {spec['nodeName']}", entry.source == EntrySource.API
        steps.append(StoryStep(entry.at_ns, "written", "Bound", words, posted=posted))
    nominated, old = status.get("nominatedNodeName"), old_status.get("nominatedNodeName")
    if nominated != old and not spec.get("nodeName"):
        words = f"to {nominated}" if nominated else f"to {old} was cleared"
        steps.append(StoryStep(entry.at_ns, "written", "Nominated" if nominated else "Nomination", words))
    if status.get("phase") != old_status.get("phase") and status.get("phase"):
        steps.append(StoryStep(entry.at_ns, "written", str(status["phase"]), who))
    going = (manifest.get("metadata") or {}).get("deletionTimestamp")
    if going and not (before.get("metadata") or {}).get("deletionTimestamp"):
        steps.append(StoryStep(entry.at_ns, "written", "Terminating", f"until {going}, {who}"))
    if not steps and entry.source == EntrySource.API:
        steps.append(StoryStep(entry.at_ns, "written", "Edited", who))
    return steps


# ---- the stories of all pods, as spans

MOST_RECORDS: Final = 20_000
"""Of each kind, the newest: what a page can read while its reader waits."""

_TIMELINES: Memo[Timeline] = Memo(8)
_OF_CYCLES: Final = (
    "cluster", "number", "at_ns", "pod_namespace", "pod_name", "profile", "outcome", "node", "nominated_node",
    "n_feasible", "failed_point",
)  # fmt: skip


def cluster_timeline(cluster: Cluster) -> Timeline:
    """Where every pod was and when, as far as the newest records tell. Four queries, none for a known version."""
    key = (cluster.public_id, cluster.generation, cluster.version)
    return _TIMELINES.get(key, lambda: _read_timeline(cluster))


def _read_timeline(cluster: Cluster) -> Timeline:
    moves = QueueMove.objects.filter(cluster=cluster).order_by("-id")
    told = moves.values_list("at_ns", "pod_namespace", "pod_name", "pod_uid", "source", "target", "event")
    cycles = Cycle.objects.filter(cluster=cluster).only(*_OF_CYCLES).order_by("-number")
    runs = ControllerRecord.objects.filter(cluster=cluster).defer("why_not").order_by("-pk")
    return timeline_of(
        list(_pods_seen(cluster))[::-1],
        [
            Move(at_ns, f"{namespace}/{name}", uid, Lane(source), Lane(target), event)
            for at_ns, namespace, name, uid, source, target, event in [*told[:MOST_RECORDS]][::-1]
        ],
        [*cycles[:MOST_RECORDS]][::-1],
        [run.brief for run in runs[:MOST_RECORDS]][::-1],
        from_ns=cluster.start_ns,
        to_ns=cluster.now_ns,
    )


def _pods_seen(cluster: Cluster) -> Iterator[PodSeen]:
    """Pods as they were written, newest first. One that a person made says nothing before something happens to it."""
    entries = LogEntry.objects.filter(cluster=cluster, object_kind="Pod").exclude(
        source=EntrySource.API, created=True
    )
    columns = ("at_ns", "kind", "cycle", "object_namespace", "object_name", "payload")
    for at_ns, kind, cycle, namespace, name, payload in entries.order_by("-seq").values_list(*columns)[
        :MOST_RECORDS
    ]:
        reason = str(payload.get("reason") or "")
        if kind == EntryKind.WRITE or not payload.get("gone", True):
            yield pod_seen(at_ns, payload["manifest"], cycle=cycle or 0, reason=reason)
        else:
            yield PodSeen(at_ns, f"{namespace}/{name}", None, reason=reason)
