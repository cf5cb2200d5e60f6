"""The formal model of scheduling, checked on every cycle of a run: order, placement, minimal casualty.

The model says of a cycle: the pod taken is the first of those that wait; it is bound to a node that is feasible, and
viable, that is, of the highest score among the feasible; and where none is feasible, the pods that are evicted are
the least casualty of all sets of lower pods on all nodes that would make one feasible. Kubernetes leaves the model in
places on purpose (`DEPARTURES`). What is checked here is evaluated one node and one pod at a time from the objects,
not from the columns and kept answers the decision came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.framework.record import CycleTrace
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.model_checks import check_casualty, check_order, check_placement
from scheduler_core.whatif.model_filters import (
    CASUALTY,
    FAILS,
    LEAVES,
    NOT_COMPUTED,
    PLACEMENT,
    PROPERTIES,
    STATUSES,
    Feasibility,
    Moment,
    PropertyVerdict,
    Rules,
)

DEPARTURES: Final[Mapping[str, str]] = {
    "backoff": (
        "A pod whose last attempt failed lets its backoff pass first, however important it is: pods below it go on."
    ),
    "hints": (
        "A pod that was found unschedulable is not tried again before something happens that a plugin which rejected"
        " it waits for (queueing hints), or five minutes are over."
    ),
    "gated": "A pod with scheduling gates, or held back by another PreEnqueue plugin, has no turn at all.",
    "popFromBackoff": (
        "When activeQ is empty the scheduler does not rest: it takes a pod out of backoffQ before its time"
        " (SchedulerPopFromBackoffQ)."
    ),
    "otherScheduler": "A pod whose schedulerName is no profile of this scheduler is left to another one.",
    "sampling": (
        "With percentageOfNodesToScore only so many feasible nodes are looked for, from a start index that moves on"
        " with every cycle: a node that was not looked at may be better."
    ),
    "nominated": (
        "A pod that was nominated to a node is tried there alone, and takes it without asking the other nodes."
    ),
    "nominatedRoom": (
        "Room that was made for a nominated pod of equal or higher priority counts as taken: filters run twice on"
        " such a node, with the nominated pods and without them, and both must pass. A plugin that PreFilter skipped is"
        " asked in neither: the anti-affinity of a nominated pod may be overlooked."
    ),
    "extender": (
        "An extender may reject nodes, add points and replace victims; what it answers is not derived from the"
        " cluster's objects."
    ),
    "reprieve": (
        "Victims are not searched for among all sets of pods: on each node all lower pods go, then come back one by"
        " one, those whose eviction violates a budget first, then by importance, as long as the pod still fits. That"
        " is the least only by chance."
    ),
    "candidates": (
        "Preemption is tried from a random offset (the node phase) until enough candidates are found (a tenth of the"
        " nodes, at least 100): a node that was not tried, or came when as many that violate a budget were found, may"
        " lose less."
    ),
    "unresolvable": ("Preemption is not tried on a node that a filter called UnschedulableAndUnresolvable."),
    "preemptionPolicy": "A pod with preemptionPolicy: Never evicts no one, whatever it would gain.",
    "terminating": (
        "A pod whose victims on its nominated node are still terminating waits for them instead of evicting more."
    ),
    "noPreemption": "The profile runs no DefaultPreemption at PostFilter.",
    "budgets": (
        "PodDisruptionBudgets are kept as well as possible, not always: a candidate that violates one is taken when"
        " there is none that violates fewer."
    ),
}


# ---- the report


@dataclass(frozen=True, slots=True)
class CheckedCycle:
    """One cycle; a property that has nothing to say of it has no verdict."""

    number: int
    pod: str
    outcome: str
    counts: Mapping[str, int]
    """`possible`, `feasible` and `viable` nodes."""
    verdicts: tuple[PropertyVerdict, ...]

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "cycle": self.number,
            "pod": self.pod,
            "outcome": self.outcome,
            **self.counts,
            "verdicts": [verdict.document() for verdict in self.verdicts],
        }


@dataclass(slots=True)
class ModelReport:
    """All cycles of a run."""

    cycles: list[CheckedCycle] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing fails; what Kubernetes does on purpose is no failure."""
        return not any(verdict.status == FAILS for cycle in self.cycles for verdict in cycle.verdicts)

    def counts(self) -> dict[str, dict[str, int]]:
        """Property -> status -> cycles."""
        found = {name: dict.fromkeys(STATUSES, 0) for name in PROPERTIES}
        for cycle in self.cycles:
            for verdict in cycle.verdicts:
                found[verdict.property][verdict.status] += 1
        return found

    def with_status(self, status: str) -> list[tuple[CheckedCycle, PropertyVerdict]]:
        """Verdicts of one kind, in order of cycles."""
        return [(cycle, item) for cycle in self.cycles for item in cycle.verdicts if item.status == status]

    def departures(self) -> list[dict[str, Any]]:
        """Where Kubernetes left the model: each kind with its sentence, how often, and its first cycle."""
        found: dict[str, dict[str, Any]] = {}
        for cycle, verdict in self.with_status(LEAVES):
            entry = found.setdefault(
                verdict.departure,
                {
                    "departure": verdict.departure,
                    "property": verdict.property,
                    "why": DEPARTURES[verdict.departure],
                    "count": 0,
                    "first": {"cycle": cycle.number, "sentence": verdict.sentence},
                },
            )
            entry["count"] += 1
        return list(found.values())

    @property
    def sentence(self) -> str:
        """The whole in one sentence."""
        n_cycles = len(self.cycles)
        if not n_cycles:
            return "No cycle was run, so there is nothing to check."
        failing = sorted({cycle.number for cycle, _ in self.with_status(FAILS)})
        of = "the only cycle" if n_cycles == 1 else f"all {n_cycles:,} cycles"
        if failing:
            which = "cycle" if len(failing) == 1 else "cycles"
            numbers = ", ".join(map(str, failing[:5])) + (" and others" if len(failing) > 5 else "")
            return f"The model is violated in {len(failing):,} of {n_cycles:,} cycles ({which} {numbers})."
        leaving = {cycle.number for cycle, _ in self.with_status(LEAVES)}
        if not leaving:
            return f"The model holds in {of}."
        if len(leaving) == n_cycles:
            return f"Kubernetes leaves the model on purpose in {of}; nothing is violated."
        return (
            f"The model holds in {n_cycles - len(leaving):,} of {n_cycles:,} cycles;"
            f" in {len(leaving):,} Kubernetes leaves it on purpose."
        )

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "status": "holds" if self.holds else "fails",
            "sentence": self.sentence,
            "counts": self.counts(),
            "departures": self.departures(),
            "violations": [
                {"cycle": cycle.number, "pod": cycle.pod, **verdict.document()}
                for cycle, verdict in self.with_status(FAILS)
            ],
            "cycles": [cycle.document() for cycle in self.cycles],
        }


# ---- the run

MAX_OBJECTS = 3000
"""Nodes and pods on them, up to which a cycle is evaluated anew; above, only its order is checked."""


class Checker:
    """Looks at a simulation before and after each cycle."""

    def __init__(self, *, max_objects: int = MAX_OBJECTS) -> None:
        self.report = ModelReport()
        self._max_objects = max_objects
        self._before: Moment | None = None

    def before_cycle(self, simulation: Simulation) -> None:
        """Take down the cluster as the cycle finds it."""
        self._before = Moment.of(simulation, self._max_objects)

    def after_cycle(self, simulation: Simulation) -> None:
        """Judge what was decided."""
        moment, self._before = self._before, None
        scheduler = simulation.scheduler
        if moment is None or scheduler.cycle == moment.cycle:
            return
        trace = next(item for item in reversed(scheduler.traces) if item.number == scheduler.cycle)
        self.report.cycles.append(self._judge(simulation, moment, trace))

    def _judge(self, simulation: Simulation, moment: Moment, trace: CycleTrace) -> CheckedCycle:
        scheduler = simulation.scheduler
        framework = scheduler.profiles[trace.profile]
        verdicts = [check_order(trace.uid, moment, framework.queue_sort.name)]
        taken = moment.pod(trace.uid)
        cycle = trace.explain()
        if taken is not None:
            if moment.places is None:
                said = (
                    f"{moment.n_objects:,} nodes and pods are too many to be evaluated one by one (at most"
                    f" {self._max_objects:,})."
                )
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
                if not cycle["node"] and not cycle["error"]:
                    verdicts.append(PropertyVerdict(CASUALTY, NOT_COMPUTED, said))
            elif scheduler.cycle > moment.cycle + 1:
                # What the members before this one took is not in the moment.
                said = (
                    "The members of a pod group are placed one after the other before any of them is bound;"
                    " the model looks at single pods."
                )
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
            elif not trace.is_full:
                said = f"The cycle ended in an error: {cycle['error']}"
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
            else:
                plan = next(item for item in scheduler.loaded.plans if item.scheduler_name == trace.profile)
                rules = Rules.of((plugin.name for plugin in framework.filter), plan.args)
                deduced = scheduler.cache.snapshot().matching.default_selectors.of(taken.pod)
                asked = Feasibility(taken.pod, moment, rules, deduced)
                verdicts.append(check_placement(cycle, moment, asked, plan.args))
                preempts = any(plugin.name == "DefaultPreemption" for plugin in framework.post_filter)
                casualty = check_casualty(cycle, moment, asked, preempts)
                verdicts += [casualty] if casualty is not None else []
        counts = {"possible": trace.n_nodes, "feasible": trace.n_feasible, "viable": trace.n_viable}
        return CheckedCycle(trace.number, trace.pod, trace.outcome, counts, tuple(verdicts))
