"""Which pods belong together, and what one more of them looks like.

A pod's workload is the top of its owners. Where an owner is not among the objects, as in a dump of pods alone, it is
read from the owner reference: a ReplicaSet whose name ends in its pods' `pod-template-hash` is a Deployment's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plan.trial import homeless
from scheduler_core.sim.admission import with_default_tolerations
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.admission import prepare

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
