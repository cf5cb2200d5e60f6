"""Changes of a copied cluster that are taken back: nodes and pods go, pods find new places, and all is as it was.

Decisions are the scheduler's own (`Sandbox.decide`, PreFilter to PostFilter), and Reserve counts what they take. What
comes after Reserve is not run: Permit and PreBind hold no pod back here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.cluster.node_table import Rows
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.interface import Reads
from scheduler_core.framework.runtime import Framework
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.schedule_one import Decision

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
