"""A copy of what a scheduler knows, on which cycles are run that never happen in the cluster.

The copy shares every object with the original (objects are frozen) and none of its columns, queues or streams, so
whatever is done to it leaves the original as it was. Copying 60,000 pods takes a few milliseconds.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from scheduler_core.clock import Clock
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework.answers import Answers
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.runtime import Framework
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import PersistentVolume, PersistentVolumeClaim
from scheduler_core.randomness import Randomness
from scheduler_core.schedule_one import Decision
from scheduler_core.scheduler import Scheduler


class Sandbox:
    """A scheduler over a copy of another one's cluster, with an empty queue.

    Parameters
    ----------
    original : Scheduler
        Read, never changed.
    transport : Transport
        Carries calls to extenders, if any are configured: they are asked as in a real cycle.

    Attributes
    ----------
    scheduler : Scheduler
        The copy.
    n_decisions : int
        Cycles that were run on it, those of PreFilter and Filter alone among them.
    """

    def __init__(self, original: Scheduler, *, transport: Transport = no_transport) -> None:
        self.n_decisions = 0
        randomness = Randomness(0)
        randomness.restore(original.randomness.state())
        self.scheduler = Scheduler(
            original.loaded,
            Clock(original.clock.now_ns),
            randomness,
            registry=original.registry,
            options=replace(original.options, full_traces=True),
            transport=transport,
            cache=original.cache.copy(),
        )
        self._copy_pods(original)
        self.scheduler.cycle = original.cycle
        self.scheduler.algorithm.next_start_node_index = original.algorithm.next_start_node_index
        self._start_index = original.algorithm.next_start_node_index
        self._streams = randomness.state()

    def _copy_pods(self, original: Scheduler) -> None:
        pods = original.pods
        self.scheduler.pods.update(pods)
        for key in original.pod_groups.groups():
            for member in original.pod_groups.members(key):
                self.scheduler.pod_groups.set(member)
        for uid, name in original.nominator.state():
            if uid in pods:
                self.scheduler.nominator.add(pods[uid], name)
        now_ns = original.clock.now_ns
        for waiting in original.waiting_pods.all():
            waits_ns = {plugin: at_ns - now_ns for plugin, at_ns in waiting.deadlines_ns.items()}
            self.scheduler.waiting_pods.add(waiting.pod, waiting.node_name, waits_ns, now_ns)

    # ---- asking

    @property
    def randomness(self) -> Mapping[str, Any]:
        """The state of all streams with which each question begins (`Randomness.state`)."""
        return self._streams

    @property
    def snapshot(self) -> Snapshot:
        return self.scheduler.cache.snapshot()

    def framework(self, pod: Pod) -> Framework:
        """The pod's profile.

        Raises
        ------
        KeyError
            No profile here has the pod's schedulerName.
        """
        return self.scheduler.profiles[pod.scheduler_name]

    def decide(
        self, pod: Pod, *, preempt: bool = False, weights: Mapping[str, int] | None = None
    ) -> Decision:
        """One scheduling cycle for `pod`, as if it came next. Nothing is reserved.

        Parameters
        ----------
        preempt : bool
            Whether PostFilter is run when no node fits.
        weights : mapping of str to int, optional
            Other weights for some score plugins.
        """
        self.n_decisions += 1
        framework = self.framework(pod) if preempt else self.without_post_filter(pod)
        if weights is not None:
            framework = copy.copy(framework)
            framework.weights = {**framework.weights, **weights}
            # Kept answers are weighted sums.
            framework.answers = Answers(self.scheduler.cache.nodes)
        self.rewind()
        return self.scheduler.algorithm.schedule(framework, pod, self.snapshot)

    def without_post_filter(self, pod: Pod) -> Framework:
        """The pod's profile, with preemption left out."""
        framework = copy.copy(self.framework(pod))
        framework.post_filter = []
        return framework

    def attempt(self, pod: Pod) -> Attempt:
        """The pod's way through PreFilter and Filter alone, on all nodes; extenders are not asked.

        Raises
        ------
        PluginFailure
        """
        self.n_decisions += 1
        attempt = Attempt(self.framework(pod), pod, self.snapshot)
        if attempt.run_pre_filter().is_success:
            attempt.run_filter()
        return attempt

    def fits(self, pod: Pod) -> bool:
        """Whether some node passes every filter plugin; an error counts as no."""
        if len(self.scheduler.extenders.extenders if self.scheduler.extenders else ()):
            return self.decide(pod).node_name is not None
        try:
            return bool(len(self.attempt(pod).feasible))
        except PluginFailure:
            return False

    def rewind(self) -> None:
        """Every question is about the same next cycle: same start index, same draws."""
        self.scheduler.algorithm.next_start_node_index = self._start_index
        self.scheduler.randomness.restore(self._streams)

    def pin(self, seed: int) -> None:
        """Draw by this seed from here on, and look at nodes from the first one: answers follow from objects alone."""
        self._start_index, self._streams = 0, Randomness(seed).state()
        self.rewind()

    # ---- changing

    @contextmanager
    def without_pods(self, uids: Sequence[str]) -> Iterator[None]:
        """These pods are not on their nodes, nor waiting there."""
        cache, scheduler = self.scheduler.cache, self.scheduler
        taken = []
        for uid in uids:
            pod, node_name = cache.pod(uid), cache.node_name_of(uid)
            if pod is not None and node_name is not None:
                taken.append((pod, node_name, cache.assumed.get(uid)))
                cache.remove_pod(uid)
        known = {uid: scheduler.pods.pop(uid) for uid in uids if uid in scheduler.pods}
        try:
            yield
        finally:
            scheduler.pods.update(known)
            for pod, node_name, assumed in taken:
                if assumed is None:
                    cache.add_pod(pod)
                else:
                    cache.assume(pod, node_name)
                    cache.assumed[pod.uid] = assumed

    @contextmanager
    def with_node(self, node: Node) -> Iterator[None]:
        """The node is there, new or in place of the one of its name."""
        cache = self.scheduler.cache
        before = cache.node(node.name)
        cache.set_node(node)
        try:
            yield
        finally:
            if before is None:
                cache.remove_node(node.name)
            else:
                cache.set_node(before)

    @contextmanager
    def with_objects(self, objects: Sequence[PersistentVolume | PersistentVolumeClaim]) -> Iterator[None]:
        """These objects are there."""
        changed = self.scheduler.event_handlers.object_changed
        for item in objects:
            changed(item.manifest["kind"], None, item)
        try:
            yield
        finally:
            for item in objects:
                changed(item.manifest["kind"], item, None)

    @contextmanager
    def with_pod_on(self, pod: Pod, node_name: str) -> Iterator[None]:
        """The pod counts as running on that node."""
        cache = self.scheduler.cache
        nominated_node = self.scheduler.nominator.node_of(pod.uid)
        self.scheduler.nominator.remove(pod.uid)
        cache.assume(pod, node_name)
        try:
            yield
        finally:
            cache.forget(pod.uid)
            if nominated_node is not None:
                self.scheduler.nominator.add(pod, nominated_node)

    # ---- reading

    def nodes_in_order(self) -> list[str]:
        """Names in evaluation order."""
        return self.snapshot.names()

    def free(self, resource: str, row: int) -> int:
        """What is left of a resource on a row, in whole units; may be below zero."""
        nodes = self.snapshot.nodes
        if resource == "pods":
            return int(nodes.allowed_pods[row] - nodes.n_pods[row])
        resource_id = nodes.vocabulary.resources.id(resource)
        if resource_id >= len(nodes.allocatable):
            return 0
        return int(nodes.allocatable[resource_id, row] - nodes.requested[resource_id, row])

    def allocatable(self, resource: str, row: int) -> int:
        """What a row has of a resource in all, in whole units."""
        nodes = self.snapshot.nodes
        if resource == "pods":
            return int(nodes.allowed_pods[row])
        resource_id = nodes.vocabulary.resources.id(resource)
        return int(nodes.allocatable[resource_id, row]) if resource_id < len(nodes.allocatable) else 0

    def largest_free(self, resource: str) -> int:
        """The most any node has left of a resource."""
        rows = self.snapshot.rows.tolist()
        return max((self.free(resource, row) for row in rows), default=0)


def names_of(decision: Decision, limit: int = 20) -> tuple[str, ...]:
    """Feasible nodes of a decision in evaluation order."""
    attempt = decision.attempt
    rows = attempt.in_order(np.unique(attempt.feasible))
    return tuple(dict.fromkeys(attempt.name_of(row) for row in rows[:limit].tolist()))
