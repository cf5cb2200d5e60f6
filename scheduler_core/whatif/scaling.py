"""Loops of the autoscaler in a copy of a cluster whose scheduler, controllers and kubelets go on beside them.

Where the owner of an evicted pod is not among the objects, the pod is made again here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from scheduler_core.autoscaler.groups import Groups
from scheduler_core.autoscaler.loop import Loop
from scheduler_core.autoscaler.pasted import Given
from scheduler_core.autoscaler.scale_up import ScaleUp
from scheduler_core.fork import Report, homeless, silent
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.prices import PriceList
from scheduler_core.sim.controllers.cluster_autoscaler import ARRIVES, ClusterAutoscaler
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.workloads import alive_pods

Document = Mapping[str, Any]
MOST_LOOPS: Final = 400
MOST_NS: Final = 6 * 3600 * 10**9
MOST_LOOKS: Final = 1_500_000
"""Nodes and pods that all loops read together: a count, so that the answer is the same everywhere."""
MOST_CYCLES: Final = 20_000


@dataclass(slots=True)
class NodeFate:
    """A node's last verdict of the loops.

    Attributes
    ----------
    why : mapping
        Why it is there (`sim.outlook`).
    since_ns : int or None
        Since when it is not needed without a break.
    gone_ns : int or None
        When its removal began.
    moves : list of (str, str)
        Its pods, and where the autoscaler finds room for them.
    """

    group: str = ""
    why: dict[str, Any] = field(default_factory=dict)
    used: dict[str, Any] = field(default_factory=dict)
    since_ns: int | None = None
    gone_ns: int | None = None
    moves: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class Growing:
    """A scale-up that grew groups."""

    at_ns: int
    found: ScaleUp


@dataclass(slots=True)
class ScalingRun:
    """What happened until the cluster was at rest, or a limit was met."""

    simulation: Simulation
    groups: Groups
    began_ns: int
    fates: dict[str, NodeFate]
    grew: list[Growing] = field(default_factory=list)
    asked: list[tuple[int, ScaleUp, dict[str, int]]] = field(default_factory=list)
    """Scale-ups in which groups were asked, with the sizes of the groups after them."""
    added: dict[str, str] = field(default_factory=dict)
    """New node -> its group."""
    removed: list[str] = field(default_factory=list)
    evictions: int = 0
    n_loops: int = 0
    n_cycles: int = 0
    acted_ns: int = 0
    limit: str = ""


class _Scaling:
    def __init__(self, simulation: Simulation, given: Given, prices: PriceList, report: Report) -> None:
        self._simulation = simulation
        self._report = report
        self._again = count(1)
        self._n_looked = 0
        program = next(
            one for one in simulation.control_plane.controllers if isinstance(one, ClusterAutoscaler)
        )
        program.start(given, prices, _missing_owners(simulation))
        assert program.groups is not None
        program.on_loop = self._look
        program.hands.on_evicted = self._make_again
        self._program, groups = program, program.groups
        names = sorted(stored.typed.name for stored in simulation.world.all("Node"))
        fates = {name: NodeFate(groups.group_of.get(name, "")) for name in names}
        self.run = ScalingRun(simulation, groups, simulation.now_ns, fates, acted_ns=simulation.now_ns)

    def go(self) -> ScalingRun:
        run, simulation = self.run, self._simulation
        step_ns, seen = self._program.interval_ns, -1
        rest_ns = 2 * step_ns + sum(self._program.waits_ns[-2:])
        self._pass(0)
        while not run.limit:
            if simulation.world.changes != seen:
                run.acted_ns, seen = simulation.now_ns, simulation.world.changes
            arrives = any(timer.what == ARRIVES for timer in simulation.timers.all())
            if simulation.now_ns - run.acted_ns > rest_ns and not arrives:
                break
            if simulation.now_ns - run.began_ns >= MOST_NS:
                run.limit = f"{format_duration(MOST_NS)} of virtual time"
                break
            self._pass(step_ns)
            if run.n_cycles >= MOST_CYCLES:
                run.limit = f"{run.n_cycles:,} decisions of the scheduler"
        return run

    def _pass(self, for_ns: int) -> None:
        """Let time pass; nodes come meanwhile."""
        run, simulation = self.run, self._simulation
        run.n_cycles += simulation.advance(for_ns, max_cycles=MOST_CYCLES).cycles
        (
            simulation.drain_cycles(),
            simulation.drain_outcomes(),
            simulation.drain_moves(),
            simulation.drain_runs(),
        )
        for name, group in self._program.hands.group_of.items():
            if name not in run.fates:
                run.added[name] = group
                run.fates[name] = NodeFate(group)

    def _look(self, loop: Loop, log: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        run, world, now_ns = self.run, self._simulation.world, self._simulation.now_ns
        run.n_loops += 1
        self._n_looked += len(world.all("Node")) + len(world.all("Pod"))
        if run.n_loops >= MOST_LOOPS or self._n_looked > MOST_LOOKS:
            run.limit = run.limit or f"{run.n_loops:,} loops"
        self._report(run.n_loops, 0, f"loop {run.n_loops} at {format_duration(now_ns - run.began_ns)}")
        for _, entry in log:
            if "deleteNode" in entry:
                run.removed.append(entry["deleteNode"])
            run.evictions += "evict" in entry
        for found in loop.scale_ups:
            if found.predicates or found.remaining:
                run.asked.append((now_ns, found, dict(loop.target_sizes)))
            if found.resizes:
                run.grew.append(Growing(now_ns, found))
        self._note_nodes(loop, now_ns)

    def _note_nodes(self, loop: Loop, now_ns: int) -> None:
        down, unneeded = loop.scale_down, set(loop.scale_down.unneeded)
        moves = {item["node"]: item["moves"] for item in down.simulations}
        before = {name: fate.why for name, fate in self.run.fates.items() if fate.why}
        why = self._program.node_reasons(loop, before)
        for name, fate in self.run.fates.items():
            fate.used = down.utilization.get(name, fate.used)
            fate.moves = moves.get(name, fate.moves)
            fate.why = why.get(name, fate.why)
            if name not in unneeded:
                fate.since_ns = None
            elif fate.since_ns is None:
                fate.since_ns = now_ns
        for item in down.deleting:
            self.run.fates[item["node"]].gone_ns = now_ns

    def _make_again(self, pod: Pod) -> None:
        """What an owner does that is not among the objects."""
        owner, world = pod.meta.controller, self._simulation.world
        if owner is None or owner.kind == "DaemonSet" or world.get(owner.kind, pod.namespace, owner.name):
            return
        made = homeless(pod).manifest
        metadata = {
            key: value
            for key, value in made["metadata"].items()
            if key in ("namespace", "labels", "annotations", "ownerReferences")
        }
        metadata["name"] = f"{pod.name}-again-{next(self._again)}"
        metadata["uid"] = f"{pod.uid}-again"
        world.create({**made, "metadata": metadata}, "made again")


def _missing_owners(simulation: Simulation) -> Iterable[Document]:
    """Owners of pods that are not among the objects: they are taken to be there."""
    made: dict[tuple[str, str, str], Document] = {}
    for pod in alive_pods(simulation):
        owner = pod.meta.controller
        if owner is not None and simulation.world.get(owner.kind, pod.namespace, owner.name) is None:
            meta = {"name": owner.name, "namespace": pod.namespace, "uid": owner.uid}
            made.setdefault(
                (owner.kind, pod.namespace, owner.name),
                object_of(owner.api_version, owner.kind, meta, spec={}),
            )
    # A DaemonSet without a template is none that makes pods.
    return [document for key, document in made.items() if key[0] not in ("DaemonSet", "Node")]


def run_loops(original: Simulation, given: Given, prices: PriceList, report: Report = silent) -> ScalingRun:
    """Run the autoscaler beside the scheduler until nothing changes any longer.

    Parameters
    ----------
    original : Simulation
        Read, never changed.

    Raises
    ------
    InvalidObject
        A group cannot be used.
    """
    simulation = original.acting(plugins=original.registry)
    return _Scaling(simulation, given, prices, report).go()
