"""The kinds of objects that shape placement, and how those a scheduler reads are parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import Document, string
from scheduler_core.objects.meta import ObjectMeta, plain_object_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.policy import pod_disruption_budget_from, pod_group_from, selecting_object_from
from scheduler_core.objects.storage import (
    csi_driver_from,
    csi_node_from,
    csi_storage_capacity_from,
    persistent_volume_claim_from,
    persistent_volume_from,
    storage_class_from,
    volume_attachment_from,
)

READ: Final = "read"
MAKES: Final = "makes"


class ShapingKind(NamedTuple):
    """A kind that shapes placement.

    Attributes
    ----------
    group : str
        API group, empty for core.
    namespaced : bool
    rank : int
        Place in the order in which objects are made, from 0: namespaces and classes before what names them.
    role : str
        `READ`: the scheduler or admission goes by it; `MAKES`: a controller acts on it, and what it makes counts.
    effect : str
        What an object of it does to placement, for people.
    parse : callable, optional
        From a prepared manifest to the typed object, of kinds the scheduler reads.
    """

    group: str
    namespaced: bool
    rank: int
    role: str
    effect: str
    parse: Callable[[Document], Any] | None = None


class ParsedObject(NamedTuple):
    """A typed object and its place among others; `namespace` is empty for kinds that live in none."""

    kind: str
    namespace: str
    name: str
    typed: Any


SHAPING: Final[Mapping[str, ShapingKind]] = {
    "Namespace": ShapingKind("", False, 0, READ,
        "labels, for the namespaceSelector of pod affinity", plain_object_from),
    "PriorityClass": ShapingKind("scheduling.k8s.io", False, 1, READ, "order of the queue, who may evict whom"),
    "Node": ShapingKind("", False, 2, READ, "room, taints, labels, conditions", node_from),
    "StorageClass": ShapingKind("storage.k8s.io", False, 1, READ,
        "when and where a volume is made", storage_class_from),
    "CSIDriver": ShapingKind("storage.k8s.io", False, 1, READ, "whether capacity is tracked", csi_driver_from),
    "CSINode": ShapingKind("storage.k8s.io", False, 3, READ, "how many volumes a node takes", csi_node_from),
    "CSIStorageCapacity": ShapingKind("storage.k8s.io", True, 3, READ,
        "free capacity, by where it is", csi_storage_capacity_from),
    "PersistentVolume": ShapingKind("", False, 3, READ, "which nodes reach it", persistent_volume_from),
    "PersistentVolumeClaim": ShapingKind("", True, 3, READ,
        "VolumeBinding, VolumeRestrictions, NodeVolumeLimits", persistent_volume_claim_from),
    "Service": ShapingKind("", True, 4, READ,
        "selectors, for the default spread of pods that ask for none", selecting_object_from),
    "PodDisruptionBudget": ShapingKind("policy", True, 4, READ,
        "which victims preemption spares; drains respect it", pod_disruption_budget_from),
    "DeviceClass": ShapingKind("resource.k8s.io", False, 1, READ,
        "which devices a claim may have", plain_object_from),
    "ResourceSlice": ShapingKind("resource.k8s.io", False, 3, READ, "the devices of nodes", plain_object_from),
    "DeviceTaintRule": ShapingKind("resource.k8s.io", False, 3, READ,
        "taints devices, where DRADeviceTaintRules is on", plain_object_from),
    "ResourceClaimTemplate": ShapingKind("resource.k8s.io", True, 3, MAKES,
        "makes a claim for each pod that names it"),
    "ResourceClaim": ShapingKind("resource.k8s.io", True, 3, READ,
        "the devices a pod has or wants", plain_object_from),
    "Workload": ShapingKind("scheduling.k8s.io", True, 3, READ, "groups of pods that are placed together"),
    "PodGroup": ShapingKind("scheduling.k8s.io", True, 4, READ,
        "pods that are placed together, or not at all", pod_group_from),
    "Pod": ShapingKind("", True, 5, READ,
        "what it asks for; on a node it takes room, and counts for affinity and spread", pod_from),
    "ReplicationController": ShapingKind("", True, 5, READ,
        "selectors, for the default spread; makes pods", selecting_object_from),
    "ReplicaSet": ShapingKind("apps", True, 5, READ,
        "selectors, for the default spread; makes pods", selecting_object_from),
    "Deployment": ShapingKind("apps", True, 5, MAKES, "makes ReplicaSets, and they pods"),
    "StatefulSet": ShapingKind("apps", True, 5, READ,
        "selectors, for the default spread; makes pods and their claims", selecting_object_from),
    "DaemonSet": ShapingKind("apps", True, 5, MAKES, "one pod a node"),
    "Job": ShapingKind("batch", True, 5, MAKES,
        "makes pods until enough have succeeded; each ends by itself after a while"),
    "VolumeAttachment": ShapingKind("storage.k8s.io", False, 3, READ,
        "volumes a node has attached already", volume_attachment_from),
    "LimitRange": ShapingKind("", True, 1, MAKES, "default requests of new pods, and their bounds"),
    "ResourceQuota": ShapingKind("", True, 1, MAKES, "refuses pods above it, before they reach the queue"),
    "CronJob": ShapingKind("batch", True, 5, MAKES, "owns Jobs; makes none here, its schedule is not followed"),
    "HorizontalPodAutoscaler": ShapingKind("autoscaling", True, 6, MAKES,
        "sets the replicas of a workload by the load drawn on it"),
    "ControllerRevision": ShapingKind("apps", True, 4, MAKES, "templates that rollouts go back to"),
}  # fmt: skip
"""What shapes placement, each kind under the one API group it belongs to, in the order in which kinds are shown.

An entry is all that makes a kind part of logs that replay, of scenarios and of what is taken from a dump."""
KINDS: Final[Mapping[str, ShapingKind]] = {
    name: kind for name, kind in SHAPING.items() if kind.parse is not None
}
"""Those of them the scheduler reads."""


def is_read(manifest: Document) -> bool:
    """Whether an object is of a kind the scheduler reads: `Service`, but not Knative's `Service`."""
    kind = KINDS.get(str(manifest.get("kind", "")))
    return kind is not None and _group(manifest) in (None, kind.group)


def parse(manifest: Document) -> ParsedObject:
    """The typed object of a prepared manifest (`defaults.prepare`), with the key listers keep it under.

    Parameters
    ----------
    manifest : mapping
        With `kind`; `apiVersion` may be left out.

    Raises
    ------
    InvalidObject
        The kind is none the scheduler reads, or a field cannot be read.

    Examples
    --------
    >>> parsed = parse({"kind": "Node", "metadata": {"name": "n1"}})
    >>> parsed.kind, parsed.namespace, parsed.name
    ('Node', '', 'n1')
    """
    name = string(manifest, "kind", "")
    kind = KINDS.get(name)
    if kind is None or kind.parse is None or not is_read(manifest):
        shown = f"{manifest.get('apiVersion', '')} {name}".strip()
        raise InvalidObject("kind", shown, "is not read by a scheduler")
    typed = kind.parse(manifest)
    meta: ObjectMeta = typed.meta
    return ParsedObject(name, meta.namespace if kind.namespaced else "", meta.name, typed)


def _group(manifest: Document) -> str | None:
    version = manifest.get("apiVersion")
    if version is None:
        return None
    group, slash, _ = str(version).partition("/")
    return group if slash else ""
