"""What a solver needs to know of a small cluster: which pods fit where, what they take, how they would score.

Each distinct pod is asked about alone, by one real scheduling cycle in a cluster with the same nodes and only the pods
that stay where they are. So every filter counts exactly, except where movable pods depend on each other
(inter-pod affinity, topology spread, host ports, shared volumes): such pods are named in `coupled`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.objects.resources import PODS, pod_requests, resource_list, whole_units
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation

_KEPT_KINDS = frozenset(
    (
        "Namespace", "PriorityClass", "StorageClass", "CSIDriver", "CSINode", "PersistentVolume",
        "PersistentVolumeClaim", "CSIStorageCapacity", "Node",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JointPod:
    """Pods that are alike: same needs, same nodes, same scores, same priority.

    Attributes
    ----------
    names
        ``namespace/name`` of each.
    requests
        Resource -> whole units; ``pods`` is 1.
    scores
        Node -> total score it would get there alone; only nodes it fits.
    """

    names: tuple[str, ...]
    priority: int
    requests: Mapping[str, int]
    scores: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JointProblem:
    """The whole of it.

    Attributes
    ----------
    room
        Node -> resource -> what is left beside the pods that stay.
    coupled
        Pods with rules between movable pods, which the joint model does not hold.
    """

    pods: tuple[JointPod, ...]
    room: Mapping[str, Mapping[str, int]]
    coupled: tuple[str, ...]


def joint_problem(
    manifests: Iterable[Mapping[str, Any]], config: Mapping[str, Any] | None, movable: frozenset[str]
) -> JointProblem:
    """Read a cluster's objects.

    Parameters
    ----------
    manifests
        Everything in the cluster.
    config
        Its scheduler configuration; extenders are left out.
    movable
        ``namespace/name`` of the pods that may be placed anew.
    """
    everything = list(manifests)
    pods = [item for item in everything if item["kind"] == "Pod" and _is_alive(item)]
    staying = [pod for pod in pods if _key(pod) not in movable and (pod.get("spec") or {}).get("nodeName")]
    surroundings = [item for item in everything if item["kind"] in _KEPT_KINDS]
    bare = None if config is None else {key: value for key, value in config.items() if key != "extenders"}
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for pod in pods:
        if _key(pod) in movable:
            alike.setdefault(_likeness(pod), []).append(pod)
    groups = []
    coupled: list[str] = []
    for members in alike.values():
        pod = _unplaced(members[0])
        amounts = {name: amount for name, amount in pod_requests(pod).requests.items() if amount}
        groups.append(
            JointPod(
                names=tuple(_key(member) for member in members),
                priority=int((pod.get("spec") or {}).get("priority") or 0),
                requests={**amounts, PODS: 1},
                scores=_scores(pod, [*surroundings, *staying], bare),
            )
        )
        if _is_coupled(pod):
            coupled += [_key(member) for member in members]
    return JointProblem(tuple(groups), _room(everything, staying), tuple(coupled))


def _scores(
    pod: Mapping[str, Any], others: Sequence[Mapping[str, Any]], config: Mapping[str, Any] | None
) -> dict[str, int]:
    """Node -> score of the pod alone, of the nodes that are feasible for it."""
    simulation = Simulation(config, seed=0, start_ns=0)
    order = {"Namespace": 0, "PriorityClass": 0, "Node": 2, "Pod": 3}
    for item in sorted(others, key=lambda item: order.get(item["kind"], 1)):
        simulation.submit(WriteObject(item))
    simulation.advance(0, max_cycles=0)
    simulation.submit(WriteObject(pod))
    simulation.step()
    traces = [trace for trace in simulation.drain_cycles() if trace.pod == _key(pod)]
    if not traces:
        return {}
    told = traces[0].explain()
    total = told.get("total") or {}
    return {node: int(total.get(node, 0)) for node in told.get("feasible") or ()}


def _room(
    everything: Sequence[Mapping[str, Any]], staying: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    room = {
        node["metadata"]["name"]: dict(
            whole_units(resource_list(node.get("status") or {}, "allocatable", "status"))
        )
        for node in everything
        if node["kind"] == "Node"
    }
    for pod in staying:
        left = room.get(pod["spec"]["nodeName"])
        if left is None:
            continue
        for name, amount in {**pod_requests(pod).requests, PODS: 1}.items():
            left[name] = left.get(name, 0) - amount
    return room


def _unplaced(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    meta = {key: value for key, value in pod["metadata"].items() if key != "deletionTimestamp"}
    return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _likeness(pod: Mapping[str, Any]) -> str:
    """What decides where it may go, as text."""
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    labels = pod["metadata"].get("labels") or {}
    return json.dumps([pod["metadata"].get("namespace"), labels, spec], sort_keys=True, default=str)


def _is_coupled(pod: Mapping[str, Any]) -> bool:
    spec = pod.get("spec") or {}
    affinity = spec.get("affinity") or {}
    ports = any(
        port.get("hostPort")
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
    )
    claims = any(volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or ())
    return bool(
        affinity.get("podAffinity")
        or affinity.get("podAntiAffinity")
        or spec.get("topologySpreadConstraints")
        or ports
        or claims
    )


def _is_alive(pod: Mapping[str, Any]) -> bool:
    done = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not done and not pod["metadata"].get("deletionTimestamp")


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{pod['metadata']['name']}"
