"""What a solver needs to know of a small cluster: which pods fit where, what they take, which rules they have.

Each distinct pod is asked about alone, by one real scheduling cycle in a cluster with the same nodes and only the pods
that stay where they are; of its rules about other pods only those are left in that cannot get easier when more pods
come (anti-affinity and host ports of the pods that stay). Rules between movable pods (inter-pod affinity and
anti-affinity, topology spread, host ports) become constraints. What volumes do between movable pods does not: such
pods are named in `coupled`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.cluster.node_table import normal_port
from scheduler_core.model.filters import is_about
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import HostPort, Pod, pod_from
from scheduler_core.objects.resources import PODS
from scheduler_core.plan.pending import without_rules
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation

_KEPT_KINDS = frozenset(
    (
        "Namespace", "PriorityClass", "StorageClass", "CSIDriver", "CSINode", "PersistentVolume",
        "PersistentVolumeClaim", "CSIStorageCapacity", "Node", "Service", "ReplicaSet", "ReplicationController",
        "StatefulSet",
    )
)  # fmt: skip
_FIRST = {"Namespace": 0, "PriorityClass": 0, "Node": 2, "Pod": 3}


@dataclass(frozen=True, slots=True)
class JointPod:
    """Pods that are alike: same needs, same rules, same nodes, same scores, same priority.

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
    ports: frozenset[HostPort] = frozenset()


@dataclass(frozen=True, slots=True)
class Crowd:
    """The pods a rule counts.

    Attributes
    ----------
    pods
        Places in `JointProblem.pods` of the movable ones.
    staying
        Node -> how many of those that stay.
    """

    pods: tuple[int, ...]
    staying: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Away:
    """Required anti-affinity: where a pod of `pod` is, a domain holds no other of the crowd."""

    pod: int
    domain_of: Mapping[str, str]
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class Near:
    """Required affinity: for each of `domains_of` (node -> domain), where a pod of `pod` is, another of the crowd is.

    A pod that is of the crowd itself may go first, where nothing of the crowd is anywhere else.
    """

    pod: int
    domains_of: tuple[Mapping[str, str], ...]
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class Spread:
    """DoNotSchedule: where a pod of `pod` is, its domain holds at most `max_skew` more than any other.

    Attributes
    ----------
    domain_of
        Node -> domain, of the nodes that are counted.
    least_is_zero
        There are fewer domains than minDomains: an empty one counts beside them.
    """

    pod: int
    domain_of: Mapping[str, str]
    crowd: Crowd
    max_skew: int
    least_is_zero: bool


Rule = Away | Near | Spread


@dataclass(frozen=True, slots=True)
class JointProblem:
    """The whole of it.

    Attributes
    ----------
    room
        Node -> resource -> what is left beside the pods that stay.
    coupled
        Pods with claims, of which the constraints know nothing.
    """

    pods: tuple[JointPod, ...]
    room: Mapping[str, Mapping[str, int]]
    coupled: tuple[str, ...]
    rules: tuple[Rule, ...] = ()


def joint_problem(
    manifests: Iterable[Mapping[str, Any]],
    config: Mapping[str, Any] | None,
    movable: frozenset[str],
    release: Release = OLDEST,
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
    release
        The release of Kubernetes whose filters and scores count.
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
    simulation = Simulation(bare, seed=0, start_ns=0, release=release)
    for item in sorted([*surroundings, *staying], key=lambda item: _FIRST.get(item["kind"], 1)):
        simulation.submit(WriteObject(item))
    simulation.advance(0, max_cycles=0)
    sandbox = Sandbox(simulation.scheduler)
    nodes = [node_from(item) for item in everything if item["kind"] == "Node"]
    groups, typed, coupled = [], [], []
    for members in alike.values():
        manifest = _unplaced(members[0])
        pod_ = pod_from(manifest)
        typed.append(pod_)
        groups.append(
            JointPod(
                names=tuple(_key(member) for member in members),
                priority=pod_.priority,
                requests={**{name: amount for name, amount in pod_.requests.items() if amount}, PODS: 1},
                scores=_scores(sandbox, manifest),
                ports=frozenset(normal_port(port) for port in pod_.host_ports),
            )
        )
        if any(volume.get("persistentVolumeClaim") for volume in pod_.volumes):
            coupled += [_key(member) for member in members]
    resting = [pod_from(item) for item in staying]
    reading = _Rules(nodes, typed, resting, everything)
    rules = tuple(rule for place in range(len(typed)) for rule in reading.of(place))
    return JointProblem(tuple(groups), _room(nodes, resting), tuple(coupled), rules)


def _scores(sandbox: Sandbox, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Node -> score of the pod alone, of the nodes that are feasible for it."""
    pod = pod_from(without_rules(manifest))
    if sandbox.scheduler.why_not_scheduled(pod) is not None:
        return {}
    decision = sandbox.decide(pod)
    attempt = decision.attempt
    rows = attempt.feasible.tolist()
    totals = attempt.total.tolist() if len(attempt.total) == len(rows) else [0] * len(rows)
    return {attempt.name_of(row): int(total) for row, total in zip(rows, totals, strict=True)}


class _Rules:
    """Reads the rules of movable pods about each other and about those that stay."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Sequence[Pod],
        staying: Sequence[Pod],
        everything: Sequence[Mapping[str, Any]],
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._staying = staying
        self._namespaces = {
            item["metadata"]["name"]: dict(item["metadata"].get("labels") or {})
            for item in everything
            if item["kind"] == "Namespace"
        }

    def of(self, place: int) -> Iterable[Rule]:
        pod = self._pods[place]
        for term in pod.required_anti_affinity:
            yield Away(
                place,
                self._domains(term.topology_key),
                self._crowd(lambda other, term=term: is_about(term, other, self._namespaces)),
            )
        terms = pod.required_affinity
        if terms:
            yield Near(
                place,
                tuple(self._domains(term.topology_key) for term in terms),
                self._crowd(lambda other: all(is_about(term, other, self._namespaces) for term in terms)),
            )
        hard = [item for item in pod.topology_spread if item.when_unsatisfiable == "DoNotSchedule"]
        for item in hard:
            if item.selector.is_everything:
                # Upstream counts nothing for a selector of everything.
                continue
            counted = [
                node
                for node in self._nodes
                if all(other.topology_key in node.labels for other in hard)
                and (item.node_affinity_policy != "Honor" or pod.required_node_affinity.match(node.labels, node.name))
                and (item.node_taints_policy != "Honor" or _tolerates_all(pod, node))
            ]  # fmt: skip
            domain_of = {node.name: node.labels[item.topology_key] for node in counted}
            yield Spread(
                place,
                domain_of,
                self._crowd(lambda other, selector=item.selector: _selects(selector, pod, other)),
                item.max_skew,
                len(set(domain_of.values())) < (item.min_domains or 1),
            )

    def _domains(self, key: str) -> dict[str, str]:
        return {node.name: node.labels[key] for node in self._nodes if key in node.labels}

    def _crowd(self, counts: Any) -> Crowd:
        staying: dict[str, int] = {}
        for pod in self._staying:
            if counts(pod):
                staying[pod.node_name] = staying.get(pod.node_name, 0) + 1
        return Crowd(tuple(place for place, pod in enumerate(self._pods) if counts(pod)), staying)


def _selects(selector: LabelSelector, pod: Pod, other: Pod) -> bool:
    return other.namespace == pod.namespace and not other.is_terminating and selector.matches(other.labels)


def _tolerates_all(pod: Pod, node: Node) -> bool:
    return all(
        taint.effect not in ("NoSchedule", "NoExecute") or pod.tolerates(taint) for taint in node.taints
    )


def _room(nodes: Sequence[Node], staying: Sequence[Pod]) -> dict[str, dict[str, int]]:
    room = {node.name: dict(node.allocatable) for node in nodes}
    for pod in staying:
        left = room.get(pod.node_name)
        if left is None:
            continue
        for name, amount in {**pod.requests, PODS: 1}.items():
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


def _is_alive(pod: Mapping[str, Any]) -> bool:
    done = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not done and not pod["metadata"].get("deletionTimestamp")


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{pod['metadata']['name']}"
