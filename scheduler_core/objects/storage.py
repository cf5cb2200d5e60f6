"""Storage objects: volumes, claims, classes and what CSI drivers say of themselves.

Source: staging/src/k8s.io/api/core/v1/types.go, staging/src/k8s.io/api/storage/v1/types.go,
staging/src/k8s.io/component-helpers/storage/volume/{helpers,pv_helpers}.go, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.objects import fields
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.meta import PlainObject, object_meta_from
from scheduler_core.objects.node_selector import NodeSelector, node_selector_from
from scheduler_core.objects.pod import selector_at
from scheduler_core.objects.resources import quantity_nano

BETA_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED_ANNOTATION = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER_ANNOTATION = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE_ANNOTATION = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Provisioner of a class that offers no dynamic provisioning."""

FILESYSTEM = "Filesystem"
IMMEDIATE = "Immediate"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
AVAILABLE = "Available"
LOST = "Lost"


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """`spec.claimRef` of a volume: the claim it is bound, or kept, for."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class CSIVolumeSource:
    """The part of `spec.csi` that tells volumes apart."""

    driver: str
    volume_handle: str


@dataclass(frozen=True, slots=True, eq=False)
class PersistentVolume(PlainObject):
    """A volume of the cluster.

    Attributes
    ----------
    capacity_nano : int
        `spec.capacity.storage` in billionths of a byte, zero when absent.
    source : str
        The key of its source under `spec` (`csi`, `local`, `awsElasticBlockStore`, ...), empty without one.
    node_affinity : NodeSelector or None
        Required terms; None when every node will do. A node's fields are not looked at (`matchFields`).
    phase : str
        `status.phase`.
    """

    storage_class: str
    capacity_nano: int
    access_modes: tuple[str, ...]
    volume_mode: str
    volume_attributes_class: str
    claim_ref: ClaimReference | None
    node_affinity: NodeSelector | None
    csi: CSIVolumeSource | None
    source: str
    phase: str

    def is_bound_to(self, claim: PersistentVolumeClaim) -> bool:
        """Whether it is bound, or kept, for this claim.

        Source: component-helpers/storage/volume/pv_helpers.go IsVolumeBoundToClaim, v1.34
        """
        reference = self.claim_ref
        return (
            reference is not None
            and reference.name == claim.meta.name
            and reference.namespace == claim.meta.namespace
            and reference.uid in ("", claim.meta.uid)
        )


@dataclass(frozen=True, slots=True, eq=False)
class PersistentVolumeClaim(PlainObject):
    """A pod's wish for a volume.

    Attributes
    ----------
    requested_nano : int or None
        `spec.resources.requests.storage` in billionths of a byte.
    selector : LabelSelector or None
        Labels a volume must have; None when any will do.
    selected_node : str or None
        Where a volume is to be provisioned, from its annotation.
    """

    storage_class: str
    requested_nano: int | None
    access_modes: tuple[str, ...]
    volume_mode: str
    volume_attributes_class: str
    selector: LabelSelector | None
    volume_name: str
    phase: str
    selected_node: str | None
    bind_completed: bool

    @property
    def has_annotations(self) -> bool:
        return bool(fields.mapping(self.manifest, "metadata", "").get("annotations"))

    @property
    def is_fully_bound(self) -> bool:
        """Source: volumebinding/binder.go isPVCFullyBound, v1.34."""
        return bool(self.volume_name) and self.bind_completed


TopologyTerm = tuple[tuple[str, tuple[str, ...]], ...]
"""One `allowedTopologies` term: (label key, values), all of which must hold."""


@dataclass(frozen=True, slots=True, eq=False)
class StorageClass(PlainObject):
    """A kind of storage.

    Attributes
    ----------
    volume_binding_mode : str or None
        None only in a manifest that was not defaulted.
    allowed_topologies : tuple of TopologyTerm
        Any of them must hold on the node; none given means every node.
    """

    provisioner: str
    volume_binding_mode: str | None
    allowed_topologies: tuple[TopologyTerm, ...]

    @property
    def waits_for_first_consumer(self) -> bool:
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


@dataclass(frozen=True, slots=True, eq=False)
class CSINode(PlainObject):
    """What CSI drivers announced for a node of the same name.

    Attributes
    ----------
    limits : dict of str to int
        Volumes a driver can attach there; a driver without a limit is left out.
    drivers : tuple of str
        All installed drivers.
    migrated_plugins : frozenset of str
        In-tree plugins whose volumes the node hands to a CSI driver.
    """

    drivers: tuple[str, ...]
    limits: dict[str, int]
    migrated_plugins: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class CSIDriver(PlainObject):
    """A CSI driver.

    Attributes
    ----------
    storage_capacity : bool
        It publishes CSIStorageCapacity objects to be heeded.
    is_needed_on_node : bool
        `preventPodSchedulingIfMissing`: pods with its volumes only run where it is installed.
    """

    storage_capacity: bool
    is_needed_on_node: bool


@dataclass(frozen=True, slots=True, eq=False)
class CSIStorageCapacity(PlainObject):
    """Room for volumes of a class on nodes of a topology (None: on no node)."""

    storage_class: str
    node_topology: LabelSelector | None
    capacity_bytes: int | None
    largest_volume_bytes: int | None
    """`maximumVolumeSize`, or `capacity` where that is not given (volumebinding/binder.go volumeLimit)."""


@dataclass(frozen=True, slots=True, eq=False)
class VolumeAttachment(PlainObject):
    """A volume that is, or is being, attached to a node."""

    attacher: str
    node_name: str
    persistent_volume_name: str | None


def persistent_volume_from(manifest: fields.Document) -> PersistentVolume:
    """Parse a prepared PersistentVolume manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    spec = fields.mapping(manifest, "spec", "")
    csi = fields.mapping(spec, "csi", "spec")
    reference = fields.mapping(spec, "claimRef", "spec")
    capacity = fields.mapping(spec, "capacity", "spec")
    affinity = fields.mapping(fields.mapping(spec, "nodeAffinity", "spec"), "required", "spec.nodeAffinity")
    has_affinity = fields.mapping(spec, "nodeAffinity", "spec").get("required") is not None
    return PersistentVolume(
        manifest=manifest,
        meta=object_meta_from(manifest),
        storage_class=_storage_class_name(manifest, spec),
        capacity_nano=_nano(capacity, "storage", "spec.capacity") or 0,
        access_modes=fields.strings(spec, "accessModes", "spec"),
        volume_mode=fields.string(spec, "volumeMode", "spec") or FILESYSTEM,
        volume_attributes_class=fields.string(spec, "volumeAttributesClassName", "spec"),
        claim_ref=ClaimReference(
            fields.string(reference, "namespace", "spec.claimRef"),
            fields.string(reference, "name", "spec.claimRef"),
            fields.string(reference, "uid", "spec.claimRef"),
        )
        if spec.get("claimRef") is not None
        else None,
        node_affinity=node_selector_from(affinity, "spec.nodeAffinity.required") if has_affinity else None,
        csi=CSIVolumeSource(
            fields.string(csi, "driver", "spec.csi"), fields.string(csi, "volumeHandle", "spec.csi")
        )
        if spec.get("csi") is not None
        else None,
        source=_source_of(spec),
        phase=fields.string(fields.mapping(manifest, "status", ""), "phase", "status"),
    )


def persistent_volume_claim_from(manifest: fields.Document) -> PersistentVolumeClaim:
    """Parse a prepared PersistentVolumeClaim manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    spec = fields.mapping(manifest, "spec", "")
    annotations = _annotations(manifest)
    requests = fields.mapping(fields.mapping(spec, "resources", "spec"), "requests", "spec.resources")
    return PersistentVolumeClaim(
        manifest=manifest,
        meta=object_meta_from(manifest),
        storage_class=_storage_class_name(manifest, spec),
        requested_nano=_nano(requests, "storage", "spec.resources.requests"),
        access_modes=fields.strings(spec, "accessModes", "spec"),
        volume_mode=fields.string(spec, "volumeMode", "spec") or FILESYSTEM,
        volume_attributes_class=fields.string(spec, "volumeAttributesClassName", "spec"),
        selector=selector_at(spec, "selector", "spec") if spec.get("selector") is not None else None,
        volume_name=fields.string(spec, "volumeName", "spec"),
        phase=fields.string(fields.mapping(manifest, "status", ""), "phase", "status"),
        selected_node=annotations.get(SELECTED_NODE_ANNOTATION),
        bind_completed=BIND_COMPLETED_ANNOTATION in annotations,
    )


def storage_class_from(manifest: fields.Document) -> StorageClass:
    """Parse a prepared StorageClass manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    return StorageClass(
        manifest=manifest,
        meta=object_meta_from(manifest),
        provisioner=fields.string(manifest, "provisioner", ""),
        volume_binding_mode=fields.optional_string(manifest, "volumeBindingMode", ""),
        allowed_topologies=tuple(
            tuple(
                (fields.string(expression, "key", path), fields.strings(expression, "values", path))
                for path, expression in fields.mappings(term, "matchLabelExpressions", term_path)
            )
            for term_path, term in fields.mappings(manifest, "allowedTopologies", "")
        ),
    )


def csi_node_from(manifest: fields.Document) -> CSINode:
    """Parse a CSINode manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    drivers = fields.mappings(fields.mapping(manifest, "spec", ""), "drivers", "spec")
    limits = {}
    for path, driver in drivers:
        allocatable = fields.mapping(driver, "allocatable", path)
        count = fields.optional_integer(allocatable, "count", f"{path}.allocatable")
        if count is not None:
            limits[fields.string(driver, "name", path)] = count
    plugins = _annotations(manifest).get(MIGRATED_PLUGINS_ANNOTATION, "")
    return CSINode(
        manifest=manifest,
        meta=object_meta_from(manifest),
        drivers=tuple(fields.string(driver, "name", path) for path, driver in drivers),
        limits=limits,
        migrated_plugins=frozenset(plugins.split(",")) if plugins else frozenset(),
    )


def csi_driver_from(manifest: fields.Document) -> CSIDriver:
    """Parse a CSIDriver manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    spec = fields.mapping(manifest, "spec", "")
    return CSIDriver(
        manifest,
        object_meta_from(manifest),
        fields.boolean(spec, "storageCapacity", "spec"),
        fields.boolean(spec, "preventPodSchedulingIfMissing", "spec"),
    )


def csi_storage_capacity_from(manifest: fields.Document) -> CSIStorageCapacity:
    """Parse a CSIStorageCapacity manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    topology = manifest.get("nodeTopology")
    maximum, capacity = (_bytes(_nano(manifest, name, "")) for name in ("maximumVolumeSize", "capacity"))
    return CSIStorageCapacity(
        manifest=manifest,
        meta=object_meta_from(manifest),
        storage_class=fields.string(manifest, "storageClassName", ""),
        node_topology=None if topology is None else selector_at(manifest, "nodeTopology", ""),
        capacity_bytes=capacity,
        largest_volume_bytes=capacity if maximum is None else maximum,
    )


def _bytes(nano: int | None) -> int | None:
    return None if nano is None else -(-nano // 10**9)


def volume_attachment_from(manifest: fields.Document) -> VolumeAttachment:
    """Parse a VolumeAttachment manifest.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    spec = fields.mapping(manifest, "spec", "")
    return VolumeAttachment(
        manifest=manifest,
        meta=object_meta_from(manifest),
        attacher=fields.string(spec, "attacher", "spec"),
        node_name=fields.string(spec, "nodeName", "spec"),
        persistent_volume_name=fields.optional_string(
            fields.mapping(spec, "source", "spec"), "persistentVolumeName", "spec.source"
        ),
    )


def _annotations(manifest: fields.Document) -> dict[str, str]:
    return fields.string_map(fields.mapping(manifest, "metadata", ""), "annotations", "metadata")


def _storage_class_name(manifest: fields.Document, spec: fields.Document) -> str:
    """The beta annotation, which wins if it is there, or the field; empty for none.

    Source: component-helpers/storage/volume/helpers.go GetPersistentVolume[Claim]Class, v1.34
    """
    annotations = _annotations(manifest)
    if BETA_STORAGE_CLASS_ANNOTATION in annotations:
        return annotations[BETA_STORAGE_CLASS_ANNOTATION]
    return fields.string(spec, "storageClassName", "spec")


_SOURCES = (
    "csi", "local", "hostPath", "nfs", "iscsi", "rbd", "cephfs", "fc", "flexVolume", "glusterfs", "flocker",
    "awsElasticBlockStore", "gcePersistentDisk", "azureDisk", "azureFile", "cinder", "vsphereVolume",
    "portworxVolume", "photonPersistentDisk", "quobyte", "scaleIO", "storageos",
)  # fmt: skip


def _source_of(spec: fields.Document) -> str:
    return next((source for source in _SOURCES if spec.get(source) is not None), "")


def _nano(document: fields.Document, key: str, path: str) -> int | None:
    value = document.get(key)
    return None if value is None else quantity_nano(value, fields.child(path, key))
