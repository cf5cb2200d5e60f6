"""A fork of what a scheduler knows: cycles run on it never happen in the cluster, and changes of it are taken back.

The fork shares every object with the original (objects are frozen) and none of its columns, queues or streams, so
whatever is done to it leaves the original unchanged. Copying 60,000 pods takes a few milliseconds. Decisions are the
scheduler's own, PreFilter to PostFilter, and Reserve counts what they take; Permit and PreBind are not run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.clock import Clock
from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework.answers import Answers
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import Reads
from scheduler_core.framework.runtime import Framework
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU
from scheduler_core.objects.storage import PersistentVolume, PersistentVolumeClaim
from scheduler_core.randomness import Randomness
from scheduler_core.schedule_one import Decision
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.simulation import Simulation


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


# ---- a series of changes

MAX_TRIES = 3
"""How often a pod is decided again after its preemption: once is enough unless a plugin changes its mind."""


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What became of one pod.

    Attributes
    ----------
    node : str or None
        Where it landed.
    message : str
        Why it found no node, as its FailedScheduling event says; empty with one.
    victims : tuple of (Pod, str)
        Pods that had to go for it and the nodes they were on, in the order of their eviction.
    by_others : bool
        Without a node: some node was refused for more than itself and its pods, as by a spread over all of them.
    """

    pod: Pod
    node: str | None
    message: str = ""
    victims: tuple[tuple[Pod, str], ...] = ()
    by_others: bool = True


@dataclass(slots=True)
class Trial:
    """A series of changes to a `Sandbox`; leaving its `with` block takes them back, the last one first.

    Afterwards the copy is the same to the row: a question's answer does not depend on those asked before it.
    """

    sandbox: Sandbox
    _undo: list[Callable[[], None]] = field(default_factory=list)
    _lenient: dict[str, Framework] = field(default_factory=dict)
    """Profiles without preemption, by schedulerName."""

    def __enter__(self) -> Trial:
        cache = self.sandbox.scheduler.cache
        places = cache.node_places()
        self._undo.append(lambda: cache.restore_node_places(places))
        self.sandbox.rewind()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._undo:
            self._undo.pop()()

    def mark(self) -> int:
        """A moment to come back to."""
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Take back what was done since, the last one first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    # ---- nodes

    def remove_nodes(self, names: Iterable[str]) -> list[Pod]:
        """Take nodes away with all that is on them; returns the pods, node by node in order of arrival."""
        cache = self.sandbox.scheduler.cache
        gone: list[Pod] = []
        for name in names:
            node = cache.node(name)
            if node is None:
                continue
            pods = self.pods_on(name)
            for pod in reversed(pods):
                self.remove_pod(pod)
            gone += pods
            cache.remove_node(name)
            self._undo.append(partial(cache.set_node, node))
        return gone

    def set_node(self, node: Node) -> None:
        """Add a node, or put it in place of the one of its name."""
        cache = self.sandbox.scheduler.cache
        before = cache.node(node.name)
        cache.set_node(node)
        self._undo.append(lambda: cache.remove_node(node.name) if before is None else cache.set_node(before))

    # ---- pods

    def pods_on(self, node_name: str) -> list[Pod]:
        """Pods of a node in order of arrival."""
        cache = self.sandbox.scheduler.cache
        row = cache.nodes.row_of.get(node_name)
        return [] if row is None else [cache.pods[pod_id] for pod_id in cache.nodes.pods_on(row)]

    def remove_pod(self, pod: Pod) -> None:
        """Take a pod off its node; one that is on none changes nothing."""
        scheduler = self.sandbox.scheduler
        cache = scheduler.cache
        node_name = cache.node_name_of(pod.uid)
        if node_name is None:
            return
        assumed, known = cache.assumed.get(pod.uid), scheduler.pods.pop(pod.uid, None)
        arrivals = cache.arrivals(node_name)
        cache.remove_pod(pod.uid)

        def put_back() -> None:
            if assumed is None:
                cache.add_pod(pod)
            else:
                cache.assume(pod, node_name)
                cache.assumed[pod.uid] = assumed
            if known is not None:
                scheduler.pods[pod.uid] = known
            cache.restore_arrivals(node_name, arrivals)

        self._undo.append(put_back)

    def put_pod(self, pod: Pod, node_name: str) -> None:
        """Count a pod as running on a node."""
        cache = self.sandbox.scheduler.cache
        cache.assume(pod, node_name)
        self._undo.append(lambda: cache.forget(pod.uid))

    def put_copies(self, pod: Pod, rows: Rows) -> NDArray[np.int64]:
        """Count a pod once for each of `rows`, by its amounts and ports alone; ids of the copies.

        Nothing that matches pods by their labels sees the copies, and `Cache` does not find them.
        """
        cache = self.sandbox.scheduler.cache
        pods, nodes = cache.pods, cache.nodes
        pod_ids = np.array([pods.add(pod, findable=False) for _ in range(len(rows))], np.int64)
        pods.row[pod_ids] = rows
        nodes.add_pods(rows, pod_ids)

        def take_off() -> None:
            for row, pod_id in zip(rows[::-1].tolist(), pod_ids[::-1].tolist(), strict=True):
                nodes.remove_pod(row, pod_id)
                pods.remove(pod_id)

        self._undo.append(take_off)
        return pod_ids

    def place(self, pod: Pod, *, preempt: bool = True) -> TrialOutcome:
        """Decide about a pod that is on no node, and give it its place.

        A preemption's victims are taken off their node and the pod is decided again, nominated there.

        Raises
        ------
        KeyError
            No profile has the pod's schedulerName.
        """
        victims: list[tuple[Pod, str]] = []
        candidate = pod
        message, by_others = "", True
        for _ in range(MAX_TRIES):
            decision = self.decide(candidate, preempt=preempt)
            if decision.node_name is not None and decision.error is None:
                message = self._take(candidate, decision.node_name)
                if not message:
                    return TrialOutcome(pod, decision.node_name, victims=tuple(victims))
                break
            message, by_others = decision.message or "", _is_by_others(decision.attempt)
            found = decision.post_filter
            if found is None or not found.status.is_success or not found.nominated_node_name:
                break
            for victim in found.victims:
                self.remove_pod(victim)
                victims.append((victim, found.nominated_node_name))
            candidate = nominated(pod, found.nominated_node_name)
        return TrialOutcome(pod, None, message, tuple(victims), by_others)

    def decide(self, pod: Pod, *, preempt: bool) -> Decision:
        """One scheduling cycle; nothing is taken."""
        scheduler = self.sandbox.scheduler
        self.sandbox.n_decisions += 1
        framework = self.sandbox.framework(pod)
        if not preempt:
            framework = self._lenient.setdefault(pod.scheduler_name, self.sandbox.without_post_filter(pod))
        return scheduler.algorithm.schedule(framework, pod, scheduler.cache.snapshot())

    def _take(self, pod: Pod, node_name: str) -> str:
        """Count the pod on its node and reserve for it; what Reserve says against it, empty when nothing."""
        framework = self.sandbox.framework(pod)
        self.put_pod(pod, node_name)
        if not framework.reserve:
            return ""
        status = framework.run_reserve(pod, node_name)
        if not status.is_success:
            framework.run_unreserve(pod, node_name)
            self._undo.pop()()
            return status.message
        self._undo.append(lambda: framework.run_unreserve(pod, node_name))
        return ""


def _is_by_others(attempt: Attempt) -> bool:
    if not attempt.pre_filter_status.is_success or attempt.extenders_took_nodes:
        return True
    filters = attempt.framework.filter
    stops = np.unique(attempt.stop[attempt.stop < len(filters)]).tolist()
    return any(stop < 0 or filters[stop].filter_reads is Reads.CLUSTER for stop in stops)


def homeless(pod: Pod) -> Pod:
    """The pod as its owner makes it anew: on no node, nothing of its past life."""
    spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeName"}
    return pod_from({**pod.manifest, "spec": spec, "status": {}})


def nominated(pod: Pod, node_name: str) -> Pod:
    """The pod with room made for it on a node."""
    status: dict[str, Any] = {**pod.manifest.get("status", {}), "nominatedNodeName": node_name}
    return pod_from({**pod.manifest, "status": status})


# ---- the copy that questions are asked of


def copy_of_cluster(simulation: Simulation, transport: Transport = no_transport, *, seed: int = 0) -> Sandbox:
    """A cluster's copy on which draws depend on the seed alone, and not on what the cluster drew before.

    So one question has one answer, wherever the same objects are asked.
    """
    sandbox = Sandbox(simulation.scheduler, transport=transport)
    sandbox.pin(seed)
    return sandbox


# ---- nodes that are alike to people

ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/pool",
    "pool",
)
"""Labels by which providers and people name a pool, the first that a node has counts."""


@dataclass(frozen=True, slots=True)
class EqualNodes:
    """What a node is shown under: its pool, else its instance type, else nothing; and its instance type."""

    name: str
    shape: str


def group_of(labels: Mapping[str, str]) -> EqualNodes:
    """The group of a node with these labels."""
    shape = labels.get(INSTANCE_TYPE, "")
    pool = next((labels[key] for key in POOL_LABELS if labels.get(key)), "")
    return EqualNodes(pool or shape or "nodes", shape)


def nodes_of(sandbox: Sandbox) -> list[Node]:
    """In evaluation order."""
    cache = sandbox.scheduler.cache
    return [node for name in sandbox.nodes_in_order() if (node := cache.node(name)) is not None]


def cpu_share(sandbox: Sandbox, name: str) -> int:
    """Requested cpu of a node in whole percent of what it has."""
    row = sandbox.scheduler.cache.nodes.row_of[name]
    have = sandbox.allocatable(CPU, row)
    return 0 if have <= 0 else round(100 * (have - sandbox.free(CPU, row)) / have)
