"""What a kubelet looks at before it starts a pod that was put on its node by whomever.

Source: pkg/kubelet/lifecycle/predicate.go, pkg/scheduler/framework (AdmissionCheck),
pkg/kubelet/volumemanager/populator, pkg/kubelet/cm/dra/manager.go, v1.34
Differs: no attempt to make room for critical pods; claims count where no container mounts their volume, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from scheduler_core.cluster.node_table import normal_port
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import HostPort, Pod
from scheduler_core.objects.storage import PersistentVolumeClaim
from scheduler_core.sim.pod_index import PodIndex
from scheduler_core.sim.world import World

ALL_ADDRESSES = "0.0.0.0"
NATIVE = ("cpu", "memory", "ephemeral-storage")


class KubeletRejection(NamedTuple):
    """Why a kubelet does not start a pod: as the pod's status says it."""

    reason: str
    message: str


class NodeUse:
    """What started pods use of each node, counted as they come and go; of a node first asked about, from the objects.

    Everything in it follows from the pods there are.
    """

    def __init__(self, pods: PodIndex) -> None:
        self._pods = pods
        self._used: dict[str, dict[str, int]] = {}

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod changed."""
        if old is not None and _is_started(old):
            self._count(old, -1)
        if new is not None and _is_started(new):
            self._count(new, 1)

    def _count(self, pod: Pod, sign: int) -> None:
        used = self._used.get(pod.node_name)
        if used is not None:
            _count(used, pod, sign)

    def of(self, node_name: str) -> dict[str, int]:
        """Amounts by resource, and `pods`."""
        used = self._used.get(node_name)
        if used is None:
            used = self._used[node_name] = {}
            for pod in self._pods.on_node(node_name).values():
                if _is_started(pod):
                    _count(used, pod, 1)
        return used

    def started(self, node_name: str) -> list[Pod]:
        """Pods that were admitted and have not ended."""
        return [pod for pod in self._pods.on_node(node_name).values() if _is_started(pod)]


def _is_started(pod: Pod) -> bool:
    return pod.phase == "Running" and bool(pod.node_name)


def _count(used: dict[str, int], pod: Pod, sign: int) -> None:
    used["pods"] = used.get("pods", 0) + sign
    for name, amount in pod.requests.items():
        used[name] = used.get(name, 0) + sign * amount


def rejection(pod: Pod, node: Node, use: NodeUse) -> KubeletRejection | None:
    """Why the node's kubelet rejects the pod; the first reason of several, as upstream. None: it starts."""
    used = use.of(node.name)
    wanted = {"pods": 1, **pod.requests}
    for name in (
        "pods",
        *(name for name in NATIVE),
        *(name for name in wanted if name not in ("pods", *NATIVE)),
    ):
        amount = wanted.get(name, 0)
        # A device that the node does not say it has is the scheduler's business alone.
        if not amount or (name not in ("pods", *NATIVE) and name not in node.allocatable):
            continue
        capacity, in_use = node.allocatable.get(name, 0), used.get(name, 0)
        if in_use + amount > capacity:
            return KubeletRejection(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {amount}, used: {in_use}, capacity: {capacity}",
            )
    failed = _failed_predicate(pod, node, use)
    return (
        None if failed is None else KubeletRejection(failed[0], f"Predicate {failed[0]} failed: {failed[1]}")
    )


class KubeletWait(NamedTuple):
    """Why a kubelet does not start a pod yet: the Event that says it."""

    reason: str
    message: str


def claims_of(pod: Pod) -> set[tuple[str, str]]:
    """(kind, name) of the claims the pod waits for on its node, those of templates as far as they are made."""
    names = {("PersistentVolumeClaim", claim) for _, claim in _volume_claims(pod)}
    return names | {("ResourceClaim", name) for _, name in _device_claims(pod) if name}


def unready_claims(pod: Pod, world: World) -> KubeletWait | None:
    """What the pod's volumes or devices lack; `spec.nodeName` passes by the scheduler, which would have seen to it."""
    problems = [
        (volume, f"error processing PVC {pod.namespace}/{claim}: {problem}")
        for volume, claim in _volume_claims(pod)
        if (problem := _volume_problem(world, pod.namespace, claim))
    ]
    if problems:
        names = " ".join(sorted(volume for volume, _ in problems))
        said = "; ".join(problem for _, problem in problems)
        return KubeletWait(
            "FailedMount",
            f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], "
            f"failed to process volumes=[{names}]: {said}",
        )
    if world.release.gate("DynamicResourceAllocation"):
        for _, name in _device_claims(pod):
            problem = _device_problem(world, pod, name)
            if problem:
                said = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
                return KubeletWait("FailedPrepareDynamicResources", said)
    return None


def _volume_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    for volume in pod.volumes:
        name = str(volume.get("name", ""))
        if volume.get("persistentVolumeClaim") is not None:
            yield name, str(volume["persistentVolumeClaim"].get("claimName", ""))
        elif volume.get("ephemeral") is not None:
            yield name, f"{pod.name}-{name}"


def _device_claims(pod: Pod) -> Iterator[tuple[str, str | None]]:
    """Reference and claim; "" where it is not made yet, None where none is needed."""
    made: dict[Any, str | None] = {}
    if pod.resource_claims:
        statuses = (pod.manifest.get("status") or {}).get("resourceClaimStatuses") or ()
        made = {status.get("name"): status.get("resourceClaimName") for status in statuses}
    for reference in pod.resource_claims:
        name = reference.get("resourceClaimName")
        yield str(reference.get("name")), name if name else made.get(reference.get("name"), "")


def _volume_problem(world: World, namespace: str, name: str) -> str:
    stored = world.get("PersistentVolumeClaim", namespace, name)
    if stored is None:
        return f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
    claim: PersistentVolumeClaim = stored.typed
    return "" if claim.phase == "Bound" and claim.volume_name else "PVC is not bound"


def _device_problem(world: World, pod: Pod, name: str | None) -> str:
    if name is None:
        return ""
    if not name:
        return f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet'
    stored = world.get("ResourceClaim", pod.namespace, name)
    if stored is None:
        return f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
    status = stored.manifest.get("status") or {}
    if any(user.get("uid") == pod.uid for user in status.get("reservedFor") or ()):
        return ""
    uid = stored.manifest["metadata"].get("uid", "")
    return f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({uid})"


def _failed_predicate(pod: Pod, node: Node, use: NodeUse) -> tuple[str, str] | None:
    if not pod.required_node_affinity.match(node.meta.labels, node.name):
        return "NodeAffinity", "node(s) didn't match Pod's node affinity/selector"
    if pod.host_ports and _takes(pod.host_ports, use.started(node.name)):
        return "NodePorts", "node(s) didn't have free ports for the requested pod ports"
    if any(taint.effect == "NoExecute" and not pod.tolerates(taint) for taint in node.taints):
        return "TaintToleration", "node(s) had taints that the pod didn't tolerate"
    return None


def _takes(ports: tuple[HostPort, ...], others: list[Pod]) -> bool:
    """Whether one of the ports is in use; an address of all of them meets every other."""
    for port in map(normal_port, ports):
        for taken in (normal_port(item) for pod in others for item in pod.host_ports):
            if (port.protocol, port.port) == (taken.protocol, taken.port) and (
                port.ip == taken.ip or ALL_ADDRESSES in (port.ip, taken.ip)
            ):
                return True
    return False
