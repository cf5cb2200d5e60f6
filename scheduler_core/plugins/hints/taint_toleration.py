"""When a pod rejected by TaintToleration is worth another try.

Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, v1.34
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
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

_TOLERATED = QUEUE.because("the pod tolerates the node's taints now")
_NOT_TOLERATED = SKIP.because("this does not change whether the pod tolerates the node's taints")
_TOLERATION = QUEUE.because("the pod got a new toleration")
_OTHER_POD = SKIP.because("another pod's tolerations changed")
_DO_NOT_SCHEDULE = ("NoSchedule", "NoExecute")


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(
            ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), after_node_change
        ),
        ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), after_toleration_change),
    ]


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    was_untolerated = old is None or _has_untolerated(pod, old)
    return _TOLERATED if was_untolerated and not _has_untolerated(pod, new) else _NOT_TOLERATED


def after_toleration_change(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
    return _TOLERATION if pod.uid == new.uid else _OTHER_POD


def _has_untolerated(pod: Pod, node: Node) -> bool:
    return any(taint.effect in _DO_NOT_SCHEDULE and not pod.tolerates(taint) for taint in node.taints)
