"""What holds a pod with scheduling gates back, and what lets it go.

Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.pod import Pod

_OPEN = QUEUE.because("the pod's last scheduling gate is gone")
_OTHER_POD = SKIP.because("another pod's gates are gone")


def events_to_register() -> list[ClusterEventWithHint]:
    event = ClusterEvent(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    return [ClusterEventWithHint(event, after_gates_eliminated)]


def after_gates_eliminated(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    return _OPEN if new.uid == pod.uid else _OTHER_POD


def closed_gates(pod: Pod) -> str | None:
    """Why the pod may not enter the queue; None when it may."""
    if not pod.scheduling_gates:
        return None
    return f"waiting for scheduling gates: [{' '.join(pod.scheduling_gates)}]"
