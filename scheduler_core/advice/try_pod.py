"""'Try': the cycle a pod would have if it were submitted now and came first, without submitting it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.events import ObjectChanged
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework.record import CycleTrace
from scheduler_core.objects.pod import Pod
from scheduler_core.scheduler import Scheduler

NOT_OURS = "not-ours"
GATED = "gated"


@dataclass(frozen=True, slots=True)
class TriedPod:
    """What would happen.

    Attributes
    ----------
    outcome : str
        That of a cycle; or `gated` (PreEnqueue holds the pod back) or `not-ours` (another scheduler's, or placed
        by its own nodeName), for which there is no cycle.
    sentence : str
        Of the cycle, as something that would happen, or why there is none.
    """

    outcome: str
    sentence: str
    trace: CycleTrace | None

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        cycle = None if self.trace is None else self.trace.explain()
        return {"outcome": self.outcome, "sentence": self.sentence, "cycle": cycle}


def try_pod(original: Scheduler, pod: Pod, *, transport: Transport = no_transport) -> TriedPod:
    """Run the pod's cycle on a copy whose queue holds nothing else; the original stays as it is."""
    if pod.node_name:
        return TriedPod(
            NOT_OURS, f"{pod.key} names {pod.node_name} as its node: no scheduler is asked.", None
        )
    if pod.scheduler_name not in original.profiles:
        return TriedPod(
            NOT_OURS, f"{pod.key} waits for the scheduler {pod.scheduler_name}, which is not here.", None
        )
    scheduler = Sandbox(original, transport=transport).scheduler
    scheduler.handle(ObjectChanged("Pod", None, pod))
    if not scheduler.can_schedule():
        gates = ", ".join(pod.scheduling_gates)
        return TriedPod(GATED, f"{pod.key} is held back by its scheduling gates: {gates}.", None)
    scheduler.schedule_one()
    trace = scheduler.traces[0]
    trace.dry_run = True
    return TriedPod(trace.outcome, trace.sentence, trace)
