"""What a kubelet looks at before it starts a pod that was put on its node by whomever.

Source: pkg/kubelet/lifecycle/predicate.go, pkg/scheduler/framework (AdmissionCheck), v1.34
Differs: no attempt to make room for critical pods.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.cluster.node_table import normal_port
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import HostPort, Pod
from scheduler_core.sim.pod_index import PodIndex

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
