"""Volume plugins but VolumeBinding, one node at a time, as upstream's Go is written: twins to compare the columns with.

Source: pkg/scheduler/framework/plugins/{volumerestrictions,nodevolumelimits,volumezone}, v1.34
"""

from __future__ import annotations

import copy
import re

from scheduler_core.cluster.listers import Listers
from scheduler_core.objects.fields import Document
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from tests.scheduler_core.plugins.storage_clusters import NodeInfo

Rejection = tuple[str, tuple[str, ...]]
"""Code and reasons; None stands for success, "Skip" for a skip."""

UNRESOLVABLE = "UnschedulableAndUnresolvable"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
SELECTED = "volume.kubernetes.io/selected-node"


def claim_of(listers: Listers, namespace: str, name: str) -> Document | None:
    found = listers.get("PersistentVolumeClaim", namespace, name)
    return None if found is None else found.manifest


def object_of(listers: Listers, kind: str, name: str) -> Document | None:
    found = listers.get(kind, "", name)
    return None if found is None else found.manifest


def annotations_of(manifest: Document) -> dict[str, str]:
    return manifest["metadata"].get("annotations") or {}


def not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


# ---- VolumeRestrictions


def volumes_conflict(volume: Document, pod: Pod) -> bool:
    return any(_disks_conflict(volume, existing) for existing in pod.volumes)


def _disks_conflict(volume: Document, existing: Document) -> bool:
    for source, same in (
        ("gcePersistentDisk", lambda disk, other: disk["pdName"] == other["pdName"]),
        ("iscsi", lambda disk, other: disk["iqn"] == other["iqn"]),
        ("rbd", _is_same_image),
    ):
        disk, other = volume.get(source), existing.get(source)
        if disk and other and same(disk, other) and not (disk.get("readOnly") and other.get("readOnly")):
            return True
    disk, other = volume.get("awsElasticBlockStore"), existing.get("awsElasticBlockStore")
    return bool(disk and other and disk["volumeID"] == other["volumeID"])


def _is_same_image(disk: Document, other: Document) -> bool:
    if not set(disk["monitors"]) & set(other["monitors"]):
        return False
    return disk.get("pool", "rbd") == other.get("pool", "rbd") and bool(disk["image"] == other["image"])


class RestrictionsTwin:
    """PreFilter's state, and Filter, AddPod and RemovePod on it."""

    def __init__(self, pod: Pod, infos: list[NodeInfo], listers: Listers) -> None:
        self.pod = pod
        self.status: Rejection | str | None = None
        needs = any(
            volume.get(key)
            for volume in pod.volumes
            for key in ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
        )
        self.claims: set[str] = set()
        for volume in pod.volumes:
            if volume.get("persistentVolumeClaim") is None:
                continue
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = claim_of(listers, pod.namespace, name)
            if claim is None:
                self.status = (UNRESOLVABLE, (not_found(name),))
                return
            if "ReadWriteOncePod" in claim["spec"].get("accessModes", ()):
                self.claims.add(name)
        used = {
            (other.namespace, volume["persistentVolumeClaim"]["claimName"])
            for info in infos
            for other in info.pods
            for volume in other.volumes
            if volume.get("persistentVolumeClaim") is not None
        }
        self.count = sum((pod.namespace, name) in used for name in self.claims)
        if not needs and self.count == 0:
            self.status = "Skip"

    def clone(self) -> RestrictionsTwin:
        return copy.copy(self)

    def update(self, pod: Pod, change: int) -> None:
        for volume in pod.volumes:
            if volume.get("persistentVolumeClaim") is not None:
                self.count += change * (volume["persistentVolumeClaim"]["claimName"] in self.claims)

    def filter(self, info: NodeInfo) -> Rejection | None:
        for volume in self.pod.volumes:
            for other in info.pods:
                if volumes_conflict(volume, other):
                    return "Unschedulable", ("node(s) had no available disk",)
        if self.count > 0:
            reason = (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
                "in-use by another pod"
            )
            return "Unschedulable", (reason,)
        return None


# ---- CSI translation

PLUGINS = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com", ""),
    "vsphereVolume": ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", ""),
}


class TwinError(Exception):
    """An error status."""


def source_of(document: Document) -> str | None:
    return next((key for key in PLUGINS if document.get(key) is not None), None)


def handle_of(source: str, document: Document, labels: dict[str, str] | None) -> str:
    if source == "awsElasticBlockStore":
        volume_id: str = document["volumeID"]
        if volume_id.startswith("aws://"):
            path = "/".join(volume_id.split("/")[3:]).strip("/")
            if not re.match(r"^vol-[^/]*$", path):
                raise TwinError(
                    "failed to translate Kubernetes ID to EBS Volume ID invalid format for AWS volume "
                    f"({volume_id})"
                )
            return path
        return volume_id
    if source == "gcePersistentDisk":
        name = document["pdName"]
        zone = ""
        if labels is not None:
            zone = labels.get("failure-domain.beta.kubernetes.io/zone", "") or labels.get(
                "topology.kubernetes.io/zone", ""
            )
        zones = zone.split("__")
        if len(zones) == 1 and zones[0]:
            return f"projects/UNSPECIFIED/zones/{zones[0]}/disks/{name}"
        if len(zones) > 1:
            regions = set()
            for item in zones:
                if len(item.split("-")) != 3:
                    raise TwinError(
                        "failed to get region from zones: zone in unexpected format, expected: "
                        f"{{locale}}-{{region}}-{{zone}}, got: {item}"
                    )
                regions.add("-".join(item.split("-")[:2]))
            if len(regions) != 1:
                shown = " ".join(f"{item}:{{}}" for item in sorted(regions))
                raise TwinError(
                    "failed to get region from zones: multiple or no regions gotten from zones, "
                    f"got: map[{shown}]"
                )
            return f"projects/UNSPECIFIED/regions/{regions.pop()}/disks/{name}"
        return f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{name}"
    return str(document.get("volumeID") or document.get("volumePath"))


def migrated_of(csi_node: Document | None) -> list[str]:
    if csi_node is None:
        return []
    text = annotations_of(csi_node).get(MIGRATED, "")
    return text.split(",") if text else []


# ---- NodeVolumeLimits


def _is_migration_on(csi_node: Document | None, plugin: str) -> bool:
    if csi_node is None:
        return False
    if plugin in ("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd"):
        return True
    return plugin == "kubernetes.io/portworx-volume" and plugin in migrated_of(csi_node)


def limits_skip(pod: Pod) -> bool:
    return not any(
        volume.get("persistentVolumeClaim") is not None
        or volume.get("ephemeral") is not None
        or source_of(volume) is not None
        for volume in pod.volumes
    )


class _NotFound(TwinError):
    pass


def _attachable(pod: Pod, listers: Listers, csi_node: Document | None, new: bool) -> dict[str, str]:
    result: dict[str, str] = {}
    for volume in pod.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            name = volume["persistentVolumeClaim"]["claimName"]
        elif volume.get("ephemeral") is not None:
            name = f"{pod.name}-{volume['name']}"
        else:
            source = source_of(volume)
            if source is None or not _is_migration_on(csi_node, PLUGINS[source][0]):
                continue
            try:
                handle = handle_of(source, volume[source], None)
            except TwinError as error:
                raise TwinError(f"converting volume({volume['name']}) from inline to csi: {error}") from error
            result[f"{PLUGINS[source][1]}/{handle}"] = PLUGINS[source][1]
            continue
        claim = claim_of(listers, pod.namespace, name)
        if claim is None:
            if new:
                raise _NotFound(f"looking up PVC {pod.namespace}/{name}: {not_found(name)}")
            continue
        driver, handle = _driver_info(claim, listers, csi_node)
        if driver and handle:
            result[f"{driver}/{handle}"] = driver
    return result


def _driver_info(claim: Document, listers: Listers, csi_node: Document | None) -> tuple[str, str]:
    name = claim["spec"].get("volumeName")
    volume = object_of(listers, "PersistentVolume", name) if name else None
    if volume is None:
        storage_class = object_of(listers, "StorageClass", claim["spec"].get("storageClassName", ""))
        if storage_class is None:
            return "", ""
        handle = f"random-{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        provisioner = storage_class["provisioner"]
        for plugin, driver, _ in PLUGINS.values():
            if plugin == provisioner:
                return (driver, handle) if _is_migration_on(csi_node, plugin) else ("", "")
        return provisioner, handle
    if volume["spec"].get("csi"):
        return volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]
    source = source_of(volume["spec"])
    if source is None or not _is_migration_on(csi_node, PLUGINS[source][0]):
        return "", ""
    try:
        handle = handle_of(source, volume["spec"][source], volume["metadata"].get("labels") or {})
    except TwinError:
        return "", ""
    return PLUGINS[source][1], handle


def limits_filter(pod: Pod, info: NodeInfo, listers: Listers) -> Rejection | None:
    csi_node = object_of(listers, "CSINode", info.node.name)
    try:
        new = _attachable(pod, listers, csi_node, True)
    except _NotFound as error:
        return UNRESOLVABLE, (str(error),)
    except TwinError as error:
        return "Error", (str(error),)
    limits = {
        driver["name"]: driver["allocatable"]["count"]
        for driver in (csi_node or {"spec": {"drivers": ()}})["spec"]["drivers"]
        if "allocatable" in driver
    }
    if not new or not limits:
        return None
    attached: dict[str, str] = {}
    for other in info.pods:
        try:
            attached |= _attachable(other, listers, csi_node, False)
        except TwinError as error:
            return "Error", (str(error),)
    count: dict[str, int] = {}
    for name, driver in attached.items():
        new.pop(name, None)
        count[driver] = count.get(driver, 0) + 1
    attachments: dict[str, str] = {}
    for item in listers.all("VolumeAttachment"):
        spec = item.manifest["spec"]
        if spec["nodeName"] != info.node.name or not spec["attacher"]:
            continue
        volume_name = spec["source"].get("persistentVolumeName")
        volume = object_of(listers, "PersistentVolume", volume_name) if volume_name else None
        if volume is not None and volume["spec"].get("csi"):
            attachments[f"{spec['attacher']}/{volume['spec']['csi']['volumeHandle']}"] = spec["attacher"]
    for name, driver in attachments.items():
        if name not in attached:
            count[driver] = count.get(driver, 0) + 1
    wanted: dict[str, int] = {}
    for driver in new.values():
        wanted[driver] = wanted.get(driver, 0) + 1
    for driver, number in wanted.items():
        if driver in limits and count.get(driver, 0) + number > limits[driver]:
            return "Unschedulable", ("node(s) exceed max volume count",)
    return None


# ---- VolumeZone

TOPOLOGY = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


def zone_pre_filter(pod: Pod, listers: Listers) -> Rejection | str | list[tuple[str, set[str]]]:
    found: list[tuple[str, set[str]]] = []
    for volume in pod.volumes:
        if volume.get("persistentVolumeClaim") is None:
            continue
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = claim_of(listers, pod.namespace, name)
        if claim is None:
            return UNRESOLVABLE, (not_found(name),)
        volume_name = claim["spec"].get("volumeName", "")
        if not volume_name:
            class_name = claim["spec"].get("storageClassName", "")
            if not class_name:
                return UNRESOLVABLE, ("PersistentVolumeClaim had no pv name and storageClass name",)
            storage_class = object_of(listers, "StorageClass", class_name)
            if storage_class is None:
                return UNRESOLVABLE, (f'storageclass.storage.k8s.io "{class_name}" not found',)
            if storage_class["volumeBindingMode"] == "WaitForFirstConsumer":
                continue
            return UNRESOLVABLE, ("PersistentVolume had no name",)
        pv = object_of(listers, "PersistentVolume", volume_name)
        if pv is None:
            return UNRESOLVABLE, (f'persistentvolume "{volume_name}" not found',)
        for key in TOPOLOGY:
            label = (pv["metadata"].get("labels") or {}).get(key)
            if label is not None:
                values = [part.strip() for part in label.split("__")]
                if "" not in values:
                    found.append((key, set(values)))
    return found or "Skip"


def zone_filter(topologies: list[tuple[str, set[str]]], node: Node) -> Rejection | None:
    if not any(key in node.labels for key in TOPOLOGY):
        return None
    for key, values in topologies:
        value = node.labels.get(key)
        if value is None:
            value = node.labels.get(key.replace("failure-domain.beta", "topology"))
        if value is None or value not in values:
            return UNRESOLVABLE, ("node(s) had no available volume zone",)
    return None
