"""NodePreferAvoidPods: nodes may ask to be spared the pods of a controller."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from scheduler_core.cluster.node_table import NodeColumns, NodeTable, Rows
from scheduler_core.framework.interface import MAX_NODE_SCORE, Handle, Reads, ScorePlugin, Scores
from scheduler_core.objects.fields import Document
from scheduler_core.objects.pod import Pod

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_CONTROLLERS = ("ReplicationController", "ReplicaSet")
_MOST_CHANGES = 4096


class NodePreferAvoidPods(ScorePlugin[None]):
    """Scores 0 where the node's annotation names the pod's ReplicationController or ReplicaSet, else 100.

    Source: pkg/scheduler/framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go, v1.20
    """

    name: ClassVar[str] = "NodePreferAvoidPods"
    score_reads: ClassVar[Reads] = Reads.SPEC

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._nodes: NodeTable | None = None
        self._position = 0
        self._avoided: dict[int, frozenset[tuple[str, str]]] = {}

    def sign(self, pod: Pod) -> Hashable:
        return _controller_of(pod) or ()

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Scores:
        scores = np.full(len(rows), MAX_NODE_SCORE, np.int64)
        controller = _controller_of(pod)
        if controller is None or not isinstance(nodes, NodeTable):
            return scores
        self._refresh(nodes)
        avoiding = [row for row, avoided in self._avoided.items() if controller in avoided]
        scores[np.isin(rows, avoiding)] = 0
        return scores

    def _refresh(self, nodes: NodeTable) -> None:
        """Catch up with the nodes' annotations."""
        changed = nodes.spec_journal.since(self._position, _MOST_CHANGES) if nodes is self._nodes else None
        self._nodes, self._position = nodes, nodes.spec_journal.position
        if changed is None:
            self._avoided.clear()
            changed = list(range(nodes.n_rows))
        in_use = set(nodes.row_of.values())
        for row in changed:
            avoided = avoided_controllers(nodes.node(row).manifest) if row in in_use else frozenset()
            if avoided:
                self._avoided[row] = avoided
            else:
                self._avoided.pop(row, None)


def _controller_of(pod: Pod) -> tuple[str, str] | None:
    """Kind and uid of a controller nodes may speak of."""
    controller = pod.meta.controller
    if controller is None or controller.kind not in _CONTROLLERS:
        return None
    return controller.kind, controller.uid


def avoided_controllers(node: Document) -> frozenset[tuple[str, str]]:
    """Kinds and uids a node's annotation names; an annotation that cannot be read names none."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return frozenset()
    try:
        entries = json.loads(text).get("preferAvoidPods") or []
        controllers = [(entry.get("podSignature") or {}).get("podController") or {} for entry in entries]
        return frozenset((str(one.get("kind", "")), str(one.get("uid", ""))) for one in controllers)
    except (ValueError, AttributeError, TypeError):
        return frozenset()
