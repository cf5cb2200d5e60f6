"""What came of a scenario's run: its cycles, placements, evictions and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeTable
from scheduler_core.framework.record import PREEMPTING, CycleTrace, sentence
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY
from scheduler_core.queue.queued_pod_info import QueueMove
from scheduler_core.releases import OLDEST, Release
from scheduler_core.scenario import record
from scheduler_core.scenario.types import Manifest, Scenario
from scheduler_core.sim.changes import ControllerRun, ObjectDeleted, ObjectWritten, Outcome
from scheduler_core.sim.kubelet import waits_on_its_node
from scheduler_core.sim.simulation import Simulation
from scheduler_core.sim.timeline import PodSeen, Timeline, pod_seen, timeline_of
from scheduler_core.sim.world import Stored
from scheduler_core.whatif.judge import BIND, NO_NODE, PREEMPT, Asked, Judgement, Start, judged

Columns = NDArray[np.int64]
MAX_AMOUNT = 2**62
MAX_SHAPES = 2_000
"""Distinct request shapes looked at for fragmentation; the most frequent ones."""


def node_figures(nodes: NodeTable, pods: Iterable[Pod]) -> dict[str, float]:
    """Utilisation, imbalance, fragmentation and spread.

    Parameters
    ----------
    nodes : NodeTable
        The scheduler's own columns, assumed pods included.
    pods : iterable of Pod
        All pods that are not over, placed or not: the workload fragmentation is measured by.
    """
    rows = np.flatnonzero(nodes.alive)
    allocatable, requested = nodes.allocatable[:, rows], nodes.requested[:, rows]
    names = nodes.vocabulary.resources.values
    axes = {
        "cpu": [names.index(CPU)],
        "memory": [names.index(MEMORY)],
        "gpu": [
            place for place, name in enumerate(names) if "/" in name and "gpu" in name.rpartition("/")[2]
        ],
    }
    n_pods, allowed = nodes.n_pods[rows], nodes.allowed_pods[rows]
    shapes = _shapes(pods, names)
    figures: dict[str, float] = {}
    for word, places in axes.items():
        have, used = allocatable[places].sum(axis=0), requested[places].sum(axis=0)
        figures[f"{word}Utilisation"] = _ratio(int(used.sum()), int(have.sum()))
        with_it = have > 0
        shares = used[with_it] / have[with_it]
        figures[f"{word}Imbalance"] = _rounded(float(shares.std())) if len(shares) else 0.0
        figures[f"{word}Fragmentation"] = _fragmentation(
            np.maximum(have - used, 0), allocatable - requested, n_pods < allowed, shapes
        )
    n_placed = int(n_pods.sum())
    figures["nodesUsed"] = _ratio(int((n_pods > 0).sum()), len(rows))
    figures["largestShare"] = _ratio(int(n_pods.max()) if len(rows) else 0, n_placed)
    return figures


def _shapes(pods: Iterable[Pod], names: list[str]) -> list[tuple[Columns, int]]:
    """Distinct requests on the resource axis, with how many pods ask so."""
    alike: Counter[int] = Counter()
    requested: dict[int, Mapping[str, int]] = {}
    for pod in pods:
        # Pods of one spec have one and the same.
        alike[id(pod.requests)] += 1
        requested[id(pod.requests)] = pod.requests
    counts: Counter[tuple[tuple[str, int], ...]] = Counter()
    for key, count in alike.items():
        counts[tuple(sorted(item for item in requested[key].items() if item[1]))] += count
    result = []
    place_of = {name: place for place, name in enumerate(names)}
    for requests, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_SHAPES]:
        column = np.zeros(len(names), np.int64)
        for name, amount in requests:
            if name in place_of:
                # A pod may ask for more than any node could have.
                column[place_of[name]] = min(amount, MAX_AMOUNT)
        result.append((column, count))
    return result


def _fragmentation(
    free_of_it: Columns, free: Columns, has_place: NDArray[np.bool_], shapes: list[tuple[Columns, int]]
) -> float:
    total = int(free_of_it.sum())
    n_pods = sum(count for _, count in shapes)
    if not total or not n_pods:
        return 0.0
    unusable = 0
    for column, count in shapes:
        # What a pod does not ask for never keeps it off a node, however overcommitted.
        fits = ((column[:, None] <= free) | (column[:, None] == 0)).all(axis=0) & has_place
        unusable += count * int(free_of_it[~fits].sum())
    return _ratio(unusable, total * n_pods)


def _ratio(part: int, whole: int) -> float:
    return _rounded(part / whole) if whole else 0.0


def _rounded(number: float) -> float:
    return round(number, 6)


LONGEST_BURST = 64


@dataclass(frozen=True, slots=True)
class Happened:
    """A change of an object, or of the configuration, as a log entry tells it."""

    seq: int
    kind: str
    payload: Mapping[str, Any]
    at_ns: int


@dataclass(slots=True)
class Others:
    """Decisions of other schedulers, in order.

    Parameters
    ----------
    simulation : Simulation
        Watched from here on.
    """

    simulation: Simulation
    _start: Start = field(init=False)
    _happened: list[Happened] = field(default_factory=list)
    _asked: list[tuple[Asked, str]] = field(default_factory=list)
    _evicted: list[tuple[str, str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        simulation = self.simulation
        self._start = Start(config=simulation.config, release=simulation.release.document())
        simulation.world.watcher = self._changed

    def _changed(self, kind: str, old: Stored | None, new: Stored | None) -> None:
        seq, at_ns = len(self._happened) + 1, self.simulation.now_ns
        if new is not None:
            self._happened.append(Happened(seq, "write", {"manifest": new.manifest}, at_ns))
        elif old is not None:
            meta = old.manifest.get("metadata") or {}
            place = {"kind": kind, "namespace": meta.get("namespace") or "", "name": meta.get("name")}
            self._happened.append(Happened(seq, "delete", {**place, "manifest": old.manifest}, at_ns))

    def configured(self, document: Manifest | None, release: Mapping[str, Any] | None = None) -> None:
        """The cluster goes on with another configuration, or as another release."""
        payload = {"document": document} if release is None else {"document": document, "release": release}
        self._happened.append(Happened(len(self._happened) + 1, "config", payload, self.simulation.now_ns))

    def bound(self, pod: Pod, node: str, by: str) -> None:
        """A Binding is about to be posted."""
        self._decided(BIND, pod, node, by)

    def patched(self, pod: Pod, after: Manifest, by: str) -> None:
        """A pod is about to be changed: it found no node, or was nominated to one."""
        before, status = pod.manifest.get("status") or {}, after.get("status") or {}
        conditions = [item for item in status.get("conditions") or () if item.get("type") == "PodScheduled"]
        if pod.node_name or not any(item.get("reason") == "Unschedulable" for item in conditions):
            return
        node = str(status.get("nominatedNodeName") or "")
        is_news = node and node != (before.get("nominatedNodeName") or "")
        self._decided(PREEMPT if is_news else NO_NODE, pod, node if is_news else "", by)

    def evicted(self, pod: Pod, by: str) -> None:
        """A pod is about to be deleted: for the one nominated to its node, or that will be."""
        if not pod.node_name or pod.is_terminating:
            return
        for place in range(len(self._asked) - 1, -1, -1):
            asked, author = self._asked[place]
            if author == by and asked.kind == PREEMPT and asked.node == pod.node_name:
                self._asked[place] = (replace(asked, victims=(*asked.victims, pod.key)), author)
                return
        self._evicted.append((by, pod.node_name, pod.key, len(self._happened) + 1))

    def _decided(self, kind: str, pod: Pod, node: str, by: str) -> None:
        seq = first = len(self._happened) + 1
        victims: tuple[str, ...] = ()
        if kind == PREEMPT:
            own = [item for item in self._evicted if item[:2] == (by, node)]
            self._evicted = [item for item in self._evicted if item[:2] != (by, node)]
            victims, first = tuple(item[2] for item in own), min([seq, *(item[3] for item in own)])
        last, author = self._asked[-1] if self._asked else (None, "")
        burst = first
        if last is not None and author == by and PREEMPT not in (kind, last.kind):
            n_together = sum(item.burst == last.burst for item, _ in self._asked[-LONGEST_BURST:])
            burst = last.burst if n_together < LONGEST_BURST else first
        asked = Asked(
            first, len(self._asked), burst, self.simulation.now_ns, kind, pod.namespace, pod.name, pod.uid,
            node, victims,
        )  # fmt: skip
        self._asked.append((asked, by))

    def verdicts(self, seed: int) -> Iterator[Judgement]:
        """Each decision beside ours, by the configuration that the run began with and those it went on with."""
        asked = sorted((item for item, _ in self._asked), key=lambda item: item.seq)
        yield from judged(self._start, self._happened, asked, seed=seed)


class RunPart(NamedTuple):
    """Part of a run."""

    cycles: list[CycleTrace]
    outcomes: list[Outcome]
    runs: list[ControllerRun]


@dataclass(slots=True)
class ScenarioRun:
    """What came of a run.

    Attributes
    ----------
    cycles : list of CycleTrace
        In order of number, each as it ended.
    runs : list of ControllerRun
        What controllers decided, in order.
    placements : list of Placed
        In the order pods got their nodes.
    evictions : list of Evicted
        Victims chosen, in order; one that ends already may be chosen again.
    notes : list of str
        What was odd but no error: an answer at Permit for a pod that did not wait, a recording left.
    findings : list of Finding
        Of every expectation, those of steps first (see `expectations.check`).
    simulation : Simulation
        As the run left it.
    release : Release
        The one it began with.
    first_of_ties : bool
        Equals were taken by name.
    timed : bool
        What `timeline` reads is kept.
    """

    scenario: Scenario
    simulation: Simulation
    release: Release = OLDEST
    first_of_ties: bool = False
    cycles: list[CycleTrace] = field(default_factory=list)
    runs: list[ControllerRun] = field(default_factory=list)
    placements: list[record.Placed] = field(default_factory=list)
    evictions: list[record.Evicted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[record.Finding] = field(default_factory=list)
    stop: str = ""
    others: Others | None = None
    timed: bool = False
    _written: list[PodSeen] = field(default_factory=list)
    _moves: list[QueueMove] = field(default_factory=list)
    _by_pod: dict[str, list[CycleTrace]] = field(default_factory=dict)
    _place_of: dict[int, int] = field(default_factory=dict)
    _seen_pods: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _preempted: dict[str, None] = field(default_factory=dict)

    # ---- what was decided

    @property
    def digest(self) -> str:
        """Hex SHA-256 over the digests of all cycles: equal for equal decisions."""
        return record.decisions_digest(trace.digest for trace in self.cycles)

    def cycle(self, number: int) -> CycleTrace | None:
        """The cycle of a number."""
        place = self._place_of.get(number)
        return None if place is None else self.cycles[place]

    def cycles_of(self, pod: str) -> list[CycleTrace]:
        """The cycles of a pod, `namespace/name`."""
        return [self.cycles[self._place_of[trace.number]] for trace in self._by_pod.get(pod, ())]

    def cycle_lines(self) -> list[str]:
        """One line a cycle, as `decisions.cycles` keeps them."""
        return [record.cycle_line(trace) for trace in self.cycles]

    def verdicts(self) -> list[Judgement]:
        """What other schedulers decided so far, beside what we would have; empty where no expectation asks for it."""
        return [] if self.others is None else list(self.others.verdicts(self.scenario.seed))

    # ---- where everything is

    def placement(self) -> dict[str, str]:
        """Pod -> node, of pods that are on one, sorted."""
        pods = (stored.typed for stored in self.simulation.world.all("Pod"))
        return dict(sorted((pod.key, pod.node_name) for pod in pods if pod.node_name))

    def waiting(self) -> dict[str, str]:
        """Pod -> why it has no node, or does not start there, of pods that have not ended, in the order they came.

        What the queue says; of a pod that has left it, what its last cycle says; on a node what its kubelet says.
        """
        told = {
            entry["pod"]: str(entry.get("reason", ""))
            for entries in self.simulation.queue_view().values()
            for entry in entries
        }
        pods = (stored.typed for stored in self.simulation.world.all("Pod"))
        found = {}
        for pod in pods:
            if not pod.node_name and not pod.is_terminal:
                last = self._by_pod.get(pod.key)
                said = (last[-1].message or sentence(last[-1])) if last else "it has not been tried yet"
                found[pod.key] = told.get(pod.key) or said
            elif pod.node_name and (unready := waits_on_its_node(pod.manifest)):
                found[pod.key] = unready
        return found

    def pods(self) -> dict[str, record.PodFacts]:
        """Every pod there is or was, by `namespace/name`."""
        simulation = self.simulation
        scheduler = simulation.scheduler
        waiting = {item.pod.uid: item.node_name for item in scheduler.waiting_pods.all()}
        gated = {info.pod.uid for info in simulation.scheduler.queue.unschedulable_pods() if info.gated}
        facts: dict[str, record.PodFacts] = {
            key: record.PodFacts(key, labels, "gone") for key, labels in self._seen_pods.items()
        }
        for stored in simulation.world.all("Pod"):
            pod: Pod = stored.typed
            state, node = "pending", pod.node_name
            if node:
                state = "bound"
            elif pod.uid in waiting:
                state, node = "waiting", waiting[pod.uid]
            elif scheduler.cache.is_assumed(pod.uid):
                state, node = "binding", scheduler.cache.assumed[pod.uid].node_name
            elif pod.uid in scheduler.expired:
                state = "expired"
            elif pod.uid in gated:
                state = "gated"
            facts[pod.key] = record.PodFacts(pod.key, pod.labels, state, node, pod.nominated_node_name)
        for key in facts.keys() & self._by_pod.keys():
            found = facts[key]
            traces = self.cycles_of(key)
            found.cycle, found.attempts = traces[-1].number, len(traces)
            found.message = next((trace.message for trace in reversed(traces) if trace.message), "") or ""
        victims: dict[str, list[str]] = {}
        for eviction in self.evictions:
            victims.setdefault(eviction.preemptor, []).append(eviction.pod)
        for key, names in victims.items():
            if key in facts:
                facts[key].victims = tuple(names)
        return facts

    def timeline(self) -> Timeline:
        """Where every pod was and when; of a run that was `timed`."""
        start_ns, now_ns = self.scenario.start_ns, self.simulation.now_ns
        return timeline_of(self._written, self._moves, self.cycles, self.runs, from_ns=start_ns, to_ns=now_ns)

    def metrics(self) -> dict[str, float]:
        """The figures (`types.METRICS`)."""
        simulation = self.simulation
        alive = [stored.typed for stored in simulation.world.all("Pod") if not stored.typed.is_terminal]
        bound = sum(bool(pod.node_name) for pod in alive)
        view = simulation.scheduler.queue
        gated = sum(info.gated for info in view.unschedulable_pods())
        waiting = len(simulation.scheduler.waiting_pods)
        return {
            "cycles": len(self.cycles),
            "bound": bound,
            "pending": len(alive) - bound - gated - waiting,
            "gated": gated,
            "waiting": waiting,
            "preemptions": sum(trace.outcome == PREEMPTING for trace in self.cycles),
            "victims": len(self._preempted),
            "budgetViolations": sum(record.budget_violations(trace) for trace in self.cycles),
            "ties": sum(trace.tie is not None for trace in self.cycles),
            **node_figures(simulation.scheduler.cache.nodes, alive),
        }

    # ---- collecting

    def collect(self) -> RunPart:
        """Take over what happened since the last call, and give it."""
        simulation = self.simulation
        happened = RunPart(simulation.drain_cycles(), simulation.drain_outcomes(), simulation.drain_runs())
        for trace in happened.cycles:
            place = self._place_of.get(trace.number)
            if place is None:
                self._place_of[trace.number] = len(self.cycles)
                self.cycles.append(trace)
                self._by_pod.setdefault(trace.pod, []).append(trace)
                if trace.outcome == PREEMPTING:
                    self.evictions += [
                        record.Evicted(victim, trace.pod, trace.number) for victim in trace.victims
                    ]
            else:
                self.cycles[place] = trace
        for outcome in happened.outcomes:
            if isinstance(outcome, ObjectWritten) and outcome.manifest.get("kind") == "Pod":
                if self.timed:
                    cycle, reason = outcome.cycle, outcome.reason
                    self._written.append(
                        pod_seen(outcome.at_ns, outcome.manifest, cycle=cycle, reason=reason)
                    )
                meta = outcome.manifest["metadata"]
                key = f"{meta['namespace']}/{meta['name']}"
                self._seen_pods.setdefault(key, meta.get("labels") or {})
                if outcome.reason == "preempted":
                    # A pod that ends already may be chosen again; it is evicted once.
                    self._preempted[str(meta.get("uid"))] = None
                if outcome.reason == "bound":
                    node = outcome.manifest["spec"]["nodeName"]
                    self.placements.append(record.Placed(key, node, outcome.cycle, outcome.at_ns))
            elif isinstance(outcome, ObjectDeleted) and outcome.kind == "Pod":
                key = f"{outcome.namespace}/{outcome.name}"
                self._seen_pods.setdefault(key, {})
                if self.timed:
                    self._written.append(PodSeen(outcome.at_ns, key, None, reason=outcome.reason))
        self.runs += happened.runs
        moves = simulation.drain_moves()
        if self.timed:
            self._moves += moves
        return happened

    def saw_pod(self, manifest: Manifest) -> None:
        """A pod came from outside."""
        meta = manifest["metadata"]
        self._seen_pods[f"{meta['namespace']}/{meta['name']}"] = meta.get("labels") or {}
