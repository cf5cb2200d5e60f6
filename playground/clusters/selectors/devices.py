"""Devices of nodes and who has them, from the rows of ResourceSlices and ResourceClaims."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from django.db.models import Count, Max

from playground.clusters.models import Cluster, Manifest, Pod
from playground.clusters.selectors.memo import Memo

KINDS: Final = ("ResourceSlice", "ResourceClaim")


class DeviceUse(NamedTuple):
    """The devices of one pool on a node: of those given out in parts, the whole ones that have a part taken."""

    driver: str
    pool: str
    taken: tuple[bool, ...]


_USES: Memo[dict[str, tuple[DeviceUse, ...]]] = Memo(8)


def devices_on_nodes(cluster: Cluster) -> dict[str, tuple[DeviceUse, ...]]:
    """Devices by node, of slices that name theirs. One query; two when a slice or claim has changed."""
    rows = Manifest.objects.filter(cluster=cluster, kind__in=KINDS)
    newest = rows.aggregate(n=Count("pk"), version=Max("resource_version"))
    if not newest["n"]:
        return {}
    key = (cluster.public_id, cluster.generation, newest["version"], newest["n"])
    return _USES.get(key, lambda: _count(rows.order_by("name").values_list("kind", "manifest")))


def asks_for_devices(pod: Pod | None) -> bool:
    """Whether a pod has claims, or an extended resource that a device class stands behind."""
    if pod is None:
        return False
    if (pod.manifest.get("spec") or {}).get("resourceClaims"):
        return True
    if not pod.extended:
        return False
    classes = Manifest.objects.filter(cluster=pod.cluster_id, kind="DeviceClass")
    named = (
        (item.get("spec") or {}).get("extendedResourceName")
        for item in classes.values_list("manifest", flat=True)
    )
    return any(name in pod.extended for name in named if name)


def _count(rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, tuple[DeviceUse, ...]]:
    slices: list[dict[str, Any]] = []
    held: set[tuple[str, str, str]] = set()
    for kind, manifest in rows:
        if kind == "ResourceSlice":
            slices.append(manifest["spec"])
            continue
        allocation = (manifest.get("status") or {}).get("allocation") or {}
        for item in (allocation.get("devices") or {}).get("results") or ():
            if not item.get("adminAccess"):
                held.add((item["driver"], item["pool"], item["device"]))
    found: dict[tuple[str, str, str], dict[str, bool]] = {}
    for spec in slices:
        node = spec.get("nodeName")
        if not node:
            continue
        driver, pool = spec["driver"], spec["pool"]["name"]
        units = found.setdefault((node, driver, pool), {})
        for device in spec.get("devices") or ():
            is_held = (driver, pool, device["name"]) in held
            sets = [item["counterSet"] for item in device.get("consumesCounters") or ()]
            for name in sets or [device["name"]]:
                units[name] = units.get(name, False) or is_held
    result: dict[str, list[DeviceUse]] = {}
    for (node, driver, pool), units in found.items():
        if units:
            result.setdefault(node, []).append(DeviceUse(driver, pool, tuple(units.values())))
    return {node: tuple(uses) for node, uses in result.items()}
