"""Pods without a node, in the order in which a scheduler comes to them, and those that are alike among them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plan.take_away import owner_kind
from scheduler_core.sim.simulation import Simulation


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
