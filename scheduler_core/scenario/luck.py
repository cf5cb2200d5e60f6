"""How much of a run was luck: decisions that hung on a draw, on sampling or on queue order, and other seeds."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

from scheduler_core.scenario.canonical import effective_steps
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.types import Scenario


@dataclass(frozen=True, slots=True)
class LuckyCycle:
    """A decision that could have gone another way.

    Attributes
    ----------
    kind : {"tie", "preemptionTie", "sampling", "queueOrder"}
        A draw among nodes with equal scores; a draw among preemption candidates; nodes that were not looked at; or a
        pod that was tried first only because it came first among equals of priority waiting at the same time.
    n_alternatives : int
        How many equals there were; for sampling, nodes that were not looked at; 0 where it is not known.
    """

    cycle: int
    pod: str
    kind: str
    n_alternatives: int
    nodes: tuple[str, ...]


def lucky_cycles(run: ScenarioRun) -> list[LuckyCycle]:
    """Cycles whose decision hung on chance, in order."""
    found = []
    for trace in run.cycles:
        if trace.tie is not None:
            nodes = tuple((trace.body.best or ()) if trace.body is not None else ())
            found.append(LuckyCycle(trace.number, trace.pod, "tie", trace.tie.count, nodes))
        preemption = trace.preemption or {}
        if preemption.get("ambiguous"):
            nodes = tuple(preemption.get("tied") or ())
            found.append(LuckyCycle(trace.number, trace.pod, "preemptionTie", preemption["nTied"], nodes))
        n_unseen = trace.n_nodes - trace.n_evaluated
        if trace.n_feasible > 1 and n_unseen > 0 and trace.n_evaluated != 1:
            found.append(LuckyCycle(trace.number, trace.pod, "sampling", n_unseen, ()))
    found += _queue_order(run)
    return sorted(found, key=lambda item: (item.cycle, item.kind))


def _queue_order(run: ScenarioRun) -> list[LuckyCycle]:
    """First attempts that left nothing for an equal: same moment, same priority, and that one found no node."""
    failed: dict[tuple[int, int], int] = {}
    found = []
    for trace in reversed(run.cycles):
        equals = (trace.at_ns, trace.priority)
        if trace.attempt != 1:
            continue
        if trace.node is None:
            failed[equals] = failed.get(equals, 0) + 1
        elif equals in failed:
            # Only those that came after it can have missed what it took.
            found.append(LuckyCycle(trace.number, trace.pod, "queueOrder", failed[equals] + 1, ()))
    return found


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    """The same scenario with other draws; what was recorded of it no longer counts."""
    return dataclasses.replace(scenario, seed=seed, decisions=None)


def unexpecting(scenario: Scenario) -> Scenario:
    """Nothing is asked on the way or at the end: what its own seed is to fulfil says nothing about others."""
    steps = tuple(step for step in effective_steps(scenario) if step.expect is None)
    return dataclasses.replace(scenario, expect=(), steps=steps)


def end_state_digest(placement: dict[str, str]) -> str:
    """Names where all pods ended."""
    return hashlib.sha256(
        "\n".join(f"{pod} {node}" for pod, node in sorted(placement.items())).encode()
    ).hexdigest()
