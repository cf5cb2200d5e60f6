"""When a pod rejected by NodeDeclaredFeatures is worth another try.

Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go, v1.36
"""

from __future__ import annotations

from collections.abc import Callable

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

_NEW_FEATURES = QUEUE.because("the node declares other features")
_SAME_FEATURES = SKIP.because("the node declares the same features as before")
_OTHER_POD = SKIP.because("another pod changed")
_NEEDS_OTHERS = QUEUE.because("the pod needs other features now")
_SAME_NEEDS = SKIP.because("the pod needs the same features as before")


def events_to_register(features_needed: Callable[[Pod], frozenset[str]]) -> list[ClusterEventWithHint]:
    """`features_needed` infers names of features from a pod's spec."""

    def after_pod_update(pod: Pod, old: Pod, new: Pod) -> QueueingHint:
        if pod.uid != new.uid:
            return _OTHER_POD
        return _SAME_NEEDS if features_needed(old) == features_needed(new) else _NEEDS_OTHERS

    return [
        ClusterEventWithHint(
            ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE), after_node_change
        ),
        ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE), after_pod_update),
    ]


def after_node_change(pod: Pod, old: Node | None, new: Node) -> QueueingHint:
    if old is not None and old.declared_features == new.declared_features:
        return _SAME_FEATURES
    return _NEW_FEATURES
