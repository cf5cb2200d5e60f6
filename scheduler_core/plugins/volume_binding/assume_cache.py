"""Volumes and claims as the scheduler believes them to be before the API server says so.

Source: pkg/scheduler/util/assumecache/assume_cache.go,
pkg/scheduler/framework/plugins/volumebinding/assume_cache.go, v1.34
Differs: volumes of a class are listed by name; upstream's order is random.
"""

from __future__ import annotations

from scheduler_core.cluster.listers import Listers
from scheduler_core.objects.storage import PersistentVolume, PersistentVolumeClaim

VOLUME = "PersistentVolume"
CLAIM = "PersistentVolumeClaim"


class AssumeCache:
    """The cluster's volumes and claims with assumed ones in their place.

    An assumption holds until it is taken back, or until the cluster's object is no longer the one it was made
    of.
    """

    def __init__(self) -> None:
        self._volumes: dict[str, tuple[PersistentVolume, PersistentVolume]] = {}
        self._claims: dict[tuple[str, str], tuple[PersistentVolumeClaim, PersistentVolumeClaim]] = {}
        self._by_class: dict[str, list[str]] = {}
        self._read: tuple[Listers, int] | None = None

    def volume(self, listers: Listers, name: str) -> PersistentVolume | None:
        found: PersistentVolume | None = listers.get(VOLUME, "", name)
        assumed = self._volumes.get(name)
        if assumed is not None:
            if found is not None and _is_same(found, assumed[0]):
                return assumed[1]
            del self._volumes[name]
        return found

    def claim(self, listers: Listers, namespace: str, name: str) -> PersistentVolumeClaim | None:
        found: PersistentVolumeClaim | None = listers.get(CLAIM, namespace, name)
        assumed = self._claims.get((namespace, name))
        if assumed is not None:
            if found is not None and _is_same(found, assumed[0]):
                return assumed[1]
            del self._claims[namespace, name]
        return found

    def volumes_of_class(self, listers: Listers, storage_class: str) -> list[PersistentVolume]:
        """All volumes of a storage class by name; the empty class is that of volumes without one."""
        read = self._read
        if read is None or read[0] is not listers or read[1] != listers.version(VOLUME):
            self._read = (listers, listers.version(VOLUME))
            self._by_class = {}
            volumes: list[PersistentVolume] = sorted(listers.all(VOLUME), key=_name)
            for volume in volumes:
                self._by_class.setdefault(volume.storage_class, []).append(volume.name)
        names = self._by_class.get(storage_class, ())
        return [found for name in names if (found := self.volume(listers, name)) is not None]

    def assume_volume(self, listers: Listers, volume: PersistentVolume) -> None:
        base: PersistentVolume | None = listers.get(VOLUME, "", volume.name)
        if base is not None:
            self._volumes[volume.name] = (base, volume)

    def assume_claim(self, listers: Listers, claim: PersistentVolumeClaim) -> None:
        base: PersistentVolumeClaim | None = listers.get(CLAIM, claim.namespace, claim.name)
        if base is not None:
            self._claims[claim.namespace, claim.name] = (base, claim)

    def restore_volume(self, name: str) -> None:
        """Take an assumption back; nothing happens without one."""
        self._volumes.pop(name, None)

    def restore_claim(self, namespace: str, name: str) -> None:
        """Take an assumption back; nothing happens without one."""
        self._claims.pop((namespace, name), None)


def _name(volume: PersistentVolume) -> str:
    return volume.name


def _is_same(
    one: PersistentVolume | PersistentVolumeClaim, other: PersistentVolume | PersistentVolumeClaim
) -> bool:
    """The same version of an object; read twice (after a restart) it is two values with one version."""
    if one is other:
        return True
    version = one.meta.resource_version
    return bool(version) and version == other.meta.resource_version and one.meta.uid == other.meta.uid
