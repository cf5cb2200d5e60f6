"""When a pod rejected by NodeAffinity is worth another try.

Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import (
    NODE,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    QueueingHint,
)
from scheduler_core.objects.node import Node
from scheduler_core.objects.node_selector import NodeSelector
from scheduler_core.objects.pod import Pod

_NEW = QUEUE.because("the new node matches the pod's node affinity")
_MATCHES_NOW = QUEUE.because("the node matches the pod's node affinity now")
_MATCHED_BEFORE = SKIP.because("the node matched the pod's node affinity before, too")
_NO_MATCH = SKIP.because("the node does not match the pod's node affinity")
_NOT_ADDED = SKIP.because("the node does not match the affinity the scheduler adds")


def events_to_register(added_selector: NodeSelector | None = None) -> list[ClusterEventWithHint]:
    """`added_selector` is the required part of the plugin's `addedAffinity`."""
    return [
        ClusterEventWithHint(
            ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            after_node_change(added_selector),
        )
    ]


def after_node_change(added_selector: NodeSelector | None) -> HintFunction:
    def hint(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
        if added_selector is not None and not added_selector.match(new.labels, new.name):
            return _NOT_ADDED
        if not pod.required_node_affinity.match(new.labels, new.name):
            return _NO_MATCH
        if old is None:
            return _NEW
        return _MATCHED_BEFORE if pod.required_node_affinity.match(old.labels, old.name) else _MATCHES_NOW

    return hint
