"""Settings of autoscaler and descheduler side by side: the same cluster goes on for some time with each of them.

What happens meanwhile is what the objects bring: load curves, CronJobs, pods that end, and timers. Counted is what
each variant costs, in money and node-hours, whom it disturbs, and how long pods wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.clock import SECOND_NS
from scheduler_core.fork import Fork, Report
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.duration import duration_ns, format_duration
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.node import node_from
from scheduler_core.objects.prices import PriceList
from scheduler_core.sim.changes import ObjectDeleted, ObjectWritten, Outcome, WriteObject
from scheduler_core.sim.controllers.cluster_autoscaler import ClusterAutoscaler
from scheduler_core.sim.controllers.programs import EVICTED, NAMESPACE, PROGRAMS, settings_text
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.fixes import counted, first_of, money
from scheduler_core.whatif.questions import BAD, GOOD, WARNING, Answer, PlanQuestion

MOST_CYCLES: Final = 40_000
MOST_LOOKS: Final = 3_000_000
"""Nodes and pods at all looks at one variant together: a count, so that the answer is the same everywhere."""
N_POINTS: Final = 48
"""Of the pending pods over time."""
_HOUR_NS: Final = 3600 * SECOND_NS
_PREEMPTED: Final = "preempted"


@dataclass(slots=True)
class Course:
    """What happened with one variant.

    Attributes
    ----------
    cost, node_hours, pending_hours : float
        In the unit of the prices; hours of all nodes, and of all pods that waited.
    evicted : dict of str to set of str
        By whom -> uids of pods.
    pending : list of int
        The most pods that waited at once in each part of the time.
    limit : str
        What ended it early; empty where nothing did.
    """

    name: str
    cost: float = 0.0
    node_hours: float = 0.0
    pending_hours: float = 0.0
    added: int = 0
    removed: int = 0
    evicted: dict[str, set[str]] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)
    n_nodes: int = 0
    n_pending: int = 0
    n_cycles: int = 0
    n_unpriced: int = 0
    limit: str = ""

    def figures(self) -> dict[str, float]:
        """What is compared, by its words; less is better."""
        return {
            "cost": round(self.cost, 4),
            "node-hours": round(self.node_hours, 3),
            "nodes added": self.added,
            "nodes removed": self.removed,
            "nodes in the end": self.n_nodes,
            **{
                f"evictions by {by}": len(self.evicted.get(by, ()))
                for by in (*EVICTED.values(), "preemption")
            },
            "pod-hours pending": round(self.pending_hours, 3),
            "most pending at once": max(self.pending, default=0),
            "pending in the end": self.n_pending,
        }


class _Follower:
    """Adds up a variant's time from the outcomes of its simulation, in their order."""

    def __init__(self, simulation: Simulation, course: Course, prices: PriceList, for_ns: int) -> None:
        self._course, self._prices = course, prices
        self._began_ns = self._at_ns = simulation.now_ns
        self._for_ns = for_ns
        self._nodes: dict[str, float] = {}
        self._waiting: set[str] = set()
        course.pending = [0] * N_POINTS
        for stored in simulation.world.all("Node"):
            self._note_node(stored.manifest)
        for stored in simulation.world.all("Pod"):
            self._note_pod(stored.manifest)
        self._note_waiting()

    def follow(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, ObjectWritten | ObjectDeleted):
                self.until(outcome.at_ns)
                self._take(outcome)
                self._note_waiting()

    def until(self, at_ns: int) -> None:
        """Time passes in which nothing changes."""
        course, hours = self._course, max(at_ns - self._at_ns, 0) / _HOUR_NS
        course.node_hours += len(self._nodes) * hours
        course.cost += sum(self._nodes.values()) * hours
        course.pending_hours += len(self._waiting) * hours
        first, last = self._part(self._at_ns), self._part(at_ns)
        self._at_ns = max(at_ns, self._at_ns)
        for part in range(first + 1, last + 1):
            course.pending[part] = max(course.pending[part], len(self._waiting))
        course.n_nodes, course.n_pending = len(self._nodes), len(self._waiting)

    def _part(self, at_ns: int) -> int:
        return min((at_ns - self._began_ns) * N_POINTS // self._for_ns, N_POINTS - 1)

    def _note_waiting(self) -> None:
        part = self._part(self._at_ns)
        self._course.pending[part] = max(self._course.pending[part], len(self._waiting))

    def _take(self, outcome: ObjectWritten | ObjectDeleted) -> None:
        if isinstance(outcome, ObjectDeleted):
            if outcome.kind == "Node":
                self._course.removed += self._nodes.pop(outcome.name, None) is not None
            elif outcome.kind == "Pod":
                self._waiting.discard(f"{outcome.namespace}/{outcome.name}")
            return
        kind, meta = outcome.manifest["kind"], outcome.manifest["metadata"]
        if kind == "Node" and meta["name"] not in self._nodes:
            self._course.added += 1
            self._note_node(outcome.manifest)
        elif kind == "Pod":
            by = EVICTED.get(outcome.reason, "preemption" if outcome.reason == _PREEMPTED else "")
            if by:
                self._course.evicted.setdefault(by, set()).add(str(meta.get("uid")))
            self._note_pod(outcome.manifest)

    def _note_node(self, manifest: Mapping[str, Any]) -> None:
        node = node_from(manifest)
        price = self._prices.price_of(node.meta.labels)
        self._course.n_unpriced += price is None
        self._nodes[node.name] = price or 0.0

    def _note_pod(self, manifest: Mapping[str, Any]) -> None:
        meta, phase = manifest["metadata"], (manifest.get("status") or {}).get("phase")
        waits = not (manifest.get("spec") or {}).get("nodeName") and not meta.get("deletionTimestamp")
        key = f"{meta['namespace']}/{meta['name']}"
        if waits and phase not in ("Succeeded", "Failed"):
            self._waiting.add(key)
        else:
            self._waiting.discard(key)


def _with_programs(simulation: Simulation, variant: Mapping[str, Any]) -> WriteObject:
    stored = simulation.world.get("Namespace", "", NAMESPACE)
    before = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    annotations = {
        annotation: None if (given := variant[field]) is None else settings_text(given)
        for annotation in PROGRAMS
        if (field := annotation.partition("/")[2]) in variant
    }
    patch = {"metadata": {"annotations": annotations}}
    return WriteObject(prepare(merge_patch(before if stored is None else stored.manifest, patch)))


def run_variant(
    original: Simulation, variant: Mapping[str, Any], prices: PriceList, for_ns: int, report: Report
) -> Course:
    """Let a copy of a cluster go on for some time with a variant's programs.

    Parameters
    ----------
    original : Simulation
        Read, never changed.
    """
    simulation = Simulation.restore(original.checkpoint(), plugins=original.registry)
    for program in simulation.control_plane.controllers:
        if isinstance(program, ClusterAutoscaler):
            program.prices = prices
    course = Course(str(variant["name"]))
    simulation.drain_outcomes()
    follower = _Follower(simulation, course, prices, for_ns)
    simulation.submit(_with_programs(simulation, variant))
    began_ns, end_ns, step_ns, n_looked = simulation.now_ns, simulation.now_ns + for_ns, 10 * SECOND_NS, 0
    while simulation.now_ns < end_ns and not course.limit:
        spent_ns = simulation.now_ns - began_ns
        report(spent_ns // SECOND_NS, for_ns // SECOND_NS, f"{course.name}: {format_duration(spent_ns)}")
        done = simulation.advance(min(step_ns, end_ns - simulation.now_ns), max_cycles=MOST_CYCLES)
        course.n_cycles += done.cycles
        n_looked += len(simulation.world.all("Node")) + len(simulation.world.all("Pod"))
        follower.follow(simulation.drain_outcomes())
        simulation.drain_cycles(), simulation.drain_moves(), simulation.drain_runs()
        if course.n_cycles >= MOST_CYCLES:
            course.limit = f"{course.n_cycles:,} decisions"
        elif n_looked > MOST_LOOKS and simulation.now_ns < end_ns:
            course.limit = f"{format_duration(simulation.now_ns - began_ns)}, as the cluster is large"
    follower.until(simulation.now_ns)
    return course


def answer_variants(simulation: Simulation, fork: Fork, question: PlanQuestion, report: Report) -> Answer:
    """Run each variant and put what came of it side by side."""
    for_ns = duration_ns(question.time)
    courses = [
        run_variant(simulation, variant, question.price_list, for_ns, report) for variant in question.variants
    ]
    figures = [course.figures() for course in courses]
    priced = any(course.cost for course in courses)
    limited = [course for course in courses if course.limit]
    answer = Answer(
        _verdict(courses, question.time, priced),
        WARNING if limited else BAD if all(course.n_pending for course in courses) else GOOD,
        [("variants", len(courses)), ("time", question.time)],
        decisions=sum(course.n_cycles for course in courses),
    )
    for course in courses:
        tone = WARNING if course.limit or course.n_pending else GOOD
        answer.line(tone, f"{course.name}: {_words(course, priced)}.", _limit_words(course))
    answer.more["comparison"] = {
        "variants": [course.name for course in courses],
        "figures": {name: [one[name] for one in figures] for name in figures[0]},
        "pending": [course.pending for course in courses],
        "partSeconds": for_ns / SECOND_NS / N_POINTS,
    }
    answer.leaves_out = tuple(_left_out(courses, priced))
    return answer


def _limit_words(course: Course) -> str:
    return f"The limit of {course.limit} ended it; its figures are of that time." if course.limit else ""


def _words(course: Course, priced: bool) -> str:
    n_evicted = sum(len(uids) for uids in course.evicted.values())
    hours = f"{course.node_hours:,.1f} node-hours"
    said = [
        f"{money(course.cost)} for {hours}" if priced else hours,
        counted(n_evicted, "eviction"),
        f"{counted(course.added, 'node')} added, {course.removed:,} removed",
        f"{course.pending_hours:,.2f} pod-hours pending, {max(course.pending, default=0):,} pods at most",
    ]
    return "; ".join(
        [*said, *([f"{counted(course.n_pending, 'pod')} pending in the end"] if course.n_pending else [])]
    )


def _verdict(courses: Sequence[Course], time: str, priced: bool) -> str:
    """Which variant costs least, disturbs least, and lets pods wait least."""
    limited = [course.name for course in courses if course.limit]
    if limited:
        return f"Not to be compared: a limit ended {first_of(limited)} before {time} were over."
    measures = (
        ("costs least", "cost least", [round(one.cost if priced else one.node_hours, 4) for one in courses]),
        ("evicts fewest", "evict fewest", [float(sum(map(len, one.evicted.values()))) for one in courses]),
        (
            "keeps pods waiting least",
            "keep pods waiting least",
            [round(one.pending_hours, 4) for one in courses],
        ),
    )
    wins: dict[tuple[str, ...], list[str]] = {}
    for one_does, some_do, values in measures:
        best = [one.name for one, value in zip(courses, values, strict=True) if value == min(values)]
        if len(best) < len(courses):
            wins.setdefault(tuple(best), []).append(one_does if len(best) == 1 else some_do)
    if not wins:
        return f"In {time} the variants do not differ in cost, evictions or waiting."
    return f"In {time} {'; '.join(f'{first_of(names)} {_listed(words)}' for names, words in wins.items())}."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _left_out(courses: Sequence[Course], priced: bool) -> list[str]:
    found = [
        "What happens meanwhile is what the objects bring: load curves, CronJobs, pods that end, timers."
    ]
    found.append(
        "Pods whose owner is not among the objects are not made again; the autoscaler leaves their nodes."
    )
    if not priced:
        found.append("No node has a price: node-hours are compared in place of costs.")
    elif any(course.n_unpriced for course in courses):
        found.append("Nodes without a price count as free.")
    return found
