"""A heap whose entries can be found, replaced and removed by key."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from scheduler_core.queue.queued_pod_info import QueuedPodInfo


class KeyedHeap:
    """Pods in a total order: the sort key, then the order of insertion.

    Removed entries stay in the heap, emptied, until they come to the top or outnumber the living.
    """

    __slots__ = ("_entries", "_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []
        self._entries: dict[str, list[Any]] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def push(self, info: QueuedPodInfo, sort_key: Any) -> None:
        """Add a pod, or move it to where `sort_key` now puts it."""
        entries = self._entries
        known = entries.get(info.key)
        if known is not None:
            if known[0] == sort_key:
                known[2] = info
                return
            known[2] = None
            self._drop_dead()
        self._serial += 1
        entry = [sort_key, self._serial, info]
        entries[info.key] = entry
        heapq.heappush(self._heap, entry)

    def pop(self) -> QueuedPodInfo | None:
        """Take the first pod."""
        heap = self._heap
        while heap:
            info: QueuedPodInfo | None = heapq.heappop(heap)[2]
            if info is not None:
                del self._entries[info.key]
                return info
        return None

    def peek(self) -> QueuedPodInfo | None:
        """The first pod, left in place."""
        heap = self._heap
        while heap:
            info: QueuedPodInfo | None = heap[0][2]
            if info is not None:
                return info
            heapq.heappop(heap)
        return None

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take out the pod called `key`, if it is here."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        info: QueuedPodInfo = entry[2]
        entry[2] = None
        self._drop_dead()
        return info

    def in_order(self) -> Iterator[QueuedPodInfo]:
        """All pods in the order they would be popped."""
        for entry in sorted(self._entries.values()):
            yield entry[2]

    def _drop_dead(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [entry for entry in self._heap if entry[2] is not None]
            heapq.heapify(self._heap)
