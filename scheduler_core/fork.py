"""A fork of what a scheduler knows: cycles run on it never happen in the cluster, and changes of it are taken back.

The fork shares every object with the original (objects are frozen) and none of its columns, queues or streams, so
whatever is done to it leaves the original unchanged. Copying 60,000 pods takes a few milliseconds. Decisions are the
scheduler's own, PreFilter to PostFilter, and Reserve counts what they take; Permit and PreBind are not run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

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
from scheduler_core.objects.meta import PlainObject, object_of, plain_object_from
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, pod_from, says_nothing_of_requests, with_node
from scheduler_core.objects.resources import CPU
from scheduler_core.randomness import Randomness
from scheduler_core.schedule_one import Decision
from scheduler_core.scheduler import Scheduler

MAX_TRIES = 3
"""How often a pod is decided again after its preemption: once is enough unless a plugin changes its mind."""

Report = Callable[[int, int, str], None]
"""(steps done, steps in all or 0 when that is not known, what is tried now); may raise to end the question."""


def silent(done: int, total: int, what: str) -> None:
    """No report."""


@dataclass(frozen=True, slots=True)
class PlacedPod:
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


class Fork:
    """A scheduler over a copy of another one's cluster, with an empty queue.

    Parameters
    ----------
    original : Scheduler
        Read, never changed.
    transport : Transport
        Carries calls to extenders, if any are configured: they are asked as in a real cycle.
    seed : int, optional
        Draw by it, and look at nodes from the first one: answers follow from the objects alone, and not from what
        the cluster drew before. Without it questions are about the cluster's own next cycle.

    Attributes
    ----------
    scheduler, cache
        The copy.
    n_decisions : int
        Cycles that were run on it, those of PreFilter and Filter alone among them.
    """

    N_SEEDS: Final = 20

    def __init__(
        self, original: Scheduler, *, transport: Transport = no_transport, seed: int | None = None
    ) -> None:
        self.n_decisions = 0
        self._undo: list[Callable[[], object]] = []
        self._lenient: dict[str, Framework] = {}
        randomness = Randomness(0)
        randomness.restore(original.randomness.state())
        self.cache = original.cache.copy()
        self.scheduler = Scheduler(
            original.loaded,
            Clock(original.clock.now_ns),
            randomness,
            registry=original.registry,
            options=replace(original.options, full_traces=True),
            transport=transport,
            cache=self.cache,
        )
        self._copy_pods(original)
        self.scheduler.cycle = original.cycle
        self.scheduler.algorithm.next_start_node_index = original.algorithm.next_start_node_index
        self._start_index = original.algorithm.next_start_node_index
        self._streams = randomness.state()
        self._drew = False
        if seed is not None:
            self.pin(seed)
            self._drew = False

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
        return self.cache.snapshot()

    def framework(self, pod: Pod, *, preempt: bool = True) -> Framework:
        """The pod's profile, with or without its PostFilter plugins.

        Raises
        ------
        KeyError
            No profile here has the pod's schedulerName.
        """
        name = pod.scheduler_name
        if preempt:
            return self.scheduler.profiles[name]
        if name not in self._lenient:
            self._lenient[name] = copy.copy(self.scheduler.profiles[name])
            self._lenient[name].post_filter = []
        return self._lenient[name]

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
        framework = self.framework(pod, preempt=preempt)
        if weights is not None:
            framework = copy.copy(framework)
            framework.weights = {**framework.weights, **weights}
            # Kept answers are weighted sums.
            framework.answers = Answers(self.cache.nodes)
        self.rewind()
        return self._cycle(framework, pod)

    def _cycle(self, framework: Framework, pod: Pod) -> Decision:
        self.n_decisions += 1
        return self.scheduler.algorithm.schedule(framework, pod, self.snapshot)

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
        if self.scheduler.extenders:
            return self.decide(pod).node_name is not None
        try:
            return bool(len(self.attempt(pod).feasible))
        except PluginFailure:
            return False

    def rewind(self) -> None:
        """Every question is about the same next cycle: same start index, same draws."""
        self._drew = self._drew or self.scheduler.randomness.state() != self._streams
        self.scheduler.algorithm.next_start_node_index = self._start_index
        self.scheduler.randomness.restore(self._streams)

    def pin(self, seed: int) -> None:
        """Draw by this seed from here on, and look at nodes from the first one."""
        self._start_index, self._streams = 0, Randomness(seed).state()
        self.rewind()

    def draws(self, run: Callable[[], object]) -> bool:
        """Whether a run draws from any stream; where it does not, it is the same with every seed."""
        self.rewind()
        self._drew = False
        run()
        self.rewind()
        found, self._drew = self._drew, True
        return found

    def luck(
        self, n_decisions: int, holds: Callable[[], bool], most: int, report: Report = silent
    ) -> tuple[int, int]:
        """(seeds, in how many it holds) of an answer by the seed 0, one of them; (0, 0) where it costs too much.

        Where nothing was drawn, all seeds are the same.

        Parameters
        ----------
        n_decisions, most : int
            What one seed costs, and what all may cost: counts, so that an answer is the same everywhere.
        holds : callable
            Whether the answer holds with the seed that is pinned.
        """
        self.rewind()
        if not self._drew:
            return self.N_SEEDS, self.N_SEEDS
        n_seeds = min(self.N_SEEDS, 1 + most // max(1, n_decisions))
        if n_seeds < 2:
            return 0, 0
        found = 1
        for seed in range(1, n_seeds):
            report(seed, n_seeds, f"with seed {seed}")
            self.pin(seed)
            found += holds()
        self.pin(0)
        return n_seeds, found

    # ---- changing

    @contextmanager
    def changes(
        self,
        *,
        gone: Iterable[Pod] = (),
        nodes: Iterable[Node] = (),
        objects: Sequence[Any] = (),
        placed: Iterable[tuple[Pod, str]] = (),
    ) -> Iterator[None]:
        """A series of changes, which the end of the `with` block takes back, the last one first.

        Afterwards the fork is the same to the row: an answer does not depend on the questions before it.

        Parameters
        ----------
        gone : iterable of Pod
            Pods that leave their nodes.
        nodes : iterable of Node
            Nodes that are added, or that take the place of those of their names.
        objects : sequence
            Objects of storage that are created, or that take the place of those of their names.
        placed : iterable of (Pod, str)
            Pods that count as running on a node.
        """
        mark = self.mark()
        self.rewind()
        try:
            for pod in gone:
                self.remove_pod(pod)
            self.set_nodes(nodes)
            self.create(objects)
            for pod, node_name in placed:
                self.put_pod(pod, node_name)
            yield
        finally:
            self.back_to(mark)

    def mark(self) -> int:
        """A moment to come back to."""
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Take back what was done since, the last one first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def begin(self, nodes: Sequence[Node], pods: Collection[Pod]) -> None:
        """Hold nodes and the pods on them, where there were none: at once, and not to be taken back."""
        self.cache.add_nodes(nodes)
        self.cache.fill([*pods], {})

    def _keep_order(self) -> None:
        places = self.cache.node_places()
        self._undo.append(lambda: self.cache.restore_node_places(places))

    def remove_nodes(self, names: Iterable[str]) -> None:
        """Take nodes away with all that is on them."""
        self._keep_order()
        for name in names:
            node = self.cache.node(name)
            if node is None:
                continue
            self.remove_pods(name, self.pods_on(name))
            self.cache.remove_node(name)
            self._undo.append(partial(self.cache.set_node, node))

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Add nodes, or put them in place of those of their names."""
        is_kept = False
        for node in nodes:
            before = self.cache.node(node.name)
            if not is_kept and (before is None or before.zone_key != node.zone_key):
                self._keep_order()
                is_kept = True
            self.cache.set_node(node)
            undo = partial(self.cache.remove_node, node.name)
            self._undo.append(undo if before is None else partial(self.cache.set_node, before))

    def remove_pod(self, pod: Pod) -> None:
        """Take a pod off its node; one that is on none changes nothing."""
        node_name = self.cache.node_name_of(pod.uid)
        if node_name is not None:
            self.remove_pods(node_name, [pod])

    def remove_pods(self, node_name: str, pods: Sequence[Pod]) -> None:
        """Take pods off the node they are on."""
        cache, known_pods = self.cache, self.scheduler.pods
        known = {pod.uid: known_pods.pop(pod.uid) for pod in pods if pod.uid in known_pods}
        away = cache.take_away(node_name, pods)
        for pod in pods:
            if pod.resource_claims:
                self._give_back(pod)

        def put_back() -> None:
            cache.bring_back(away)
            known_pods.update(known)

        self._undo.append(put_back)

    def _give_back(self, pod: Pod) -> None:
        """The devices of a pod that left are free, as far as no other pod has its claims."""
        statuses = (pod.manifest.get("status") or {}).get("resourceClaimStatuses") or ()
        for item in (*pod.resource_claims, *statuses):
            name = item.get("resourceClaimName") or ""
            claim = self.cache.listers.get("ResourceClaim", pod.namespace, name)
            status = {} if claim is None else claim.manifest.get("status") or {}
            users = status.get("reservedFor") or ()
            left = [user for user in users if user.get("uid") != pod.uid]
            if claim is not None and len(left) < len(users):
                status = {**status, "reservedFor": left} if left else {}
                self.create([plain_object_from({**claim.manifest, "status": status})])

    def anew(self, pod: Pod) -> Pod:
        """The pod as its owner makes it anew, and its claims for devices as they are made of their templates."""
        made = homeless(pod)
        if pod.resource_claims:
            templates = partial(self.cache.listers.get, "ResourceClaimTemplate", pod.namespace)
            made, claims = with_claims(made, lambda name: getattr(templates(name), "manifest", None))
            self.create(claims)
        return made

    def put_pod(self, pod: Pod, node_name: str) -> None:
        """Count a pod as running on a node; a nomination of it is no longer needed."""
        nominator, uid = self.scheduler.nominator, pod.uid
        nominated_node = nominator.node_of(uid)
        if nominated_node is not None:
            nominator.remove(uid)
            self._undo.append(lambda: nominator.add(self.scheduler.pods.get(uid, pod), nominated_node))
        self.cache.assume(pod, node_name)
        self._undo.append(partial(self.cache.forget, uid))

    def put_copies(self, pod: Pod, rows: Rows) -> NDArray[np.intp]:
        """Count a pod once for each of `rows`, by its amounts and ports alone; ids of the copies.

        Nothing that matches pods by their labels sees the copies, and `Cache` does not find them.
        """
        pods, nodes = self.cache.pods, self.cache.nodes
        pod_ids = np.array([pods.add(pod, findable=False) for _ in range(len(rows))], np.intp)
        pods.row[pod_ids] = rows
        nodes.add_pods(rows, pod_ids)

        def take_off() -> None:
            for row, pod_id in zip(rows[::-1].tolist(), pod_ids[::-1].tolist(), strict=True):
                nodes.remove_pod(row, pod_id)
                pods.remove(pod_id)

        self._undo.append(take_off)
        return pod_ids

    def create(self, objects: Iterable[Any]) -> None:
        """Create objects of storage, or put them in place of those of their names."""
        changed, get = self.scheduler.event_handlers.object_changed, self.cache.listers.get
        for item in objects:
            kind, meta = item.manifest["kind"], item.manifest["metadata"]
            before = get(kind, meta.get("namespace") or "", meta["name"])
            changed(kind, before, item)
            self._undo.append(partial(changed, kind, item, before))

    def place(self, pod: Pod, *, preempt: bool = True) -> PlacedPod:
        """Decide about a pod that is on no node, and give it its place; draws go on from those before.

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
            decision = self._cycle(self.framework(candidate, preempt=preempt), candidate)
            if decision.node_name is not None and decision.error is None:
                message = self._take(candidate, decision.node_name)
                if not message:
                    return PlacedPod(pod, decision.node_name, victims=tuple(victims))
                break
            message, by_others = decision.message or "", _is_by_others(decision.attempt)
            found = decision.post_filter
            if found is None or not found.status.is_success or not found.nominated_node_name:
                break
            for victim in found.victims:
                self.remove_pod(victim)
                victims.append((victim, found.nominated_node_name))
            status = {**pod.manifest.get("status", {}), "nominatedNodeName": found.nominated_node_name}
            candidate = pod_from({**pod.manifest, "status": status})
        return PlacedPod(pod, None, message, tuple(victims), by_others)

    def _take(self, pod: Pod, node_name: str) -> str:
        """Count the pod on its node and reserve for it; what Reserve says against it, empty when nothing."""
        framework = self.framework(pod)
        mark = self.mark()
        self.put_pod(pod, node_name)
        if not framework.reserve:
            return ""
        status = framework.run_reserve(pod, node_name)
        if not status.is_success:
            framework.run_unreserve(pod, node_name)
            self.back_to(mark)
            return status.message
        self._undo.append(lambda: framework.run_unreserve(pod, node_name))
        return ""

    # ---- reading

    @cached_property
    def daemon_pods(self) -> tuple[Pod, ...]:
        """One pod of each DaemonSet that is seen on a node: a new node gets one too, if it may run there."""
        found: dict[tuple[str, str], Pod] = {}
        for pod in self.cache.pods_in_order():
            controller = pod.meta.controller
            if controller is not None and controller.kind == "DaemonSet":
                found.setdefault((pod.namespace, controller.name), pod)
        return tuple(found[key] for key in sorted(found))

    def nodes_in_order(self) -> list[str]:
        """Names in evaluation order."""
        return self.snapshot.names()

    def nodes(self) -> list[Node]:
        """In evaluation order."""
        snapshot = self.snapshot
        return [snapshot.nodes.node(row) for row in snapshot.order.tolist()]

    def pods_on(self, node_name: str) -> list[Pod]:
        """Pods of a node in order of arrival."""
        row = self.cache.nodes.row_of.get(node_name)
        return [] if row is None else self.cache.pods.all_of(self.cache.nodes.pods_on(row))

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

    def cpu_share(self, name: str) -> int:
        """Requested CPU of a node in whole percent of what it has."""
        row = self.cache.nodes.row_of[name]
        have = self.allocatable(CPU, row)
        return 0 if have <= 0 else round(100 * (have - self.free(CPU, row)) / have)


def names_of(decision: Decision, limit: int = 20) -> tuple[str, ...]:
    """Feasible nodes of a decision in evaluation order."""
    attempt = decision.attempt
    rows = attempt.in_order(np.unique(attempt.feasible))
    return tuple(dict.fromkeys(attempt.name_of(row) for row in rows[:limit].tolist()))


def _is_by_others(attempt: Attempt) -> bool:
    if not attempt.pre_filter_status.is_success or attempt.extenders_took_nodes:
        return True
    filters = attempt.framework.filter
    stops = np.unique(attempt.stop[attempt.stop < len(filters)]).tolist()
    return any(stop < 0 or filters[stop].filter_reads is Reads.CLUSTER for stop in stops)


def homeless(pod: Pod) -> Pod:
    """The pod as its owner makes it anew: on no node, nothing of its past life."""
    spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeName"}
    manifest = {**pod.manifest, "spec": spec, "status": {}}
    as_written = says_nothing_of_requests(pod.manifest.get("status") or {})
    return with_node(pod, "", manifest) if as_written else pod_from(manifest)


def with_claims(
    pod: Pod, template: Callable[[str], Mapping[str, Any] | None]
) -> tuple[Pod, list[PlainObject]]:
    """The pod with a claim of each ResourceClaimTemplate that it names and that is there; and these claims."""
    claims: list[PlainObject] = []
    statuses = []
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    for item in pod.resource_claims:
        found = template(item.get("resourceClaimTemplateName") or "")
        if found is not None:
            name = f"{pod.name}-{item['name']}"
            uid = f"claim-{item['name']}-of-{pod.uid}"
            meta = {"name": name, "namespace": pod.namespace, "uid": uid, "ownerReferences": [owner]}
            made = object_of("resource.k8s.io/v1", "ResourceClaim", meta, spec=found["spec"]["spec"])
            claims.append(plain_object_from(made))
            statuses.append({"name": item["name"], "resourceClaimName": name})
    status = {**(pod.manifest.get("status") or {}), "resourceClaimStatuses": statuses}
    return pod_from({**pod.manifest, "status": status}) if claims else pod, claims


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
NO_POOL = "nodes"
"""The group of nodes whose labels name none."""
PLACE_LABELS = (INSTANCE_TYPE, *POOL_LABELS, ZONE, "failure-domain.beta.kubernetes.io/zone")
"""What says where and what a node is."""


class EqualNodes(NamedTuple):
    """What a node is shown under: its pool, else its instance type, else nothing; and its instance type."""

    name: str
    shape: str


def is_control_plane(node: Node) -> bool:
    """Whether kubeadm or a provider marked it so."""
    return any(f"node-role.kubernetes.io/{role}" in node.meta.labels for role in ("control-plane", "master"))


def group_of(labels: Mapping[str, str]) -> EqualNodes:
    """The group of a node with these labels."""
    shape = labels.get(INSTANCE_TYPE, "")
    pool = next((labels[key] for key in POOL_LABELS if labels.get(key)), "")
    return EqualNodes(pool or shape or NO_POOL, shape)
