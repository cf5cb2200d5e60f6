"""NodeName: a pod that names its node runs on that node alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.cluster_event import ClusterEventWithHint, on
from scheduler_core.framework.interface import FilterPlugin, Reads
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.pod import Pod


class NodeName(FilterPlugin[None]):
    """Rejects every row but the one `spec.nodeName` names.

    Source: pkg/scheduler/framework/plugins/nodename/node_name.go, v1.34

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> verdicts(NodeName, {"nodeName": "n2"}, n1={}, n2={})
    {'n1': "node(s) didn't match the requested node name", 'n2': 'passes'}
    """

    name: ClassVar[str] = "NodeName"
    sentences: ClassVar[Sequence[str]] = ("node(s) didn't match the requested node name",)
    compares: ClassVar[str] = "node name"
    default_weight: ClassVar[int | None] = 0
    filter_reads: ClassVar[Reads] = Reads.SPEC

    def events(self) -> list[ClusterEventWithHint]:
        return [on("Node", "Add")]

    def sign(self, pod: Pod) -> Hashable:
        return pod.node_name

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        if not pod.node_name:
            return Verdicts(np.zeros(len(rows), np.int8))
        return Verdicts.where(~nodes.is_named(pod.node_name, rows), Code.UnschedulableAndUnresolvable)


# ---- hints: when a pod that the plugin rejected is worth another try
