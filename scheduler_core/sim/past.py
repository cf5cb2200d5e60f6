"""A cycle of the past decided again from the objects there were before it, without living through what led to them.

Which node a pod gets follows from the nodes, the pods on them, a few other objects and two counters: how many draws
were made, and where the search for nodes began. All of them are known of any moment, as long as nothing was under way
that no object tells. So nothing is simulated here: objects are put in place, the scheduler decides one pod, and forgets
it.

What cannot be told so is refused (`NotPlain`): it has to be lived through again (`Simulation.follow`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.events import BindAnswered
from scheduler_core.framework.record import BOUND, CycleTrace
from scheduler_core.installed_plugins import known
from scheduler_core.objects.kinds import KINDS, parse
from scheduler_core.objects.pod import Pod
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.randomness import Randomness
from scheduler_core.releases import release_from
from scheduler_core.schedule_one import TIE_STREAM
from scheduler_core.scheduler import Scheduler, SchedulerOptions
from scheduler_core.sim.checkpoint import check_version
from scheduler_core.sim.faults import FaultOptions
from scheduler_core.sim.options import SimulationOptions, load
from scheduler_core.sim.packed_pods import Key, OtherObjects, PackedPods, PodThen, unread

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
        told = dict(document["options"])
        if FaultOptions(**told.pop("faults")).any:
            raise NotPlain("there are faults")
        self._pods = PackedPods(document["world"]["manifests"])
        self._order = self._pods.places(document["podOrder"])
        others = self._pods.others()
        options, registry = SimulationOptions(**told), known()
        self._scheduler = scheduler = Scheduler(
            load(document["config"], registry, release_from(document["release"])),
            Clock(document["nowNs"]),
            Randomness(0),
            registry=registry,
            options=SchedulerOptions(
                full_traces=options.full_traces,
                adaptive_sampling=options.adaptive_sampling,
                first_of_ties=options.first_of_ties,
            ),
            cache=_of_nodes(others, document["nodeOrder"]),
        )
        if scheduler.extenders:
            raise NotPlain("extenders were asked")
        for framework in scheduler.profiles.values():
            if not _PLAIN_PLUGINS.issuperset(framework.plugins):
                raise NotPlain("plugins may remember something")
        self.cycle: int = document["cycle"]
        self.spoilt = False
        self._randomness = document["randomness"]
        self._start_index: int = document["startIndex"]
        self._now: dict[Key, PodThen | None] = {}
        """Pods that are not as they were at the checkpoint."""
        self._is_filled = False
        self._others: dict[tuple[str, str, str], Any] = {}
        for kind, typed in others.objects:
            if kind == "PodGroup":
                raise NotPlain("there are pod groups")
            if kind != "Node":
                key = (typed.meta.namespace, typed.meta.name)
                self._others[(kind, *key)] = typed
                scheduler.cache.listers.set(kind, *key, typed)

    def _fill(self) -> None:
        """Put all pods on their nodes at once."""
        self._is_filled = True
        places = self._pods.without(self._order, self._now)
        self._scheduler.cache.fill_columns(self._pods.unread(places), self._pods.node_names(places))
        self._come([pod for pod in self._now.values() if pod is not None and pod.is_counted])

    def _come(self, pods: Sequence[PodThen]) -> None:
        if pods:
            self._scheduler.cache.fill_columns(unread(pods), [pod.node_name for pod in pods])

    # ---- which objects there are

    def put(self, manifests: Iterable[Mapping[str, Any]], pods: Sequence[PodThen] = ()) -> None:
        """Objects as they are from here on: what there was at the checkpoint that the scheduler looks up, and pods.

        Parameters
        ----------
        manifests : iterable of mapping
            Of any kind.
        pods : sequence of PodThen
            Pods of which no manifest need be read; no two of one name.

        Raises
        ------
        NotPlain
            They change more than is told here.
        """
        come = list(pods)
        for manifest in manifests:
            kind = str(manifest["kind"])
            if kind == "Pod":
                come.append(plain(parse(manifest).typed))
                continue
            key = _key(manifest)
            if (kind, *key) not in self._others:
                raise NotPlain(f"a {kind} came")
            self._scheduler.cache.listers.set(kind, *key, parse(manifest).typed)
        self._put_pods(come)

    def put_back(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Objects, by kind, namespace and name, as they were at the checkpoint, or gone where there were none."""
        pods = []
        for kind, namespace, name in keys:
            if kind != "Pod":
                typed = self._others[(kind, namespace, name)]
                self._scheduler.cache.listers.set(kind, namespace, name, typed)
            elif (pod := self._pods.pod((namespace, name))) is None:
                self.remove_pod(namespace, name)
            else:
                pods.append(pod)
        self._put_pods(pods)

    def remove_pod(self, namespace: str, name: str) -> None:
        """A pod is gone; nothing happens where there is none."""
        key = (namespace, name)
        if self._is_filled:
            pod = self._pod(key)
            if pod is not None:
                self._scheduler.cache.remove_pod(pod.uid)
        self._now[key] = None

    def _put_pods(self, pods: Sequence[PodThen]) -> None:
        if self._is_filled:
            come = []
            for pod in pods:
                before = self._pod(pod.key)
                if before is not None and before.is_counted:
                    if pod.counts_as(before):
                        continue
                    self._scheduler.cache.remove_pod(before.uid)
                if pod.is_counted:
                    come.append(pod)
            self._come(come)
        self._now.update((pod.key, pod) for pod in pods)

    def _pod(self, key: Key) -> PodThen | None:
        return self._now[key] if key in self._now else self._pods.pod(key)

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
        scheduler, found = self.before(pod, number, at_ns=at_ns, n_draws=n_draws, n_evaluated=n_evaluated)
        self.spoilt = True
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

    def before(
        self, pod: Key, number: int, *, at_ns: int, n_draws: int, n_evaluated: int
    ) -> tuple[Scheduler, Pod]:
        """The scheduler just before such a cycle (`decided`), to be copied and left as it is; and the cycle's pod.

        Raises
        ------
        NotPlain
            More happened in the cycle than that.
        """
        scheduler = self._scheduler
        if not self._is_filled:
            self._fill()
        then = self._pod(pod)
        found = None if then is None else then.read()
        if found is None or found.node_name or found.is_terminating or found.host_ports:
            # Which ports of a node count as free is a matter of what left it, and when.
            raise NotPlain("the pod is not one that simply waits for a node")
        framework = scheduler.profiles.get(found.scheduler_name)
        snapshot = scheduler.cache.snapshot()
        if framework is None or not len(snapshot.order) or not framework.needs_no_attempt(found, snapshot):
            raise NotPlain("the pod needs more than a node")
        # Not `Clock.move_to`: the next cycle looked at may be an earlier one.
        scheduler.clock.now_ns = at_ns
        streams = dict(self._randomness["streams"])
        streams[TIE_STREAM] = streams.get(TIE_STREAM, 0) + n_draws
        scheduler.randomness.restore({**self._randomness, "streams": streams})
        scheduler.algorithm.next_start_node_index = (self._start_index + n_evaluated) % len(snapshot.order)
        scheduler.cycle = number - 1
        return scheduler, found

    def close(self) -> None:
        """Give its memory back at once, not when the collector comes to it; it is of no use any more."""
        self._pods.close()
        self._now.clear()
        self._others.clear()
        for part in (self._scheduler.cache.pods, self._scheduler.cache.nodes, self._scheduler.cache):
            vars(part).clear()


def _of_nodes(others: OtherObjects, order: Sequence[str]) -> Cache:
    """A cache with the nodes alone."""
    found = others.caches.get(tuple(order))
    if found is None:
        others.caches.clear()
        found = others.caches[tuple(order)] = Cache()
        nodes = {typed.meta.name: typed for kind, typed in others.objects if kind == "Node"}
        found.add_nodes([nodes[name] for name in order])
    return found.copy()


def plain(pod: Pod) -> PodThen:
    """A pod that was read.

    Raises
    ------
    NotPlain
        It is nominated, or one of a group.
    """
    if pod.scheduling_group or (pod.nominated_node_name and not pod.node_name):
        raise NotPlain("a pod is nominated, or one of a group")
    return PodThen.of(pod)


def _key(manifest: Mapping[str, Any]) -> Key:
    meta = manifest["metadata"]
    namespaced = KINDS[manifest["kind"]].namespaced
    return (str(meta.get("namespace") or "") if namespaced else "", str(meta["name"]))
