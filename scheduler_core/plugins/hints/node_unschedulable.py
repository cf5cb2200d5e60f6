"""When a pod rejected by NodeUnschedulable is worth another try.

Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    NODE,
    POD,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Node, Taint
from scheduler_core.objects.pod import Pod

_OPENED = QUEUE.because("the node accepts pods now")
_NEW = QUEUE.because("the new node accepts pods")
_CLOSED = SKIP.because("the node did not become schedulable by this")
_TOLERATES = QUEUE.because("the pod now tolerates unschedulable nodes")
_UNRELATED = SKIP.because("the new toleration is about something else")
_OTHER_POD = SKIP.because("another pod's tolerations changed")
_TAINT = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(
            ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), after_node_change
        ),
        ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), after_toleration_change),
    ]


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    if new.unschedulable:
        return _CLOSED
    if old is None:
        return _NEW
    return _OPENED if old.unschedulable else _CLOSED


def after_toleration_change(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    if pod.uid != new.uid:
        return _OTHER_POD
    return _TOLERATES if new.tolerates(_TAINT) else _UNRELATED
