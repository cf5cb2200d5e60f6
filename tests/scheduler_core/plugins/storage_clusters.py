"""A cluster with volumes of every sort, and manifests for it."""

from typing import Any

import numpy as np

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, pod_from
from tests.manifests import make_object
from tests.scheduler_core.stored import prepare

HOSTNAME = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
AWS = "kubernetes.io/aws-ebs"


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

    def pod(self, *volumes: dict[str, Any], name: str = "p", namespace: str = "default") -> Pod:
        """A pending pod with these volumes."""
        return pod_from(prepare(pod_manifest(name, volumes, namespace=namespace)))

    def rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return self.cache.snapshot().order


def node_manifest(name: str, **labels: str) -> dict[str, Any]:
    own = {HOSTNAME: name, **{key: value for key, value in labels.items() if value}}
    return make_object("v1", "Node", name, labels=own, status={"allocatable": {"pods": "110"}})


def pod_manifest(
    name: str, volumes: Any, *, node: str = "", namespace: str = "default", uid: str = ""
) -> dict[str, Any]:
    named = [{"name": f"v{index}", **volume} for index, volume in enumerate(volumes)]
    spec: dict[str, Any] = {"containers": [{"name": "c"}], "volumes": named}
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def mount(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


def claim_manifest(
    name: str, storage_class: str = "wait", *, size: str = "1Gi", **more: Any
) -> dict[str, Any]:
    """`more` are fields of the spec; `bound_to`, `annotations`, `owner` and `deleted` mean what they say."""
    annotations = dict(more.pop("annotations", {}))
    meta: dict[str, Any] = {"name": name, "namespace": more.pop("namespace", "default")}
    volume = more.pop("bound_to", None)
    if volume is not None:
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        more["volumeName"] = volume
    if annotations:
        meta["annotations"] = annotations
    owner = more.pop("owner", None)
    if owner is not None:
        meta["ownerReferences"] = [
            {"kind": "Pod", "name": owner, "uid": f"default/{owner}", "controller": True}
        ]
    if more.pop("deleted", False):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage_class,
        **more,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume_manifest(
    name: str, storage_class: str = "wait", *, size: str = "1Gi", phase: str = "Available", **more: Any
) -> dict[str, Any]:
    """`more` are fields of the spec; `labels` and `terms` (node affinity) mean what they say."""
    meta: dict[str, Any] = {"name": name, "labels": more.pop("labels", {})}
    terms = more.pop("terms", None)
    if terms is not None:
        more["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        **more,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase},
    }


def class_manifest(name: str = "wait", provisioner: str = "csi.x", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def csi_node_manifest(
    name: str, limits: dict[str, int | None], migrated: tuple[str, ...] = ()
) -> dict[str, Any]:
    drivers = [
        {"name": driver, **({} if limit is None else {"allocatable": {"count": limit}})}
        for driver, limit in limits.items()
    ]
    meta: dict[str, Any] = {"name": name}
    if migrated:
        meta["annotations"] = {MIGRATED: ",".join(migrated)}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": meta,
        "spec": {"drivers": drivers},
    }


def attachment_manifest(name: str, attacher: str, node: str, source: dict[str, Any]) -> dict[str, Any]:
    spec = {"attacher": attacher, "nodeName": node, "source": source}
    return {**_stored("VolumeAttachment", name), "spec": spec}


def expression(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _stored(kind: str, name: str, **meta: str) -> dict[str, Any]:
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": name, **meta}}
