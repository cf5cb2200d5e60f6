"""Node: taints, allocatable, images, labels."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.objects.fields import Document, boolean, integer, mapping, mappings, string, strings
from scheduler_core.objects.meta import PlainObject, object_meta_from
from scheduler_core.objects.resources import resource_list, whole_units

TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
LABEL_ZONE = "topology.kubernetes.io/zone"
LABEL_REGION = "topology.kubernetes.io/region"
LABEL_ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
LABEL_REGION_BETA = "failure-domain.beta.kubernetes.io/region"


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark that keeps pods off a node unless they tolerate it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class ContainerImage:
    """An image a node already holds."""

    names: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Node(PlainObject):
    """The part of a Node the scheduler reads; `manifest` is the whole object."""

    unschedulable: bool
    taints: tuple[Taint, ...]
    allocatable: dict[str, int]
    """Whole units as in `objects.resources`."""
    images: tuple[ContainerImage, ...]
    conditions: tuple[tuple[str, str], ...]
    """(type, status) in the manifest's order."""
    declared_features: tuple[str, ...] = ()
    """Names of the features the kubelet says it has (Kubernetes 1.35 and later), as written."""

    @property
    def zone_key(self) -> str:
        """Region and zone as one key, empty when the node names neither.

        Source: component-helpers/node/topology/helpers.go GetZoneKey, v1.34
        """
        labels = self.meta.labels
        zone = labels.get(LABEL_ZONE_BETA, labels.get(LABEL_ZONE, ""))
        region = labels.get(LABEL_REGION_BETA, labels.get(LABEL_REGION, ""))
        return f"{region}:\x00:{zone}" if zone or region else ""


def node_from(manifest: Document) -> Node:
    """Parse a prepared Node manifest (allocatable filled in by `defaults.prepare`)."""
    spec = mapping(manifest, "spec", "")
    status = mapping(manifest, "status", "")
    taints = tuple(
        Taint(string(taint, "key", path), string(taint, "value", path), string(taint, "effect", path))
        for path, taint in mappings(spec, "taints", "spec")
    )
    images = tuple(
        ContainerImage(strings(image, "names", path), integer(image, "sizeBytes", path))
        for path, image in mappings(status, "images", "status")
    )
    conditions = tuple(
        (string(condition, "type", path), string(condition, "status", path))
        for path, condition in mappings(status, "conditions", "status")
    )
    return Node(
        manifest=manifest,
        meta=object_meta_from(manifest),
        unschedulable=boolean(spec, "unschedulable", "spec"),
        taints=taints,
        allocatable=whole_units(resource_list(status, "allocatable", "status")),
        images=images,
        conditions=conditions,
        declared_features=strings(status, "declaredFeatures", "status"),
    )
