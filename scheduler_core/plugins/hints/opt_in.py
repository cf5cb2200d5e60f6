"""What the plugins that stand outside every default profile wait for."""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    annotations_of,
)
from scheduler_core.objects.pod import Pod

_ITSELF = QUEUE.because("the pod's annotations were changed")
_OTHER = SKIP.because("the pod's annotations are as before")
_SIBLING = QUEUE.because("a pod of the same group came or changed")
_STRANGER = SKIP.because("the pod is of another group")
_GROUP = "scheduling.x-k8s.io/pod-group"


def manual_approval() -> list[ClusterEventWithHint]:
    return [ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE), after_own_change)]


def coscheduling() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(ClusterEvent(POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL), after_sibling)
    ]


def after_own_change(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
    if old is None or new is None or new.uid != pod.uid or annotations_of(old) == annotations_of(new):
        return _OTHER
    return _ITSELF


def after_sibling(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
    if new is None or new.namespace != pod.namespace or new.labels.get(_GROUP) != pod.labels.get(_GROUP):
        return _STRANGER
    # Being bound is no news of a sibling: it had its say at Permit.
    return _SIBLING if not new.node_name else _STRANGER
