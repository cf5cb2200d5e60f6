"""Pods that failed and must let some time pass before the next attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from scheduler_core.objects.pod import Pod
from scheduler_core.queue.keyed_heap import KeyedHeap
from scheduler_core.queue.moves import Lane
from scheduler_core.queue.queued_pod_info import QueuedPodInfo

SECOND_NS = 1_000_000_000
ORDERING_WINDOW_NS = SECOND_NS
"""Pods whose backoff ends in one window (a whole second) are ordered as the active queue would order them."""

SortKey = Callable[[QueuedPodInfo], Any]


class BackoffQueue:
    """Two heaps by expiration: pods a plugin rejected, and pods that failed by an error.

    Only the first is popped early when the active queue is empty.

    Source: pkg/scheduler/backend/queue/backoff_queue.go, v1.34
    """

    def __init__(self, initial_backoff_ns: int, max_backoff_ns: int, sort_key: SortKey) -> None:
        self._initial_backoff_ns = initial_backoff_ns
        self._max_backoff_ns = max_backoff_ns
        self._sort_key = sort_key
        self._backoff = KeyedHeap()
        self._error_backoff = KeyedHeap()

    def __len__(self) -> int:
        return len(self._backoff) + len(self._error_backoff)

    @property
    def can_pop(self) -> bool:
        """Whether `pop` would give a pod."""
        return len(self._backoff) > 0

    def expiration_ns(self, info: QueuedPodInfo) -> int | None:
        """When the pod's backoff ends, truncated to the window; None when it owes none."""
        if self._max_backoff_ns == 0:
            return None
        count = info.consecutive_errors_count or info.unschedulable_count
        if count == 0:
            return None
        if info.backoff_expiration_ns is None:
            ends_ns = info.timestamp_ns + self.backoff_ns(count)
            info.backoff_expiration_ns = ends_ns - ends_ns % ORDERING_WINDOW_NS
        return info.backoff_expiration_ns

    def backoff_ns(self, count: int) -> int:
        """The backoff after `count` failures: doubling, bounded."""
        shift = count - 1
        if self._initial_backoff_ns > self._max_backoff_ns >> shift:
            return self._max_backoff_ns
        return self._initial_backoff_ns << shift

    def is_backing_off(self, info: QueuedPodInfo, now_ns: int) -> bool:
        """A pod whose expiration lies in the current window still backs off."""
        expiration_ns = self.expiration_ns(info)
        return expiration_ns is not None and expiration_ns >= now_ns - now_ns % ORDERING_WINDOW_NS

    def add(self, info: QueuedPodInfo) -> Lane:
        """Put a pod where it belongs: without a rejecting plugin it failed by an error."""
        expiration_ns = self.expiration_ns(info) or 0
        if info.unschedulable_plugins or info.pending_plugins:
            self._error_backoff.remove(info.key)
            self._backoff.push(info, (expiration_ns, self._sort_key(info)))
            return Lane.BACKOFF
        self._backoff.remove(info.key)
        self._error_backoff.push(info, (expiration_ns,))
        return Lane.ERROR_BACKOFF

    def update(self, info: QueuedPodInfo, pod: Pod) -> None:
        """The pod of a waiting entry changed; it stays in its heap."""
        info.pod = pod
        expiration_ns = self.expiration_ns(info) or 0
        if info.key in self._backoff:
            self._backoff.push(info, (expiration_ns, self._sort_key(info)))
        else:
            self._error_backoff.push(info, (expiration_ns,))

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self._backoff.remove(key) or self._error_backoff.remove(key)

    def pop(self) -> QueuedPodInfo | None:
        """The next pod of the ordinary heap, whether or not its time has come."""
        return self._backoff.pop()

    def pop_completed(self, now_ns: int) -> list[QueuedPodInfo]:
        """Take every pod whose backoff is over."""
        completed = []
        for heap in (self._backoff, self._error_backoff):
            while (info := heap.peek()) is not None and not self.is_backing_off(info, now_ns):
                heap.pop()
                completed.append(info)
        return completed

    def next_completion_ns(self) -> int | None:
        """The first second at which `pop_completed` would take a pod; None when it is empty."""
        firsts = [info for heap in (self._backoff, self._error_backoff) if (info := heap.peek()) is not None]
        if not firsts:
            return None
        return min(self.expiration_ns(info) or 0 for info in firsts) + ORDERING_WINDOW_NS

    def backoff_in_order(self) -> Iterator[QueuedPodInfo]:
        return self._backoff.in_order()

    def error_backoff_in_order(self) -> Iterator[QueuedPodInfo]:
        return self._error_backoff.in_order()
