"""NodeUnschedulable: cordoned nodes take no pods but those that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.cluster_event import QUEUE, SKIP, ClusterEventWithHint, QueueingHint, on
from scheduler_core.framework.interface import FilterPlugin, Reads
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Node, Taint
from scheduler_core.objects.pod import Pod

_CORDON = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")


class NodeUnschedulable(FilterPlugin[None]):
    """Rejects rows with `spec.unschedulable`, unless the pod tolerates the cordon taint.

    Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> cordoned = {"spec": {"unschedulable": True}}
    >>> verdicts(NodeUnschedulable, {}, n1={}, n2=cordoned, n3={})
    {'n1': 'passes', 'n2': 'node(s) were unschedulable', 'n3': 'passes'}
    """

    name: ClassVar[str] = "NodeUnschedulable"
    sentences: ClassVar[Sequence[str]] = ("node(s) were unschedulable",)
    compares: ClassVar[str] = "cordon"
    default_weight: ClassVar[int | None] = 0
    filter_reads: ClassVar[Reads] = Reads.SPEC

    def events(self) -> list[ClusterEventWithHint]:
        return [
            on("Node", "Add|UpdateNodeTaint", after_node_change),
            on("Pod", "UpdatePodToleration", after_toleration_change),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return pod.tolerates(_CORDON)

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        cordoned = nodes.unschedulable[rows]
        if pod.tolerates(_CORDON):
            cordoned = np.zeros_like(cordoned)
        return Verdicts.where(cordoned, Code.UnschedulableAndUnresolvable)


# ---- hints: when a pod that the plugin rejected is worth another try

_OPENED = QUEUE.because("the node accepts pods now")
_NEW = QUEUE.because("the new node accepts pods")
_CLOSED = SKIP.because("the node did not become schedulable by this")
_TOLERATES = QUEUE.because("the pod now tolerates unschedulable nodes")
_UNRELATED = SKIP.because("the new toleration is about something else")
_OTHER_POD = SKIP.because("another pod's tolerations changed")
_TAINT = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")


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
