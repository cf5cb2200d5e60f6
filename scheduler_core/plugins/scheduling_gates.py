"""SchedulingGates: a pod with scheduling gates is not even queued."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.interface import PreEnqueuePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod


class SchedulingGates(PreEnqueuePlugin):
    """Holds a pod back until all its `spec.schedulingGates` are removed.

    Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, v1.34

    Examples
    --------
    >>> from scheduler_core.objects.pod import pod_from
    >>> gates = [{"name": "a"}, {"name": "b"}]
    >>> pod = pod_from({"metadata": {"name": "p"}, "spec": {"schedulingGates": gates}})
    >>> SchedulingGates(None, None).pre_enqueue(pod).message
    'waiting for scheduling gates: [a b]'
    """

    name: ClassVar[str] = "SchedulingGates"
    default_weight: ClassVar[int | None] = 0

    def events(self) -> list[ClusterEventWithHint]:
        return [on("Pod", "UpdatePodSchedulingGatesEliminated", after_gates_eliminated)]

    def pre_enqueue(self, pod: Pod) -> Status:
        reason = closed_gates(pod)
        return SUCCESS if reason is None else Status(Code.UnschedulableAndUnresolvable, (reason,))


# ---- hints: when a pod that the plugin rejected is worth another try

_OPEN = QUEUE.because("the pod's last scheduling gate is gone")
_OTHER_POD = SKIP.because("another pod's gates are gone")


def after_gates_eliminated(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    return _OPEN if new.uid == pod.uid else _OTHER_POD


def closed_gates(pod: Pod) -> str | None:
    """Why the pod may not enter the queue; None when it may."""
    if not pod.scheduling_gates:
        return None
    return f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]"
