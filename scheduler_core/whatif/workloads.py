"""Which pods belong together, which of them wait, and what one more of them looks like.

A pod's workload is the top of its owners. Where an owner is not among the objects, as in a dump of pods alone, it is
read from the owner reference: a ReplicaSet whose name ends in its pods' `pod-template-hash` is a Deployment's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.sim.admission import with_default_tolerations
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.admission import prepare
from scheduler_core.whatif.fork import Sandbox, homeless
from scheduler_core.whatif.take_away import owner_kind

HASH_LABEL = "pod-template-hash"
TEMPLATED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job")
"""Kinds whose `spec.template` is a pod that may be copied."""


@dataclass(slots=True)
class WorkloadPods:
    """Pods of one owner.

    Attributes
    ----------
    kind, namespace, name : str
        Of the owner; of a pod without one, its own.
    pods : list of Pod
        In order of their names.
    is_here : bool
        Whether the owner is among the objects.
    """

    kind: str
    namespace: str
    name: str
    is_here: bool
    pods: list[Pod] = field(default_factory=list)

    @property
    def key(self) -> str:
        """`Kind namespace/name`."""
        return f"{self.kind} {self.namespace}/{self.name}"


def owner_of(simulation: Simulation, pod: Pod) -> tuple[str, str, bool]:
    """(kind, name, whether the object is here) of the top of a pod's owners; the pod itself without any."""
    world = simulation.world
    controller = pod.meta.controller
    if controller is None:
        return "Pod", pod.name, True
    kind, name = controller.kind, controller.name
    stored = world.get(kind, pod.namespace, name)
    while stored is not None:
        above = stored.typed.meta.controller if hasattr(stored.typed, "meta") else None
        if above is None:
            return kind, name, True
        kind, name = above.kind, above.name
        stored = world.get(kind, pod.namespace, name)
    suffix = f"-{pod.labels.get(HASH_LABEL, '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        name = name.removesuffix(suffix)
        return "Deployment", name, world.get("Deployment", pod.namespace, name) is not None
    return kind, name, False


def spec_of_owner(simulation: Simulation, pod: Pod) -> dict[str, object] | None:
    """The spec of the pod template of a pod's controller; None without one among the objects."""
    controller = pod.meta.controller
    stored = None
    if controller is not None:
        stored = simulation.world.get(controller.kind, pod.namespace, controller.name)
    template = (stored.manifest.get("spec") or {}).get("template") if stored is not None else None
    return dict(template.get("spec") or {}) if template else None


def edited_in(simulation: Simulation, pod: Pod) -> str:
    """Whose template an edit of the pod has to be made in: `Kind namespace/name`; empty for a pod alone."""
    kind, name, _ = owner_of(simulation, pod)
    return "" if pod.meta.controller is None else f"{kind} {pod.namespace}/{name}"


def workloads(simulation: Simulation, pods: Iterable[Pod] | None = None) -> list[WorkloadPods]:
    """All workloads that have pods that are alive, by namespace, name and kind."""
    found: dict[tuple[str, str, str], WorkloadPods] = {}
    every = (stored.typed for stored in simulation.world.all("Pod")) if pods is None else pods
    for pod in sorted(
        (pod for pod in every if not pod.is_terminal), key=lambda pod: (pod.namespace, pod.name)
    ):
        kind, name, is_here = owner_of(simulation, pod)
        key = (pod.namespace, name, kind)
        found.setdefault(key, WorkloadPods(kind, pod.namespace, name, is_here)).pods.append(pod)
    return [found[key] for key in sorted(found)]


def template_of(simulation: Simulation, kind: str, namespace: str, name: str) -> Pod:
    """One more pod of a workload, as its owner would make it; on no node.

    Raises
    ------
    KeyError
        There is no such workload, neither as an object nor as an owner of pods.
    InvalidObject
        Its template makes no pod.
    """
    if kind == "Pod":
        found = simulation.world.pod(namespace, name)
        if found is None:
            raise KeyError(f"there is no Pod {namespace}/{name}")
        return homeless(found)
    stored = simulation.world.get(kind, namespace, name)
    if stored is not None and kind in TEMPLATED:
        template = (stored.manifest.get("spec") or {}).get("template") or {}
        meta = {**(template.get("metadata") or {}), "namespace": namespace, "name": f"{name}-more"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec")}
        prepared = prepare(pod, simulation.world.priority_classes)
        return pod_from({**prepared, "spec": with_default_tolerations(prepared["spec"])})
    for workload in workloads(simulation):
        if (workload.kind, workload.namespace, workload.name) == (kind, namespace, name):
            return homeless(workload.pods[0])
    raise KeyError(f"there is no {kind} {namespace}/{name}")


def template_from(simulation: Simulation, manifest: dict[str, object]) -> Pod:
    """The pod of a manifest, as an API server admits it.

    Raises
    ------
    InvalidObject
    """
    if manifest.get("kind") != "Pod":
        raise InvalidObject("kind", manifest.get("kind"), "must be Pod")
    prepared = prepare(manifest, simulation.world.priority_classes)
    return homeless(pod_from({**prepared, "spec": with_default_tolerations(prepared["spec"])}))


# ---- pending pods


@dataclass(frozen=True, slots=True)
class Alike:
    """Pods that ask for the same.

    Attributes
    ----------
    pods : tuple of Pod
        In scheduling order.
    """

    pods: tuple[Pod, ...]

    @property
    def one(self) -> Pod:
        return self.pods[0]


def pending_pods(simulation: Simulation) -> tuple[list[Pod], list[str]]:
    """Pods that wait for a scheduler of this cluster, the first one first; and why others are left out.

    Left out are gated pods and those of a scheduler that is not here.
    """
    scheduler = simulation.scheduler
    found: list[Pod] = []
    n_gated = n_foreign = 0
    for stored in simulation.world.all("Pod"):
        pod: Pod = stored.typed
        if pod.node_name or pod.is_terminal or pod.is_terminating or scheduler.cache.is_assumed(pod.uid):
            continue
        if pod.scheduling_gates:
            n_gated += 1
        elif pod.scheduler_name not in scheduler.profiles:
            n_foreign += 1
        else:
            found.append(pod)
    found.sort(key=lambda pod: (-pod.priority, pod.meta.creation_ns or 0, pod.namespace, pod.name))
    left_out = []
    if n_gated:
        left_out.append(f"{n_gated:,} pods are held back by a scheduling gate and were not asked about.")
    if n_foreign:
        left_out.append(f"{n_foreign:,} pods wait for a scheduler that is not here.")
    return found, left_out


def classes_of(pods: Sequence[Pod]) -> list[Alike]:
    """Pods by what they ask for, in order of the first of each."""
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        spec = {
            key: value for key, value in pod.manifest["spec"].items() if key not in ("nodeName", "hostname")
        }
        text = json.dumps([pod.namespace, pod.labels, spec, owner_kind(pod)], sort_keys=True)
        groups.setdefault(text, []).append(pod)
    return [Alike(tuple(alike)) for alike in groups.values()]


def alike_pending(simulation: Simulation, pod: Pod) -> Alike:
    """The pending pods that ask for the same as this one."""
    near = [
        other
        for other in pending_pods(simulation)[0]
        if other.namespace == pod.namespace and other.labels == pod.labels
    ]
    return next(
        (alike for alike in classes_of(near) if pod.uid in {one.uid for one in alike.pods}), Alike((pod,))
    )


def daemon_pods(sandbox: Sandbox) -> list[Pod]:
    """One pod of each DaemonSet that is seen on a node: a new node gets one too, if it may run there."""
    found: dict[tuple[str, str], Pod] = {}
    for pod in sandbox.scheduler.cache.pods_in_order():
        controller = pod.meta.controller
        if controller is not None and controller.kind == "DaemonSet":
            found.setdefault((pod.namespace, controller.name), pod)
    return [found[key] for key in sorted(found)]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def without_rules(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The pod without what depends on pods that move: required affinity, and spread that must hold.

    What is left never gets easier by more pods, so what it fits is all that the pod could ever fit.
    """
    spec = dict(manifest.get("spec") or {})
    affinity = dict(spec.get("affinity") or {})
    if affinity.get("podAffinity"):
        affinity["podAffinity"] = {
            key: value for key, value in affinity["podAffinity"].items() if key != _REQUIRED
        }
        spec["affinity"] = affinity
    spread = spec.get("topologySpreadConstraints")
    if spread:
        spec["topologySpreadConstraints"] = [
            item for item in spread if item.get("whenUnsatisfiable") != "DoNotSchedule"
        ]
    return {**manifest, "spec": spec}


def unpinned(pod: Pod) -> Pod:
    """A DaemonSet's pod as if for any node: its controller pins each to its own by name."""
    spec = {key: value for key, value in pod.manifest["spec"].items() if key not in ("nodeName", "affinity")}
    return pod_from({**pod.manifest, "spec": spec, "status": {}})
