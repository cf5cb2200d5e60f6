"""The kinds of objects a scheduler reads, and how each is parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import Document, string
from scheduler_core.objects.meta import ObjectMeta, object_meta_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.pod_group import pod_group_from
from scheduler_core.objects.policy import namespace_from, pod_disruption_budget_from, selecting_object_from
from scheduler_core.objects.storage import (
    csi_driver_from,
    csi_node_from,
    csi_storage_capacity_from,
    persistent_volume_claim_from,
    persistent_volume_from,
    storage_class_from,
    volume_attachment_from,
)


@dataclass(frozen=True, slots=True, eq=False)
class PlainObject:
    """An object of which only its metadata matters; `manifest` is the whole of it."""

    manifest: Document
    meta: ObjectMeta


class Kind(NamedTuple):
    """A kind the scheduler reads.

    Attributes
    ----------
    group : str
        API group, empty for core.
    namespaced : bool
    parse : callable
        From a prepared manifest to the typed object.
    """

    group: str
    namespaced: bool
    parse: Callable[[Document], Any]


class ParsedObject(NamedTuple):
    """A typed object and its place among others; `namespace` is empty for kinds that live in none."""

    kind: str
    namespace: str
    name: str
    typed: Any


def plain_object_from(manifest: Document) -> PlainObject:
    """Parse the metadata of any object."""
    return PlainObject(manifest, object_meta_from(manifest))


KINDS: dict[str, Kind] = {
    "Pod": Kind("", True, pod_from),
    "Node": Kind("", False, node_from),
    "Namespace": Kind("", False, namespace_from),
    "PodDisruptionBudget": Kind("policy", True, pod_disruption_budget_from),
    "Service": Kind("", True, selecting_object_from),
    "ReplicationController": Kind("", True, selecting_object_from),
    "ReplicaSet": Kind("apps", True, selecting_object_from),
    "StatefulSet": Kind("apps", True, selecting_object_from),
    "PersistentVolume": Kind("", False, persistent_volume_from),
    "PersistentVolumeClaim": Kind("", True, persistent_volume_claim_from),
    "StorageClass": Kind("storage.k8s.io", False, storage_class_from),
    "CSINode": Kind("storage.k8s.io", False, csi_node_from),
    "CSIDriver": Kind("storage.k8s.io", False, csi_driver_from),
    "CSIStorageCapacity": Kind("storage.k8s.io", True, csi_storage_capacity_from),
    "VolumeAttachment": Kind("storage.k8s.io", False, volume_attachment_from),
    "ResourceClaim": Kind("resource.k8s.io", True, plain_object_from),
    "ResourceSlice": Kind("resource.k8s.io", False, plain_object_from),
    "DeviceClass": Kind("resource.k8s.io", False, plain_object_from),
    "PodGroup": Kind("scheduling.k8s.io", True, pod_group_from),
}
"""Kinds by name, each under the one API group it belongs to."""
SHAPING_KINDS: Final = frozenset(
    (
        *KINDS,
        *("ControllerRevision", "CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job"),
        *("LimitRange", "PriorityClass", "ResourceClaimTemplate", "ResourceQuota", "Workload"),
    )
)
"""What shapes placement: the kinds a scheduler reads, and those that controllers and admission act by."""


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
    if not is_read(manifest):
        shown = f"{manifest.get('apiVersion', '')} {name}".strip()
        raise InvalidObject("kind", shown, "is not read by a scheduler")
    kind = KINDS[name]
    typed = kind.parse(manifest)
    meta: ObjectMeta = typed.meta
    return ParsedObject(name, meta.namespace if kind.namespaced else "", meta.name, typed)


def _group(manifest: Document) -> str | None:
    version = manifest.get("apiVersion")
    if version is None:
        return None
    group, slash, _ = str(version).partition("/")
    return group if slash else ""
