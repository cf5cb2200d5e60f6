"""Where every pod was and when, in virtual time, and what controllers did: what a log or a run recorded, as spans.

Pages, the trace for Perfetto and the REST API show the spans of `timeline_of`; it reads records and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol

from scheduler_core.clock import SECOND_NS
from scheduler_core.framework.record import CycleFacts
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.resources import CPU, pod_requests
from scheduler_core.queue.queued_pod_info import QueueMove
from scheduler_core.sim.changes import ControllerRun

PENDING: Final = ("queued", "backoff", "gated", "unschedulable", "nominated", "permit", "binding")
"""States of a pod without a node, in the order in which a pod may go through them."""
ON_A_NODE: Final = ("starting", "running", "terminating")
STATES: Final = (*PENDING, *ON_A_NODE)

_LANES: Final = {
    "activeQ": "queued",
    "backoffQ": "backoff",
    "errorBackoffQ": "backoff",
    "unschedulable": "unschedulable",
    "expired": "unschedulable",
    "assumed": "binding",
}
_POINTS: Final = ("PreFilter", "Filter", "PostFilter", "Score", "Reserve", "Permit", "PreBind", "Bind")


class TimedCycle(CycleFacts, Protocol):
    """What a cycle's mark is made of; a record has it, and so has a stored summary."""

    @property
    def at_ns(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def profile(self) -> str: ...


class Span(NamedTuple):
    """A stay of a pod in one state; `node` is where it is, or holds room."""

    state: str
    from_ns: int
    to_ns: int
    node: str = ""


class CycleMark(NamedTuple):
    """A scheduling cycle of a pod, which takes no virtual time; `points` are the extension points it went through."""

    at_ns: int
    number: int
    outcome: str
    node: str
    profile: str
    points: tuple[str, ...]


class Eviction(NamedTuple):
    """A pod made room for another."""

    at_ns: int
    cycle: int
    preemptor: str
    victim: str


@dataclass(slots=True)
class PodLane:
    """One pod, by its `namespace/name`: where it was, and its cycles.

    Attributes
    ----------
    workload
        The name of its controller; without one its own, up to a number.
    cpu_milli
        What it requests.
    ended
        Why it is gone: the cluster's word for it (`terminated`, `deleted`); empty while it is there.
    """

    pod: str
    workload: str = ""
    cpu_milli: int = 0
    priority: int = 0
    priority_class: str = ""
    ended: str = ""
    spans: list[Span] = field(default_factory=list)
    cycles: list[CycleMark] = field(default_factory=list)

    def is_named(self, q: str) -> bool:
        """Whether its name or that of one of its nodes has `q` in it."""
        return not q or q in self.pod or any(q in span.node for span in self.spans)

    def waited_ns(self, from_ns: int, to_ns: int) -> int:
        """How long it had no node within a stretch of time."""
        return sum(
            max(0, min(span.to_ns, to_ns) - max(span.from_ns, from_ns))
            for span in self.spans
            if span.state in PENDING
        )


@dataclass(slots=True)
class Timeline:
    """What happened between two moments; pods to which nothing happened are not in it.

    Attributes
    ----------
    is_moment
        The clock is where it began: everything happened at once. `to_ns` is a second later, so that stays
        have a length.
    runs
        Of controllers, oldest first, without their reasons.
    """

    from_ns: int
    to_ns: int
    is_moment: bool = False
    pods: list[PodLane] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    runs: list[ControllerRun] = field(default_factory=list)

    def bounds_of(self, from_ns: int | None, to_ns: int | None) -> tuple[int, int]:
        """A stretch within it that is not empty; None is its own end."""
        first = self.from_ns if from_ns is None else min(max(from_ns, self.from_ns), self.to_ns)
        last = self.to_ns if to_ns is None else min(max(to_ns, self.from_ns), self.to_ns)
        return (first, last) if first < last else (self.from_ns, max(self.to_ns, self.from_ns + 1))


class PodSeen(NamedTuple):
    """A pod as a write left it, or its end (`spec` is None)."""

    at_ns: int
    pod: str
    spec: Mapping[str, Any] | None
    state: str = ""
    since_ns: int = 0
    cycle: int = 0
    reason: str = ""
    owner: str = ""


def pod_seen(at_ns: int, manifest: Mapping[str, Any], *, cycle: int = 0, reason: str = "") -> PodSeen:
    """Read of a pod's manifest what its lane shows."""
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    phase = (manifest.get("status") or {}).get("phase")
    state = ""
    if phase in ("Succeeded", "Failed"):
        state = "over"
    elif meta.get("deletionTimestamp"):
        state = "terminating"
    elif spec.get("nodeName"):
        state = "running" if phase == "Running" else "starting"
    made = meta.get("creationTimestamp")
    since_ns = parse_time_ns(made) if made else at_ns
    owners = meta.get("ownerReferences") or ()
    owner = next((str(item.get("name")) for item in owners if item.get("controller")), "")
    return PodSeen(at_ns, f"{meta['namespace']}/{meta['name']}", spec, state, since_ns, cycle, reason, owner)


def timeline_of(
    written: Iterable[PodSeen],
    moves: Iterable[QueueMove],
    cycles: Iterable[TimedCycle],
    runs: Iterable[ControllerRun] = (),
    *,
    from_ns: int,
    to_ns: int,
) -> Timeline:
    """Put records together: each kind in its own order, oldest first.

    Parameters
    ----------
    written
        Pods as the cluster, and people, wrote them. Of a pod that was on a node before its first record, the time since
        it was made counts.
    moves
        Of pods in the scheduling queue; those that left a pod where it was say nothing here.
    from_ns, to_ns
        Where the clock began, and where it is.
    """
    is_moment = to_ns <= from_ns
    to_ns = from_ns + SECOND_NS if is_moment else to_ns
    found = Timeline(from_ns, to_ns, is_moment, runs=[replace(run, why_not={}) for run in runs])
    stories: dict[str, _Story] = {}
    for seen in written:
        stories.setdefault(seen.pod, _Story()).written.append(seen)
    for move in moves:
        if move.source != move.target:
            stories.setdefault(move.pod, _Story()).moves.append(move)
    pods: dict[int, str] = {}
    for cycle in cycles:
        stories.setdefault(cycle.pod, _Story()).cycles.append(cycle)
        pods[cycle.number] = cycle.pod
    for pod, story in stories.items():
        lane = story.lane(pod, from_ns, to_ns)
        if lane.spans or lane.cycles:
            found.pods.append(lane)
        found.evictions += [
            Eviction(seen.at_ns, seen.cycle, pods[seen.cycle], pod)
            for seen in story.written
            if seen.reason == "preempted" and seen.state == "terminating" and seen.cycle in pods
        ]
    found.pods.sort(
        key=lambda lane: (lane.spans[0].from_ns if lane.spans else lane.cycles[0].at_ns, lane.pod)
    )
    found.evictions.sort()
    return found


class _Story:
    """Records of one pod."""

    def __init__(self) -> None:
        self.written: list[PodSeen] = []
        self.moves: list[QueueMove] = []
        self.cycles: list[TimedCycle] = []

    def lane(self, pod: str, from_ns: int, to_ns: int) -> PodLane:
        lane = PodLane(pod, workload=_stem(pod), cycles=[_mark(cycle) for cycle in self.cycles])
        seen = next((seen for seen in reversed(self.written) if seen.spec), None)
        if seen is not None and (spec := seen.spec):
            lane.workload = seen.owner or lane.workload
            lane.cpu_milli = pod_requests({"spec": spec}).requests.get(CPU, 0)
            lane.priority = int(spec.get("priority") or 0)
            lane.priority_class = str(spec.get("priorityClassName") or "")
        if self.written and self.written[-1].spec is None:
            lane.ended = self.written[-1].reason or "deleted"
        changes = sorted([*self._in_the_queue(), *self._on_the_server(from_ns)], key=lambda change: change[0])
        waits, placed, since_ns, shown = ("", ""), ("", ""), from_ns, ("", "")
        for at_ns, is_queue, state, node in [*changes, (to_ns, True, "", "")]:
            at_ns = min(max(at_ns, from_ns), to_ns)
            if shown[0] not in ("", "over") and since_ns < at_ns:
                if lane.spans and lane.spans[-1].to_ns == since_ns and lane.spans[-1][::3] == shown:
                    since_ns = lane.spans.pop().from_ns
                lane.spans.append(Span(shown[0], since_ns, at_ns, shown[1]))
            if is_queue:
                waits = (state, node)
            else:
                # What has a node, or is gone, has left the queue.
                placed, waits = (state, node), waits if not state and not node else ("", "")
                if state == "gone":
                    placed = ("", "")
            since_ns, shown = at_ns, placed if placed[0] else waits
        return lane

    def _in_the_queue(self) -> Iterator[tuple[int, bool, str, str]]:
        """States by moves and cycles, in the order they took turns: a pod comes back to the queue after its cycle."""
        cycles = iter(self.cycles)
        cycle = next(cycles, None)
        nominated = ""
        for move in self.moves:
            came_back = move.source == "inFlight"
            while cycle is not None and (
                cycle.at_ns < move.at_ns or (came_back and cycle.at_ns == move.at_ns)
            ):
                nominated = (cycle.nominated_node or "") if cycle.outcome == "preempting" else ""
                yield _after(cycle)
                cycle, came_back = next(cycles, None), False
            state = _LANES.get(move.target)
            if state is None:
                continue
            if state == "unschedulable" and move.source not in ("inFlight", "assumed"):
                state = "gated"
            if nominated and state in ("unschedulable", "backoff"):
                yield move.at_ns, True, "nominated", nominated
            else:
                yield move.at_ns, True, state, ""
        while cycle is not None:
            yield _after(cycle)
            cycle = next(cycles, None)

    def _on_the_server(self, from_ns: int) -> Iterator[tuple[int, bool, str, str]]:
        """States by what was written."""
        before = ""
        for seen in self.written:
            if seen.spec is None:
                yield seen.at_ns, False, "gone", ""
                before = ""
                continue
            node = str(seen.spec.get("nodeName") or "")
            if node and not before and seen.reason != "bound" and not self.moves and not self.cycles:
                yield max(from_ns, min(seen.since_ns, seen.at_ns)), False, "running", node
            before = node or before
            yield seen.at_ns, False, seen.state, node


def _stem(pod: str) -> str:
    """What names of pods without an owner have in common: ``train`` of ns/train-0, ns/train-1."""
    name = pod.rpartition("/")[2]
    stem, dash, number = name.rpartition("-")
    return stem if dash and number.isdecimal() else name


def _after(cycle: TimedCycle) -> tuple[int, bool, str, str]:
    """Where a pod is once its cycle is over and until something else is known of it."""
    node = cycle.node or ""
    return (cycle.at_ns, True, "binding" if cycle.outcome == "binding" else "permit" if node else "", node)


def _mark(cycle: TimedCycle) -> CycleMark:
    last = cycle.failed_point or ("Permit" if cycle.outcome in ("waiting", "binding") else "Bind")
    if cycle.outcome == "preempting" or last in ("PreFilter", "Filter"):
        points = (*_POINTS[: 1 if last == "PreFilter" else 2], "PostFilter")
    else:
        passed = _POINTS[: _POINTS.index(last) + 1] if last in _POINTS else ()
        points = tuple(
            point for point in passed if point != "PostFilter" and (point != "Score" or cycle.n_feasible > 1)
        )
    return CycleMark(cycle.at_ns, cycle.number, cycle.outcome, cycle.node or "", cycle.profile, points)
