"""One table of kinds. Apply, the selectors, export and the Kubernetes API are all driven by it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind the playground's API server knows.

    Attributes
    ----------
    api_version
        ``v1`` or ``group/version``.
    kind, plural, singular
        As in discovery.
    namespaced
        Whether objects live in a namespace.
    short_names
        What kubectl takes for it.
    model
        Name of the model of its rows in `clusters.models`; ``Manifest`` is the general one.
    interpreted
        False = kept, shown and exported, but plays no part in scheduling.
    subresources
        Served below the object.
    categories
        For ``kubectl get all``.
    apply_rank
        Order within one apply: namespaces and classes before what refers to them.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    model: str = "Manifest"
    interpreted: bool = True
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    apply_rank: int = 5

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def group(self) -> str:
        """API group; empty for the core one."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def key(self) -> tuple[str, str]:
        """``(apiVersion, kind)``."""
        return (self.api_version, self.kind)

    @property
    def resource(self) -> str:
        """``plural`` or ``plural.group``, as Kubernetes' messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_ALL: Final = ("all",)
_SCALE: Final = ("scale", "status")

KINDS: Final[tuple[Kind, ...]] = (
    Kind("v1", "Namespace", "namespaces", False, ("ns",), apply_rank=0, subresources=("status",)),
    Kind(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
        False,
        ("pc",),
        model="PriorityClass",
        apply_rank=1,
    ),
    Kind("v1", "Node", "nodes", False, ("no",), model="Node", apply_rank=2, subresources=("status",)),
    Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", False, ("sc",), apply_rank=1),
    Kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", False, apply_rank=1),
    Kind("storage.k8s.io/v1", "CSINode", "csinodes", False, apply_rank=3),
    Kind("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", True, apply_rank=3),
    Kind(
        "v1", "PersistentVolume", "persistentvolumes", False, ("pv",), apply_rank=3, subresources=("status",)
    ),
    Kind(
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        True,
        ("pvc",),
        apply_rank=3,
        subresources=("status",),
    ),
    Kind("v1", "ServiceAccount", "serviceaccounts", True, ("sa",), interpreted=False, apply_rank=3),
    Kind("v1", "ConfigMap", "configmaps", True, ("cm",), interpreted=False, apply_rank=3),
    Kind("v1", "Secret", "secrets", True, interpreted=False, apply_rank=3),
    Kind(
        "v1", "Service", "services", True, ("svc",), categories=_ALL, apply_rank=4, subresources=("status",)
    ),
    Kind(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
        ("pdb",),
        model="PodDisruptionBudget",
        apply_rank=4,
        subresources=("status",),
    ),
    Kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", False, apply_rank=1),
    Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", False, apply_rank=3),
    Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", True, apply_rank=3),
    Kind(
        "resource.k8s.io/v1", "ResourceClaim", "resourceclaims", True, apply_rank=3, subresources=("status",)
    ),
    Kind("scheduling.k8s.io/v1alpha2", "Workload", "workloads", True, apply_rank=3),
    Kind("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", True, apply_rank=4, subresources=("status",)),
    Kind(
        "v1",
        "Pod",
        "pods",
        True,
        ("po",),
        model="Pod",
        categories=_ALL,
        subresources=("binding", "eviction", "status"),
    ),
    Kind(
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        True,
        ("rc",),
        categories=_ALL,
        subresources=_SCALE,
    ),
    Kind("apps/v1", "ReplicaSet", "replicasets", True, ("rs",), categories=_ALL, subresources=_SCALE),
    Kind("apps/v1", "Deployment", "deployments", True, ("deploy",), categories=_ALL, subresources=_SCALE),
    Kind("apps/v1", "StatefulSet", "statefulsets", True, ("sts",), categories=_ALL, subresources=_SCALE),
    Kind("apps/v1", "DaemonSet", "daemonsets", True, ("ds",), categories=_ALL, subresources=("status",)),
    Kind("batch/v1", "Job", "jobs", True, categories=_ALL, subresources=("status",)),
    Kind("coordination.k8s.io/v1", "Lease", "leases", True, interpreted=False),
    Kind("v1", "Event", "events", True, ("ev",), model="Event", interpreted=False),
)

_BY_KEY: Final = {kind.key: kind for kind in KINDS}
_BY_KIND: Final = {kind.kind: kind for kind in KINDS}
_BY_RESOURCE: Final = {(kind.api_version, kind.plural): kind for kind in KINDS}


def by_key(api_version: str, kind: str) -> Kind | None:
    """The kind of a manifest's ``apiVersion`` and ``kind``, or None."""
    return _BY_KEY.get((api_version, kind))


def by_kind(kind: str) -> Kind | None:
    """The kind of that name in whatever group we hold it (names are unique in the table), or None."""
    return _BY_KIND.get(kind)


def by_resource(api_version: str, plural: str) -> Kind | None:
    """The kind behind ``/apis/{group}/{version}/{plural}``, or None."""
    return _BY_RESOURCE.get((api_version, plural))


def api_versions() -> tuple[str, ...]:
    """Every apiVersion in the table, in table order."""
    return tuple(dict.fromkeys(kind.api_version for kind in KINDS))


def in_version(api_version: str) -> Iterable[Kind]:
    """The kinds of one apiVersion, in table order."""
    return (kind for kind in KINDS if kind.api_version == api_version)
