"""Pods as columns: those on nodes (assumed ones too) and those nominated to one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import grown
from scheduler_core.cluster.vocabulary import Vocabulary
from scheduler_core.objects.pod import HostPort, Pod

NO_START_NS = np.iinfo(np.int64).max
"""Start of a pod that has not started: later than any other."""
_GROWN = ("priority", "start_ns", "class_id", "terminating", "has_ports", "arrival", "requests")


class AsksFor(Protocol):
    """What of a pod is counted on its node: a `Pod` has it, and so has what many pods have in common."""

    @property
    def priority(self) -> int: ...
    @property
    def requests(self) -> Mapping[str, int]: ...
    @property
    def non_zero(self) -> tuple[int, int]: ...
    @property
    def host_ports(self) -> tuple[HostPort, ...]: ...
    @property
    def has_affinity(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class PodColumns:
    """Pods as columns, which need not have been read.

    Attributes
    ----------
    uids : list of str
    like : ndarray of shape (n,), int64
        Which of `likes` each has its priority and requests from.
    likes : list of AsksFor
    namespaced_labels : list of tuple
        Distinct (namespace, items of the labels), and in ``pod_class`` (n,), int64, which of them each has.
    start_ns : ndarray of shape (n,), int64
        `NO_START_NS` without one.
    terminating : ndarray of shape (n,), bool
    read : callable
        The pod at a place.
    known : list of Pod, optional
        The pods, where all of them have been read.
    """

    uids: list[str]
    like: NDArray[np.intp]
    likes: Sequence[AsksFor]
    pod_class: NDArray[np.intp]
    namespaced_labels: list[tuple[str, tuple[tuple[str, str], ...]]]
    start_ns: NDArray[np.int64]
    terminating: NDArray[np.bool_]
    read: Callable[[int], Pod]
    known: Sequence[Pod] | None = None

    @classmethod
    def of(cls, pods: Sequence[Pod]) -> PodColumns:
        """Pods that have been read, which share what is shared among those of one spec."""
        # Once through the pods: they lie far apart in memory.
        likes: dict[tuple[int, ...], int] = {}
        likes_of: list[Pod] = []
        labels: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        seen: dict[tuple[str, int], int] = {}
        uids, like_places, classes, starts_ns, terminating = [], [], [], [], []
        for pod in pods:
            meta = pod.meta
            uids.append(meta.uid)
            like = (id(pod.read), id(pod.requests), id(pod.host_ports))
            place = likes.setdefault(like, len(likes_of))
            if place == len(likes_of):
                likes_of.append(pod)
            same = (meta.namespace, id(meta.labels))
            of_class = seen.get(same)
            if of_class is None:
                items = (meta.namespace, tuple(meta.labels.items()))
                of_class = seen[same] = labels.setdefault(items, len(labels))
            like_places.append(place)
            classes.append(of_class)
            starts_ns.append(NO_START_NS if pod.start_ns is None else pod.start_ns)
            terminating.append(meta.deletion_ns is not None)
        return cls(
            uids=uids,
            like=np.array(like_places, np.intp),
            likes=likes_of,
            pod_class=np.array(classes, np.intp),
            namespaced_labels=list(labels),
            start_ns=np.array(starts_ns, np.int64),
            terminating=np.array(terminating, np.bool_),
            read=pods.__getitem__,
            known=pods,
        )

    @property
    def looked_at(self) -> list[int]:
        """Places of pods with host ports or affinity terms: those count one by one."""
        counts = np.array([like.has_affinity or bool(like.host_ports) for like in self.likes], np.bool_)
        return np.flatnonzero(counts[self.like]).tolist()

    @property
    def non_zero(self) -> NDArray[np.int64]:
        """CPU and memory of each as scores count them, of shape (2, n)."""
        amounts = [pod.non_zero for pod in self.likes]
        return np.array(amounts, np.int64).reshape(-1, 2).T[:, self.like]


class PodTable:
    """Pods by id; an id is a place in the columns, freed when the pod goes and then used again.

    Attributes
    ----------
    row : ndarray of shape (capacity,), intp
        Row of the pod's node, -1 for a pod on none (a nominated pod).
    priority : ndarray of shape (capacity,), int64
    start_ns : ndarray of shape (capacity,), int64
        `status.startTime` in nanoseconds since the epoch, `NO_START_NS` without one.
    class_id : ndarray of shape (capacity,), int32
        Ids of `vocabulary.pod_classes`: what selectors can tell pods apart by.
    terminating : ndarray of shape (capacity,), bool
    has_ports : ndarray of shape (capacity,), bool
    arrival : ndarray of shape (capacity,), int64
        Grows with every pod added: the order in which the pods of a node came there.
    requests : ndarray of shape (n_resources, capacity), int64
        Whole units on the axis `vocabulary.resources`, which may have grown since.
    request_items : list of tuple of (resource id, amount)
        What each pod requests on the axis `vocabulary.resources`, zeros left out.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._pods: list[Pod | None] = []
        self._free: list[int] = []
        self.id_of: dict[str, int] = {}
        """Pod id by uid."""
        self.request_items: list[tuple[tuple[int, int], ...]] = []
        self._capacity = 0
        self.row: NDArray[np.intp] = np.zeros(0, np.intp)
        self.priority: NDArray[np.int64] = np.zeros(0, np.int64)
        self.start_ns: NDArray[np.int64] = np.zeros(0, np.int64)
        self.class_id: NDArray[np.int32] = np.zeros(0, np.int32)
        self.terminating: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.has_ports: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.arrival: NDArray[np.int64] = np.zeros(0, np.int64)
        self.requests: NDArray[np.int64] = np.zeros((len(vocabulary.resources), 0), np.int64)
        self._n_arrived = 0
        self._n_of_priority: Counter[int] = Counter()
        self._unread: list[tuple[int, PodColumns]] = []
        """With the id of the first of each lot."""

    def __len__(self) -> int:
        return len(self.id_of)

    def __getitem__(self, pod_id: int) -> Pod:
        pod = self._pods[pod_id]
        if pod is None:
            lot, place = self._unread_at(pod_id)
            pod = self._pods[pod_id] = lot.read(place)
        return pod

    def all_of(self, pod_ids: Iterable[int]) -> list[Pod]:
        """The pods with these ids, in their order."""
        known = self._pods
        return [known[pod_id] or self[pod_id] for pod_id in pod_ids]

    def asks(self, pod_id: int) -> AsksFor:
        """What a pod asks for; it need not be read for that."""
        pod = self._pods[pod_id]
        if pod is None:
            lot, place = self._unread_at(pod_id)
            return lot.likes[int(lot.like[place])]
        return pod

    def uids(self) -> list[str]:
        """Uids by pod id, of the pods that are in `id_of`; of others an empty one."""
        found = [""] * len(self._pods)
        for uid, pod_id in self.id_of.items():
            found[pod_id] = uid
        return found

    def _unread_at(self, pod_id: int) -> tuple[PodColumns, int]:
        found = bisect_right(self._unread, pod_id, key=itemgetter(0)) - 1
        if found < 0 or self.row[pod_id] < 0:
            raise KeyError(f"no pod has id {pod_id}")
        first, lot = self._unread[found]
        return lot, pod_id - first

    def add(self, pod: Pod, *, findable: bool = True) -> int:
        """Give a pod an id; it has no row yet, and is in `id_of` only if it is `findable`."""
        if self._free:
            pod_id = self._free.pop()
        else:
            pod_id = len(self._pods)
            self._pods.append(None)
            self.request_items.append(())
            if pod_id >= self._capacity:
                self._grow(pod_id + 1)
        self._pods[pod_id] = pod
        if findable:
            self.id_of[pod.uid] = pod_id
        self.request_items[pod_id] = self._items_of(pod)
        self.row[pod_id] = -1
        self.priority[pod_id] = pod.priority
        self._n_of_priority[pod.priority] += 1
        self.start_ns[pod_id] = NO_START_NS if pod.start_ns is None else pod.start_ns
        self.class_id[pod_id] = self.class_of(pod)
        self.terminating[pod_id] = pod.is_terminating
        self.has_ports[pod_id] = bool(pod.host_ports)
        self.arrival[pod_id] = self._n_arrived
        self._n_arrived += 1
        self._grow_resources()
        self.requests[:, pod_id] = 0
        for resource_id, amount in self.request_items[pod_id]:
            self.requests[resource_id, pod_id] = amount
        return pod_id

    @property
    def has_free_ids(self) -> bool:
        """Whether pods have left whose ids come first."""
        return bool(self._free)

    def add_columns(self, pods: PodColumns) -> NDArray[np.intp]:
        """`add` many pods, findable all; their ids, none of which was another pod's."""
        first, n_pods = len(self._pods), len(pods.uids)
        ids = slice(first, first + n_pods)
        if pods.known is None:
            self._unread.append((first, pods))
            self._pods += [None] * n_pods
        else:
            self._pods += pods.known
        if len(self._pods) > self._capacity:
            self._grow(len(self._pods))
        self.id_of.update(zip(pods.uids, range(first, first + n_pods), strict=True))
        items = [self._items_of(pod) for pod in pods.likes]
        self.request_items += map(items.__getitem__, pods.like.tolist())
        priorities = [pod.priority for pod in pods.likes]
        self.priority[ids] = np.array(priorities, np.int64)[pods.like]
        counts = np.bincount(pods.like, minlength=len(priorities)).tolist()
        for priority, count in zip(priorities, counts, strict=True):
            self._n_of_priority[priority] += count
        self.start_ns[ids] = pods.start_ns
        class_id = self.vocabulary.pod_classes.id
        of_class = np.array([class_id(labels) for labels in pods.namespaced_labels], np.intp)
        self.class_id[ids] = of_class[pods.pod_class]
        self.terminating[ids] = pods.terminating
        self.has_ports[ids] = np.array([bool(pod.host_ports) for pod in pods.likes], np.bool_)[pods.like]
        self.arrival[ids] = np.arange(self._n_arrived, self._n_arrived + n_pods)
        self._n_arrived += n_pods
        self._grow_resources()
        for column, amounts in zip(self.requests, self._amounts(items), strict=True):
            column[ids] = amounts[pods.like]
        return np.arange(first, first + n_pods)

    def copy(self, vocabulary: Vocabulary) -> PodTable:
        """Another table with the pods on nodes, by the same ids.

        Parameters
        ----------
        vocabulary : Vocabulary
            A copy of this one's.
        """
        other = PodTable(vocabulary)
        for name in ("_pods", "_free", "id_of", "request_items", "_n_of_priority", "_unread"):
            setattr(other, name, getattr(self, name).copy())
        for name in ("row", *_GROWN):
            setattr(other, name, getattr(self, name).copy())
        other._capacity, other._n_arrived = self._capacity, self._n_arrived
        for pod_id in np.flatnonzero(other.row[: len(other._pods)] < 0).tolist():
            if other._pods[pod_id] is not None:
                other.remove(pod_id)
        return other

    def replace(self, pod_id: int, pod: Pod) -> None:
        """Put in a new version of a pod that counts as the old one; it is the last to have arrived."""
        self._pods[pod_id] = pod
        self.start_ns[pod_id] = NO_START_NS if pod.start_ns is None else pod.start_ns
        self.terminating[pod_id] = pod.is_terminating
        self.arrival[pod_id] = self._n_arrived
        self._n_arrived += 1

    def remove(self, pod_id: int) -> None:
        """Take a pod out; its id may be given to another pod."""
        self.leave(pod_id)
        self._pods[pod_id] = None
        self._free.append(pod_id)

    def leave(self, pod_id: int) -> None:
        """A pod is on no row for a while, and not found; it keeps its id and its moment of arrival."""
        pod = self._pods[pod_id]
        if pod is None:
            lot, place = self._unread_at(pod_id)
            uid, priority = lot.uids[place], int(self.priority[pod_id])
        else:
            uid, priority = pod.uid, pod.priority
        if self.id_of.get(uid) == pod_id:
            del self.id_of[uid]
        self._n_of_priority[priority] -= 1
        if not self._n_of_priority[priority]:
            del self._n_of_priority[priority]
        self.row[pod_id] = -1

    def come_back(self, pod_id: int, row: int) -> None:
        """A pod that was taken off (`leave`) is on a row again, as if it had never left."""
        pod = self[pod_id]
        self.id_of[pod.uid] = pod_id
        self._n_of_priority[pod.priority] += 1
        self.row[pod_id] = row

    def has_below(self, priority: int) -> bool:
        """Whether any pod is less important."""
        return any(known < priority for known in self._n_of_priority)

    def class_of(self, pod: Pod) -> int:
        """The id of the pod's (namespace, labels)."""
        return self.vocabulary.pod_classes.id((pod.namespace, tuple(pod.labels.items())))

    def _items_of(self, pod: AsksFor) -> tuple[tuple[int, int], ...]:
        id_of = self.vocabulary.resources.id
        return tuple(
            [(id_of(name), amount) for name, amount in pod.requests.items() if amount and name != "pods"]
        )

    def _amounts(self, items: Sequence[tuple[tuple[int, int], ...]]) -> NDArray[np.int64]:
        """Request items as columns of shape (n_resources, n_items)."""
        amounts = np.zeros((len(self.requests), len(items)), np.int64)
        for place, found in enumerate(items):
            for resource_id, amount in found:
                amounts[resource_id, place] = amount
        return amounts

    def _grow_resources(self) -> None:
        missing = len(self.vocabulary.resources) - len(self.requests)
        if missing > 0:
            more = np.zeros((missing, self._capacity), np.int64)
            self.requests = np.concatenate([self.requests, more])

    def _grow(self, n_pods: int) -> None:
        self._capacity = max(256, 2 * self._capacity, n_pods)
        self.row = grown(self.row, self._capacity, -1)  # type: ignore[assignment]
        for name in _GROWN:
            setattr(self, name, grown(getattr(self, name), self._capacity))
