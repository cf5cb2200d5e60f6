"""What a cluster looks like at one moment: nodes, pods, queue, clock, figures, as plain data.

The same for a live engine, a replayed one and a scenario's run, so that boards of the past are drawn like boards
of the present.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playground.engine import columns
from playground.engine.batch import Engine
from playground.engine.entries import Entry
from scheduler_core.framework.record import CycleTrace
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import BySpec, Pod
from scheduler_core.scenario.ran import node_figures
from scheduler_core.scenario.record import budget_violations
from scheduler_core.schedule_one import Recorded
from scheduler_core.sim.simulation import Simulation


class StateReader:
    """Reads moments of one simulation; what did not change since the last one is not read again."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._pods: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._amounts: BySpec[tuple[Mapping[str, int], tuple[int, int, dict[str, int]]]] = BySpec(
            lambda pod: (pod.requests, columns.amount_columns(pod.requests))
        )

    def read(self, simulation: Simulation, *, with_figures: bool) -> dict[str, Any]:
        """The state now.

        Returns
        -------
        dict
            ``cycle``, ``clock_ns``, ``nodes`` (columns of a node row, with ``name``), ``pods`` (columns of a pod row,
            with ``namespace``, ``name``, ``uid`` and, of one that waits at Permit, ``reserved``), ``classes``
            (``[name, value, is_default]``), ``queue`` (lane -> pods), ``figures``.
        """
        world = simulation.world
        reserved = {item.pod.uid: item.node_name for item in simulation.scheduler.waiting_pods.all()}
        profiles = columns.profile_names(simulation.config)
        pods = []
        for stored in world.all("Pod"):
            pod = self._pod(stored.manifest, stored.typed, profiles)
            held = reserved.get(stored.typed.uid)
            pods.append(pod | {"reserved": held} if held else pod)
        state: dict[str, Any] = {
            "cycle": simulation.scheduler.cycle,
            "clock_ns": simulation.now_ns,
            "nodes": [self._node(stored.manifest, stored.typed) for stored in world.all("Node")],
            "pods": pods,
            "classes": [
                [
                    stored.manifest["metadata"]["name"],
                    int(stored.manifest.get("value") or 0),
                    bool(stored.manifest.get("globalDefault")),
                ]
                for stored in world.all("PriorityClass")
            ],
            "queue": simulation.queue_view(),
        }
        if with_figures:
            state["figures"] = figures_of(simulation)
        return state

    def _node(self, manifest: Mapping[str, Any], typed: Node) -> dict[str, Any]:
        name = typed.name
        known = self._nodes.get(name)
        if known is None or known[0] is not manifest:
            read = columns.node_columns(manifest, typed.allocatable)
            known = self._nodes[name] = (manifest, {"name": name, **read})
        return known[1]

    def _pod(self, manifest: Mapping[str, Any], typed: Pod, profiles: tuple[str, ...]) -> dict[str, Any]:
        known = self._pods.get(typed.uid)
        if known is None or known[0] is not manifest:
            known = self._pods[typed.uid] = (manifest, self._pod_columns(manifest, typed, profiles))
        return known[1]

    def _pod_columns(
        self, manifest: Mapping[str, Any], typed: Pod, profiles: tuple[str, ...]
    ) -> dict[str, Any]:
        """Columns of a pod row (`columns.pod_columns`), of what was read of the pod already: there may be 60,000."""
        meta, spec = typed.meta, manifest["spec"]
        requests, amounts = self._amounts.of(typed)
        cpu_milli, memory_bytes, extended = (
            amounts if requests is typed.requests else columns.amount_columns(typed.requests)
        )
        return {
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "phase": typed.phase or "Pending",
            "node_name": typed.node_name,
            "nominated_node": typed.nominated_node_name,
            "priority": typed.priority,
            "priority_class": spec.get("priorityClassName") or "",
            "cpu_milli": cpu_milli,
            "memory_bytes": memory_bytes,
            "extended": extended,
            "terminating": typed.is_terminating,
            "created_ns": meta.creation_ns or 0,
            "waits_for": columns.why_it_waits(manifest, profiles),
        }


def figures_of(simulation: Simulation) -> dict[str, float]:
    """How full, even and fragmented the nodes are, and how many pods have a place."""
    alive = [stored.typed for stored in simulation.world.all("Pod") if not stored.typed.is_terminal]
    bound = sum(bool(pod.node_name) for pod in alive)
    gated = sum(info.gated for info in simulation.scheduler.queue.unschedulable_pods())
    waiting = len(simulation.scheduler.waiting_pods)
    return {
        "bound": bound,
        "pending": len(alive) - bound - gated - waiting,
        "gated": gated,
        "waiting": waiting,
        **node_figures(simulation.scheduler.cache.nodes, alive),
    }


def violations_of(trace: bytes) -> int:
    """How many victims of a recorded cycle violated a PodDisruptionBudget."""
    return budget_violations(CycleTrace.from_bytes(trace))


def replay_moments(
    engine: Engine, entries: Iterable[Entry], first: int, last: int, *, recorded: Recorded | None = None
) -> dict[int, dict[str, Any]]:
    """Go through a stretch of log as `Engine.replay` does, and look after each cycle from `first` to `last`.

    Returns
    -------
    dict
        Cycle -> state after it.
    """
    simulation = engine.simulation
    reader = StateReader()
    found: dict[int, dict[str, Any]] = {}

    def look(current: Simulation) -> None:
        number = current.scheduler.cycle
        if first <= number <= last:
            found[number] = reader.read(current, with_figures=True)

    if first <= simulation.scheduler.cycle <= last:
        look(simulation)
    simulation.after_cycle = look
    try:
        engine.replay(entries, recorded=recorded)
    finally:
        simulation.after_cycle = None
    return found
