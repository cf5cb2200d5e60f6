"""A scenario run with the model looking at every cycle."""

from __future__ import annotations

from scheduler_core.framework.record import CycleTrace
from scheduler_core.model.casualty import check_casualty
from scheduler_core.model.filters import Feasibility, Rules
from scheduler_core.model.moment import Moment
from scheduler_core.model.order import check_order
from scheduler_core.model.placement import check_placement
from scheduler_core.model.report import CheckedCycle, ModelReport
from scheduler_core.model.verdict import CASUALTY, NOT_COMPUTED, PLACEMENT, PropertyVerdict
from scheduler_core.scenario.run import run
from scheduler_core.scenario.types import MAX_CYCLES, Scenario
from scheduler_core.sim.simulation import Simulation

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
        told = trace.explain()
        if taken is not None:
            if moment.places is None:
                said = (
                    f"{moment.n_objects:,} nodes and pods are too many to be evaluated one by one (at most"
                    f" {self._max_objects:,})."
                )
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
                if not told["node"] and not told["error"]:
                    verdicts.append(PropertyVerdict(CASUALTY, NOT_COMPUTED, said))
            elif scheduler.cycle > moment.cycle + 1:
                # What the members before this one took is not in the moment.
                said = (
                    "The members of a pod group are placed one after the other before any of them is bound;"
                    " the model looks at single pods."
                )
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
            elif not trace.is_full:
                said = f"The cycle ended in an error: {told['error']}"
                verdicts.append(PropertyVerdict(PLACEMENT, NOT_COMPUTED, said))
            else:
                plan = next(item for item in scheduler.loaded.plans if item.scheduler_name == trace.profile)
                rules = Rules.of((plugin.name for plugin in framework.filter), plan.args)
                deduced = scheduler.cache.snapshot().matching.default_selectors.of(taken.pod)
                asked = Feasibility(taken.pod, moment, rules, deduced)
                verdicts.append(check_placement(told, moment, asked, plan.args))
                preempts = any(plugin.name == "DefaultPreemption" for plugin in framework.post_filter)
                casualty = check_casualty(told, moment, asked, preempts)
                verdicts += [casualty] if casualty is not None else []
        counts = {"possible": trace.n_nodes, "feasible": trace.n_feasible, "viable": trace.n_viable}
        return CheckedCycle(trace.number, trace.pod, trace.outcome, counts, tuple(verdicts))


def check_scenario(
    scenario: Scenario, *, max_cycles: int = MAX_CYCLES, max_objects: int = MAX_OBJECTS
) -> ModelReport:
    """Run a scenario and check every cycle of it.

    Raises
    ------
    ScenarioError
        A step cannot be done, or the bound on cycles was reached.
    """
    checker = Checker(max_objects=max_objects)
    run(
        scenario,
        full_traces=True,
        max_cycles=max_cycles,
        before_cycle=checker.before_cycle,
        after_cycle=checker.after_cycle,
    )
    return checker.report
