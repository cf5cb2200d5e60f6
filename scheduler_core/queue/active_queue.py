"""Pods whose turn may come next, and pods whose attempt is under way."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from scheduler_core.framework.cluster_event import ClusterEvent
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.keyed_heap import KeyedHeap
from scheduler_core.queue.queued_pod_info import QueuedPodInfo


class InFlightEvent(NamedTuple):
    """An event kept until every attempt that was under way when it happened is over."""

    event: ClusterEvent
    old: Any
    new: Any


class ActiveQueue:
    """The heap of the active queue, the pods in flight and the events they must not miss.

    Every pod in flight remembers how many events there had been when it was popped; the events after that are
    its own. Events before the oldest pod in flight are forgotten.

    Source: pkg/scheduler/backend/queue/active_queue.go, v1.34
    """

    def __init__(self, sort_key: Callable[[QueuedPodInfo], tuple[Any, ...]]) -> None:
        self._sort_key = sort_key
        self._heap = KeyedHeap()
        self._in_flight: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        self._events: deque[InFlightEvent] = deque()
        self._n_forgotten = 0
        self.cycle = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, key: str) -> bool:
        return key in self._heap

    def add(self, info: QueuedPodInfo) -> None:
        self._heap.push(info, self._sort_key(info))

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self._heap.remove(key)

    def take(self) -> QueuedPodInfo | None:
        """The first pod; it is not in flight until `start` is called."""
        return self._heap.pop()

    def start(self, info: QueuedPodInfo) -> bool:
        """Begin an attempt; False when another version of the same pod is already in flight."""
        info.attempts += 1
        if info.pod.uid in self._in_flight:
            return False
        self._in_flight[info.pod.uid] = (info.pod, self._n_forgotten + len(self._events))
        self.cycle += 1
        return True

    def done(self, uid: str) -> None:
        """The attempt is over; unknown uids are ignored, as `done` may come twice."""
        if self._in_flight.pop(uid, None) is None or not self._events:
            return
        end = self._n_forgotten + len(self._events)
        first = next(iter(self._in_flight.values()))[1] if self._in_flight else end
        while self._n_forgotten < first:
            self._events.popleft()
            self._n_forgotten += 1

    @property
    def n_in_flight(self) -> int:
        return len(self._in_flight)

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    def add_event(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event if anybody is in flight."""
        if self._in_flight:
            self._events.append(InFlightEvent(event, old, new))

    def events_since_start(self, uid: str) -> Iterator[InFlightEvent] | None:
        """The events since this pod was popped; None when it is not in flight."""
        known = self._in_flight.get(uid)
        if known is None:
            return None
        return islice(self._events, known[1] - self._n_forgotten, None)

    def in_order(self) -> Iterator[QueuedPodInfo]:
        return self._heap.in_order()

    def in_flight(self) -> list[tuple[Pod, int]]:
        """Pods in flight, oldest attempt first, each with the number of kept events before it."""
        return [(pod, seen - self._n_forgotten) for pod, seen in self._in_flight.values()]

    def kept_events(self) -> list[InFlightEvent]:
        return list(self._events)

    def restore_in_flight(self, pods: list[tuple[Pod, int]], events: list[InFlightEvent]) -> None:
        """Put back what `in_flight` and `kept_events` gave."""
        self._in_flight = OrderedDict((pod.uid, (pod, seen)) for pod, seen in pods)
        self._events = deque(events)
        self._n_forgotten = 0
