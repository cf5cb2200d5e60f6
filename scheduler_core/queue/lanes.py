"""The lanes of the queue: a heap whose entries are found by key, the active queue, backoff, unschedulable pods."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, takewhile
from typing import Any, NamedTuple

from scheduler_core.errors import require
from scheduler_core.framework.cluster_event import ClusterEvent
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.queued_pod_info import Lane, QueuedPodInfo


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


# --- Pods whose turn may come next, and pods whose attempt is under way.


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


# --- Pods that failed and must let some time pass before the next attempt.


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


# --- Pods that wait for the cluster to change, found by the plugins that could be persuaded.


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
