"""NodeUnschedulable: cordoned nodes take no pods but those that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.framework.interface import FilterPlugin, Reads
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Taint
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.hints import node_unschedulable as hints

REASON = "node(s) were unschedulable"
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
    compares: ClassVar[str] = "cordon"
    default_weight: ClassVar[int | None] = 0
    filter_reads: ClassVar[Reads] = Reads.SPEC

    def events(self) -> list[ClusterEventWithHint]:
        return hints.events_to_register()

    def sign(self, pod: Pod) -> Hashable:
        return pod.tolerates(_CORDON)

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        cordoned = nodes.unschedulable[rows]
        if pod.tolerates(_CORDON):
            cordoned = np.zeros_like(cordoned)
        return Verdicts.where(cordoned, Code.UnschedulableAndUnresolvable)

    def reasons(
        self, state: None, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (REASON,)
