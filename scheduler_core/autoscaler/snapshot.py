"""The cluster as one loop of the autoscaler sees it: nodes in order, pods on them, and the scheduler's filters.

No score is asked anywhere: a pod goes to the first node that passes, one after the node that took the pod before.

Source: cluster-autoscaler/simulator/clustersnapshot/predicate/plugin_runner.go, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

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


class NodesAndPods:
    """Nodes and their pods.

    Attributes
    ----------
    order : list of str
        Names of the nodes in insertion order.
    """

    def __init__(self, cursor: Cursor) -> None:
        release = release_named(RELEASE, "release")
        scheduler = Scheduler(default_configuration(release), Clock(0), Randomness(0))
        self._fork = Fork(scheduler)
        self._framework = self._fork.scheduler.profiles[_PROFILE]
        self._cursor = cursor
        self.order: list[str] = []
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, list[Pod]] = {}
        self._n_fresh = 0

    def add(self, node: Node, pods: Sequence[Pod] = ()) -> None:
        """Add a node with its pods."""
        self._fork.set_nodes([node])
        self.order.append(node.name)
        self.nodes[node.name] = node
        self.pods[node.name] = []
        for pod in pods:
            self.put(pod, node.name)

    def remove(self, name: str) -> None:
        """Take a node away with its pods."""
        self._fork.remove_nodes([name])
        self.order.remove(name)
        del self.nodes[name], self.pods[name]

    def put(self, pod: Pod, name: str) -> None:
        """Have a pod on a node."""
        self._fork.put_pod(pod, name)
        self.pods[name].append(pod)

    def make_ghost(self, name: str, ghost: Node) -> None:
        """Put a node's empty likeness in its place: its pods are off."""
        place = self.order.index(name)
        self.remove(name)
        self.add(ghost)
        self.order.insert(place, self.order.pop())

    def keep(self) -> tuple[int, list[str], dict[str, Node], dict[str, list[Pod]]]:
        """A state to come back to."""
        pods = {name: list(found) for name, found in self.pods.items()}
        return self._fork.mark(), list(self.order), dict(self.nodes), pods

    def go_back(self, kept: tuple[int, list[str], dict[str, Node], dict[str, list[Pod]]]) -> None:
        mark, self.order, self.nodes, self.pods = kept
        self._fork.back_to(mark)

    @contextmanager
    def fork(self) -> Iterator[None]:
        """Whatever is changed within is taken back."""
        kept = self.keep()
        try:
            yield
        finally:
            self.go_back(kept)

    def check(self, pod: Pod, name: str) -> Rejected | None:
        """Why a node does not take a pod; None if it does."""
        attempt = self._attempt(pod)
        if not attempt.pre_filter_status.is_success:
            status = attempt.pre_filter_status
            return Rejected(status.plugin or "", tuple(status.reasons))
        row = self._fork.cache.nodes.row_of[name]
        places = (attempt.rows == row).nonzero()[0]
        if not len(places):
            return Rejected("", (attempt.absent_reason,))
        verdict = attempt.verdict(int(places[0]))
        return None if verdict is None else Rejected(verdict[0], verdict[2])

    def _attempt(self, pod: Pod) -> Attempt:
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
        fitting = {attempt.name_of(row) for row in attempt.feasible.tolist()}
        if len(fitting) < _FEW:
            fitting = {name for name in fitting if accepts(name)}
            if not fitting:
                return ""
        length, last = len(self.order), self._cursor.last
        for step in range(length):
            index = (step + 1 + last) % length
            name = self.order[index]
            if name in fitting and not self.nodes[name].unschedulable and accepts(name):
                self._cursor.last = index
                self.put(pod, name)
                return name
        return ""
