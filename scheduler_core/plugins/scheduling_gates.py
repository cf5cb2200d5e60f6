"""SchedulingGates: a pod with scheduling gates is not even queued."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.framework.interface import PreEnqueuePlugin
from scheduler_core.framework.status import SUCCESS, Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.hints import scheduling_gates as hints


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
        return hints.events_to_register()

    def pre_enqueue(self, pod: Pod) -> Status:
        reason = hints.closed_gates(pod)
        return SUCCESS if reason is None else Status(Code.UnschedulableAndUnresolvable, (reason,))
