"""When a pod rejected by NodeName is worth another try: any new node may be the one.

Source: pkg/scheduler/framework/plugins/nodename/node_name.go, v1.34
"""

from __future__ import annotations

from scheduler_core.framework.cluster_event import NODE, ActionType, ClusterEvent, ClusterEventWithHint


def events_to_register() -> list[ClusterEventWithHint]:
    return [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD))]
