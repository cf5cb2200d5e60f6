"""Pods that wait for the cluster to change, found by the plugins that could be persuaded."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from scheduler_core.queue.moves import Lane
from scheduler_core.queue.queued_pod_info import QueuedPodInfo


class UnschedulablePods:
    """Pods by key in order of arrival, with an index by rejecting plugin.

    A gated pod is listed under its gating plugin only: no other plugin's event can free it.

    Source: pkg/scheduler/backend/queue/unschedulable_pods.go, v1.34
    """

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._by_rejector: dict[str, dict[str, QueuedPodInfo]] = {}
        self._by_gate: dict[str, dict[str, QueuedPodInfo]] = {}
        self._listed: dict[str, tuple[bool, list[str]]] = {}
        self._by_time: dict[bool, list[tuple[int, int, QueuedPodInfo]]] = {False: [], True: []}
        self._arrivals = 0
        self.n_gated = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(list(self._pods.values()))

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._pods.get(key)

    def add(self, info: QueuedPodInfo) -> None:
        """Add a pod, or bring the index up to date with its plugins."""
        key = info.key
        if key in self._pods:
            self._unlist(key)
        else:
            self._arrivals += 1
            info.arrival = self._arrivals
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
        """Pods rejected (or, if gated, gated) by any of `plugins`, in order of arrival."""
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
        return sorted(found.values(), key=_arrival)

    def all_but_gated_by_others(self, plugins: Sequence[str]) -> list[QueuedPodInfo]:
        """Every pod in order of arrival, without those a plugin not among `plugins` gates."""
        return [info for info in self._pods.values() if not info.gated or info.gating_plugin in plugins]

    def waiting_since(self, before_ns: int) -> list[QueuedPodInfo]:
        """Pods that are not gated and came back before `before_ns`, in order of arrival."""
        oldest_ns = self.oldest_ns(gated=False)
        if oldest_ns is None or oldest_ns >= before_ns:
            return []
        return [info for info in self._pods.values() if info.timestamp_ns < before_ns and not info.gated]

    def oldest_ns(self, *, gated: bool) -> int | None:
        """The earliest timestamp among the pods that are (not) gated."""
        heap = self._by_time[gated]
        while heap:
            if _is_current(heap[0], gated):
                return heap[0][0]
            heapq.heappop(heap)
        return None

    def _note_time(self, info: QueuedPodInfo, gated: bool) -> None:
        heap = self._by_time[gated]
        heapq.heappush(heap, (info.timestamp_ns, info.arrival, info))
        if len(heap) > 2 * len(self._pods) + 64:
            self._by_time[gated] = [entry for entry in heap if _is_current(entry, gated)]
            heapq.heapify(self._by_time[gated])


def _is_current(entry: tuple[int, int, QueuedPodInfo], gated: bool) -> bool:
    """Does the pod still wait as it did when the entry was made?"""
    timestamp_ns, arrival, info = entry
    return (
        info.lane is Lane.UNSCHEDULABLE
        and info.arrival == arrival
        and info.timestamp_ns == timestamp_ns
        and info.gated == gated
    )


def _arrival(info: QueuedPodInfo) -> int:
    return info.arrival
