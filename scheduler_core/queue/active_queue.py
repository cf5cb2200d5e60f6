"""Pods whose turn may come next, and pods whose attempt is under way."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import chain, takewhile
from typing import Any, NamedTuple

from scheduler_core.framework.cluster_event import ClusterEvent
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.keyed_heap import KeyedHeap
from scheduler_core.queue.queued_pod_info import QueuedPodInfo


class InFlightEvent(NamedTuple):
    """An event kept until every attempt that was under way when it happened is over."""

    number: int
    """How many events there had been before it."""
    event: ClusterEvent
    old: Any
    new: Any


class ActiveQueue:
    """The heap of the active queue, the pods in flight and the events they must not miss.

    Every pod in flight remembers how many events there had been when it was popped; the events after that are
    its own. Events before the oldest pod in flight are forgotten. They are kept kind by kind, for a pod that comes
    back asks for the kinds its plugins wait for: thousands may wait at Permit while thousands of events happen.

    Source: pkg/scheduler/backend/queue/active_queue.go, v1.34
    """

    def __init__(self, sort_key: Callable[[QueuedPodInfo], Any]) -> None:
        self._sort_key = sort_key
        self._heap = KeyedHeap()
        self._in_flight: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        self._events: dict[tuple[str, int], deque[InFlightEvent]] = {}
        """By resource and action of the event, which is all that plugins register for."""
        self._n_events = self._n_forgotten = 0
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
        self._in_flight[info.pod.uid] = (info.pod, self._n_events)
        self.cycle += 1
        return True

    def done(self, uid: str) -> None:
        """The attempt is over; unknown uids are ignored, as `done` may come twice."""
        if self._in_flight.pop(uid, None) is None or not self._events:
            return
        if not self._in_flight:
            self._events.clear()
            self._n_forgotten = self._n_events
            return
        first = next(iter(self._in_flight.values()))[1]
        if first == self._n_forgotten:
            return
        self._n_forgotten = first
        for kept in self._events.values():
            while kept and kept[0].number < first:
                kept.popleft()

    @property
    def n_in_flight(self) -> int:
        return len(self._in_flight)

    def is_in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    def add_event(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event if anybody is in flight."""
        if self._in_flight:
            self._keep(event, old, new)

    def events_since_start(
        self, uid: str, concerns: Callable[[ClusterEvent], bool]
    ) -> list[InFlightEvent] | None:
        """The events since this pod was popped, of the kinds that concern it; None when it is not in flight."""
        known = self._in_flight.get(uid)
        if known is None:
            return None
        seen = known[1]
        recent = [
            takewhile(lambda kept: kept.number >= seen, reversed(group))
            for group in self._events.values()
            if group and group[-1].number >= seen and concerns(group[-1].event)
        ]
        return sorted(chain.from_iterable(recent), key=_number)

    def _keep(self, event: ClusterEvent, old: Any, new: Any) -> None:
        group = self._events.setdefault((event.resource, int(event.action)), deque())
        group.append(InFlightEvent(self._n_events, event, old, new))
        self._n_events += 1

    def in_order(self) -> Iterator[QueuedPodInfo]:
        return self._heap.in_order()

    def in_flight(self) -> list[tuple[Pod, int]]:
        """Pods in flight, oldest attempt first, each with the number of kept events before it."""
        return [(pod, seen - self._n_forgotten) for pod, seen in self._in_flight.values()]

    def kept_events(self) -> list[InFlightEvent]:
        return sorted(chain.from_iterable(self._events.values()), key=_number)

    def restore_in_flight(
        self, pods: list[tuple[Pod, int]], events: list[tuple[ClusterEvent, Any, Any]]
    ) -> None:
        """Put back what `in_flight` and `kept_events` gave."""
        self._in_flight = OrderedDict((pod.uid, (pod, seen)) for pod, seen in pods)
        self._events.clear()
        self._n_events = self._n_forgotten = 0
        for event, old, new in events:
            self._keep(event, old, new)


def _number(kept: InFlightEvent) -> int:
    return kept.number
