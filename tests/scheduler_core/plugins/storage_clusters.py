"""A cluster with volumes of every sort, and manifests for it."""

from typing import Any

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, pod_from
from tests.manifests import make_object
from tests.scheduler_core.stored import prepare

HOSTNAME = "kubernetes.io/hostname"
AWS = "kubernetes.io/aws-ebs"
ONCE = {"accessModes": ["ReadWriteOnce"]}


class StorageCluster:
    """A cluster filled with manifests."""

    def __init__(self) -> None:
        self.cluster = CaseCluster([], None)
        self.cache = self.cluster.cache
        self.clock = self.cluster.clock
        self.handle = self.cluster.handle_for_plugins
        self.version = 0

    def put(self, *manifests: dict[str, Any]) -> None:
        """Add or replace objects; each write has its own resourceVersion."""
        for manifest in manifests:
            self.version += 1
            meta = {**manifest["metadata"], "resourceVersion": str(self.version)}
            kind, namespace, name, typed = parse(prepare({**manifest, "metadata": meta}))
            if kind == "Node":
                self.cache.set_node(typed)
            elif kind == "Pod":
                self.cache.add_pod(typed)
            else:
                self.cache.listers.set(kind, namespace, name, typed)

    def pod(self, *volumes: dict[str, Any], name: str = "p") -> Pod:
        """A pending pod with these volumes."""
        return pod_from(prepare(pod_manifest(name, volumes)))


def node_manifest(name: str, **labels: str) -> dict[str, Any]:
    own = {HOSTNAME: name, **{key: value for key, value in labels.items() if value}}
    return make_object("v1", "Node", name, labels=own, status={"allocatable": {"pods": "110"}})


def pod_manifest(name: str, volumes: Any, *, node: str = "") -> dict[str, Any]:
    named = [{"name": f"v{index}", **volume} for index, volume in enumerate(volumes)]
    spec = {"containers": [{"name": "c"}], "volumes": named, "nodeName": node}
    return make_object("v1", "Pod", name, namespace="default", spec=spec)


def mount(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


def claim_manifest(
    name: str, storage_class: str = "wait", *, bound_to: str = "", annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": storage_class}
    annotations = dict(annotations or {})
    if bound_to:
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        spec["volumeName"] = bound_to
    where = {"namespace": "default", "annotations": annotations}
    return make_object("v1", "PersistentVolumeClaim", name, **where, spec=ONCE | spec)


def volume_manifest(
    name: str, storage_class: str = "wait", *, size: str = "1Gi", **spec: Any
) -> dict[str, Any]:
    spec |= {"capacity": {"storage": size}, "storageClassName": storage_class}
    return make_object("v1", "PersistentVolume", name, spec=ONCE | spec, status={"phase": "Available"})


def class_manifest(name: str = "wait", provisioner: str = "csi.x") -> dict[str, Any]:
    spec = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return make_object("storage.k8s.io/v1", "StorageClass", name, **spec)


def csi_node_manifest(name: str, limits: dict[str, int], migrated: str = "") -> dict[str, Any]:
    drivers = [{"name": driver, "allocatable": {"count": limit}} for driver, limit in limits.items()]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    return make_object(
        "storage.k8s.io/v1", "CSINode", name, annotations=annotations, spec={"drivers": drivers}
    )


def attachment_manifest(name: str, attacher: str, node: str, volume: str) -> dict[str, Any]:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return make_object("storage.k8s.io/v1", "VolumeAttachment", name, spec=spec)
