"""A cycle of the past decided again from the objects there were before it, without living through what led to them.

Which node a pod gets follows from the nodes, the pods on them, a few other objects and two counters: how many draws
were made, and where the search for nodes began. All of them are known of any moment, as long as nothing was under way
that no object tells. So nothing is simulated here: objects are put in place, the scheduler decides one pod, and forgets
it.

What cannot be told so is refused (`NotPlain`): it has to be lived through again (`Simulation.follow`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.node_table import Index
from scheduler_core.cluster.pod_table import NO_START_NS, AsksFor, PodColumns
from scheduler_core.events import BindAnswered
from scheduler_core.framework.record import BOUND, CycleTrace
from scheduler_core.installed_plugins import known
from scheduler_core.objects.fields import string, string_map, timestamp_ns
from scheduler_core.objects.kinds import KINDS, is_read, parse
from scheduler_core.objects.pod import TERMINAL_PHASES, HostPort, Pod, says_nothing_of_requests
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.randomness import Randomness
from scheduler_core.releases import release_from
from scheduler_core.schedule_one import TIE_STREAM
from scheduler_core.scheduler import Scheduler, SchedulerOptions
from scheduler_core.sim.checkpoint import check_version
from scheduler_core.sim.manifests import COLUMNS, NODE_NAME, TextColumn, Texts, manifest_of, parsed
from scheduler_core.sim.options import FaultOptions, SimulationOptions, load

# --- The pods of a checkpoint, found by their names and read only where one is asked for.


Key = tuple[str, str]
"""A pod's namespace and name."""
Labels = tuple[tuple[str, str], ...]

_MOST_KNOWN: Final = 65_536
_known_likes: dict[tuple[str, bytes], Like] = {}
"""By namespace and spec: the next checkpoint has such pods, too, and so has the log after it."""
_FEW_TIMES: Final = 16
"""A table of so many times the numbers that are looked up in it is faster than to sort them."""
_MOST_OTHERS: Final = 2
_known_others: dict[bytes, OtherObjects] = {}
"""Nodes hardly change between the checkpoints that are looked at. The one asked for last stands last."""


class Like(NamedTuple):
    """What pods of one spec ask for, and what more there is to know of them."""

    priority: int
    requests: dict[str, int]
    non_zero: tuple[int, int]
    host_ports: tuple[HostPort, ...]
    has_affinity: bool

    @classmethod
    def of(cls, pod: Pod) -> Like:
        return cls(*[getattr(pod, name) for name in cls._fields])


class OtherObjects(NamedTuple):
    """What is no pod, and a scheduler reads.

    Attributes
    ----------
    objects : list of tuple
        The kind of each, and how it is read. What a scheduler does not read of an object, when it was made and its
        version, may be that of another time.
    caches : dict
        Caches of a scheduler with the nodes alone, by their order; for who looks at the same nodes again. To be copied.
    """

    objects: list[tuple[str, Any]]
    caches: dict[tuple[str, ...], Cache]


def like_of(namespace: str, spec: bytes) -> Like:
    """What the pods of a namespace ask for whose spec is this JSON text, with null where the node's name stood.

    Raises
    ------
    InvalidObject
        It cannot be read.
    """
    key = (namespace, spec)
    found = _known_likes.get(key)
    if found is None:
        metadata = {"name": "like", "namespace": namespace}
        read = {name: value for name, value in json.loads(spec).items() if name != NODE_NAME}
        pod = parse({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": read}).typed
        if len(_known_likes) >= _MOST_KNOWN:
            _known_likes.clear()
        found = _known_likes[key] = Like.of(pod)
    return found


def labels_of(metadata: Mapping[str, Any]) -> Labels:
    """The labels in metadata, sorted."""
    return tuple(string_map(metadata, "labels", "metadata").items())


def start_of(status: Mapping[str, Any]) -> int:
    """`status.startTime`, `NO_START_NS` without one."""
    start_ns = timestamp_ns(status, "startTime", "status")
    return NO_START_NS if start_ns is None else start_ns


def is_terminal(status: Mapping[str, Any]) -> bool:
    """Whether a pod of this status has ended."""
    return status.get("phase") in TERMINAL_PHASES


def _namespace_in(metadata: Mapping[str, Any]) -> str:
    return string(metadata, "namespace", "metadata")


class PodThen(NamedTuple):
    """A pod's state at a moment, read only when asked for.

    Attributes
    ----------
    uid : str
        Empty for one that stands on no node: it is not asked for.
    node_name : str
        Empty while it stands on none.
    like : AsksFor or None
        What it asks for; may be None where it stands on no node.
    start_ns : int
        `NO_START_NS` without one.
    """

    namespace: str
    name: str
    uid: str
    node_name: str
    like: AsksFor | None
    labels: Labels
    start_ns: int
    is_terminating: bool
    is_terminal: bool
    read: Callable[[], Pod]

    @classmethod
    def of(cls, pod: Pod) -> PodThen:
        """Of a pod that was read."""
        return cls(
            pod.namespace,
            pod.name,
            pod.uid,
            pod.node_name,
            Like.of(pod) if pod.node_name else None,
            tuple(pod.labels.items()),
            NO_START_NS if pod.start_ns is None else pod.start_ns,
            pod.is_terminating,
            pod.is_terminal,
            lambda: pod,
        )

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def is_counted(self) -> bool:
        """Whether it takes room on a node."""
        return bool(self.node_name) and not self.is_terminal

    def counts_as(self, other: PodThen) -> bool:
        """Whether one in place of the other makes no difference to where pods go; when it started matters to none."""
        return self.is_counted and self[2:6] == other[2:6] and self.is_terminating == other.is_terminating


def waiting(namespace: str, name: str, read: Callable[[], Pod]) -> PodThen:
    """A pod without a node; nothing is counted for it."""
    return PodThen(namespace, name, "", "", None, (), NO_START_NS, False, False, read)


def unread(pods: Sequence[PodThen]) -> PodColumns:
    """Pods on nodes as columns."""
    likes: dict[int, int] = {}
    labels: dict[tuple[str, Labels], int] = {}
    rows = [
        (
            likes.setdefault(id(pod.like), len(likes)),
            labels.setdefault((pod.namespace, pod.labels), len(labels)),
            pod.start_ns,
            pod.is_terminating,
        )
        for pod in pods
    ]
    by_id = {id(pod.like): pod.like for pod in pods if pod.like is not None}
    like, of_labels, start_ns, terminating = np.array(rows, np.int64).reshape(-1, 4).T
    return PodColumns(
        uids=[pod.uid for pod in pods],
        like=like.astype(np.intp),
        likes=[by_id[found] for found in likes],
        namespaced_labels=list(labels),
        pod_class=of_labels.astype(np.intp),
        start_ns=start_ns,
        terminating=terminating.astype(np.bool_),
        read=lambda place: pods[place].read(),
    )


class PackedPods:
    """The pods among packed objects.

    Parameters
    ----------
    document : mapping
        What `pack` gave, with its objects as columns. Its parts may be `Texts`.

    Attributes
    ----------
    places_of_pods : ndarray of shape (n,), intp
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        parts = {name: Texts.of(document[name]) for name in ("forms", "metadata", "specs", "statuses")}
        self._forms, self._metadata, self._specs, self._statuses = parts.values()
        self._columns = document["objects"] or {column: [] for column in COLUMNS}
        self._document = {**document, **parts}
        kinds = [form["kind"] if is_read(form) else None for form in self._forms]
        is_pod, is_other = (
            np.array(found, np.bool_)
            for found in ([kind == "Pod" for kind in kinds], [kind not in ("Pod", None) for kind in kinds])
        )
        self._form = np.array(self._columns["form"], np.intp)
        self._meta, self._spec, self._status = map(self._places, ("metadata", "spec", "status"))
        self._others: list[int] = np.flatnonzero(is_other[self._form]).tolist()
        self.places_of_pods = np.flatnonzero(is_pod[self._form])
        metas, of_meta = _distinct(self._meta[self.places_of_pods])
        names = [_namespace_in(self._metadata[place]) for place in metas.tolist()]
        self._place_of: dict[str, dict[str, int]] = {name: {} for name in names}
        numbers = {name: number for number, name in enumerate(self._place_of)}
        of_namespace = np.array([numbers[name] for name in names], np.intp)[of_meta]
        order = np.argsort(of_namespace, kind="stable")
        ends = np.cumsum(np.bincount(of_namespace, minlength=len(numbers)))
        for found, of_one in zip(
            self._place_of.values(), np.split(self.places_of_pods[order], ends), strict=False
        ):
            found.update(zip(self._taken("name", of_one), of_one.tolist(), strict=True))

    def manifest(self, place: int) -> dict[str, Any]:
        """The manifest of any of the objects."""
        return manifest_of(self._document, [self._columns[column][place] for column in COLUMNS])

    def others(self) -> OtherObjects:
        """What is no pod; of equal objects that were asked for lately one and the same."""
        at = self._others
        mark = blake2b(digest_size=16)
        for texts, parts in (
            (self._forms, self._form),
            (self._metadata, self._meta),
            (self._specs, self._spec),
            (self._statuses, self._status),
        ):
            places, of_each = _distinct(parts[at])
            mark.update(b"%d\0" % len(places))
            mark.update(b"\0".join(texts.texts[place] if place >= 0 else b"" for place in places.tolist()))
            mark.update(of_each.tobytes())
        for name in ("name", "uid", NODE_NAME):
            mark.update(repr([self._columns[name][place] for place in at]).encode())
        found = _known_others.get(mark.digest())
        if found is None:
            if len(_known_others) >= _MOST_OTHERS:
                del _known_others[next(iter(_known_others))]
            found = OtherObjects(
                [(manifest["kind"], parsed(manifest)) for manifest in map(self.manifest, at)], {}
            )
        else:
            del _known_others[mark.digest()]
        _known_others[mark.digest()] = found
        return found

    def pod(self, key: Key) -> PodThen | None:
        """The pod of that name, None where there is none."""
        place = self._place_of.get(key[0], {}).get(key[1])
        if place is None:
            return None
        metadata, status = self._metadata[int(self._meta[place])], self._status_at(int(self._status[place]))
        return PodThen(
            key[0],
            key[1],
            self._columns["uid"][place],
            self._columns[NODE_NAME][place] or "",
            self._like(place, says_nothing_of_requests(status)),
            labels_of(metadata),
            start_of(status),
            metadata.get("deletionTimestamp") is not None,
            is_terminal(status),
            partial(self._read, place),
        )

    def places(self, order: Iterable[int | str]) -> Index:
        """Places of an order of pods (`checkpoint.pod_order`).

        Raises
        ------
        KeyError
            A pod is none of the objects any more.
        """
        order = list(order)
        if not all(type(item) is int for item in order):
            uids = self._columns["uid"]
            place_of_uid = {uids[place]: place for place in self.places_of_pods.tolist()}
            order = [item if type(item) is int else place_of_uid[item] for item in order]
        return np.array(order, np.intp)

    def without(self, places: Index, keys: Iterable[Key]) -> Index:
        """Places without those of some pods."""
        found = (self._place_of.get(namespace, {}).get(name) for namespace, name in keys)
        return places[~np.isin(places, [place for place in found if place is not None])]

    def node_names(self, places: Index) -> list[str]:
        """Where pods stand; empty for those that stand nowhere."""
        names = self._taken(NODE_NAME, places)
        return [name or "" for name in names] if None in names else names

    def unread(self, at: Index) -> PodColumns:
        """Pods at places as columns."""
        metas, of_meta = _distinct(self._meta[at])
        told = [self._metadata[place] for place in metas.tolist()]
        statuses, of_status = _distinct(self._status[at])
        likes, like = self._likes(at, metas, of_meta, statuses, of_status)
        starts = [start_of(self._status_at(place)) for place in statuses.tolist()]
        return PodColumns(
            uids=self._taken("uid", at),
            like=like,
            likes=likes,
            namespaced_labels=[(_namespace_in(meta), labels_of(meta)) for meta in told],
            pod_class=of_meta,
            start_ns=np.array(starts, np.int64)[of_status],
            terminating=np.array([meta.get("deletionTimestamp") is not None for meta in told], np.bool_)[
                of_meta
            ],
            read=lambda place: self._read(int(at[place])),
        )

    def close(self) -> None:
        """Give its memory back at once; it is of no use any more."""
        self._place_of.clear()
        self._columns = {}

    def _read(self, place: int) -> Pod:
        pod: Pod = parse(self.manifest(place)).typed
        return pod

    def _status_at(self, place: int) -> Mapping[str, Any]:
        status: Mapping[str, Any] = {} if place < 0 else self._statuses[place]
        return status

    def _taken(self, column: str, places: Index) -> list[Any]:
        """What a column says at many places."""
        told = self._columns[column]
        values = told.values if isinstance(told, TextColumn) else told
        # By way of an array, which goes to and fro in memory faster than a list.
        taken: list[Any] = np.array(values, np.object_)[places].tolist()
        return taken

    def _places(self, column: str) -> Index:
        places = self._columns[column]
        try:
            return np.array(places, np.intp)
        except TypeError:  # some objects have no such part
            return np.array([-1 if place is None else place for place in places], np.intp)

    def _likes(
        self,
        at: Index,
        metas: Index,
        of_meta: Index,
        statuses: Index,
        of_status: Index,
    ) -> tuple[list[Like], Index]:
        """What pods ask for, and which of these each does; of `metas` and `statuses` each has one."""
        names = [_namespace_in(self._metadata[place]) for place in metas.tolist()]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        namespace = np.array([numbers[name] for name in names], np.intp)
        # A pod that is being resized has its requests from its status.
        resized = np.array(
            [
                -1 if says_nothing_of_requests(self._status_at(place)) else place
                for place in statuses.tolist()
            ],
            np.intp,
        )
        like = namespace[of_meta]
        for column in (self._spec[at], resized[of_status]):
            # Numbers of pairs, not places: these need 64 bits anywhere.
            like = _distinct(like.astype(np.int64) * (int(column.max(initial=-1)) + 2) + column + 1)[1]
        first = np.empty(int(like.max(initial=-1)) + 1, np.intp)
        first[like[::-1]] = np.arange(len(like))[::-1]
        follow = resized[of_status[first]] < 0
        return [self._like(*found) for found in zip(at[first].tolist(), follow.tolist(), strict=True)], like

    def _like(self, place: int, follows_from_spec: bool) -> Like:
        if not follows_from_spec:
            return Like.of(self._read(place))
        spec = int(self._spec[place])
        text = b"{}" if spec < 0 else self._specs.texts[spec]
        return like_of(_namespace_in(self._metadata[int(self._meta[place])]), text)


def _distinct(numbers: NDArray[np.integer]) -> tuple[Index, Index]:
    """The distinct ones, sorted, and which of them each is: places lie close together, so that none need be sorted."""
    lowest = int(numbers.min(initial=0))
    extent = int(numbers.max(initial=0)) - lowest + 1
    if extent > _FEW_TIMES * len(numbers) + 1:
        values, of_each = np.unique(numbers, return_inverse=True)
        return values.astype(np.intp, copy=False), of_each
    is_there = np.zeros(extent, np.bool_)
    is_there[numbers - lowest] = True
    return np.flatnonzero(is_there) + lowest, (np.cumsum(is_there) - 1)[numbers - lowest]


STILL: Final = (
    "assumed", "awaited", "expired", "heldPods", "nominations", "preemptions", "waiting", "bindings", "untold"
)  # fmt: skip
"""Parts of a checkpoint that are empty where nothing is under way."""
_PLAIN_PLUGINS: Final = frozenset(
    (
        *(
            "PrioritySort",
            "SchedulingGates",
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
        ),
        *("NodePorts", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeZone"),
        *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "PodTopologySpread", "InterPodAffinity"),
        *("DynamicResources", "NodeDeclaredFeatures", "GangScheduling", "DefaultPreemption", "DefaultBinder"),
    )
)
"""What they find follows from the objects there are, for pods that need nothing done before they are bound."""


class NotPlain(Exception):
    """What led to the cycle is more than objects tell."""


class Past:
    """The scheduler of a cluster with the objects of a checkpoint, or of any moment after it.

    Parameters
    ----------
    document : mapping
        What `Simulation.checkpoint` gave.

    Attributes
    ----------
    cycle : int
        The last one before the checkpoint.
    spoilt : bool
        Something went wrong half way: it is of no use any more.

    Raises
    ------
    NotPlain
        Something was under way then, or the configuration has plugins or extenders that remember things.
    ValueError
        The checkpoint is of another version.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        check_version(document)
        for part in STILL:
            if document.get(part):
                raise NotPlain(f"{part} are under way")
        if any(state for states in document["plugins"].values() for state in states.values()):
            raise NotPlain("plugins remember something")
        told = dict(document["options"])
        if FaultOptions(**told.pop("faults")).any:
            raise NotPlain("there are faults")
        self._pods = PackedPods(document["world"]["manifests"])
        self._order = self._pods.places(document["podOrder"])
        others = self._pods.others()
        options, registry = SimulationOptions(**told), known()
        self._scheduler = scheduler = Scheduler(
            load(document["config"], registry, release_from(document["release"])),
            Clock(document["nowNs"]),
            Randomness(0),
            registry=registry,
            options=SchedulerOptions(
                full_traces=options.full_traces,
                adaptive_sampling=options.adaptive_sampling,
                first_of_ties=options.first_of_ties,
            ),
            cache=_of_nodes(others, document["nodeOrder"]),
        )
        if scheduler.extenders:
            raise NotPlain("extenders were asked")
        for framework in scheduler.profiles.values():
            if not _PLAIN_PLUGINS.issuperset(framework.plugins):
                raise NotPlain("plugins may remember something")
        self.cycle: int = document["cycle"]
        self.spoilt = False
        self._randomness = document["randomness"]
        self._start_index: int = document["startIndex"]
        self._now: dict[Key, PodThen | None] = {}
        """Pods that are not as they were at the checkpoint."""
        self._is_filled = False
        self._others: dict[tuple[str, str, str], Any] = {}
        for kind, typed in others.objects:
            if kind == "PodGroup":
                raise NotPlain("there are pod groups")
            if kind != "Node":
                key = (typed.meta.namespace, typed.meta.name)
                self._others[(kind, *key)] = typed
                scheduler.cache.listers.set(kind, *key, typed)

    def _fill(self) -> None:
        """Put all pods on their nodes at once."""
        self._is_filled = True
        places = self._pods.without(self._order, self._now)
        self._scheduler.cache.fill_columns(self._pods.unread(places), self._pods.node_names(places))
        self._come([pod for pod in self._now.values() if pod is not None and pod.is_counted])

    def _come(self, pods: Sequence[PodThen]) -> None:
        if pods:
            self._scheduler.cache.fill_columns(unread(pods), [pod.node_name for pod in pods])

    # ---- which objects there are

    def put(self, manifests: Iterable[Mapping[str, Any]], pods: Sequence[PodThen] = ()) -> None:
        """Objects as they are from here on: what there was at the checkpoint that the scheduler looks up, and pods.

        Parameters
        ----------
        manifests : iterable of mapping
            Of any kind.
        pods : sequence of PodThen
            Pods of which no manifest need be read; no two of one name.

        Raises
        ------
        NotPlain
            They change more than is told here.
        """
        come = list(pods)
        for manifest in manifests:
            kind = str(manifest["kind"])
            if kind == "Pod":
                come.append(plain(parse(manifest).typed))
                continue
            key = _key(manifest)
            if (kind, *key) not in self._others:
                raise NotPlain(f"a {kind} came")
            self._scheduler.cache.listers.set(kind, *key, parse(manifest).typed)
        self._put_pods(come)

    def put_back(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Objects, by kind, namespace and name, as they were at the checkpoint, or gone where there were none."""
        pods = []
        for kind, namespace, name in keys:
            if kind != "Pod":
                typed = self._others[(kind, namespace, name)]
                self._scheduler.cache.listers.set(kind, namespace, name, typed)
            elif (pod := self._pods.pod((namespace, name))) is None:
                self.remove_pod(namespace, name)
            else:
                pods.append(pod)
        self._put_pods(pods)

    def remove_pod(self, namespace: str, name: str) -> None:
        """A pod is gone; nothing happens where there is none."""
        key = (namespace, name)
        if self._is_filled:
            pod = self._pod(key)
            if pod is not None:
                self._scheduler.cache.remove_pod(pod.uid)
        self._now[key] = None

    def _put_pods(self, pods: Sequence[PodThen]) -> None:
        if self._is_filled:
            come = []
            for pod in pods:
                before = self._pod(pod.key)
                if before is not None and before.is_counted:
                    if pod.counts_as(before):
                        continue
                    self._scheduler.cache.remove_pod(before.uid)
                if pod.is_counted:
                    come.append(pod)
            self._come(come)
        self._now.update((pod.key, pod) for pod in pods)

    def _pod(self, key: Key) -> PodThen | None:
        return self._now[key] if key in self._now else self._pods.pod(key)

    # ---- one cycle

    def decided(self, found: Pod, attempt: int) -> CycleTrace:
        """The whole trace of a cycle that bound its pod, of the scheduler just before it (`before`).

        Parameters
        ----------
        found : Pod
        attempt : int
            The cycle's number among the pod's own.

        Raises
        ------
        NotPlain
            More happened in the cycle than that.
        """
        scheduler = self._scheduler
        self.spoilt = True
        scheduler.pods[found.uid] = found
        scheduler._schedule_pod(QueuedPodInfo(found, found.key, scheduler.clock.now_ns, attempts=attempt))
        scheduler.handle(BindAnswered(found.uid, None))
        del scheduler.pods[found.uid]
        scheduler.cache.remove_pod(found.uid)
        traces, scheduler.traces = scheduler.traces, []
        if len(traces) != 1 or traces[0].outcome != BOUND or scheduler.bindings:
            raise NotPlain("the pod was not simply bound")
        self.spoilt = False
        return traces[0]

    def before(
        self, pod: Key, number: int, *, at_ns: int, n_draws: int, n_evaluated: int
    ) -> tuple[Scheduler, Pod]:
        """The scheduler just before a cycle that bound its pod, to be copied and left as it is; and the pod.

        The objects were then as they are here.

        Parameters
        ----------
        pod : tuple of str
            Whose cycle it was.
        number : int
        at_ns : int
            When it was.
        n_draws : int
            Cycles since the checkpoint that drew among equals.
        n_evaluated : int
            Nodes that the cycles since the checkpoint evaluated, all together.

        Raises
        ------
        NotPlain
            More happened in the cycle than that.
        """
        scheduler = self._scheduler
        if not self._is_filled:
            self._fill()
        then = self._pod(pod)
        found = None if then is None else then.read()
        if found is None or found.node_name or found.is_terminating or found.host_ports:
            # Which ports of a node count as free is a matter of what left it, and when.
            raise NotPlain("the pod is not one that simply waits for a node")
        framework = scheduler.profiles.get(found.scheduler_name)
        snapshot = scheduler.cache.snapshot()
        if framework is None or not len(snapshot.order) or not framework.needs_no_attempt(found, snapshot):
            raise NotPlain("the pod needs more than a node")
        # Not `Clock.move_to`: the next cycle looked at may be an earlier one.
        scheduler.clock.now_ns = at_ns
        streams = dict(self._randomness["streams"])
        streams[TIE_STREAM] = streams.get(TIE_STREAM, 0) + n_draws
        scheduler.randomness.restore({**self._randomness, "streams": streams})
        scheduler.algorithm.next_start_node_index = (self._start_index + n_evaluated) % len(snapshot.order)
        scheduler.cycle = number - 1
        return scheduler, found

    def close(self) -> None:
        """Give its memory back at once, not when the collector comes to it; it is of no use any more."""
        self._pods.close()
        self._now.clear()
        self._others.clear()
        for part in (self._scheduler.cache.pods, self._scheduler.cache.nodes, self._scheduler.cache):
            vars(part).clear()


def _of_nodes(others: OtherObjects, order: Sequence[str]) -> Cache:
    """A cache with the nodes alone."""
    found = others.caches.get(tuple(order))
    if found is None:
        others.caches.clear()
        found = others.caches[tuple(order)] = Cache()
        nodes = {typed.meta.name: typed for kind, typed in others.objects if kind == "Node"}
        found.add_nodes([nodes[name] for name in order])
    return found.copy()


def plain(pod: Pod) -> PodThen:
    """A pod that was read.

    Raises
    ------
    NotPlain
        It is nominated, or one of a group.
    """
    if pod.scheduling_group or (pod.nominated_node_name and not pod.node_name):
        raise NotPlain("a pod is nominated, or one of a group")
    return PodThen.of(pod)


def _key(manifest: Mapping[str, Any]) -> Key:
    meta = manifest["metadata"]
    namespaced = KINDS[manifest["kind"]].namespaced
    return (str(meta.get("namespace") or "") if namespaced else "", str(meta["name"]))
