"""Pod: everything scheduling reads of it, as hashable values."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from scheduler_core.errors import InvalidObject
from scheduler_core.objects import fields, node_selector
from scheduler_core.objects.labels import LabelSelector, label_selector_from
from scheduler_core.objects.meta import Named, ObjectMeta, object_meta_from
from scheduler_core.objects.node import Taint
from scheduler_core.objects.resources import PodRequests, pod_requests, summed_requests

DEFAULT_SCHEDULER_NAME = "default-scheduler"
DISRUPTION_TARGET = "DisruptionTarget"
TERMINAL_PHASES = ("Succeeded", "Failed")
PREEMPTED_BY_SCHEDULER = "PreemptionByScheduler"


def no_such_profile(scheduler_name: str, profiles: Iterable[str]) -> str:
    """Why a pod waits whose `spec.schedulerName` is none of these profiles."""
    known = ", ".join(sorted(profiles))
    return (
        f'spec.schedulerName "{scheduler_name}" is no profile of this cluster\'s scheduler (it has {known})'
    )


class Toleration(NamedTuple):
    """One toleration; an empty key with Exists tolerates everything."""

    key: str
    operator: str
    value: str
    effect: str
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Source: staging/src/k8s.io/api/core/v1/toleration.go ToleratesTaint, v1.34."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One pod (anti-)affinity term, namespaces already defaulted to the owner's own.

    Source: pkg/scheduler/framework/types.go newAffinityTerm, v1.34
    """

    selector: LabelSelector
    topology_key: str
    namespaces: tuple[str, ...]
    """Sorted names; the pod's own namespace when the term names neither namespaces nor a selector."""
    namespace_selector: LabelSelector
    _hash: int = field(init=False, repr=False, compare=False)
    """Much is kept by terms: each is asked for it several times a cycle."""

    def __post_init__(self) -> None:
        parts = (self.selector, self.topology_key, self.namespaces, self.namespace_selector)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class WeightedAffinityTerm:
    """A preferred term."""

    term: AffinityTerm
    weight: int


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """One constraint as written; `selector` already has matchLabelKeys merged in."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    selector: LabelSelector
    min_domains: int | None
    node_affinity_policy: str
    node_taints_policy: str


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port a container wants on its node; an empty ip means all addresses."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, eq=False)
class Pod(Named):
    """The part of a Pod the scheduler reads; `manifest` is the whole object.

    Pods compare by identity: two versions of one pod are two values with one `uid`. They have no slots, because a
    new version is made of the old one's `__dict__` (`_evolved`). Twenty-nine attributes at most: with more of them
    CPython keeps the names in each pod, too, which takes four times the room.
    """

    manifest: fields.Document
    meta: ObjectMeta
    node_name: str
    scheduler_name: str
    priority: int
    preemption_policy: str
    scheduling_gates: tuple[str, ...]
    tolerations: tuple[Toleration, ...]
    required_node_affinity: node_selector.RequiredNodeAffinity
    preferred_node_affinity: node_selector.PreferredTerms
    prefers_nodes: bool
    """Whether any preferred term is written, useless ones included."""
    required_affinity: tuple[AffinityTerm, ...]
    required_anti_affinity: tuple[AffinityTerm, ...]
    preferred_affinity: tuple[WeightedAffinityTerm, ...]
    preferred_anti_affinity: tuple[WeightedAffinityTerm, ...]
    topology_spread: tuple[TopologySpreadConstraint, ...]
    host_ports: tuple[HostPort, ...]
    requests: dict[str, int]
    """Whole units as in `objects.resources`; explicit zeros are kept."""
    non_zero: tuple[int, int]
    """cpu in millicores and memory in bytes; 100m and 200Mi counted for each container that names none."""
    scoring: tuple[int, int]
    """The same as scores count it of the pod itself."""
    images: tuple[str, ...]
    """Images of init containers, then containers, as written (empty where none is given)."""
    volumes: tuple[fields.Document, ...]
    resource_claims: tuple[fields.Document, ...]
    phase: str
    start_ns: int | None
    nominated_node_name: str
    has_affinity: bool
    """Whether it says anything of other pods."""
    read: object
    """The same in all pods whose spec was read once and is alike but for the node (`objects.by_spec`)."""
    scheduling_group: str = ""
    """Name of the PodGroup it is a member of, empty for none; in a release without groups it means nothing."""

    @property
    def disruption_target_reason(self) -> str | None:
        """Reason of a true DisruptionTarget condition, None without one."""
        return _disruption_target_reason(fields.mapping(self.manifest, "status", ""))

    @property
    def has_required_anti_affinity(self) -> bool:
        return bool(self.required_anti_affinity)

    @property
    def is_mirror(self) -> bool:
        """Whether a kubelet made it for a static pod."""
        return "kubernetes.io/config.mirror" in self.annotations

    @property
    def is_of_daemon_set(self) -> bool:
        controller = self.meta.controller
        return controller is not None and controller.kind == "DaemonSet"

    @property
    def is_terminating(self) -> bool:
        return self.meta.deletion_ns is not None

    @property
    def is_terminal(self) -> bool:
        """Succeeded and Failed pods do not exist for the scheduler."""
        return self.phase in TERMINAL_PHASES

    def tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


_MAX_KNOWN_SPECS = 8192
_SpecKey = tuple[str, bytes, bytes]
"""Namespace, and in bytes what the spec says without its node and its containers' resources, and those."""
_known_specs: dict[_SpecKey, Pod] = {}
"""A pod that has the spec: most pods differ from another by little else."""
_known_shapes: dict[tuple[str, bytes], Pod] = {}
"""A pod whose spec differs in its containers' resources at most."""


def pod_from(manifest: fields.Document) -> Pod:
    """Parse a prepared Pod manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    meta = object_meta_from(manifest)
    status = fields.mapping(manifest, "status", "")
    if status:
        _disruption_target_reason(status)  # it can be read, which is done where it is asked for
    key = _spec_key(meta, manifest) if says_nothing_of_requests(status) else None
    if key is None:
        return _parsed(manifest, meta)
    known = _known_specs.get(key)
    if known is not None:
        return _evolved(known, manifest, meta, status, fields.string(manifest["spec"], "nodeName", "spec"))
    shape = key[:2]
    like = _known_shapes.get(shape)
    if like is None:
        pod = _parsed(manifest, meta)
        _keep(_known_shapes, shape, pod)
    else:
        pod = _evolved(like, manifest, meta, status, fields.string(manifest["spec"], "nodeName", "spec"))
        _ask_for(pod, pod_requests(manifest))
    _keep(_known_specs, key, pod)
    return pod


def _keep(known: dict[Any, Pod], key: Any, pod: Pod) -> None:
    if len(known) >= _MAX_KNOWN_SPECS:
        known.clear()
    known[key] = pod


def _spec_key(meta: ObjectMeta, manifest: fields.Document) -> _SpecKey | None:
    """Key that is equal for pods with equal specs but for their node; None if unknown."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return None
    shape, resources = spec.copy(), []
    shape.pop("nodeName", None)
    try:
        for kind in ("containers", "initContainers"):
            if kind in spec:
                items = [item.copy() for item in spec[kind]]
                resources.append([item.pop("resources", None) for item in items])
                shape[kind] = items
        # Version 2 of the format writes equal values as equal bytes; later ones tell apart who is shared.
        return meta.namespace, marshal.dumps(shape, 2), marshal.dumps(resources, 2)
    except (AttributeError, TypeError, ValueError):
        return None


def says_nothing_of_requests(status: fields.Document) -> bool:
    """Whether neither pod nor container is being resized in place; False where a status cannot be read."""
    if "resources" in status:
        return False
    for key in ("containerStatuses", "initContainerStatuses"):
        items = status.get(key)
        if items is None:
            continue
        if not isinstance(items, list):
            return False
        for item in items:
            if not isinstance(item, dict) or "resources" in item or not isinstance(item.get("name", ""), str):
                return False
    return True


def _parsed(manifest: fields.Document, meta: ObjectMeta) -> Pod:
    spec = fields.mapping(manifest, "spec", "")
    status = fields.mapping(manifest, "status", "")
    affinity = fields.mapping(spec, "affinity", "spec")
    node_affinity = fields.mapping(affinity, "nodeAffinity", "spec.affinity") if affinity else {}
    pod_affinity = _terms(affinity, "podAffinity", meta.namespace) if affinity else _NO_TERMS
    anti_affinity = _terms(affinity, "podAntiAffinity", meta.namespace) if affinity else _NO_TERMS
    resources = pod_requests(manifest)
    preferred = [item for _, item in fields.mappings(node_affinity, _PREFERRED, "spec.affinity.nodeAffinity")]
    try:
        required_node_affinity = node_selector.required_node_affinity_from(spec)
        preferred_node_affinity = node_selector.preferred_terms_from(preferred)
    except (fields.SelectorError, InvalidObject) as error:
        raise InvalidObject("spec.affinity.nodeAffinity", None, str(error)) from error
    return Pod(
        manifest=manifest,
        meta=meta,
        node_name=fields.string(spec, "nodeName", "spec"),
        scheduler_name=fields.string(spec, "schedulerName", "spec", DEFAULT_SCHEDULER_NAME),
        priority=fields.integer(spec, "priority", "spec"),
        preemption_policy=fields.string(spec, "preemptionPolicy", "spec", "PreemptLowerPriority"),
        scheduling_gates=tuple(
            fields.string(gate, "name", path)
            for path, gate in fields.mappings(spec, "schedulingGates", "spec")
        ),
        tolerations=tolerations_from(spec, "spec"),
        required_node_affinity=required_node_affinity,
        preferred_node_affinity=preferred_node_affinity,
        prefers_nodes=bool(preferred),
        required_affinity=pod_affinity[0],
        required_anti_affinity=anti_affinity[0],
        preferred_affinity=pod_affinity[1],
        preferred_anti_affinity=anti_affinity[1],
        topology_spread=spread_constraints(spec),
        host_ports=_host_ports(spec),
        requests=resources.requests,
        non_zero=resources.non_zero,
        scoring=resources.scoring,
        images=tuple(
            fields.string(container, "image", path)
            for key in ("initContainers", "containers")
            for path, container in fields.mappings(spec, key, "spec")
        ),
        volumes=tuple(volume for _, volume in fields.mappings(spec, "volumes", "spec")),
        resource_claims=tuple(claim for _, claim in fields.mappings(spec, "resourceClaims", "spec")),
        phase=fields.string(status, "phase", "status") if status else "",
        start_ns=fields.timestamp_ns(status, "startTime", "status") if status else None,
        nominated_node_name=fields.string(status, "nominatedNodeName", "status") if status else "",
        has_affinity=bool(pod_affinity[0] or pod_affinity[1] or anti_affinity[0] or anti_affinity[1]),
        read=object(),
        scheduling_group=fields.string(
            fields.mapping(spec, "schedulingGroup", "spec"), "podGroupName", "spec.schedulingGroup"
        ),
    )


def tolerations_from(spec: fields.Document, path: str) -> tuple[Toleration, ...]:
    """The tolerations of a pod's spec, or a template's."""
    return tuple(
        Toleration(
            fields.string(item, "key", where),
            fields.string(item, "operator", where),
            fields.string(item, "value", where),
            fields.string(item, "effect", where),
            fields.optional_integer(item, "tolerationSeconds", where),
        )
        for where, item in fields.mappings(spec, "tolerations", path)
    )


def _ask_for(pod: Pod, resources: PodRequests) -> None:
    """Let a pod that was just made of another one's values ask for something else."""
    values = pod.__dict__
    values["requests"] = resources.requests
    values["non_zero"], values["scoring"] = resources.non_zero, resources.scoring
    values["read"] = object()


def resized_as_sums(pod: Pod) -> Pod:
    """A pod that is being resized asks for the largest of its sums, as from 1.37 on; any other is given back."""
    status = fields.mapping(pod.manifest, "status", "")
    if says_nothing_of_requests(status):
        return pod
    resized = _evolved(pod, pod.manifest, pod.meta, status, pod.node_name)
    _ask_for(resized, summed_requests(pod.manifest, as_sums=True))
    return resized


def with_node(pod: Pod, node_name: str, manifest: fields.Document) -> Pod:
    """The pod bound to a node; `manifest` differs from the pod's own in its binding and status alone."""
    return _evolved(pod, manifest, pod.meta, fields.mapping(manifest, "status", ""), node_name)


def with_status(pod: Pod, manifest: fields.Document) -> Pod:
    """The pod with another status or deletion time: what containers ask for is not read again."""
    # Objects are never changed in place: the same metadata is the same object.
    meta = pod.meta if manifest["metadata"] is pod.manifest["metadata"] else object_meta_from(manifest)
    return _evolved(pod, manifest, meta, fields.mapping(manifest, "status", ""), pod.node_name)


def pod_like(pod: Pod, manifest: fields.Document, meta: ObjectMeta, node_name: str) -> Pod:
    """The pod that differs from another of its namespace in its metadata and its node alone."""
    new = object.__new__(Pod)
    values = pod.__dict__.copy()
    object.__setattr__(new, "__dict__", values)
    values["manifest"] = manifest
    values["meta"] = meta
    values["node_name"] = node_name
    return new


def _evolved(
    pod: Pod, manifest: fields.Document, meta: ObjectMeta, status: fields.Document, node_name: str
) -> Pod:
    """`dataclasses.replace` at a tenth of its price: what stays is copied all at once.

    What conditions a person writes is read once, by `pod_from`: of later versions they are the cluster's own.
    """
    new = pod_like(pod, manifest, meta, node_name)
    if status is pod.manifest.get("status"):
        return new
    values = new.__dict__
    if not status:
        values["phase"], values["start_ns"], values["nominated_node_name"] = "", None, ""
        return new
    values["phase"] = fields.string(status, "phase", "status")
    values["start_ns"] = fields.timestamp_ns(status, "startTime", "status")
    values["nominated_node_name"] = fields.string(status, "nominatedNodeName", "status")
    return new


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_TERMS: tuple[tuple[AffinityTerm, ...], tuple[WeightedAffinityTerm, ...]] = ((), ())


def selector_at(document: fields.Document, key: str, path: str) -> LabelSelector:
    """A label selector field (absent matches nothing), errors named by path."""
    where = fields.child(path, key)
    try:
        return label_selector_from(document.get(key), where)
    except fields.SelectorError as error:
        raise InvalidObject(error.path or where, None, str(error)) from error


def _terms(
    affinity: fields.Document, kind: str, namespace: str
) -> tuple[tuple[AffinityTerm, ...], tuple[WeightedAffinityTerm, ...]]:
    document = fields.mapping(affinity, kind, "spec.affinity")
    if not document:
        return _NO_TERMS
    path = f"spec.affinity.{kind}"
    required = tuple(
        _affinity_term(term, term_path, namespace)
        for term_path, term in fields.mappings(document, _REQUIRED, path)
    )
    preferred = tuple(
        WeightedAffinityTerm(
            _affinity_term(
                fields.mapping(item, "podAffinityTerm", item_path), f"{item_path}.podAffinityTerm", namespace
            ),
            fields.integer(item, "weight", item_path),
        )
        for item_path, item in fields.mappings(document, _PREFERRED, path)
    )
    return required, preferred


def _affinity_term(term: fields.Document, path: str, namespace: str) -> AffinityTerm:
    namespaces = fields.strings(term, "namespaces", path)
    if not namespaces and term.get("namespaceSelector") is None:
        namespaces = (namespace,)
    return AffinityTerm(
        selector=selector_at(term, "labelSelector", path),
        topology_key=fields.string(term, "topologyKey", path),
        namespaces=tuple(sorted(dict.fromkeys(namespaces))),
        namespace_selector=selector_at(term, "namespaceSelector", path),
    )


def spread_constraints(spec: fields.Document) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints of a pod's spec, those without a selector selecting nothing."""
    return tuple(
        TopologySpreadConstraint(
            max_skew=fields.integer(item, "maxSkew", path),
            topology_key=fields.string(item, "topologyKey", path),
            when_unsatisfiable=fields.string(item, "whenUnsatisfiable", path),
            selector=selector_at(item, "labelSelector", path),
            min_domains=fields.optional_integer(item, "minDomains", path),
            node_affinity_policy=fields.string(item, "nodeAffinityPolicy", path, "Honor"),
            node_taints_policy=fields.string(item, "nodeTaintsPolicy", path, "Ignore"),
        )
        for path, item in fields.mappings(spec, "topologySpreadConstraints", "spec")
    )


def _host_ports(spec: fields.Document) -> tuple[HostPort, ...]:
    """Host ports of containers and of restartable init containers.

    Source: pkg/scheduler/util/utils.go GetHostPorts, v1.34
    """
    ports = []
    for key in ("initContainers", "containers"):
        for path, container in fields.mappings(spec, key, "spec"):
            if key == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            for port_path, port in fields.mappings(container, "ports", path):
                number = fields.integer(port, "hostPort", port_path)
                if number > 0:
                    protocol = fields.string(port, "protocol", port_path) or "TCP"
                    ports.append(HostPort(fields.string(port, "hostIP", port_path), protocol, number))
    return tuple(ports)


def _disruption_target_reason(status: fields.Document) -> str | None:
    reason: str | None = None
    for place, condition in enumerate(fields.sequence(status, "conditions", "status")):
        # Next to no pod has the condition, and each version of each pod is asked.
        if type(condition) is dict and condition.get("type") != DISRUPTION_TARGET:
            continue
        if type(condition) is not dict and not isinstance(condition, Mapping):
            raise InvalidObject(f"status.conditions[{place}]", condition, "must be an object")
        is_one = reason is None and condition.get("type") == DISRUPTION_TARGET
        if is_one and condition.get("status") == "True":
            reason = fields.string(condition, "reason", f"status.conditions[{place}]")
    return reason


# --- What is made of a pod's spec alone, made once for all pods that were read as one.


T = TypeVar("T")

_MOST = 4096


class BySpec(Generic[T]):
    """Answers about pods, kept by `Pod.read`: replicas, and the versions of one pod, have one between them.

    Parameters
    ----------
    make : callable
        Gives the answer from a pod's spec; its metadata, status and node it may not look at.
    """

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[Pod], T]) -> None:
        self._make = make
        self._kept: dict[object, T] = {}

    def of(self, pod: Pod) -> T:
        found = self._kept.get(pod.read)
        if found is None:
            if len(self._kept) >= _MOST:
                self._kept.clear()
            found = self._kept[pod.read] = self._make(pod)
        return found
