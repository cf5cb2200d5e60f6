"""A cycle of the past decided again from the objects there were before it, without living through what led to them.

Which node a pod gets follows from the nodes, the pods on them, a few other objects and two counters: how many draws
were made, and where the search for nodes began. All of them are known of any moment, as long as nothing was under way
that no object tells. So nothing is simulated here: objects are put in place, the scheduler decides one pod, and forgets
it.

What cannot be told so is refused (`NotPlain`): it has to be lived through again (`Simulation.follow`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler_core.events import BindAnswered
from scheduler_core.framework.record import BOUND, CycleTrace
from scheduler_core.objects.kinds import KINDS, parse
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.releases import release_from
from scheduler_core.schedule_one import TIE_STREAM
from scheduler_core.sim.checkpoint import check_version
from scheduler_core.sim.faults import FaultOptions
from scheduler_core.sim.manifests import pack, unpack
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation

Key = tuple[str, str]
"""A pod's namespace and name."""

STILL: Final = (
    "assumed", "awaited", "expired", "heldPods", "nominations", "preemptions", "waiting", "bindings", "untold"
)  # fmt: skip
"""Parts of a checkpoint that are empty where nothing is under way."""
_PLAIN_PLUGINS: Final = frozenset(
    (
        *(
            "PrioritySort",
            "SchedulingGates",
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
        ),
        *("NodePorts", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeZone"),
        *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "PodTopologySpread", "InterPodAffinity"),
        *("DynamicResources", "NodeDeclaredFeatures", "GangScheduling", "DefaultPreemption", "DefaultBinder"),
    )
)
"""What they find follows from the objects there are, for pods that need nothing done before they are bound."""


class NotPlain(Exception):
    """What led to the cycle is more than objects tell."""


class Past:
    """The scheduler of a cluster with the objects of a checkpoint, or of any moment after it.

    Parameters
    ----------
    document : mapping
        What `Simulation.checkpoint` gave.

    Attributes
    ----------
    cycle : int
        The last one before the checkpoint.
    spoilt : bool
        Something went wrong half way: it is of no use any more.

    Raises
    ------
    NotPlain
        Something was under way then, or the configuration has plugins or extenders that remember things.
    ValueError
        The checkpoint is of another version.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        check_version(document)
        for part in STILL:
            if document.get(part):
                raise NotPlain(f"{part} are under way")
        if any(state for states in document["plugins"].values() for state in states.values()):
            raise NotPlain("plugins remember something")
        options = dict(document["options"])
        faults = FaultOptions(**options.pop("faults"))
        if faults.any:
            raise NotPlain("there are faults")
        simulation = Simulation(
            document["config"],
            start_ns=document["nowNs"],
            options=SimulationOptions(**options),
            release=release_from(document.get("release")),
        )
        self._scheduler = scheduler = simulation.scheduler
        if scheduler.extenders:
            raise NotPlain("extenders were asked")
        for framework in scheduler.profiles.values():
            if not _PLAIN_PLUGINS.issuperset(framework.plugins):
                raise NotPlain("plugins may remember something")
        self.cycle: int = document["cycle"]
        self.spoilt = False
        self._randomness = document["randomness"]
        self._start_index: int = document["startIndex"]
        self._then: dict[Key, Pod] = {}
        self._now: dict[Key, Pod] = {}
        self._others: dict[tuple[str, str, str], Any] = {}
        self._fill(document)

    def _fill(self, document: Mapping[str, Any]) -> None:
        cache = self._scheduler.cache
        world = document["world"]
        nodes: dict[str, Any] = {}
        pods: dict[str, Pod] = {}
        for manifest, typed in unpack(world.get("manifests") or pack(world["objects"])):
            if typed is None:
                continue
            kind, meta = manifest["kind"], typed.meta
            if kind == "Pod":
                self._now[(meta.namespace, meta.name)] = pods[meta.uid] = typed
            elif kind == "Node":
                nodes[meta.name] = typed
            elif kind == "PodGroup":
                raise NotPlain("there are pod groups")
            else:
                self._others[(kind, meta.namespace, meta.name)] = typed
        for name in document["nodeOrder"]:
            cache.set_node(nodes[name])
        for (kind, namespace, name), typed in self._others.items():
            cache.listers.set(kind, namespace, name, typed)
        cache.fill([pods[uid] for uid in document["podOrder"]], {})
        self._then.update(self._now)

    # ---- which objects there are

    def put(self, manifest: Mapping[str, Any]) -> None:
        """An object as it is from here on: a pod, or one there was at the checkpoint and that the scheduler looks up.

        Raises
        ------
        NotPlain
            It changes more than is told here.
        """
        kind = str(manifest["kind"])
        if kind == "Pod":
            self._put(parse(manifest).typed)
            return
        key = _key(manifest)
        if (kind, *key) not in self._others:
            raise NotPlain(f"a {kind} came")
        self._scheduler.cache.listers.set(kind, *key, parse(manifest).typed)

    def put_back(self, kind: str, namespace: str, name: str) -> None:
        """An object as it was at the checkpoint, or gone where there was none."""
        if kind == "Pod":
            then = self._then.get((namespace, name))
            if then is None:
                self.remove_pod(namespace, name)
            else:
                self._put(then)
            return
        self._scheduler.cache.listers.set(kind, namespace, name, self._others[(kind, namespace, name)])

    def remove_pod(self, namespace: str, name: str) -> None:
        """A pod is gone; nothing happens where there is none."""
        pod = self._now.pop((namespace, name), None)
        if pod is not None and _is_counted(pod):
            self._scheduler.cache.remove_pod(pod.uid)

    def _put(self, pod: Pod) -> None:
        if pod.scheduling_group or (pod.nominated_node_name and not pod.node_name):
            raise NotPlain("a pod is nominated, or one of a group")
        key = (pod.namespace, pod.name)
        old = self._now.get(key)
        if old is not None and _is_counted(old) and not (_is_counted(pod) and old.uid == pod.uid):
            self._scheduler.cache.remove_pod(old.uid)
        if _is_counted(pod):
            self._scheduler.cache.add_pod(pod)
        self._now[key] = pod

    # ---- one cycle

    def decided(
        self, pod: Key, number: int, *, at_ns: int, attempt: int, n_draws: int, n_evaluated: int
    ) -> CycleTrace:
        """The whole trace of a cycle that bound its pod, before which the objects were as they are here.

        Parameters
        ----------
        pod : tuple of str
            Whose cycle it was.
        number : int
        at_ns : int
            When it was.
        attempt : int
            Its number among the pod's own.
        n_draws : int
            Cycles since the checkpoint that drew among equals.
        n_evaluated : int
            Nodes that the cycles since the checkpoint evaluated, all together.

        Raises
        ------
        NotPlain
            More happened in the cycle than that.
        """
        scheduler = self._scheduler
        found = self._now.get(pod)
        if found is None or found.node_name or found.is_terminating or found.host_ports:
            # Which ports of a node count as free is a matter of what left it, and when.
            raise NotPlain("the pod is not one that simply waits for a node")
        framework = scheduler.profiles.get(found.scheduler_name)
        snapshot = scheduler.cache.snapshot()
        if framework is None or not len(snapshot.order) or not framework.needs_no_attempt(found, snapshot):
            raise NotPlain("the pod needs more than a node")
        self.spoilt = True
        # Not `Clock.move_to`: the next cycle looked at may be an earlier one.
        scheduler.clock.now_ns = at_ns
        streams = dict(self._randomness["streams"])
        streams[TIE_STREAM] = streams.get(TIE_STREAM, 0) + n_draws
        scheduler.randomness.restore({**self._randomness, "streams": streams})
        scheduler.algorithm.next_start_node_index = (self._start_index + n_evaluated) % len(snapshot.order)
        scheduler.cycle = number - 1
        scheduler.pods[found.uid] = found
        scheduler._schedule_pod(QueuedPodInfo(found, found.key, at_ns, attempts=attempt))
        scheduler.handle(BindAnswered(found.uid, None))
        del scheduler.pods[found.uid]
        scheduler.cache.remove_pod(found.uid)
        traces, scheduler.traces = scheduler.traces, []
        if len(traces) != 1 or traces[0].outcome != BOUND or scheduler.bindings:
            raise NotPlain("the pod was not simply bound")
        self.spoilt = False
        return traces[0]

    def close(self) -> None:
        """Give its memory back at once, not when the collector comes to it; it is of no use any more."""
        self._then.clear()
        self._now.clear()
        self._others.clear()
        for part in (self._scheduler.cache.pods, self._scheduler.cache.nodes, self._scheduler.cache):
            vars(part).clear()


def _is_counted(pod: Pod) -> bool:
    return bool(pod.node_name) and not pod.is_terminal


def _key(manifest: Mapping[str, Any]) -> Key:
    meta = manifest["metadata"]
    namespaced = KINDS[manifest["kind"]].namespaced
    return (str(meta.get("namespace") or "") if namespaced else "", str(meta["name"]))
