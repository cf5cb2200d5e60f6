"""SchedulingGates: a pod with scheduling gates is not even queued."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.interface import PreEnqueuePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod


class SchedulingGates(PreEnqueuePlugin):
    """Holds a pod back until somebody has taken all its `spec.schedulingGates` away.

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

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.scheduling_gates:
            return SUCCESS
        gates = " ".join(pod.scheduling_gates)
        return Status(Code.UnschedulableAndUnresolvable, (f"waiting for scheduling gates: [{gates}]",))
