"""A simulation as data, and back: explicit, versioned, JSON-able.

Everything is written that does not follow from the objects there are; what follows from them is worked out again.
This file is the one that looks inside a `Simulation`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from scheduler_core.actions import BindByExtender, EvictPod
from scheduler_core.cluster.cache import AssumedPod
from scheduler_core.framework.interface import CycleState
from scheduler_core.framework.record import CycleTrace
from scheduler_core.objects.kinds import KINDS, parse
from scheduler_core.objects.pod import HostPort, Pod
from scheduler_core.queue.checkpoint import queue_checkpoint, restore_queue
from scheduler_core.queue.queued_pod_info import info_document, info_from_document
from scheduler_core.randomness import Randomness
from scheduler_core.releases import Release
from scheduler_core.schedule_one import PodBinding
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.control_plane import ControlPlane
from scheduler_core.sim.kubelet import Kubelet
from scheduler_core.sim.manifests import ReadOnce, manifests_in
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import Stored, World

CHECKPOINT_VERSION = 3


class Simulated(Protocol):
    """What a checkpoint looks at of a `Simulation`, and puts back."""

    config: Mapping[str, Any] | None
    release: Release
    options: SimulationOptions
    randomness: Randomness
    timers: Timers
    world: World
    control_plane: ControlPlane
    kubelet: Kubelet
    scheduler: Scheduler
    _untold: dict[tuple[str, str], Stored | None]
    _last_failures: dict[str, tuple[str, int]]
    _settled_failures: dict[str, int]
    _bind_calls: dict[str, BindByExtender]

    @property
    def now_ns(self) -> int: ...

    def _know_stranger(self, old: Pod | None, new: Pod | None) -> None: ...


def check_version(document: Mapping[str, Any]) -> None:
    """Raise ValueError where a checkpoint is of another version."""
    if document.get("version") != CHECKPOINT_VERSION:
        raise ValueError(f"simulation checkpoint of version {document.get('version')!r} cannot be read")


def manifests_of(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The manifests of all objects there are in a checkpoint.

    Raises
    ------
    ValueError
        It is of another version.
    """
    check_version(document)
    return manifests_in(document["world"]["manifests"])


def read_once(document: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint that is restored again and again in this process: its objects are read once.

    Raises
    ------
    ValueError
        It is of another version.
    """
    check_version(document)
    world = document["world"]
    return {**document, "world": {**world, "manifests": ReadOnce(world["manifests"])}}


def pod_order(document: Mapping[str, Any]) -> list[str]:
    """Uids of the pods on nodes, in the order in which the scheduler learned of them.

    An order of pods names them by their places among the objects; those that are none any more by uid.
    """
    uids = _uids(document["world"])
    return [uids[item] if type(item) is int else item for item in document["podOrder"]]


def _uids(world: Mapping[str, Any]) -> Sequence[Any]:
    uids: Sequence[Any] = world["manifests"]["objects"].get("uid", ())
    return uids


def is_before_chance(document: Mapping[str, Any]) -> bool:
    """Whether nothing was decided nor drawn by then: with any other seed, the checkpoint would be the same."""
    return not document["cycle"] and not any(document["randomness"]["streams"].values())


def with_seed(document: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A checkpoint as it would be with another seed; it must be from before any chance."""
    if not is_before_chance(document):
        raise ValueError("something was drawn before this checkpoint, so it belongs to its own seed alone")
    return {**document, "randomness": {"seed": seed, "streams": {}}}


def checkpoint_of(simulation: Simulated) -> dict[str, Any]:
    """Everything needed to go on elsewhere, of a simulation in which nothing is left to do at this moment."""
    scheduler = simulation.scheduler
    world = simulation.world.state()
    places = {uid: place for place, uid in enumerate(_uids(world))}

    def name_of(item: Any) -> str | None:
        is_live = isinstance(item, Pod) and simulation.world.pod(item.namespace, item.name) is item
        return f"{item.namespace}/{item.name}" if is_live else None

    return {
        "version": CHECKPOINT_VERSION,
        "nowNs": simulation.now_ns,
        "config": simulation.config,
        "release": simulation.release.document(),
        "options": asdict(simulation.options),
        "randomness": simulation.randomness.state(),
        "timers": simulation.timers.state(),
        "world": world,
        **({"controllers": remembered} if (remembered := simulation.control_plane.state()) else {}),
        "cycle": scheduler.cycle,
        "startIndex": scheduler.algorithm.next_start_node_index,
        "nodeOrder": scheduler.cache.node_order(),
        "podOrder": [places.get(uid, uid) for uid in scheduler.cache.pod_order()],
        "forgottenPorts": [
            [name, port.ip, port.protocol, port.port] for name, port in scheduler.cache.forgotten_ports()
        ],
        "assumed": {
            uid: [item.node_name, item.binding_finished, item.deadline_ns]
            for uid, item in scheduler.cache.assumed.items()
        },
        "awaited": {
            uid: base64.b64encode(trace.to_bytes()).decode() for uid, trace in scheduler.awaited.items()
        },
        "expired": {uid: list(item) for uid, item in scheduler.expired.items()},
        "heldPods": {
            pod.uid: dict(pod.manifest)
            for pod in _held_pods(scheduler)
            if (told := scheduler.pods.get(pod.uid)) is None or told.manifest != pod.manifest
        },
        "nominations": [[uid, name] for uid, name in scheduler.nominator.state()],
        "preemptions": [
            [
                uid,
                [
                    [dict(item.pod.manifest), dict(item.preemptor.manifest), *item.details]
                    for item in evictions
                ],
            ]
            for uid, evictions in scheduler.preemptions.running.items()
        ],
        "waiting": scheduler.waiting_pods.state(),
        "queue": queue_checkpoint(scheduler.queue, name_of),
        "plugins": {
            profile: {
                name: state
                for name, plugin in framework.plugins.items()
                if (state := plugin.checkpoint()) is not None
            }
            for profile, framework in scheduler.profiles.items()
        },
        "bindings": [
            {
                "uid": uid,
                "pod": f"{binding.pod.namespace}/{binding.pod.name}",
                "node": binding.node_name,
                "step": binding.step,
                "nExtendersFailed": binding.n_extenders_failed,
                **({"cycleState": state} if (state := binding.cycle_state.data()) else {}),
                "info": info_document(binding.info, f"{binding.pod.namespace}/{binding.pod.name}"),
                "trace": base64.b64encode(binding.trace.to_bytes()).decode(),
            }
            for uid, binding in scheduler.bindings.items()
        ],
        "untold": [
            [namespace, name, None if stored is None else dict(stored.manifest)]
            for (namespace, name), stored in simulation._untold.items()
        ],
        "failures": {
            uid: list(said) for uid, said in simulation._last_failures.items() if uid in scheduler.pods
        },
        "settledFailures": {
            uid: at for uid, at in simulation._settled_failures.items() if uid in scheduler.pods
        },
    }


def take_over(simulation: Simulated, document: Mapping[str, Any]) -> None:
    """Put a new simulation, of the same options and configuration, where the checkpoint was taken."""
    simulation.randomness.restore(document["randomness"])
    simulation.timers.restore(document["timers"])
    simulation.world.restore(document["world"])
    simulation.control_plane.restore(simulation.world, document.get("controllers", {}))
    simulation.kubelet.restored()
    scheduler = simulation.scheduler
    scheduler.cycle = document["cycle"]
    scheduler.algorithm.next_start_node_index = document["startIndex"]
    pods = {stored.typed.uid: stored.typed for stored in simulation.world.all("Pod")}
    for pod in pods.values():
        if not pod.node_name:
            simulation._know_stranger(None, pod)
    for namespace, name, manifest in document["untold"]:
        present = simulation.world.pod(namespace, name)
        if present is not None:
            pods.pop(present.uid, None)
        known = None if manifest is None else Stored(manifest, parse(manifest).typed)
        simulation._untold[(namespace, name)] = known
        if known is not None:
            pods[known.typed.uid] = known.typed
    scheduler.pods.update(pods)
    held = {**pods, **{uid: parse(manifest).typed for uid, manifest in document["heldPods"].items()}}
    _fill_cache(simulation, document, pods, held)
    for uid, name in document["nominations"]:
        if uid in pods:
            scheduler.nominator.add(pods[uid], name)

    def named(key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        if (namespace, name) in simulation._untold:
            known = simulation._untold[(namespace, name)]
            return None if known is None else known.typed
        return simulation.world.pod(namespace, name)

    def parse_manifest(manifest: Mapping[str, Any]) -> Any:
        return parse(manifest).typed

    restore_queue(scheduler.queue, document["queue"], parse=parse_manifest, named=named)
    for profile, states in document["plugins"].items():
        for name, kept in states.items():
            scheduler.profiles[profile].plugins[name].restore(kept)
    _go_on_binding(simulation, document["bindings"], held)
    for uid, trace in document["awaited"].items():
        scheduler.awaited[uid] = CycleTrace.from_bytes(base64.b64decode(trace))
    scheduler.expired |= {uid: (node, at_ns) for uid, (node, at_ns) in document["expired"].items()}
    scheduler.waiting_pods.restore(document["waiting"], held)
    for uid, evictions in document["preemptions"]:
        scheduler.preemptions.running[uid] = tuple(
            EvictPod(parse_manifest(pod), parse_manifest(preemptor), *rest)
            for pod, preemptor, *rest in evictions
        )
    simulation._last_failures = {uid: (said[0], said[1]) for uid, said in document["failures"].items()}
    simulation._settled_failures = dict(document["settledFailures"])


def _fill_cache(
    simulation: Simulated, document: Mapping[str, Any], pods: Mapping[str, Pod], held: Mapping[str, Pod]
) -> None:
    """What the scheduler knows, in the order in which it learned it."""
    scheduler = simulation.scheduler
    nodes = [simulation.world.get("Node", "", name) for name in document["nodeOrder"]]
    scheduler.cache.add_nodes([stored.typed for stored in nodes if stored is not None])
    for kind in KINDS:
        for stored in simulation.world.all(kind) if kind not in ("Node", "Pod") else ():
            if stored.typed is not None:
                meta = stored.typed.meta
                scheduler.cache.listers.set(kind, meta.namespace, meta.name, stored.typed)
    assumed = {uid: AssumedPod(*item) for uid, item in document["assumed"].items()}
    scheduler.cache.fill([held[uid] if uid in assumed else pods[uid] for uid in pod_order(document)], assumed)
    for pod in pods.values():
        if not pod.scheduling_group or pod.is_terminal:
            continue
        if pod.node_name or scheduler.is_responsible(pod):
            scheduler.pod_groups.set(pod)
    for name, *port in document["forgottenPorts"]:
        scheduler.cache.forget_port(name, HostPort(*port))


def _go_on_binding(
    simulation: Simulated, entries: Sequence[Mapping[str, Any]], held: Mapping[str, Pod]
) -> None:
    """Binding cycles go on where they were."""
    scheduler = simulation.scheduler
    for entry in entries:
        pod = held[entry["uid"]]
        binding = scheduler.bindings[entry["uid"]] = PodBinding(
            info_from_document(entry["info"], pod),
            pod,
            entry["node"],
            CycleTrace.from_bytes(base64.b64decode(entry["trace"])),
            entry["step"],
            entry["nExtendersFailed"],
            CycleState(entry.get("cycleState")),
        )
        # Of all that follows PreBind only an extender's bind call outlasts an event.
        call = scheduler.bind_call(binding) if binding.step == "Bind" else None
        if call is not None:
            simulation._bind_calls[pod.uid] = call


def _held_pods(scheduler: Scheduler) -> Iterator[Pod]:
    """Pods between Reserve and the news of their binding.

    They go on in the version that was chosen a node for, even when they are changed or deleted meanwhile.
    """
    yield from (binding.pod for binding in scheduler.bindings.values())
    for uid in scheduler.cache.assumed:
        pod = scheduler.cache.pod(uid)
        assert pod is not None
        yield pod
