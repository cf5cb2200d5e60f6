"""Pods that wait for the cluster to change, found by the plugins that could be persuaded."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import count

from scheduler_core.errors import require
from scheduler_core.queue.moves import Lane
from scheduler_core.queue.queued_pod_info import QueuedPodInfo


class UnschedulablePods:
    """Pods by key in the order of their places, with an index by rejecting plugin.

    A new pod takes the lowest free place, as in a Go map of up to 8 entries: upstream moves pods in that order. (It
    begins anywhere among the places, and larger maps have no order; here it begins at the first.)
    A gated pod is listed under its gating plugin only: no other plugin's event can free it.

    Source: pkg/scheduler/backend/queue/unschedulable_pods.go, v1.34
    """

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._by_rejector: dict[str, dict[str, QueuedPodInfo]] = {}
        self._by_gate: dict[str, dict[str, QueuedPodInfo]] = {}
        self._listed: dict[str, tuple[bool, list[str]]] = {}
        self._by_time: dict[bool, list[tuple[int, int, QueuedPodInfo]]] = {False: [], True: []}
        self._free: list[int] = []
        """Places below the highest one taken so far that are free, as a heap."""
        self._n_places = 0
        self._noted = count()
        self.n_gated = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(sorted(self._pods.values(), key=_place))

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._pods.get(key)

    def restore(self, info: QueuedPodInfo) -> None:
        """Have a pod of a checkpoint in its place; the first places come first."""
        self._free.extend(range(self._n_places, info.place))
        self._n_places = info.place + 1
        self._list(info)

    def add(self, info: QueuedPodInfo) -> None:
        """Add a pod, or bring the index up to date with its plugins."""
        if info.key in self._pods:
            self._unlist(info.key)
        elif self._free:
            info.place = heapq.heappop(self._free)
        else:
            info.place = self._n_places
            self._n_places += 1
        self._list(info)

    def _list(self, info: QueuedPodInfo) -> None:
        key = info.key
        self._pods[key] = info
        gated = info.gated
        if gated:
            plugins = [info.gating_plugin]
            self._by_gate.setdefault(info.gating_plugin, {})[key] = info
            self.n_gated += 1
        else:
            plugins = info.rejectors
            for plugin in plugins:
                self._by_rejector.setdefault(plugin, {})[key] = info
        self._note_time(info, gated)
        self._listed[key] = (gated, plugins)

    def remove(self, key: str) -> QueuedPodInfo | None:
        info = self._pods.pop(key, None)
        if info is not None:
            self._unlist(key)
            heapq.heappush(self._free, info.place)
            info.place = 0
        return info

    def _unlist(self, key: str) -> None:
        gated, plugins = self._listed.pop(key)
        index = self._by_gate if gated else self._by_rejector
        if gated:
            self.n_gated -= 1
        for plugin in plugins:
            group = index[plugin]
            del group[key]
            if not group:
                del index[plugin]

    def rejected_by(self, plugins: Sequence[str]) -> list[QueuedPodInfo]:
        """Pods rejected (or, if gated, gated) by any of `plugins`, in the order of their places."""
        groups = [
            group
            for index in (self._by_rejector, self._by_gate)
            for plugin, group in index.items()
            if plugin in plugins
        ]
        if not groups:
            return []
        if len(groups) == 1:
            found = groups[0]
        else:
            found = {}
            for group in groups:
                found.update(group)
        return sorted(found.values(), key=_place)

    def all_but_gated_by_others(self, plugins: Sequence[str]) -> list[QueuedPodInfo]:
        """Every pod in the order of their places, without those a plugin not among `plugins` gates."""
        return [info for info in self if not info.gated or info.gating_plugin in plugins]

    def waiting_since(self, before_ns: int) -> list[QueuedPodInfo]:
        """Pods that are not gated and came back before `before_ns`, in the order of their places."""
        oldest_ns = self.oldest_ns(gated=False)
        if oldest_ns is None or oldest_ns >= before_ns:
            return []
        return [info for info in self if info.timestamp_ns < before_ns and not info.gated]

    def oldest_ns(self, *, gated: bool) -> int | None:
        """The earliest timestamp among the pods that are (not) gated."""
        heap = self._by_time[gated]
        while heap:
            if _is_current(heap[0], gated):
                return heap[0][0]
            heapq.heappop(heap)
        return None

    def validate(self) -> None:
        """Check that the indexes say what the pods say, and that no two pods have one place."""
        rejected: dict[str, dict[str, QueuedPodInfo]] = {}
        gated: dict[str, dict[str, QueuedPodInfo]] = {}
        for key, info in self._pods.items():
            for plugin in [info.gating_plugin] if info.gated else info.rejectors:
                (gated if info.gated else rejected).setdefault(plugin, {})[key] = info
        places = [*self._free, *(info.place for info in self._pods.values())]
        require(
            self,
            found_by_who_rejected_them=rejected == self._by_rejector,
            found_by_their_gates=gated == self._by_gate,
            gated_pods_are_counted=self.n_gated == sum(info.gated for info in self._pods.values()),
            every_place_is_taken_or_free=sorted(places) == list(range(self._n_places)),
        )

    def _note_time(self, info: QueuedPodInfo, gated: bool) -> None:
        heap = self._by_time[gated]
        heapq.heappush(heap, (info.timestamp_ns, next(self._noted), info))
        if len(heap) > 2 * len(self._pods) + 64:
            self._by_time[gated] = [entry for entry in heap if _is_current(entry, gated)]
            heapq.heapify(self._by_time[gated])


def _is_current(entry: tuple[int, int, QueuedPodInfo], gated: bool) -> bool:
    """Does the pod still wait as it did when the entry was made?"""
    timestamp_ns, _, info = entry
    return info.lane is Lane.UNSCHEDULABLE and info.timestamp_ns == timestamp_ns and info.gated == gated


def _place(info: QueuedPodInfo) -> int:
    return info.place
