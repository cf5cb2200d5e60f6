"""Nominated pods as columns, so that many nodes can be asked with them counted in at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeTable, Rows
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.objects.pod import Pod

Int64 = NDArray[np.int64]


class PromisedPods:
    """The nominator's pods, each with a place in the pod table that is on no row.

    Attributes
    ----------
    pod_ids : ndarray of shape (n,), int64
    rows : ndarray of shape (n,), int64
        Rows of the nodes they were promised; pods promised an unknown node are left out.
    turns : ndarray of shape (n,), int64
        Place of each among the pods promised the same node.
    """

    def __init__(self, nominator: Nominator, nodes: NodeTable) -> None:
        self._nominator = nominator
        self._nodes = nodes
        self._known: dict[str, tuple[Pod, int]] = {}
        self._seen = (-1, -1)
        self.pod_ids: Int64 = np.zeros(0, np.int64)
        self.rows: Rows = np.zeros(0, np.int64)
        self.turns: Int64 = np.zeros(0, np.int64)

    def refresh(self, generation: int) -> None:
        """Look again if nominations changed, or nodes (`Snapshot.generation`)."""
        seen = (self._nominator.version, generation)
        if seen == self._seen:
            return
        self._seen = seen
        pods, row_of, alive = self._nodes.pods, self._nodes.row_of, self._nodes.alive
        promised = [
            (row_of[name], turn, pod)
            for name in self._nominator.nodes()
            if name in row_of and alive[row_of[name]]
            for turn, pod in enumerate(self._nominator.pods_for(name))
        ]
        current = {pod.uid: pod for _, _, pod in promised}
        for uid, (pod, pod_id) in list(self._known.items()):
            if current.get(uid) is not pod:
                pods.remove(pod_id)
                del self._known[uid]
        for uid, pod in current.items():
            if uid not in self._known:
                self._known[uid] = (pod, pods.add(pod, findable=False))
        self.pod_ids = np.array([self._known[pod.uid][1] for _, _, pod in promised], np.int64)
        self.rows = np.array([row for row, _, _ in promised], np.int64)
        self.turns = np.array([turn for _, turn, _ in promised], np.int64)

    def count_for(self, pod: Pod) -> NDArray[np.bool_]:
        """Which of them are counted as running when a node is tried for `pod`: the others of at least its priority.

        Source: pkg/scheduler/framework/runtime/framework.go addGENominatedPods, v1.34
        """
        counts: NDArray[np.bool_] = self._nodes.pods.priority[self.pod_ids] >= pod.priority
        own = self._known.get(pod.uid)
        if own is not None:
            counts &= self.pod_ids != own[1]
        return counts
