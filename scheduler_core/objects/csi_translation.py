"""In-tree volumes as the CSI drivers that took over from them see them.

Only what limits and node affinity depend on is translated: driver, volume handle, node affinity.

Source: staging/src/k8s.io/csi-translation-lib/{translate.go,plugins/*.go}, v1.34
Differs: azureFile and vsphereVolume are known by name only; the scheduler never translates them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.objects.fields import Document, mapping, string
from scheduler_core.objects.node import LABEL_REGION, LABEL_REGION_BETA, LABEL_ZONE, LABEL_ZONE_BETA
from scheduler_core.objects.node_selector import NodeSelector, node_selector_from
from scheduler_core.objects.storage import CSIVolumeSource, PersistentVolume


class TranslationError(ValueError):
    """An in-tree volume that has no CSI form, in upstream's words."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """An in-tree volume plugin and its successor.

    Attributes
    ----------
    name : str
        As StorageClasses and CSINodes name it.
    driver : str
        The CSI driver.
    topology_key : str
        The driver's zone label; empty where zones are not translated.
    handle : str
        The field that names the volume.
    """

    name: str
    driver: str
    topology_key: str = ""
    handle: str = "volumeID"


IN_TREE_PLUGINS: Final[dict[str, InTreePlugin]] = {
    "awsElasticBlockStore": InTreePlugin(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
    ),
    "gcePersistentDisk": InTreePlugin(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"
    ),
    "azureDisk": InTreePlugin(
        "kubernetes.io/azure-disk", "disk.csi.azure.com", "topology.disk.csi.azure.com/zone", "diskURI"
    ),
    "cinder": InTreePlugin(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    "portworxVolume": InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    "azureFile": InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", "", "shareName"),
    "vsphereVolume": InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "", "volumePath"),
}
"""By the key of the volume source, in pods and PersistentVolumes alike."""

_DRIVERS: Final = {plugin.name: plugin.driver for plugin in IN_TREE_PLUGINS.values()}

ALWAYS_MIGRATED: Final = frozenset(
    {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk", "kubernetes.io/cinder"}
)
"""Plugins whose migration is finished: limits count them whatever the node announces."""

MIGRATED_BY_NODE: Final = ALWAYS_MIGRATED | {"kubernetes.io/portworx-volume"}
"""Plugins that are migrated where the node says so."""

_AWS_VOLUME: Final = re.compile(r"vol-[^/\n]*")
_AWS_URL: Final = "aws://"
_UNSPECIFIED: Final = "UNSPECIFIED"
_ZONE_DELIMITER: Final = "__"


def inline_plugin(volume: Document) -> InTreePlugin | None:
    """The in-tree plugin behind a volume written into a pod, None for others (`IsInlineMigratable`)."""
    for source, plugin in IN_TREE_PLUGINS.items():
        if volume.get(source) is not None:
            return plugin
    return None


def volume_plugin(volume: PersistentVolume) -> InTreePlugin | None:
    """The in-tree plugin behind a PersistentVolume (`IsPVMigratable`)."""
    return IN_TREE_PLUGINS.get(volume.source)


def driver_of(plugin_name: str) -> str | None:
    """The CSI driver that took over from the named in-tree plugin (`GetCSINameFromInTreeName`)."""
    return _DRIVERS.get(plugin_name)


def translate_inline(volume: Document) -> CSIVolumeSource:
    """The CSI form of an in-tree volume written into a pod.

    Raises
    ------
    TranslationError
        It names no volume of its driver.
    """
    for source, plugin in IN_TREE_PLUGINS.items():
        document = volume.get(source)
        if document is not None:
            handle = _gce_handle(document, "") if source == "gcePersistentDisk" else _handle(source, document)
            return CSIVolumeSource(plugin.driver, handle)
    raise TranslationError(f'could not find in-tree plugin translation logic for "{volume.get("name", "")}"')


def translate_volume(volume: PersistentVolume) -> CSIVolumeSource:
    """The CSI form of an in-tree PersistentVolume.

    Raises
    ------
    TranslationError
        It names no volume of its driver, or zones of several regions.
    """
    plugin = IN_TREE_PLUGINS[volume.source]
    document = mapping(mapping(volume.manifest, "spec", ""), volume.source, "spec")
    if volume.source == "gcePersistentDisk":
        # Whichever label the version it comes from used.
        zones = volume.meta.labels.get(LABEL_ZONE_BETA) or volume.meta.labels.get(LABEL_ZONE, "")
        return CSIVolumeSource(plugin.driver, _gce_handle(document, zones))
    return CSIVolumeSource(plugin.driver, _handle(volume.source, document))


def translate_node_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """Where the CSI form of an in-tree PersistentVolume can be used; None for everywhere.

    Zone requirements speak of the driver's own label then; without any they are made from the zone label.

    Raises
    ------
    TranslationError
        As `translate_volume`.

    Source: csi-translation-lib/plugins/in_tree_volume.go translateTopologyFromInTreeToCSI, v1.34
    """
    translate_volume(volume)
    key = IN_TREE_PLUGINS[volume.source].topology_key
    if not key:
        return volume.node_affinity
    affinity = mapping(mapping(volume.manifest, "spec", ""), "nodeAffinity", "spec")
    required = affinity.get("required")
    terms: list[dict[str, Any]] = [dict(term) for term in (required or {}).get("nodeSelectorTerms") or ()]
    zone, region = _topology_labels(terms, volume.meta.labels)
    if _values(terms, zone):
        _rename(terms, zone, key)
    elif zone in volume.meta.labels:
        zones = sorted({part.strip() for part in volume.meta.labels[zone].split(_ZONE_DELIMITER)} - {""})
        if zones:
            terms = terms or [{}]
            for term in terms:
                more = {"key": key, "operator": "In", "values": zones}
                term["matchExpressions"] = [*(term.get("matchExpressions") or ()), more]
    if region == LABEL_REGION_BETA and _values(terms, region):
        _rename(terms, region, LABEL_REGION)
    if required is None and not terms:
        return None
    return node_selector_from({"nodeSelectorTerms": terms})


def _handle(source: str, document: Mapping[str, Any]) -> str:
    handle = string(document, IN_TREE_PLUGINS[source].handle, source)
    return _aws_handle(handle) if source == "awsElasticBlockStore" else handle


def _aws_handle(volume_id: str) -> str:
    """Source: csi-translation-lib/plugins/aws_ebs.go KubernetesVolumeIDToEBSVolumeID, v1.34."""
    if not volume_id.startswith(_AWS_URL):
        return volume_id
    path = volume_id.removeprefix(_AWS_URL).partition("?")[0].partition("#")[0].partition("/")[2].strip("/")
    if not _AWS_VOLUME.fullmatch(path):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID invalid format for AWS volume ({volume_id})"
        )
    return path


def _gce_handle(document: Mapping[str, Any], zones_label: str) -> str:
    """Source: csi-translation-lib/plugins/gce_pd.go TranslateInTreePVToCSI, v1.34."""
    disk = string(document, "pdName", "gcePersistentDisk")
    zones = zones_label.split(_ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"


def _gce_region(zones: Sequence[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        shown = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{shown}]"
        )
    return regions.pop()


def _topology_labels(terms: list[dict[str, Any]], labels: Mapping[str, str]) -> tuple[str, str]:
    """The zone and region labels a volume uses; the current ones when it uses none."""
    keys = [item.get("key") for term in terms for item in term.get("matchExpressions") or ()]
    for known in (keys, labels):
        if LABEL_ZONE in known:
            break
        if LABEL_ZONE_BETA in known:
            return LABEL_ZONE_BETA, LABEL_REGION_BETA
    return LABEL_ZONE, LABEL_REGION


def _values(terms: list[dict[str, Any]], key: str) -> list[str]:
    return [
        value
        for term in terms
        for item in term.get("matchExpressions") or ()
        if item.get("key") == key
        for value in item.get("values") or ()
    ]


def _rename(terms: list[dict[str, Any]], old: str, new: str) -> None:
    for term in terms:
        expressions = term.get("matchExpressions") or ()
        term["matchExpressions"] = [
            {**item, "key": new} if item.get("key") == old else item for item in expressions
        ]
