"""Where pods would go by Karpenter: on nodes that are there, else on as few new ones as it would launch.

Pods are taken by size, the largest first. Each goes to the first node that takes it, else to the planned node with the
fewest pods that takes it, larger ones of its NodePool tried, else to a new one of the first NodePool that has any.
What a node takes is asked of the scheduler's own filters.

Source: pkg/controllers/provisioning/scheduling/{scheduler,queue,nodeclaim}.go of kubernetes-sigs/karpenter 2266468
Differs: the zone of a planned node is fixed by its first pod; preferences do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.templates import daemon_pod, runs_on
from scheduler_core.clock import Clock
from scheduler_core.fork import Fork, homeless
from scheduler_core.framework.attempt import Attempt
from scheduler_core.karpenter.node_pools import POOL, Offering
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.quantity import quantity_milli_value
from scheduler_core.objects.resources import CPU, MEMORY, PODS
from scheduler_core.plugins import default_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.releases import Release
from scheduler_core.scheduler import Scheduler

_PROFILE: Final = "default-scheduler"

Document = Mapping[str, Any]


@dataclass(slots=True)
class PlannedNode:
    """A node to be launched: the cheapest that holds its pods.

    Attributes
    ----------
    daemons : tuple of Pod
        That would start there.
    """

    name: str
    offering: Offering
    daemons: tuple[Pod, ...]
    pods: list[Pod] = field(default_factory=list)

    def asked(self) -> Counter[str]:
        """What all its pods ask for, in whole units."""
        return sum_of((*self.daemons, *self.pods))


@dataclass(slots=True)
class Provisioning:
    """Where pods would go.

    Attributes
    ----------
    on_nodes : dict of str to str
        Pod -> node that is there.
    refused : dict of str to str
        Pod -> why no node and no NodePool takes it.
    """

    planned: list[PlannedNode] = field(default_factory=list)
    on_nodes: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def sum_of(pods: Iterable[Pod]) -> Counter[str]:
    """What pods ask for together, in whole units; `pods` is how many they are."""
    found: Counter[str] = Counter()
    for pod in pods:
        found.update(pod.requests)
        found[PODS] += 1
    return found


class Provisioner:
    """The cluster as Karpenter packs it.

    Parameters
    ----------
    nodes : sequence of Node
        In the order in which they are tried.
    pods : iterable of Pod
        On these nodes.
    objects : iterable
        Typed: claims and volumes that pods name, and their namespaces.
    used : mapping of str to Counter
        NodePool -> what its nodes have together, in thousandths, and `nodes`.
    """

    def __init__(
        self,
        release: Release,
        nodes: Sequence[Node],
        pods: Iterable[Pod],
        objects: Iterable[Any],
        daemon_sets: Iterable[Document],
        offerings: Mapping[str, Sequence[Offering]],
        used: Mapping[str, Counter[str]],
    ) -> None:
        scheduler = Scheduler(default_configuration(release), Clock(0), Randomness(0))
        self.fork = Fork(scheduler)
        self.fork.create(objects)
        self._framework = scheduler.profiles[_PROFILE]
        self._names = [node.name for node in nodes]
        self.fork.set_nodes(nodes)
        there = {*self._names}
        for pod in pods:
            if pod.node_name in there:
                self.fork.put_pod(pod, pod.node_name)
        self._daemons = [daemon_pod(document) for document in daemon_sets]
        self._offerings = offerings
        self._used = {name: Counter(used.get(name, ())) for name in offerings}
        self._n_planned = 0

    def provision(
        self,
        pods: Iterable[Pod],
        *,
        without: Sequence[Node] = (),
        moving: Iterable[Pod] = (),
        closed: Collection[str] = (),
    ) -> Provisioning:
        """Find places; the cluster is as before afterwards.

        Parameters
        ----------
        without : sequence of Node
            That are gone.
        moving : iterable of Pod
            That want a place beside the others, on none of `closed`.
        """
        found, mark = Provisioning(), self.fork.mark()
        used = {name: Counter(amounts) for name, amounts in self._used.items()}
        self.fork.remove_nodes([node.name for node in without])
        for node in without:
            if (pool := node.labels.get(POOL, "")) in self._used:
                self._used[pool].subtract(capacity_of(node))
        moved = [homeless(pod) for pod in moving]
        kept_off = {pod.uid: closed for pod in moved}
        queue = sorted([*pods, *moved], key=_by_size)
        last: dict[str, int] = {}
        while queue and last.get(queue[0].uid) != len(queue):
            pod = queue.pop(0)
            why = self._add(pod, found, kept_off.get(pod.uid, ()))
            if why:
                found.refused[pod.key] = why
                queue.append(pod)
                last[pod.uid] = len(queue)
            else:
                found.refused.pop(pod.key, None)
        self.fork.back_to(mark)
        self._used = used
        return found

    def _attempt(self, pod: Pod) -> Attempt:
        attempt = Attempt(self._framework, pod, self.fork.snapshot)
        if attempt.run_pre_filter().is_success:
            attempt.run_filter()
        return attempt

    def _takers(self, pod: Pod) -> set[str]:
        attempt = self._attempt(pod)
        if not attempt.pre_filter_status.is_success:
            return set()
        return {attempt.name_of(row) for row in attempt.feasible.tolist()}

    def _add(self, pod: Pod, found: Provisioning, closed: Collection[str]) -> str:
        """Give a pod its place; why there is none."""
        takers = self._takers(pod) - {*closed}
        name = next((name for name in self._names if name in takers), None)
        if name is not None:
            self.fork.put_pod(pod, name)
            found.on_nodes[pod.key] = name
            return ""
        for planned in sorted(found.planned, key=lambda one: len(one.pods)):
            if planned.name in takers or self._grow(planned, pod):
                self.fork.put_pod(pod, planned.name)
                planned.pods.append(pod)
                return ""
        reasons = []
        for pool in self._offerings:
            why = self._open(pool, pod, found)
            if not why:
                return ""
            reasons.append(f"{pool}: {why}")
        return "; ".join(reasons)

    def _grow(self, planned: PlannedNode, pod: Pod) -> bool:
        """Have a planned node be the cheapest of its NodePool and zone that takes one more pod, if there is any."""
        now, asked = planned.offering, planned.asked() + sum_of((pod,))
        for one in self._offerings[now.pool.name]:
            if one.zone != now.zone or not fits(one, asked) or _refusal(pod, one.node):
                continue
            self._count(now, -1)
            if not self._is_within(one):
                self._count(now, 1)
                continue
            mark = self.fork.mark()
            self.fork.set_nodes([node_from(one.manifest(planned.name))])
            if planned.name in self._takers(pod):
                planned.offering = one
                self._count(one, 1)
                return True
            self.fork.back_to(mark)
            self._count(now, 1)
            return False
        return False

    def _open(self, pool: str, pod: Pod, found: Provisioning) -> str:
        """Plan a node of a NodePool for a pod; why there can be none."""
        offered, closed = self._offerings[pool], set[str]()
        if not offered:
            return "no type of the price list meets its requirements"
        why = ""
        for one in offered:
            if one.zone in closed:
                continue
            if said := _refusal(pod, one.node):
                why = why or said
                continue
            daemons = tuple(
                _named(daemon, self._n_planned) for daemon in self._daemons if runs_on(daemon, one.node)
            )
            if not fits(one, sum_of((*daemons, pod))):
                why = "no type that it may launch is large enough"
                continue
            if not self._is_within(one):
                why = "its limits leave no room for another node"
                continue
            name, mark = f"{pool}-planned-{self._n_planned}", self.fork.mark()
            self.fork.set_nodes([node_from(one.manifest(name))])
            for daemon in daemons:
                self.fork.put_pod(daemon, name)
            if name in self._takers(pod):
                self._n_planned += 1
                self._count(one, 1)
                self.fork.put_pod(pod, name)
                found.planned.append(PlannedNode(name, one, daemons, [pod]))
                return ""
            why = self._why_not(pod, name)
            self.fork.back_to(mark)
            closed.add(one.zone)
        return why

    def _why_not(self, pod: Pod, name: str) -> str:
        attempt = self._attempt(pod)
        if not attempt.pre_filter_status.is_success:
            return "; ".join(attempt.pre_filter_status.reasons)
        places = (attempt.rows == self.fork.cache.nodes.row_of[name]).nonzero()[0]
        verdict = attempt.verdict(int(places[0])) if len(places) else None
        return attempt.absent_reason if verdict is None else "; ".join(verdict[2])

    def _is_within(self, one: Offering) -> bool:
        used = self._used[one.pool.name] + capacity_of(one.node)
        return all(used[name] <= most for name, most in one.pool.limits.items())

    def _count(self, one: Offering, number: int) -> None:
        used = self._used[one.pool.name]
        for name, amount in capacity_of(one.node).items():
            used[name] += number * amount


def capacity_of(node: Node) -> Counter[str]:
    """What a node has, in thousandths, and itself as `nodes`."""
    status = node.manifest.get("status") or {}
    amounts = status.get("capacity") or status.get("allocatable") or {}
    return Counter({
        **{name: quantity_milli_value(str(value)) for name, value in amounts.items()},
        "nodes": 1000,
    })  # fmt: skip


def fits(one: Offering, asked: Mapping[str, int]) -> bool:
    """Whether a machine is large enough for so much."""
    allocatable = one.node.allocatable
    return all(amount <= allocatable.get(name, 0) for name, amount in asked.items() if amount > 0)


def options_of(planned: PlannedNode, offerings: Sequence[Offering], below: float) -> list[Offering]:
    """Machines that could stand in for a planned node, each cheaper than `below`, the cheapest first."""
    asked = planned.asked()
    return [
        one
        for one in offerings
        if one.price < below
        and one.zone == planned.offering.zone
        and fits(one, asked)
        and not any(_refusal(pod, one.node) for pod in planned.pods)
    ]


def _refusal(pod: Pod, node: Node) -> str:
    """Why a node with these labels and taints takes no such pod, empty if it may."""
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not pod.tolerates(taint):
            value = f"={taint.value}" if taint.value else ""
            return f"its taint {taint.key}{value}:{taint.effect} is not tolerated"
    try:
        matches = pod.required_node_affinity.match(node.labels, "")
    except SelectorError as error:
        return str(error)
    return "" if matches else "no machine that it may launch matches the pod's node selector or affinity"


def _by_size(pod: Pod) -> tuple[int, int, int, str]:
    return -pod.requests.get(CPU, 0), -pod.requests.get(MEMORY, 0), pod.meta.creation_ns or 0, pod.uid


def _named(daemon: Pod, number: int) -> Pod:
    """A DaemonSet's pod on one more node."""
    meta = {**daemon.manifest["metadata"], "name": f"{daemon.name}-{number}", "uid": f"{daemon.uid}:{number}"}
    return pod_from({**daemon.manifest, "metadata": meta})
