"""Pods nominated to a node: preemption made room there, but they are not bound yet.

Source: pkg/scheduler/backend/queue/nominator.go, v1.34
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import Journal, grown
from scheduler_core.cluster.node_table import Index, NodeTable, Rows
from scheduler_core.objects.pod import Pod
from scheduler_core.thresholds import thresholds

_KEPT_CHANGES = 4096


class Nominator:
    """Nominated pods by node name, in order of nomination.

    Attributes
    ----------
    version : int
        Changes with every nomination made or taken back.
    """

    def __init__(self) -> None:
        self.version = 0
        self._changes: list[str] = []
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: Pod, node_name: str = "") -> None:
        """Nominate `pod` to `node_name`, or to its own `status.nominatedNodeName`; replaces an older nomination."""
        self.remove(pod.uid)
        name = node_name or pod.nominated_node_name
        if not name:
            return
        self._changed(pod.uid)
        self._node_of[pod.uid] = name
        self._by_node.setdefault(name, {})[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Forget a nomination; nothing happens without one."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            self._changed(uid)
            pods = self._by_node[name]
            del pods[uid]
            if not pods:
                del self._by_node[name]

    def update(self, old: Pod | None, new: Pod) -> None:
        """The pod changed; a nomination made in memory survives an update that says nothing about one."""
        keep = ""
        if old is not None and not old.nominated_node_name and not new.nominated_node_name:
            keep = self._node_of.get(old.uid, "")
        self.remove(new.uid)
        self.add(new, keep)

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def pods_for(self, node_name: str) -> Sequence[Pod]:
        return list(self._by_node.get(node_name, {}).values())

    def pod(self, uid: str) -> Pod | None:
        """A nominated pod, None for any other."""
        name = self._node_of.get(uid)
        return None if name is None else self._by_node[name][uid]

    def uids(self) -> Sequence[str]:
        return list(self._node_of)

    def changed_since(self, version: int) -> Sequence[str] | None:
        """Uids of pods nominated or no longer nominated since then; None when that is not known any more."""
        n_changes = self.version - version
        if not n_changes:
            return ()
        return self._changes[-n_changes:] if n_changes <= len(self._changes) else None

    def _changed(self, uid: str) -> None:
        self.version += 1
        self._changes.append(uid)
        if len(self._changes) > 2 * _KEPT_CHANGES:
            del self._changes[:_KEPT_CHANGES]

    def nodes(self) -> Sequence[str]:
        """Names of nodes with a nominated pod."""
        return list(self._by_node)

    def state(self) -> list[tuple[str, str]]:
        """(uid, node name) in order, for a checkpoint."""
        return [(uid, name) for name, pods in self._by_node.items() for uid in pods]

    def __len__(self) -> int:
        return len(self._node_of)


# ---- Nominated pods as columns, so that many nodes can be asked with them counted in at once

_NO_PODS: Index = np.zeros(0, np.intp)


class NominatedPods:
    """The nominator's pods, each with a place in the pod table that is on no row.

    Attributes
    ----------
    pod_ids : ndarray of shape (n,), intp
    rows : ndarray of shape (n,), intp
        Rows of the nodes they are nominated to; -1 for an unknown node, and in places no pod has.
    turns : ndarray of shape (n,), int64
        Tells apart the pods nominated to the same node.
    journal : Journal
        Rows whose nominations changed.
    """

    def __init__(self, nominator: Nominator, nodes: NodeTable) -> None:
        self._nominator = nominator
        self._nodes = nodes
        self._place_of: dict[str, int] = {}
        self._free: list[int] = []
        self._places_on: dict[int, dict[int, int]] = {}
        """Row -> turn -> place."""
        self._version = self._generation = -1
        self.journal = Journal()
        self.pod_ids: Index = np.zeros(0, np.intp)
        self.rows: Rows = np.zeros(0, np.intp)
        self.turns: Index = np.zeros(0, np.intp)

    def refresh(self, generation: int) -> None:
        """Look again at nominations that changed; at all of them if nodes did (`Snapshot.generation`)."""
        if generation == self._generation and self._nominator.version == self._version:
            return
        changed = self._nominator.changed_since(self._version) if generation == self._generation else None
        self._version, self._generation = self._nominator.version, generation
        if changed is None:
            known = list(self._place_of)
            changed = known + [uid for uid in self._nominator.uids() if uid not in self._place_of]
        for uid in dict.fromkeys(changed):
            self._drop(uid)
            pod = self._nominator.pod(uid)
            if pod is not None:
                self._take(pod, self._nominator.node_of(uid) or "")

    def row_of(self, uid: str) -> int:
        """The row of the node a pod is nominated to, -1 without one."""
        place = self._place_of.get(uid)
        return -1 if place is None else int(self.rows[place])

    def count_for(self, pod: Pod) -> NDArray[np.bool_]:
        """Which of them are counted as running when a node is tried for `pod`: the others of at least its priority.

        Source: pkg/scheduler/framework/runtime/framework.go addGENominatedPods, v1.34
        """
        counts: NDArray[np.bool_] = self._nodes.pods.priority[self.pod_ids] >= pod.priority
        counts &= self.rows >= 0
        own = self._place_of.get(pod.uid)
        if own is not None:
            counts[own] = False
        return counts

    def counted_on(self, pod: Pod, rows: Rows) -> tuple[Index, Index, Index]:
        """(index into `rows`, pod id, turn) of each of them that counts for `pod` on one of `rows`, no row twice."""
        if len(rows) <= thresholds().nominated_rows:
            places_on, own = self._places_on, self._place_of.get(pod.uid, -1)
            priority_of, pod_ids = self._nodes.pods.priority.item, self.pod_ids.item
            found = [
                (index, place)
                for index, row in enumerate(rows.tolist())
                if row in places_on
                for place in places_on[row].values()
                if place != own and priority_of(pod_ids(place)) >= pod.priority
            ]
            if not found:
                return _NO_PODS, _NO_PODS, _NO_PODS
            indices, places = np.array(found, np.intp).T
        else:
            # The last place stands for no row at all.
            index_of = np.full(self._nodes.capacity + 1, -1, np.intp)
            index_of[rows] = np.arange(len(rows))
            places = ((index_of[self.rows] >= 0) & self.count_for(pod)).nonzero()[0]
            indices = index_of[self.rows[places]]
        return indices, self.pod_ids[places], self.turns[places]

    def _take(self, pod: Pod, node_name: str) -> None:
        place = self._free.pop() if self._free else len(self._place_of)
        if place >= len(self.rows):
            capacity = max(64, 2 * place)
            self.pod_ids = grown(self.pod_ids, capacity)  # type: ignore[assignment]
            self.turns = grown(self.turns, capacity)  # type: ignore[assignment]
            self.rows = grown(self.rows, capacity, -1)  # type: ignore[assignment]
        self._place_of[pod.uid] = place
        self.pod_ids[place] = self._nodes.pods.add(pod, findable=False)
        row = self._nodes.row_of.get(node_name, -1)
        if row < 0 or not self._nodes.alive[row]:
            return
        taken = self._places_on.setdefault(row, {})
        turn = next(turn for turn in range(len(taken) + 1) if turn not in taken)
        taken[turn] = place
        self.rows[place], self.turns[place] = row, turn
        self.journal.record(row)

    def _drop(self, uid: str) -> None:
        place = self._place_of.pop(uid, None)
        if place is None:
            return
        row = int(self.rows[place])
        if row >= 0:
            del self._places_on[row][int(self.turns[place])]
            self.journal.record(row)
        self._nodes.pods.remove(int(self.pod_ids[place]))
        self.pod_ids[place], self.rows[place] = 0, -1
        self._free.append(place)
