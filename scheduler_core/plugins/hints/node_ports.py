"""When a pod rejected by NodePorts is worth another try.

Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go,
staging/src/k8s.io/kube-scheduler/framework/types.go (HostPortInfo), v1.34
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
from scheduler_core.objects.pod import HostPort, Pod

_FREED = QUEUE.because("the deleted pod used a port the pod wants")
_UNASSIGNED = SKIP.because("the deleted pod was on no node")
_NO_PORTS = SKIP.because("the deleted pod used no host port")
_OTHER_PORTS = SKIP.because("the deleted pod used other ports")
_ALL_ADDRESSES = "0.0.0.0"


def events_to_register() -> list[ClusterEventWithHint]:
    return [
        ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), after_pod_deleted),
        ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
    ]


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    if not old.node_name and not old.nominated_node_name:
        return _UNASSIGNED
    if not old.host_ports:
        return _NO_PORTS
    conflict = any(_conflict(wanted, used) for wanted in pod.host_ports for used in old.host_ports)
    return _FREED if conflict else _OTHER_PORTS


def _conflict(wanted: HostPort, used: HostPort) -> bool:
    if wanted.port != used.port or wanted.protocol != used.protocol:
        return False
    wanted_ip = wanted.ip or _ALL_ADDRESSES
    used_ip = used.ip or _ALL_ADDRESSES
    return wanted_ip == used_ip or _ALL_ADDRESSES in (wanted_ip, used_ip)
