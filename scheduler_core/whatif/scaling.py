"""Loops of the autoscaler in a copy of a cluster whose scheduler, controllers and kubelets go on beside them.

A node that is asked for is there after a minute. An evicted pod is gone at once; where its owner is not among the
objects, the pod is made again here. Between loops that decide alike, and in which the cluster does not change, time
passes without a loop until a delay of the flags is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import DEFAULTS, MachineGroup
from scheduler_core.autoscaler.loop import Autoscaler, Loop
from scheduler_core.autoscaler.pasted import PRIORITIES, Given
from scheduler_core.autoscaler.scale_up import ScaleUp
from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import INSTANCE_TYPE, Report, group_of, homeless, silent
from scheduler_core.objects.duration import format_duration, parse_duration_ns
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_HOSTNAME, Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.prices import PriceList
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.cluster_edits import is_control_plane, node_like
from scheduler_core.whatif.take_away import EvictionBudgets
from scheduler_core.whatif.workloads import alive_pods

Document = Mapping[str, Any]
PROVISION_NS: Final = 60 * SECOND_NS
"""From the request for a node to the node."""
MOST_LOOPS: Final = 400
MOST_NS: Final = 6 * 3600 * SECOND_NS
MOST_LOOKS: Final = 1_500_000
"""Nodes and pods that all loops read together: a count, so that the answer is the same everywhere."""
MOST_CYCLES: Final = 20_000
_GUESSED_LEAST: Final = 10
_PRICE_CLASS: Final = "price-class"
_KINDS: Final = (
    "Node", "Pod", "PodDisruptionBudget", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "ReplicationController",
)  # fmt: skip
_WAITS: Final = (
    "scale-down-unneeded-time",
    "scale-down-unready-time",
    "scale-down-delay-after-add",
    "scale-down-delay-after-delete",
    "scale-down-delay-after-failure",
    "unremovable-node-recheck-timeout",
)


class _Hands(LiveCluster):
    """The cluster as the autoscaler lists it; what it writes is written into the simulation."""

    def __init__(self, simulation: Simulation, group_of_node: Mapping[str, str], more: Iterable[Document]):
        super().__init__(more, group_of_node)
        self._simulation = simulation
        self._known: dict[tuple[str, str, str], Document] = {}
        self._again = count(1)

    def look(self) -> None:
        """List the objects as they are now."""
        self.blocked.clear()
        world = self._simulation.world
        there = {(kind, *stored.key): stored.manifest for kind in _KINDS for stored in world.all(kind)}
        for key, manifest in there.items():
            if self._known.get(key) is not manifest:
                self.put(_priced(manifest) if key[0] == "Node" else manifest)
        for key in [key for key in self._known if key not in there]:
            self.delete(*key)
        self._known = there

    def set_taints(self, name: str, taints: list[Document], unschedulable: bool, now_ns: int) -> None:
        super().set_taints(name, taints, unschedulable, now_ns)
        stored = self._simulation.world.get("Node", "", name)
        if stored is None:
            return
        spec = {**(stored.manifest.get("spec") or {}), "taints": taints, "unschedulable": unschedulable}
        kept = {key: value for key, value in spec.items() if value}
        self._simulation.submit(WriteObject({**stored.manifest, "spec": kept}))

    def evict(self, key: str, now_ns: int) -> bool:
        namespace, _, name = key.partition("/")
        world = self._simulation.world
        pod = world.pod(namespace, name)
        budgets = EvictionBudgets(stored.typed for stored in world.all("PodDisruptionBudget"))
        if pod is not None and budgets.refusal(pod):
            self.blocked.add(key)
        done = super().evict(key, now_ns)
        if done and pod is not None:
            self._simulation.submit(DeleteObject("Pod", namespace, name, 0))
            self._make_again(pod)
        return done

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
        keeps_name = owner.kind == "StatefulSet"
        metadata["name"] = pod.name if keeps_name else f"{pod.name}-again-{next(self._again)}"
        metadata["uid"] = f"{pod.uid}-again"
        world.create({**made, "metadata": metadata}, "made again")

    def delete_node(self, name: str, group: str, now_ns: int) -> None:
        super().delete_node(name, group, now_ns)
        for pod in alive_pods(self._simulation):
            if pod.node_name == name:
                self._simulation.submit(DeleteObject("Pod", pod.namespace, pod.name, 0))
        self._simulation.submit(DeleteObject("Node", "", name))


def _priced(node: Document) -> Document:
    """The node with the label by which the price expander knows its price."""
    labels = node["metadata"].get("labels") or {}
    kind = labels.get(INSTANCE_TYPE)
    if not kind:
        return node
    return {**node, "metadata": {**node["metadata"], "labels": {**labels, _PRICE_CLASS: kind}}}


# ---- groups


@dataclass(slots=True)
class Groups:
    """Node groups of a cluster: as given, else one for each pool and instance type."""

    machines: list[MachineGroup]
    group_of: dict[str, str]
    guessed: bool


def groups_of(nodes: Sequence[Node], given: Given, prices: PriceList) -> Groups:
    """Find the groups and their nodes.

    Raises
    ------
    InvalidObject
        Nothing says what a node of a given group is like.
    """
    pools: dict[str, list[Node]] = {}
    workers = [node for node in nodes if not is_control_plane(node)]
    shapes: dict[str, set[str]] = {}
    for node in workers:
        pool = group_of(node.meta.labels)
        shapes.setdefault(pool.name, set()).add(pool.shape)
    for node in workers:
        pool = group_of(node.meta.labels)
        name = pool.name if len(shapes[pool.name]) == 1 else f"{pool.name}-{pool.shape}"
        pools.setdefault(name, []).append(node)
    if not given.groups:
        machines = [
            MachineGroup(
                name, 0, max(2 * len(members), _GUESSED_LEAST), len(members), _template(name, members)
            )
            for name, members in sorted(pools.items())
        ]
        return Groups(machines, {node.name: name for name in pools for node in pools[name]}, guessed=True)
    found = Groups([], {}, guessed=False)
    for place, group in enumerate(given.groups):
        members = pools.get(group.name) or [
            node for node in workers if group_of(node.meta.labels).name == group.name
        ]
        kind = next((one for one in prices.types if one.name == group.instance_type), None)
        if group.template is not None:
            template: Document = _named(group.template, f"template-{group.name}")
        elif kind is not None:
            labels = {**kind.labels, INSTANCE_TYPE: kind.name, "pool": group.name}
            amounts = dict(kind.allocatable)
            template = object_of(
                "v1",
                "Node",
                {"name": f"template-{group.name}", "labels": labels},
                spec={"taints": [dict(taint) for taint in kind.taints]},
                status={"allocatable": amounts, "capacity": amounts},
            )
        elif members:
            template = _template(group.name, members)
        else:
            said = "is of no node of the cluster: give it a template (a Node) or an instanceType of the price list"
            raise InvalidObject(f"autoscaler.nodeGroups[{place}].name", group.name, said)
        found.machines.append(
            MachineGroup(group.name, group.min_size, group.max_size, len(members), template)
        )
        found.group_of |= {node.name: group.name for node in members}
    return found


def _named(node: Document, name: str) -> Document:
    return {**node, "metadata": {**(node.get("metadata") or {}), "name": name}}


def _template(name: str, members: Sequence[Node]) -> Document:
    return node_like(members[0], f"template-{name}", plain=True).manifest


# ---- the run


@dataclass(slots=True)
class NodeFate:
    """A node's last verdict of the loops.

    Attributes
    ----------
    since_ns : int or None
        Since when it is not needed without a break.
    gone_ns : int or None
        When its removal began.
    moves : list of (str, str)
        Its pods, and where the autoscaler finds room for them.
    """

    group: str = ""
    reason: str = ""
    pod: str = ""
    pod_reason: str = ""
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
        self._options = {**DEFAULTS, **given.options}
        self._interval_ns = parse_duration_ns(str(self._options["scan-interval"]))
        nodes: list[Node] = sorted(
            (stored.typed for stored in simulation.world.all("Node")), key=lambda node: node.name
        )
        groups = groups_of(nodes, given, prices)
        fates = {node.name: NodeFate(groups.group_of.get(node.name, "")) for node in nodes}
        self.run = ScalingRun(simulation, groups, simulation.now_ns, fates, acted_ns=simulation.now_ns)
        more = [*_missing_owners(simulation)]
        if given.priorities:
            meta = {"name": PRIORITIES, "namespace": "kube-system"}
            more.append(object_of("v1", "ConfigMap", meta, data={"priorities": given.priorities}))
        self._hands = _Hands(simulation, groups.group_of, more)
        for machine in groups.machines:
            machine.template = _priced(machine.template)
        by_type = {kind.name: kind.price for kind in prices.types}
        self._autoscaler = Autoscaler(given.options, groups.machines, self._hands, by_type)
        self._births: list[tuple[int, str]] = []
        self._names = count(1)
        self._n_logged = 0
        self._told = ""
        self._wakes: set[int] = set()
        waits = sorted(parse_duration_ns(str(self._options[flag])) for flag in _WAITS)
        self._rest_ns = 2 * self._interval_ns + sum(waits[-2:])

    def go(self) -> ScalingRun:
        run, simulation = self.run, self._simulation
        n_looked, seen = 0, -1
        while True:
            now_ns, is_due = simulation.now_ns, simulation.now_ns in self._wakes
            if simulation.world.changes != seen or is_due or self._autoscaler.deletions.in_progress:
                if simulation.world.changes != seen:
                    run.acted_ns = now_ns
                n_looked += len(simulation.world.all("Node")) + len(simulation.world.all("Pod"))
                if run.n_loops >= MOST_LOOPS or n_looked > MOST_LOOKS:
                    run.limit = f"{run.n_loops:,} loops"
                    return run
                self._report(run.n_loops, 0, f"loop {run.n_loops + 1} at {self.time(now_ns)}")
                self._loop(now_ns)
                seen = simulation.world.changes
            if now_ns - run.acted_ns > self._rest_ns and not self._births:
                return run
            if now_ns - run.began_ns >= MOST_NS:
                run.limit = f"{format_duration(MOST_NS)} of virtual time"
                return run
            self._pass(now_ns + self._interval_ns)
            if run.n_cycles >= MOST_CYCLES:
                run.limit = f"{run.n_cycles:,} decisions of the scheduler"
                return run

    def time(self, at_ns: int) -> str:
        return format_duration(at_ns - self.run.began_ns)

    def _pass(self, until_ns: int) -> None:
        """Let time pass; nodes come meanwhile."""
        simulation = self._simulation
        while True:
            due_ns = min([until_ns, *(at_ns for at_ns, _ in self._births)])
            report = simulation.advance(due_ns - simulation.now_ns, max_cycles=MOST_CYCLES)
            self.run.n_cycles += report.cycles
            simulation.drain_cycles(), simulation.drain_outcomes(), simulation.drain_moves()
            born = [group for at_ns, group in self._births if at_ns <= due_ns]
            self._births = [birth for birth in self._births if birth[0] > due_ns]
            for group in born:
                self._bear(group)
            if not born or simulation.now_ns >= until_ns:
                return

    def _bear(self, group: str) -> None:
        machine = next(one for one in self.run.groups.machines if one.name == group)
        world = self._simulation.world
        name = next(
            name for number in self._names if world.node(name := f"{group}-new-{number}".lower()) is None
        )
        labels = {**(machine.template["metadata"].get("labels") or {}), LABEL_HOSTNAME: name}
        labels.pop(_PRICE_CLASS, None)
        status = dict(machine.template.get("status") or {})
        now = format_seconds(self._simulation.now_ns)
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
        made = {"name": name, "labels": labels}
        world.create({**machine.template, "metadata": made, "status": status}, "added by the autoscaler")
        self._hands.group_of[name] = group
        self.run.added[name] = group
        self.run.fates[name] = NodeFate(group)

    def _loop(self, now_ns: int) -> None:
        run = self.run
        self._autoscaler.advance(now_ns)
        self._hands.look()
        loop = self._autoscaler.run_once(now_ns)
        run.n_loops += 1
        for at_ns, entry in self._hands.log[self._n_logged :]:
            if entry.get("delta", 0) > 0 and "resize" in entry:
                self._births += [(at_ns + PROVISION_NS, entry["resize"])] * entry["delta"]
            if "deleteNode" in entry:
                run.removed.append(entry["deleteNode"])
            run.evictions += "evict" in entry
        self._n_logged = len(self._hands.log)
        for found in loop.scale_ups:
            if found.predicates or found.remaining:
                run.asked.append((now_ns, found, dict(loop.target_sizes)))
            if found.resizes:
                run.grew.append(Growing(now_ns, found))
        self._note_nodes(loop, now_ns)
        told = repr((loop.scale_ups[0].result, loop.scale_down, loop.target_sizes))
        if told != self._told:
            self._wakes.add(now_ns + self._interval_ns)
            for flag in _WAITS:
                wait_ns = parse_duration_ns(str(self._options[flag]))
                due_ns = now_ns + -(-wait_ns // self._interval_ns) * self._interval_ns
                self._wakes |= {due_ns, due_ns + self._interval_ns}
        self._told = told

    def _note_nodes(self, loop: Loop, now_ns: int) -> None:
        down, unneeded = loop.scale_down, set(loop.scale_down.unneeded)
        moves = {item["node"]: item["moves"] for item in down.simulations}
        for name, fate in self.run.fates.items():
            fate.used = down.utilization.get(name, fate.used)
            fate.moves = moves.get(name, fate.moves)
            found = down.unremovable.get(name)
            if found is not None and found["reason"] != "RecentlyUnremovable":
                fate.reason = found["reason"]
                fate.pod, fate.pod_reason = found.get("pod", ""), found.get("podReason", "")
            elif name in unneeded:
                fate.reason = down.result if down.result == "ScaleDownInCooldown" else "NoRoomForMore"
            elif found is None and down.candidates is not None and name not in down.candidates:
                fate.reason = "NodeGroupMinSizeReached" if fate.group else "NotAutoscaled"
            if name not in unneeded:
                fate.since_ns = None
            elif fate.since_ns is None:
                fate.since_ns = now_ns
        for item in down.deleting:
            self.run.fates[item["node"]].gone_ns = now_ns


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
    simulation = Simulation.restore(original.checkpoint(), plugins=original.registry)
    return _Scaling(simulation, given, prices, report).go()
