"""Random small clusters with volumes of every sort, and ways to change them."""

import random
from typing import Any

import numpy as np

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, pod_from
from tests.manifests import make_object
from tests.scheduler_core.stored import prepare

ZONE = "topology.kubernetes.io/zone"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
ZONES = ("r-a-1", "r-a-2", "r-b-1")
PROVISIONERS = ("csi.x", "ebs.csi.aws.com", "kubernetes.io/aws-ebs", "kubernetes.io/no-provisioner", "")
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
CLAIMS = tuple(f"c{index}" for index in range(8))
PORTWORX, AWS, GCE = "kubernetes.io/portworx-volume", "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"


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


class RandomStorage(StorageCluster):
    """A cluster that is filled and changed at random, the same way for the same seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = self.random = random.Random(seed)
        self.names = [f"n{index}" for index in range(rng.randint(2, 6))]
        self.volumes = [f"pv{index}" for index in range(rng.randint(2, 10))]
        self.n_pods = 0
        for name in self.names:
            self._put_node(name)
        for index in range(3):
            self.put(self._class(f"class{index}"))
        for driver in ("csi.x", "ebs.csi.aws.com"):
            if rng.random() < 0.4:
                spec = {"storageCapacity": rng.random() < 0.8}
                self.put({**_stored("CSIDriver", driver), "spec": spec})
        for index in range(rng.randint(0, 4)):
            self.put(self._capacity(f"capacity{index}"))
        for name in self.volumes:
            self.put(_random_volume(rng, name, self.names, CLAIMS))
        for name in CLAIMS:
            if rng.random() < 0.9:
                self.put(_random_claim(rng, name, self.volumes, self.names))
        for index in range(rng.randint(0, 3)):
            self.put(self._attachment(f"attachment{index}"))
        for _ in range(rng.randint(0, 8)):
            self.put(self._pod(rng.choice(self.names)))

    def incoming(self) -> Pod:
        return pod_from(prepare(self._pod("", namespace="default")))

    def change(self) -> None:
        """Something happens to a node or its pods, and to what they mount."""
        rng = self.random
        placed = self.cache.pods_in_order()
        match rng.randrange(5):
            case 0 if placed:
                self.cache.remove_pod(rng.choice(placed).uid)
            case 1:
                limits: dict[str, int | None] = {"csi.x": rng.randint(1, 2), "ebs.csi.aws.com": 1}
                self.put(csi_node_manifest(rng.choice(self.names), limits))
            case 2:
                self._put_node(rng.choice(self.names))
            case 3:
                self.cache.remove_node(rng.choice(self.names))
            case _:
                self.put(self._pod(rng.choice(self.names)))
        for _ in range(4):
            self._change_what_is_mounted()

    def _change_what_is_mounted(self) -> None:
        rng = self.random
        match rng.randrange(6):
            case 0 | 1:
                self.put(_random_volume(rng, rng.choice(self.volumes), self.names, CLAIMS))
            case 2:
                self.put(self._class(f"class{rng.randrange(3)}"))
            case 3:
                self.put(self._attachment(f"attachment{rng.randrange(3)}"))
            case 4:
                self.cache.listers.remove("PersistentVolumeClaim", "default", rng.choice(CLAIMS))
            case _:
                self.put(_random_claim(rng, rng.choice(CLAIMS), self.volumes, self.names))

    def _put_node(self, name: str) -> None:
        rng = self.random
        labels = {"topology.ebs.csi.aws.com/zone": rng.choice(ZONES)}
        if rng.random() < 0.8:
            labels[rng.choice((ZONE, ZONE, ZONE_BETA))] = rng.choice(ZONES)
        if rng.random() < 0.3:
            labels[REGION] = rng.choice(("r-a", "r-b"))
        self.put(node_manifest(name, **labels))
        if rng.random() < 0.8:
            drivers = ("csi.x", "ebs.csi.aws.com", "pd.csi.storage.gke.io", "pxd.portworx.com")
            limits = {driver: rng.choice((1, 2, 3, None)) for driver in drivers if rng.random() < 0.7}
            migrated = tuple(plugin for plugin in (AWS, GCE, PORTWORX) if rng.random() < 0.5)
            self.put(csi_node_manifest(name, limits, migrated))

    def _class(self, name: str) -> dict[str, Any]:
        rng = self.random
        more: dict[str, Any] = {}
        if rng.random() < 0.3:
            terms = [
                {"matchLabelExpressions": [{"key": ZONE, "values": rng.sample(ZONES, rng.randint(1, 2))}]}
            ]
            more["allowedTopologies"] = terms if rng.random() < 0.8 else [{}]
        if rng.random() < 0.2:
            more["volumeBindingMode"] = "Immediate"
        return class_manifest(name, rng.choice(PROVISIONERS), **more)

    def _capacity(self, name: str) -> dict[str, Any]:
        rng = self.random
        capacity = _stored("CSIStorageCapacity", name, namespace="default")
        capacity["storageClassName"] = f"class{rng.randrange(3)}"
        if rng.random() < 0.9:
            capacity["nodeTopology"] = {"matchLabels": {ZONE: rng.choice(ZONES)}}
        if rng.random() < 0.9:
            capacity["capacity"] = rng.choice(("1Gi", "2Gi", "500Mi"))
        if rng.random() < 0.3:
            capacity["maximumVolumeSize"] = rng.choice(("1Gi", "2Gi"))
        return capacity

    def _attachment(self, name: str) -> dict[str, Any]:
        rng = self.random
        source = {"persistentVolumeName": rng.choice(self.volumes)} if rng.random() < 0.8 else {}
        return attachment_manifest(name, rng.choice(("csi.x", "")), rng.choice(self.names), source)

    def _pod(self, node: str, namespace: str | None = None) -> dict[str, Any]:
        rng = self.random
        self.n_pods += 1
        volumes = [_random_mount(rng) for _ in range(rng.randint(0, 3))]
        space = namespace or rng.choice(("default", "default", "other"))
        return pod_manifest(f"p{self.n_pods}", volumes, node=node, namespace=space)


def _stored(kind: str, name: str, **meta: str) -> dict[str, Any]:
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": name, **meta}}


def _random_volume(
    rng: random.Random, name: str, names: list[str], claims: tuple[str, ...]
) -> dict[str, Any]:
    more: dict[str, Any] = rng.choice(
        (
            {
                "csi": {
                    "driver": rng.choice(("csi.x", "ebs.csi.aws.com")),
                    "volumeHandle": f"h{rng.randrange(4)}",
                }
            },
            {"local": {"path": "/d"}},
            {"awsElasticBlockStore": {"volumeID": rng.choice(("vol-1", "aws://z/vol-2", "aws://z/bad"))}},
            {"gcePersistentDisk": {"pdName": f"disk{rng.randrange(3)}"}},
            {"portworxVolume": {"volumeID": f"px{rng.randrange(3)}"}},
            {"vsphereVolume": {"volumePath": "p"}},
        )
    )
    labels: dict[str, str] = {}
    if rng.random() < 0.4:
        labels[rng.choice((ZONE, ZONE_BETA))] = rng.choice(
            (*ZONES, "r-a-1__r-a-2", "r-a-1__r-b-1", "r-a-1__")
        )
    if rng.random() < 0.2:
        labels[REGION] = rng.choice(("r-a", "r-b"))
    if rng.random() < 0.3:
        labels["t"] = "fast"
    if rng.random() < 0.6:
        more["terms"] = [_random_term(rng, names) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        owner = rng.choice(claims)
        more["claimRef"] = {"namespace": rng.choice(("default", "other")), "name": owner}
        if rng.random() < 0.5:
            more["claimRef"]["uid"] = rng.choice((f"default/{owner}", "gone"))
    if rng.random() < 0.1:
        more["volumeMode"] = "Block"
    if rng.random() < 0.1:
        more["volumeAttributesClassName"] = "gold"
    return volume_manifest(
        name,
        f"class{rng.randrange(3)}",
        size=rng.choice(("1Gi", "2Gi", "3Gi", "1500Mi")),
        phase=rng.choice(("Available", "Available", "Available", "Bound")),
        labels=labels,
        **more,
    )


def _random_term(rng: random.Random, names: list[str]) -> dict[str, Any]:
    return rng.choice(
        (
            {"matchExpressions": [expression(HOSTNAME, *rng.sample(names, rng.randint(1, 2)))]},
            {"matchExpressions": [expression(rng.choice((ZONE, ZONE_BETA)), *rng.sample(ZONES, 2))]},
            {
                "matchExpressions": [
                    expression(ZONE, "r-a-1", operator="NotIn"),
                    expression(HOSTNAME, operator="Exists"),
                ]
            },
            {"matchFields": [expression("metadata.name", names[0])]},
            {"matchExpressions": [expression(REGION, "r-a"), expression(ZONE, *ZONES)]},
            {},
        )
    )


def _random_claim(rng: random.Random, name: str, volumes: list[str], names: list[str]) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if rng.random() < 0.4:
        more["bound_to"] = rng.choice((*volumes, "gone"))
    elif rng.random() < 0.05:
        more["volumeName"] = volumes[0]
    if rng.random() < 0.15:
        more["annotations"] = {"volume.kubernetes.io/selected-node": rng.choice(names)}
    if rng.random() < 0.2:
        more["selector"] = {"matchLabels": {"t": "fast"}}
    if rng.random() < 0.2:
        more["accessModes"] = [rng.choice(("ReadWriteOncePod", "ReadWriteMany"))]
    if rng.random() < 0.1:
        more["volumeMode"] = "Block"
    if rng.random() < 0.1:
        more["volumeAttributesClassName"] = "gold"
    more["deleted"] = rng.random() < 0.03
    return claim_manifest(
        name,
        rng.choice(
            ("class0", "class1", "class2", "class2", "", "unknown") if rng.random() < 0.2 else ("class0",)
        ),
        size=rng.choice(("500Mi", "1Gi", "2Gi")),
        **more,
    )


def _random_mount(rng: random.Random) -> dict[str, Any]:
    read_only = rng.random() < 0.5
    return rng.choice(
        (
            mount(rng.choice(CLAIMS)),
            mount(rng.choice(CLAIMS)),
            mount(rng.choice(CLAIMS)),
            {"awsElasticBlockStore": {"volumeID": rng.choice(("vol-1", "vol-2", "aws://z/vol-1"))}},
            {"gcePersistentDisk": {"pdName": f"disk{rng.randrange(3)}", "readOnly": read_only}},
            {"iscsi": {"iqn": f"iqn{rng.randrange(2)}", "readOnly": read_only}},
            {"rbd": {"monitors": rng.sample(("m1", "m2", "m3"), 2), "image": "i", "readOnly": read_only}},
            {"portworxVolume": {"volumeID": f"px{rng.randrange(3)}"}},
            {"emptyDir": {}},
        )
    )
