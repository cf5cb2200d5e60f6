"""The cluster as one loop of the autoscaler sees it: nodes in order, pods on them, and the scheduler's filters.

No score is asked anywhere: a pod goes to the first node that passes, one after the node that took the pod before.

Source: cluster-autoscaler/simulator/clustersnapshot/predicate/plugin_runner.go, k8s 1.36
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from operator import itemgetter
from typing import Final, NamedTuple

from scheduler_core.clock import Clock
from scheduler_core.fork import Fork
from scheduler_core.framework.attempt import Attempt
from scheduler_core.objects.node import LABEL_HOSTNAME, Node
from scheduler_core.objects.pod import AffinityTerm, Pod
from scheduler_core.plugins import default_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.releases import release_named
from scheduler_core.scheduler import Scheduler

RELEASE = "1.36"
_PROFILE = "default-scheduler"
_FEW = 64
"""Nodes that are asked about before the search, which most of them end."""
_MOST_SETTLED: Final = 1_000
"""Loops after which the scheduler is made anew."""


class Rejected(NamedTuple):
    """The first filter plugin that rejects a pod on a node, and its reasons."""

    plugin: str
    reasons: tuple[str, ...]


@dataclass
class Cursor:
    """Where the last search for a node ended; one for all loops and all that searches."""

    last: int = 0


@dataclass
class GroupTemplate:
    """A fresh node of a group, and the pods that come with it."""

    node: Node
    pods: tuple[Pod, ...] = ()


_Undo = Callable[[], object]
_MOST_KEPT: Final = 100_000
_MOST_VERDICTS: Final = 20_000
_REJECTED: Final = Rejected("", ())
"""A node does not take the pod; why was not asked."""


@dataclass
class _Kind:
    """Pods of one spec, of which a node says the same as long as it has pods of the same specs.

    Attributes
    ----------
    attempt : Attempt
        One of them, past PreFilter.
    verdicts : dict of int to (Rejected or None)
        Version of a node -> what it says of them.
    """

    attempt: Attempt
    verdicts: dict[int, Rejected | None]


class NodesAndPods:
    """Nodes and their pods.

    It is kept from loop to loop (`settle`), and changed within one. The scheduler's columns are changed only where a
    filter has to be asked, and where only one node and its pods matter to the answer, only of nodes that stay: what a
    node said of pods of a spec is kept for as long as it has pods of the same specs.

    Attributes
    ----------
    order : list of str
        Names of the nodes in insertion order.
    pods : dict of str to tuple of Pod
        The same tuple as long as nothing changes on the node.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._version = count()
        self._begin()

    def _begin(self) -> None:
        release = release_named(RELEASE, "release")
        scheduler = Scheduler(default_configuration(release), Clock(0), Randomness(0))
        self._fork = Fork(scheduler)
        self._framework = self._fork.scheduler.profiles[_PROFILE]
        self.order: list[str] = []
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[Pod, ...]] = {}
        self._changes: list[tuple[str, _Undo, Callable[[], object]]] = []
        """Of each change its node, what takes it back here, and how the fork is told."""
        self._waiting: dict[str, list[int]] = {}
        """Node -> its changes, by their places, of which the fork does not know, in order."""
        self._told: list[tuple[int, int, int]] = []
        """Of the others the place, the largest place so far, and the fork's mark before, as it was told."""
        self._leaving: set[str] = set()
        """Nodes that are likenesses, or taken away."""
        self._version_of: dict[str, int] = {}
        self._next: dict[tuple[object, object], int] = {}
        """A node's version and the spec of a pod that comes to it -> its next version."""
        self._kinds: dict[object, _Kind | None] = {}
        """Spec -> its pods; None where more than one node matters to them, or a node's name."""
        self._terms: dict[AffinityTerm, None] = {}
        """Required anti-affinity of pods that were here."""
        self._avoided: dict[tuple[tuple[str, str], ...], bool] = {}
        """Labels -> whether any of these terms may select them."""
        self._n_settled = 0

    # ---- from loop to loop

    def settle(self, nodes: Iterable[tuple[Node, tuple[Pod, ...]]]) -> None:
        """Be these nodes, in order, with these pods; whatever was changed since is taken back."""
        self.go_back(0)
        self._n_settled += 1
        if self._n_settled > _MOST_SETTLED:  # the scheduler remembers every name and value it has ever seen
            self._begin()
        found = {node.name: (node, pods) for node, pods in nodes}
        fork, cache, before = self._fork, self._fork.cache, (self.nodes, self.pods)
        for name in before[0]:
            if name not in found:
                for pod in fork.pods_on(name):
                    cache.remove_pod(pod.uid)
                cache.remove_node(name)
        changed = [
            (name, node, before[1].get(name, ()), pods)
            for name, (node, pods) in found.items()
            if before[1].get(name) is not pods or before[0][name] is not node
        ]
        placed: dict[Pod, None] = {}
        if before[0]:
            for name, node, *_ in changed:
                if before[0].get(name) is not node:
                    cache.set_node(node)
        else:
            placed = {pod: None for name, *_, pods in changed for pod in pods if pod.node_name == name}
            fork.begin([node for _, node, *_ in changed], placed)
        for _, _, old, pods in changed:
            stays = set(pods)
            for pod in old:
                if pod not in stays:
                    cache.remove_pod(pod.uid)
        for name, _, old, pods in changed:
            there = placed.keys() or set(old)
            for pod in pods:
                if pod not in there:
                    cache.assume(pod, name)
                self._heed(pod)
            self._version_of[name] = next(self._version)
            # One that left may have freed a port that another still has: upstream begins anew.
            for pod in pods:
                cache.nodes.take_ports(cache.nodes.row_of[name], pod)
        if len(self._next) > _MOST_KEPT:
            self._next = {}
        self.order = list(found)
        self.nodes = {name: node for name, (node, _) in found.items()}
        self.pods = {name: pods for name, (_, pods) in found.items()}

    def _heed(self, pod: Pod) -> None:
        """Remember whom a pod keeps off."""
        for term in pod.required_anti_affinity:
            if term not in self._terms:
                self._terms[term] = None
                self._avoided.clear()

    # ---- changing

    def _change(self, name: str, here: _Undo, there: Callable[[], object]) -> None:
        self._waiting.setdefault(name, []).append(len(self._changes))
        self._changes.append((name, here, there))

    def _tell(self, names: Iterable[str]) -> None:
        """Have the fork know of the changes of some nodes."""
        for place in sorted(place for name in names for place in self._waiting.pop(name, ())):
            last = self._told[-1][1] if self._told else -1
            self._told.append((place, max(place, last), self._fork.mark()))
            self._changes[place][2]()

    def add(self, node: Node, pods: Sequence[Pod] = (), *, like: object = None) -> None:
        """Add a node with its pods.

        Parameters
        ----------
        like : hashable, optional
            The same of nodes that differ in their names alone.
        """
        name = node.name

        def take_away() -> None:
            self.order.pop()
            del self.nodes[name], self.pods[name], self._version_of[name]

        self._change(name, take_away, lambda: self._fork.set_nodes([node]))
        self.order.append(name)
        self.nodes[name] = node
        self.pods[name] = ()
        self._version_of[name] = next(self._version) if like is None else self._after(like, None)
        for pod in pods:
            self.put(pod, name)

    def _after(self, version: object, came: object) -> int:
        """The version that a version becomes when a pod of a spec comes."""
        found = self._next.get((version, came))
        if found is None:
            found = self._next[version, came] = next(self._version)
        return found

    def remove(self, name: str) -> None:
        """Take a node away with its pods."""
        order, nodes, pods, version = self.order, self.nodes, self.pods[name], self._version_of[name]
        leaving = self._leaving

        def put_back() -> None:
            self.order, self.nodes, self.pods[name], self._version_of[name] = order, nodes, pods, version
            self._leaving = leaving

        self._change(name, put_back, lambda: self._fork.remove_nodes([name]))
        self.order = [other for other in order if other != name]
        self.nodes = {other: node for other, node in nodes.items() if other != name}
        self._leaving = leaving | {name}
        del self.pods[name], self._version_of[name]

    def put(self, pod: Pod, name: str) -> None:
        """Have a pod on a node."""
        pods, version = self.pods[name], self._version_of[name]

        self._change(name, partial(self._hold, name, pods, version), partial(self._fork.put_pod, pod, name))
        self.pods[name] = (*pods, pod)
        self._version_of[name] = self._after(version, pod.read)
        self._heed(pod)

    def _hold(self, name: str, pods: tuple[Pod, ...], version: int) -> None:
        self.pods[name], self._version_of[name] = pods, version

    def make_ghost(self, name: str, likeness: Callable[[], Node]) -> None:
        """Have an empty likeness in a node's place in the eyes of the scheduler: its pods are off."""
        pods, version, leaving = self.pods[name], self._version_of[name], self._leaving

        def put_back() -> None:
            self.pods[name], self._version_of[name], self._leaving = pods, version, leaving

        def replace() -> None:
            self._fork.remove_pods(name, self._fork.pods_on(name))
            self._fork.set_nodes([likeness()])

        self._change(name, put_back, replace)
        self.pods[name], self._version_of[name], self._leaving = (), next(self._version), leaving | {name}

    def keep(self) -> int:
        """A state to come back to."""
        return len(self._changes)

    def go_back(self, kept: int) -> None:
        while len(self._changes) > kept:
            name, take_back, _ = self._changes.pop()
            take_back()
            waiting = self._waiting.get(name)
            if waiting is not None and waiting[-1] == len(self._changes):
                waiting.pop()
                if not waiting:
                    del self._waiting[name]
        first = bisect_left(self._told, kept, key=itemgetter(1))
        if first == len(self._told):
            return
        self._fork.back_to(self._told[first][2])
        again = [place for place, *_ in self._told[first:] if place < kept]
        del self._told[first:]
        for place in again:
            insort(self._waiting.setdefault(self._changes[place][0], []), place)

    @contextmanager
    def fork(self) -> Iterator[None]:
        """Whatever is changed within is taken back."""
        kept = self.keep()
        try:
            yield
        finally:
            self.go_back(kept)

    # ---- asking

    def check(self, pod: Pod, name: str) -> Rejected | None:
        """Why a node does not take a pod; None if it does."""
        kind = self._kind_of(pod)
        if kind is None:
            return self._said(self._attempt(pod), name)
        version = self._version_of[name]
        verdict = kind.verdicts.get(version, _REJECTED)
        if verdict is _REJECTED:
            self._tell([name])
            verdict = kind.verdicts[version] = self._said(self._filtered(kind.attempt), name)
        return verdict

    def _said(self, attempt: Attempt, name: str) -> Rejected | None:
        if not attempt.pre_filter_status.is_success:
            status = attempt.pre_filter_status
            return Rejected(status.plugin or "", tuple(status.reasons))
        row = self._fork.cache.nodes.row_of[name]
        places = (attempt.rows == row).nonzero()[0]
        if not len(places):
            return Rejected("", (attempt.absent_reason,))
        verdict = attempt.verdict(int(places[0]))
        return None if verdict is None else Rejected(verdict[0], verdict[2])

    def _kind_of(self, pod: Pod) -> _Kind | None:
        """Pods of its spec, where a node and its pods alone matter to whether it takes them."""
        labels = tuple(pod.labels.items())
        is_avoided = self._avoided.get(labels)
        if is_avoided is None:
            found = any(term.selector.matches(pod.labels) for term in self._terms)
            is_avoided = self._avoided[labels] = found
        if is_avoided:
            return None
        if pod.read not in self._kinds:
            if len(self._kinds) > _MOST_SETTLED:
                self._kinds.clear()
            attempt = Attempt(self._framework, pod, self._fork.snapshot)
            is_one = attempt.run_pre_filter().is_success and attempt.node_names is None
            is_one = is_one and not self._framework.cluster_filters.active(attempt.skipped_filters)
            is_one = is_one and not _names_nodes(pod)
            self._kinds[pod.read] = _Kind(attempt, {}) if is_one else None
        kind = self._kinds[pod.read]
        if kind is not None and len(kind.verdicts) > _MOST_VERDICTS:
            kind.verdicts.clear()
        return kind

    def _filtered(self, attempt: Attempt) -> Attempt:
        attempt.snapshot = self._fork.snapshot
        attempt.run_filter()
        return attempt

    def _attempt(self, pod: Pod) -> Attempt:
        self._tell([*self._waiting])
        attempt = Attempt(self._framework, pod, self._fork.snapshot)
        if attempt.run_pre_filter().is_success:
            attempt.run_filter()
        return attempt

    def _takes(self, kind: _Kind, name: str) -> bool:
        version, verdicts = self._version_of[name], kind.verdicts
        if version not in verdicts:
            # The next ones that are asked about changed, too.
            self._tell([other for other in self._waiting if other == name or other not in self._leaving])
            fitting = set(self._filtered(kind.attempt).feasible.tolist())
            row_of = self._fork.cache.nodes.row_of
            for other in self.order:
                if other not in self._waiting:
                    fits = row_of[other] in fitting
                    verdicts.setdefault(self._version_of[other], None if fits else _REJECTED)
        return verdicts[version] is None

    def try_on(self, pod: Pod, name: str) -> Rejected | None:
        """Put the pod on a node if that takes it; else why not."""
        rejected = self.check(pod, name)
        if rejected is None:
            self.put(pod, name)
        return rejected

    def try_any(self, pod: Pod, accepts: Callable[[str], bool], first: int = 0) -> str:
        """Put the pod on the next acceptable node that takes it; its name, empty without one.

        Parameters
        ----------
        first : int
            Place in `order` of the first node that may be acceptable.
        """
        kind = self._kind_of(pod)
        takes = self._search(pod, accepts) if kind is None else partial(self._takes, kind)
        if takes is None:
            return ""
        known, version_of = {} if kind is None else kind.verdicts, self._version_of
        start = (self._cursor.last + 1) % max(1, len(self.order))
        for index in chain(range(max(start, first), len(self.order)), range(first, start)):
            name = self.order[index]
            if known.get(version_of[name]) is not None:  # most often
                continue
            if accepts(name) and not self.nodes[name].unschedulable and takes(name):
                self._cursor.last = index
                self.put(pod, name)
                return name
        return ""

    def _search(self, pod: Pod, accepts: Callable[[str], bool]) -> Callable[[str], bool] | None:
        """Ask about all nodes at once: whether one takes the pod; None where none does."""
        attempt = self._attempt(pod)
        if not attempt.pre_filter_status.is_success:
            return None
        fitting, row_of = set(attempt.feasible.tolist()), self._fork.cache.nodes.row_of
        if len(fitting) < _FEW and not any(accepts(attempt.name_of(row)) for row in fitting):
            return None
        return lambda name: row_of[name] in fitting


def _names_nodes(pod: Pod) -> bool:
    """Whether it may tell nodes apart that differ in their names alone."""
    wanted = pod.required_node_affinity
    selectors = [] if wanted.labels is None else [wanted.labels]
    terms = () if wanted.selector is None else wanted.selector.terms
    keys = {
        one.key for labels in (*selectors, *(term.labels for term in terms)) for one in labels.requirements
    }
    return LABEL_HOSTNAME in keys or any(term.fields.requirements for term in terms)
