"""Which pods belong together, which of them wait, and what one more of them looks like.

A pod's workload is the top of its owners. Where an owner is not among the objects, as in a dump of pods alone, it is
read from the owner reference: a ReplicaSet whose name ends in its pods' `pod-template-hash` is a Deployment's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.fork import Fork, homeless
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.quantity import quantity_milli_value
from scheduler_core.objects.reading import USE_ANNOTATION
from scheduler_core.objects.resources import CPU
from scheduler_core.sim.admission import RefusedObject, with_default_tolerations
from scheduler_core.sim.controllers.deployment import HASH_LABEL, deployment_behind
from scheduler_core.sim.kubelet import unready_claims
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.admission import prepare
from scheduler_core.whatif.pod_edits import REQUIRED

_REPLICATED: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
TEMPLATED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job")
"""Kinds whose `spec.template` is a pod that may be copied."""


Workload = tuple[str, str, str]
"""Kind, namespace and name of the top of a pod's owners; of a pod without any, its own."""


def owner_of(simulation: Simulation, pod: Pod) -> tuple[str, str]:
    """(kind, name) of the top of a pod's owners; the pod itself without any."""
    world = simulation.world
    controller = pod.meta.controller
    if controller is None:
        return "Pod", pod.name
    kind, name = controller.kind, controller.name
    stored = world.get(kind, pod.namespace, name)
    while stored is not None:
        above = stored.typed.meta.controller if hasattr(stored.typed, "meta") else None
        if above is None:
            return kind, name
        kind, name = above.kind, above.name
        stored = world.get(kind, pod.namespace, name)
    return deployment_behind(kind, name, pod.labels)


def spec_of_owner(simulation: Simulation, pod: Pod) -> dict[str, object] | None:
    """The spec of the pod template of a pod's controller; None without one among the objects."""
    controller = pod.meta.controller
    stored = None
    if controller is not None:
        stored = simulation.world.get(controller.kind, pod.namespace, controller.name)
    template = (stored.manifest.get("spec") or {}).get("template") if stored is not None else None
    return dict(template.get("spec") or {}) if template else None


def top_owner(simulation: Simulation, pod: Pod) -> Mapping[str, Any] | None:
    """The manifest of the top of a pod's owners, where it is among the objects and has a pod template."""
    kind, name = owner_of(simulation, pod)
    stored = None if kind == "Pod" else simulation.world.get(kind, pod.namespace, name)
    has_template = stored is not None and "template" in (stored.manifest.get("spec") or {})
    return stored.manifest if stored is not None and has_template else None


def alive_pods(simulation: Simulation) -> list[Pod]:
    """Pods that have not ended, as the API server lists them: by namespace and name."""
    pods: Iterable[Pod] = (stored.typed for stored in simulation.world.all("Pod"))
    return in_listed_order(pod for pod in pods if not pod.is_terminal)


def in_listed_order(pods: Iterable[Pod]) -> list[Pod]:
    """By namespace and name, which is how `kubectl drain` comes to pods."""
    return sorted(pods, key=lambda pod: (pod.namespace, pod.name))


def workloads(simulation: Simulation) -> dict[Workload, list[Pod]]:
    """Pods that are alive by workload, in order of namespace, name and kind."""
    found: dict[Workload, list[Pod]] = {}
    for pod in alive_pods(simulation):
        kind, name = owner_of(simulation, pod)
        found.setdefault((kind, pod.namespace, name), []).append(pod)
    return dict(sorted(found.items(), key=lambda item: (*item[0][1:], item[0][0])))


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
    else:
        pods = (pod for pod in alive_pods(simulation) if pod.namespace == namespace)
        found = next((pod for pod in pods if owner_of(simulation, pod) == (kind, name)), None)
    template = template_like(simulation, (kind, namespace, name), found)
    if template is None:
        raise KeyError(f"there is no {kind} {namespace}/{name}")
    return template


def template_like(simulation: Simulation, workload: Workload, one: Pod | None) -> Pod | None:
    """One more pod of a workload, one of whose pods is known; None where there is neither a template nor a pod.

    Raises
    ------
    InvalidObject
        Its template makes no pod.
    """
    kind, namespace, name = workload
    stored = simulation.world.get(kind, namespace, name)
    if stored is not None and kind in TEMPLATED:
        template = (stored.manifest.get("spec") or {}).get("template") or {}
        meta = {**(template.get("metadata") or {}), "namespace": namespace, "name": f"{name}-more"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec")}
        return _admitted(simulation, pod)
    return None if one is None else homeless(one)


def _admitted(simulation: Simulation, manifest: dict[str, object]) -> Pod:
    prepared = prepare(manifest, simulation.world.priority_classes)
    return pod_from({**prepared, "spec": with_default_tolerations(prepared["spec"])})


def template_from(simulation: Simulation, manifest: dict[str, object]) -> Pod:
    """The pod of a manifest, as an API server admits it.

    Raises
    ------
    InvalidObject
    """
    if manifest.get("kind") != "Pod":
        raise InvalidObject("kind", manifest.get("kind"), "must be Pod")
    return homeless(_admitted(simulation, manifest))


# ---- pending pods


Alike = tuple[Pod, ...]
"""Pods that ask for the same, in scheduling order; one at least."""


def pending_pods(simulation: Simulation) -> tuple[list[Pod], list[str]]:
    """Pods that wait for a scheduler of this cluster, the first one first; and why others are left out.

    Left out are gated pods and those of a scheduler that is not here.
    """
    found: list[Pod] = []
    n_gated = n_foreign = 0
    for pod in waiting_pods(simulation):
        if pod.node_name:
            continue
        if pod.scheduling_gates:
            n_gated += 1
        elif pod.scheduler_name not in simulation.scheduler.profiles:
            n_foreign += 1
        else:
            found.append(pod)
    left_out = []
    if n_gated:
        left_out.append(f"{n_gated:,} pods are held back by a scheduling gate and were not asked about.")
    if n_foreign:
        left_out.append(f"{n_foreign:,} pods wait for a scheduler that is not here.")
    return found, left_out


def refused_pods(simulation: Simulation) -> Iterator[str]:
    """Workloads that have fewer pods than they ask for, as their namespace's limits allow no more, a sentence each."""
    world = simulation.world
    n_pods = Counter(
        (owner.kind, pod.namespace, owner.name)
        for pod in alive_pods(simulation)
        if (owner := pod.meta.controller) is not None
    )
    for kind in _REPLICATED:
        for stored in world.all(kind):
            manifest = stored.manifest
            meta, spec = manifest["metadata"], manifest.get("spec") or {}
            namespace, name, wanted = meta["namespace"], meta["name"], spec.get("replicas", 1)
            there = n_pods[kind, namespace, name]
            if there >= wanted or not world.limits.limit(namespace):
                continue
            template = spec.get("template") or {}
            labels = {**(template.get("metadata") or {}), "namespace": namespace, "name": f"{name}-more"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": labels, "spec": template.get("spec") or {}}
            try:
                world.limits.admitted(pod)
            except RefusedObject as error:
                yield f"{kind} {namespace}/{name} has {there} of {wanted} pods: {error.reason}."


def left_out_words(number: int, which: str = "of them") -> str:
    """`; 2 of them are held back by scheduling gates`, empty for none."""
    are = "is" if number == 1 else "are"
    return f"; {number:,} {which} {are} held back by scheduling gates" if number else ""


def waiting_pods(simulation: Simulation) -> list[Pod]:
    """Pods without a node, and those whose `nodeName` passed by a scheduler that would have bound their claims."""
    world, is_assumed = simulation.world, simulation.scheduler.cache.is_assumed
    found: list[Pod] = []
    for stored in world.all("Pod"):
        pod: Pod = stored.typed
        # What is cheap to ask comes first: most pods have their node, and no volumes.
        waits = not pod.node_name or (
            pod.volumes and pod.phase in ("", "Pending") and passes_by(simulation, pod)
        )
        if waits and not (pod.is_terminal or pod.is_terminating or is_assumed(pod.uid)):
            found.append(pod)
    return sorted(found, key=lambda pod: (-pod.priority, pod.meta.creation_ns or 0, pod.namespace, pod.name))


def passes_by(simulation: Simulation, pod: Pod) -> bool:
    """Whether a pod has its node by `nodeName`, and waits there for claims that only a scheduler binds."""
    return bool(pod.node_name) and unready_claims(pod, simulation.world) is not None


def classes_of(pods: Sequence[Pod]) -> list[Alike]:
    """Pods by what they ask for, in order of the first of each."""
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        spec = {
            key: value for key, value in pod.manifest["spec"].items() if key not in ("nodeName", "hostname")
        }
        text = json.dumps([pod.namespace, pod.labels, spec, owner_kind(pod)], sort_keys=True)
        groups.setdefault(text, []).append(pod)
    return [tuple(alike) for alike in groups.values()]


def alike_pending(simulation: Simulation, pod: Pod) -> Alike:
    """The pending pods that ask for the same as this one."""
    pods = waiting_pods(simulation)
    near = [one for one in pods if (one.namespace, one.labels) == (pod.namespace, pod.labels)]
    alike = (alike for alike in classes_of(near) if pod.uid in {one.uid for one in alike})
    return next(alike, (pod,))


def used_by_like(fork: Fork, pod: Pod) -> dict[str, int]:
    """The most that any pod of the same controller used of each resource, in whole units; of those that say it."""
    found: dict[str, int] = {}
    owner = pod.meta.controller
    for one in fork.cache.pods_in_order() if owner is not None else ():
        said = one.annotations.get(USE_ANNOTATION)
        if said is None or one.namespace != pod.namespace or not _is_of_one(pod, one):
            continue
        for resource, text in json.loads(said).items():
            milli = quantity_milli_value(text)
            amount = milli if resource == CPU else -(-milli // 1000)
            found[resource] = max(amount, found.get(resource, 0))
    return found


def _is_of_one(pod: Pod, other: Pod) -> bool:
    """Whether two pods have one controller, or are of revisions of one Deployment."""
    mine, theirs = pod.meta.controller, other.meta.controller
    if mine is None or theirs is None or mine.kind != theirs.kind:
        return False
    both = ((mine.name, pod), (theirs.name, other))
    return len({name.removesuffix(f"-{one.labels.get(HASH_LABEL, '')}") for name, one in both}) == 1


def owner_kind(pod: Pod) -> str:
    """Kind of its controller, empty without one."""
    controller = pod.meta.controller
    return "" if controller is None else str(controller.kind)


def without_rules(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The pod without what depends on pods that move: required affinity, and spread that must hold.

    What is left never gets easier by more pods, so what it fits is all that the pod could ever fit.
    """
    spec = dict(manifest.get("spec") or {})
    affinity = dict(spec.get("affinity") or {})
    if affinity.get("podAffinity"):
        affinity["podAffinity"] = {
            key: value for key, value in affinity["podAffinity"].items() if key != REQUIRED
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
