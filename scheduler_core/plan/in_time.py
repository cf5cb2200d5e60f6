"""A drain as time goes by: evictions are tried again until budgets allow them, pods end in their grace, owners make
others. It is run on a cluster of its own, made from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_core.clock import SECOND_NS
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.plan.take_away import OF_THE_NODE, EvictionBudgets, cordoned, in_listed_order, owner_kind
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation

RETRY_NS = 5 * SECOND_NS
"""How long `kubectl drain` waits before it asks for a refused eviction again (pkg/drain/drain.go)."""


@dataclass(slots=True)
class DrainedInTime:
    """What came of it.

    Attributes
    ----------
    took_ns : int
        Virtual time until the nodes were empty and every pod that was made anew had its node; the limit if not.
    left : list of str
        Pods still on the nodes then, `namespace/name`.
    refused : dict of str to str
        Of these, why the last eviction was refused.
    waiting : list of str
        Pods that were made meanwhile and have no node.
    """

    took_ns: int
    left: list[str]
    refused: dict[str, str]
    waiting: list[str]

    @property
    def is_done(self) -> bool:
        return not self.left and not self.waiting


def drain_in_time(
    original: Simulation, nodes: Sequence[str], limit_ns: int, *, transport: Transport = no_transport
) -> DrainedInTime:
    """Drain nodes as `kubectl drain --ignore-daemonsets --force` does, for at most so long.

    Parameters
    ----------
    original : Simulation
        Read, never changed.
    limit_ns : int
        Virtual time there is.

    Raises
    ------
    KeyError
        A node is not there.
    """
    simulation = Simulation.restore(original.checkpoint(), transport=transport)
    world = simulation.world
    waited_before = {pod.uid for pod in _alive(simulation) if not pod.node_name}
    for name in nodes:
        node: Node | None = world.node(name)
        if node is None:
            raise KeyError(f"there is no node {name}")
        simulation.submit(WriteObject(dict(cordoned(node).manifest)))
    began_ns = simulation.now_ns
    while True:
        refused: dict[str, str] = {}
        left = _to_leave(simulation, nodes)
        for pod in left:
            if pod.is_terminating:
                continue
            # Read for each: an eviction takes from the budget that the next one asks.
            why = EvictionBudgets(stored.typed for stored in world.all("PodDisruptionBudget")).refusal(pod)
            if why:
                refused[pod.key] = why
                continue
            simulation.submit(DeleteObject("Pod", pod.namespace, pod.name, None))
            simulation.advance(0)
        took_ns = simulation.now_ns - began_ns
        left = _to_leave(simulation, nodes)
        waiting = [
            pod.key for pod in _alive(simulation) if not pod.node_name and pod.uid not in waited_before
        ]
        if (not left and not waiting) or took_ns >= limit_ns:
            return DrainedInTime(took_ns, [pod.key for pod in left], refused, waiting)
        deadline = simulation.next_deadline()
        if deadline is None or deadline.at_ns - began_ns > limit_ns:
            return DrainedInTime(limit_ns, [pod.key for pod in left], refused, waiting)
        until_ns = max(simulation.now_ns + RETRY_NS, deadline.at_ns)
        simulation.advance(min(until_ns - simulation.now_ns, limit_ns - took_ns))


def _alive(simulation: Simulation) -> list[Pod]:
    pods = (stored.typed for stored in simulation.world.all("Pod"))
    return in_listed_order(pod for pod in pods if not pod.is_terminal)


def _to_leave(simulation: Simulation, nodes: Sequence[str]) -> list[Pod]:
    gone = set(nodes)
    return [pod for pod in _alive(simulation) if pod.node_name in gone and owner_kind(pod) not in OF_THE_NODE]
