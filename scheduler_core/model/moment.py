"""The cluster just before a cycle, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_core.cluster.node_table import normal_port
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import HostPort, Pod
from scheduler_core.objects.policy import PodDisruptionBudget
from scheduler_core.releases import Release
from scheduler_core.sim.simulation import Simulation

ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, OTHER = "active", "backoff", "unschedulable", "gated", "other"


@dataclass(frozen=True, slots=True)
class Place:
    """A node and the pods the scheduler counts there, assumed ones included.

    Attributes
    ----------
    nominated : sequence of Pod
        Nominated to this node.
    forgotten : frozenset of HostPort
        Ports of pods here that count as free: a node keeps a set of ports, and one of two holders has left.
    """

    node: Node
    pods: Sequence[Pod]
    nominated: Sequence[Pod]
    forgotten: frozenset[HostPort]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node.

    Attributes
    ----------
    lane : str
        `ACTIVE` pods are ready, all others are held back.
    timestamp_ns : int
        When it entered the queue.
    """

    pod: Pod
    lane: str
    timestamp_ns: int


@dataclass(frozen=True, slots=True)
class Moment:
    """All of it.

    Attributes
    ----------
    places : sequence of Place or None
        In evaluation order; None where the cluster is too large to be taken down.
    namespaces : dict of str to dict
        Name -> labels.
    release : Release
        Whose rules hold.
    """

    cycle: int
    waiting: Sequence[Waiting]
    places: Sequence[Place] | None
    namespaces: dict[str, dict[str, str]]
    budgets: Sequence[PodDisruptionBudget]
    n_objects: int
    release: Release

    @classmethod
    def of(cls, simulation: Simulation, max_objects: int) -> Moment:
        """Take down what the scheduler knows now."""
        scheduler = simulation.scheduler
        cache, queue, listers = scheduler.cache, scheduler.queue, scheduler.cache.listers
        waiting = [Waiting(info.pod, ACTIVE, info.timestamp_ns) for info in queue.active_pods()]
        waiting += [
            Waiting(info.pod, BACKOFF, info.timestamp_ns)
            for info in (*queue.backoff_pods(), *queue.error_backoff_pods())
        ]
        waiting += [
            Waiting(info.pod, GATED if info.gated else UNSCHEDULABLE, info.timestamp_ns)
            for info in queue.unschedulable_pods()
        ]
        snapshot = cache.snapshot()
        nodes = snapshot.nodes
        rows = snapshot.order.tolist()
        n_objects = len(rows) + sum(len(nodes.pods_on(row)) for row in rows)
        places: list[Place] | None = None
        if n_objects <= max_objects:
            places = [
                Place(
                    nodes.node(row),
                    [snapshot.pods[pod_id] for pod_id in nodes.pods_on(row)],
                    scheduler.nominator.pods_for(nodes.name(row)),
                    frozenset(cache.nodes.forgotten_ports(row)),
                )
                for row in rows
            ]
        return cls(
            cycle=scheduler.cycle,
            waiting=waiting,
            places=places,
            namespaces={item.meta.name: dict(item.meta.labels) for item in listers.all("Namespace")},
            budgets=listers.all("PodDisruptionBudget"),
            n_objects=n_objects,
            release=simulation.release,
        )

    def pod(self, uid: str) -> Waiting | None:
        """The waiting pod of a uid."""
        return next((item for item in self.waiting if item.pod.uid == uid), None)


def ports_of(pod: Pod) -> frozenset[HostPort]:
    """Host ports a pod wants, an empty address written out."""
    return frozenset(normal_port(port) for port in pod.host_ports)
