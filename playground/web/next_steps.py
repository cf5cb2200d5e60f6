"""What happens after a preemption, step by step: what is done, and what is still to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playground.clusters.selectors.aftermath import Aftermath

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle


@dataclass(frozen=True)
class NextStep:
    """One step; `at_ns` None when the moment is not known yet. `cycle` links the pod's next attempt."""

    at_ns: int | None
    text: str
    done: bool
    cycle: int | None = None


def next_steps(cycle: Cycle, node: str, after: Aftermath) -> list[NextStep]:
    """Tell the steps in order of time; those without a moment come last."""
    steps = [
        NextStep(
            cycle.at_ns,
            f"status.nominatedNodeName: {node} is set; {cycle.pod_name} goes back to the queue",
            True,
        )
    ]
    for victim in after.victims:
        name = victim.pod.rpartition("/")[2]
        if victim.asked_ns is None:
            steps.append(NextStep(None, f"{name} is asked to end", False))
            continue
        if victim.until_ns is not None:
            grace_s = (victim.until_ns - victim.asked_ns) / 1e9
            steps.append(
                NextStep(victim.asked_ns, f"{name} starts terminating, {grace_s:.0f} s of grace", True)
            )
        ends_ns = victim.gone_ns or victim.until_ns
        steps.append(
            NextStep(
                ends_ns,
                f"{name} is gone; its end moves {cycle.pod_name} back to activeQ",
                victim.gone_ns is not None,
            )
        )
    again = after.next_cycle
    if again is not None:
        where = f" to {again.node}" if again.node else ""
        steps.append(
            NextStep(again.at_ns, f"Attempt {again.attempt}: {again.outcome}{where}", True, again.number)
        )
    else:
        steps.append(
            NextStep(
                None,
                f"The next attempt tries {node} first. A pod of higher priority may still take the room",
                False,
            )
        )
    known = [step for step in steps if step.at_ns is not None]
    known.sort(key=lambda step: step.at_ns or 0)
    return [*known, *(step for step in steps if step.at_ns is None)]
