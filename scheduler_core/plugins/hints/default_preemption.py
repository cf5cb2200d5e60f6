"""What frees a pod whose preemption is under way: nothing but its end, so every hint is Skip.

The event is registered all the same, so that such a pod (gated by this plugin) is looked at when its victims
go and the hints of the plugins that rejected it are asked.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    POD,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.pod import Pod

_WAITS = SKIP.because("the plugins that rejected the pod decide whether a deletion helps")


def events_to_register() -> list[ClusterEventWithHint]:
    return [ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), after_pod_deleted)]


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    return _WAITS
