"""NodePorts: a host port serves one pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.cluster.node_table import ALL_ADDRESSES, NodeColumns, Rows, normal_port
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Comparison
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.pod import HostPort, Pod


class NodePorts(fw.PreFilterPlugin[tuple[HostPort, ...]], fw.FilterPlugin[tuple[HostPort, ...]]):
    """Rejects rows where a pod already holds a wanted port on the same address, or either asks for all addresses.

    Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> web = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    >>> verdicts(NodePorts, web, n1={}, n2={"pods": [web]})
    {'n1': 'passes', 'n2': "node(s) didn't have free ports for the requested pod ports"}
    """

    name: ClassVar[str] = "NodePorts"
    sentences: ClassVar[Sequence[str]] = ("node(s) didn't have free ports for the requested pod ports",)
    compares: ClassVar[str] = "host ports"
    default_weight: ClassVar[int | None] = 0
    filter_reads: ClassVar[fw.Reads] = fw.Reads.USAGE

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Pod", "Delete", after_pod_deleted),
            on("Node", "Add"),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return pod.host_ports

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> fw.PreFilterResult[tuple[HostPort, ...]]:
        if not pod.host_ports:
            return fw.SKIP_FILTER
        return fw.PreFilterResult(state=tuple(normal_port(port) for port in pod.host_ports))

    def filter(self, state: tuple[HostPort, ...], pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        taken = np.zeros(len(rows), np.bool_)
        for port_id, used in enumerate(nodes.vocabulary.ports.values):
            if any(_conflict(used, wanted) for wanted in state):
                taken |= nodes.port_in_use(port_id)[rows]
        return Verdicts.where(taken, Code.Unschedulable)

    def compare(self, state: tuple[HostPort, ...], pod: Pod, snapshot: Snapshot) -> Iterator[Comparison]:
        nodes = snapshot.nodes
        known = enumerate(nodes.vocabulary.ports.values)
        # In the order of their words: that of the vocabulary is chance.
        ports = sorted((_text(used), port_id, used) for port_id, used in known)
        for wanted in state:
            for text, port_id, used in ports:
                if _conflict(used, wanted):
                    taken = nodes.port_in_use(port_id)[snapshot.rows]
                    yield Comparison(taken, (f"wants host port {_text(wanted)}, a pod there holds {text}",))


def _text(port: HostPort) -> str:
    address = "" if port.ip == ALL_ADDRESSES else f" on {port.ip}"
    return f"{port.port}/{port.protocol}{address}"


def _conflict(used: HostPort, wanted: HostPort) -> bool:
    """Source: pkg/scheduler/framework/types.go HostPortInfo.CheckConflict, v1.34."""
    if used.port != wanted.port or used.protocol != wanted.protocol:
        return False
    return used.ip == wanted.ip or ALL_ADDRESSES in (used.ip, wanted.ip)


# ---- hints: when a pod that the plugin rejected is worth another try

_FREED = QUEUE.because("the deleted pod used a port the pod wants")
_UNASSIGNED = SKIP.because("the deleted pod was on no node")
_NO_PORTS = SKIP.because("the deleted pod used no host port")
_OTHER_PORTS = SKIP.because("the deleted pod used other ports")


def after_pod_deleted(pod: Pod, old: Pod, new: None) -> QueueingHint:
    if not old.node_name and not old.nominated_node_name:
        return _UNASSIGNED
    if not old.host_ports:
        return _NO_PORTS
    freed = [normal_port(port) for port in old.host_ports]
    conflict = any(_conflict(used, normal_port(wanted)) for wanted in pod.host_ports for used in freed)
    return _FREED if conflict else _OTHER_PORTS
