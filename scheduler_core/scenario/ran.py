"""What came of a scenario's run: its cycles, placements, evictions and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.framework.record import PREEMPTING, CycleTrace
from scheduler_core.framework.words import sentence
from scheduler_core.objects.pod import Pod
from scheduler_core.releases import OLDEST, Release
from scheduler_core.scenario.figures import node_figures
from scheduler_core.scenario.others import Others
from scheduler_core.scenario.record import (
    Evicted,
    Finding,
    Placed,
    PodFacts,
    budget_violations,
    cycle_line,
    decisions_digest,
)
from scheduler_core.scenario.types import Manifest, Scenario
from scheduler_core.sim.changes import ObjectDeleted, ObjectWritten
from scheduler_core.sim.kubelet import waits_on_its_node
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.judge import Judgement


@dataclass(slots=True)
class ScenarioRun:
    """What came of a run.

    Attributes
    ----------
    cycles : list of CycleTrace
        In order of number, each as it ended.
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
    """

    scenario: Scenario
    simulation: Simulation
    release: Release = OLDEST
    first_of_ties: bool = False
    cycles: list[CycleTrace] = field(default_factory=list)
    placements: list[Placed] = field(default_factory=list)
    evictions: list[Evicted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    stop: str = ""
    others: Others | None = None
    _by_pod: dict[str, list[CycleTrace]] = field(default_factory=dict)
    _place_of: dict[int, int] = field(default_factory=dict)
    _seen_pods: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _preempted: dict[str, None] = field(default_factory=dict)

    # ---- what was decided

    @property
    def digest(self) -> str:
        """Hex SHA-256 over the digests of all cycles: equal for equal decisions."""
        return decisions_digest(trace.digest for trace in self.cycles)

    def cycle(self, number: int) -> CycleTrace | None:
        """The cycle of a number."""
        place = self._place_of.get(number)
        return None if place is None else self.cycles[place]

    def cycles_of(self, pod: str) -> list[CycleTrace]:
        """The cycles of a pod, `namespace/name`."""
        return [self.cycles[self._place_of[trace.number]] for trace in self._by_pod.get(pod, ())]

    def cycle_lines(self) -> list[str]:
        """One line a cycle, as `decisions.cycles` keeps them."""
        return [cycle_line(trace) for trace in self.cycles]

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
            entry["pod"]: str(entry["reason"] or "")
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

    def pods(self) -> dict[str, PodFacts]:
        """Every pod there is or was, by `namespace/name`."""
        simulation = self.simulation
        scheduler = simulation.scheduler
        waiting = {item.pod.uid: item.node_name for item in scheduler.waiting_pods.all()}
        gated = {info.pod.uid for info in simulation.scheduler.queue.unschedulable_pods() if info.gated}
        facts: dict[str, PodFacts] = {
            key: PodFacts(key, labels, "gone") for key, labels in self._seen_pods.items()
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
            facts[pod.key] = PodFacts(pod.key, pod.labels, state, node, pod.nominated_node_name)
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
            "budgetViolations": sum(budget_violations(trace) for trace in self.cycles),
            "ties": sum(trace.tie is not None for trace in self.cycles),
            **node_figures(simulation.scheduler.cache.nodes, alive),
        }

    # ---- collecting

    def collect(self) -> None:
        """Take over what happened since the last call."""
        simulation = self.simulation
        for trace in simulation.drain_cycles():
            place = self._place_of.get(trace.number)
            if place is None:
                self._place_of[trace.number] = len(self.cycles)
                self.cycles.append(trace)
                self._by_pod.setdefault(trace.pod, []).append(trace)
                if trace.outcome == PREEMPTING:
                    self.evictions += [Evicted(victim, trace.pod, trace.number) for victim in trace.victims]
            else:
                self.cycles[place] = trace
        for outcome in simulation.drain_outcomes():
            if isinstance(outcome, ObjectWritten) and outcome.manifest.get("kind") == "Pod":
                meta = outcome.manifest["metadata"]
                key = f"{meta['namespace']}/{meta['name']}"
                self._seen_pods.setdefault(key, meta.get("labels") or {})
                if outcome.reason == "preempted":
                    # A pod that ends already may be chosen again; it is evicted once.
                    self._preempted[str(meta.get("uid"))] = None
                if outcome.reason == "bound":
                    node = outcome.manifest["spec"]["nodeName"]
                    self.placements.append(Placed(key, node, outcome.cycle, outcome.at_ns))
            elif isinstance(outcome, ObjectDeleted) and outcome.kind == "Pod":
                self._seen_pods.setdefault(f"{outcome.namespace}/{outcome.name}", {})
        simulation.drain_moves()

    def saw_pod(self, manifest: Manifest) -> None:
        """A pod came from outside."""
        meta = manifest["metadata"]
        self._seen_pods[f"{meta['namespace']}/{meta['name']}"] = meta.get("labels") or {}
