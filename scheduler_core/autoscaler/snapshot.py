"""The cluster as one loop of the autoscaler sees it: nodes in order, pods on them, and the scheduler's filters.

No score is asked anywhere: a pod goes to the first node that passes, one after the node that took the pod before.

Source: cluster-autoscaler/simulator/clustersnapshot/predicate/plugin_runner.go, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

from scheduler_core.clock import Clock
from scheduler_core.fork import Fork
from scheduler_core.framework.attempt import Attempt
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
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


class NodesAndPods:
    """Nodes and their pods.

    It is kept from loop to loop (`settle`), and changed within one. The scheduler's columns are changed only where a
    filter has to be asked: what a node said of a pod is kept as long as no pod comes to that node or leaves it.

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
        self._undo: list[_Undo] = []
        """For each change what takes it back here,"""
        self._marks: list[int] = []
        """for those the fork knows of, its mark before it, and"""
        self._waiting: list[Callable[[], object]] = []
        """the others."""
        self._version_of: dict[str, int] = {}
        self._next: dict[tuple[int, Pod], int] = {}
        """A node's version and a pod that comes to it -> its next version."""
        self._verdicts: dict[tuple[int, Pod], Rejected | None] = {}
        self._n_settled = 0

    # ---- from loop to loop

    def settle(self, nodes: Iterable[tuple[Node, tuple[Pod, ...]]]) -> None:
        """Be these nodes, in order, with these pods; whatever was changed since is taken back."""
        self.go_back(0)
        self._n_settled += 1
        if self._n_settled > _MOST_SETTLED:  # the scheduler remembers every name and value it has ever seen
            self._begin()
        found = {node.name: (node, pods) for node, pods in nodes}
        fork, before = self._fork, (self.nodes, self.pods)
        fork.remove_nodes([name for name in before[0] if name not in found])
        fork.set_nodes([node for name, (node, _) in found.items() if before[0].get(name) is not node])
        changed = [
            (name, before[1].get(name, ()), pods)
            for name, (node, pods) in found.items()
            if before[1].get(name) is not pods or before[0][name] is not node
        ]
        for _, old, pods in changed:
            stays = set(pods)
            for pod in old:
                if pod not in stays:
                    fork.remove_pod(pod)
        for name, old, pods in changed:
            there = set(old)
            for pod in pods:
                if pod not in there:
                    fork.put_pod(pod, name)
            self._version_of[name] = next(self._version)
        fork.keep()
        if len(self._next) + len(self._verdicts) > _MOST_KEPT:
            self._next, self._verdicts = {}, {}
        self.order = list(found)
        self.nodes = {name: node for name, (node, _) in found.items()}
        self.pods = {name: pods for name, (_, pods) in found.items()}
        self._has_affinity = any(pod.has_affinity for pods in self.pods.values() for pod in pods)

    # ---- changing

    def _change(self, here: _Undo, there: Callable[[], object]) -> None:
        self._undo.append(here)
        self._waiting.append(there)

    def _tell(self) -> None:
        """Have the fork know of every change."""
        for change in self._waiting:
            self._marks.append(self._fork.mark())
            change()
        self._waiting.clear()

    def add(self, node: Node, pods: Sequence[Pod] = ()) -> None:
        """Add a node with its pods."""
        name = node.name

        def take_away() -> None:
            self.order.pop()
            del self.nodes[name], self.pods[name], self._version_of[name]

        self._change(take_away, lambda: self._fork.set_nodes([node]))
        self.order.append(name)
        self.nodes[name] = node
        self.pods[name] = ()
        self._version_of[name] = next(self._version)
        for pod in pods:
            self.put(pod, name)

    def remove(self, name: str) -> None:
        """Take a node away with its pods."""
        order, nodes, pods, version = self.order, self.nodes, self.pods[name], self._version_of[name]

        def put_back() -> None:
            self.order, self.nodes, self.pods[name], self._version_of[name] = order, nodes, pods, version

        self._change(put_back, lambda: self._fork.remove_nodes([name]))
        self.order = [other for other in order if other != name]
        self.nodes = {other: node for other, node in nodes.items() if other != name}
        del self.pods[name], self._version_of[name]

    def put(self, pod: Pod, name: str) -> None:
        """Have a pod on a node."""
        pods, version, has_affinity = self.pods[name], self._version_of[name], self._has_affinity

        def take_off() -> None:
            self.pods[name], self._version_of[name], self._has_affinity = pods, version, has_affinity

        self._change(take_off, lambda: self._fork.put_pod(pod, name))
        self.pods[name] = (*pods, pod)
        after = self._next.get((version, pod))
        if after is None:
            after = self._next[version, pod] = next(self._version)
        self._version_of[name] = after
        self._has_affinity = has_affinity or pod.has_affinity

    def make_ghost(self, name: str, ghost: Node) -> None:
        """Put a node's empty likeness in its place: its pods are off."""
        node, pods, version = self.nodes[name], self.pods[name], self._version_of[name]

        def put_back() -> None:
            self.nodes[name], self.pods[name], self._version_of[name] = node, pods, version

        def replace() -> None:
            self._fork.remove_nodes([name])
            self._fork.set_nodes([ghost])

        self._change(put_back, replace)
        self.nodes[name], self.pods[name], self._version_of[name] = ghost, (), next(self._version)

    def keep(self) -> int:
        """A state to come back to."""
        return len(self._undo)

    def go_back(self, kept: int) -> None:
        while len(self._undo) > kept:
            self._undo.pop()()
        n_told = len(self._marks)
        if kept >= n_told:
            del self._waiting[kept - n_told :]
            return
        self._fork.back_to(self._marks[kept])
        del self._marks[kept:]
        self._waiting.clear()

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
        key = (self._version_of[name], pod)
        if key in self._verdicts and not self._has_affinity:
            return self._verdicts[key]
        attempt = self._attempt(pod)
        if not attempt.pre_filter_status.is_success:
            status = attempt.pre_filter_status
            return Rejected(status.plugin or "", tuple(status.reasons))
        row = self._fork.cache.nodes.row_of[name]
        places = (attempt.rows == row).nonzero()[0]
        if not len(places):
            return Rejected("", (attempt.absent_reason,))
        verdict = attempt.verdict(int(places[0]))
        rejected = None if verdict is None else Rejected(verdict[0], verdict[2])
        others = self._framework.cluster_filters.active(attempt.skipped_filters)
        if not (others or attempt.node_names or self._has_affinity):
            self._verdicts[key] = rejected  # it is of this node and its pods alone
        return rejected

    def _attempt(self, pod: Pod) -> Attempt:
        self._tell()
        attempt = Attempt(self._framework, pod, self._fork.snapshot)
        if attempt.run_pre_filter().is_success:
            attempt.run_filter()
        return attempt

    def try_on(self, pod: Pod, name: str) -> Rejected | None:
        """Put the pod on a node if that takes it; else why not."""
        rejected = self.check(pod, name)
        if rejected is None:
            self.put(pod, name)
        return rejected

    def try_any(self, pod: Pod, accepts: Callable[[str], bool]) -> str:
        """Put the pod on the next acceptable node that takes it; its name, empty without one."""
        attempt = self._attempt(pod)
        if not attempt.pre_filter_status.is_success:
            return ""
        fitting, row_of = set(attempt.feasible.tolist()), self._fork.cache.nodes.row_of
        if len(fitting) < _FEW and not any(accepts(attempt.name_of(row)) for row in fitting):
            return ""
        length, last = len(self.order), self._cursor.last
        for step in range(length):
            index = (step + 1 + last) % length
            name = self.order[index]
            if row_of[name] in fitting and not self.nodes[name].unschedulable and accepts(name):
                self._cursor.last = index
                self.put(pod, name)
                return name
        return ""
