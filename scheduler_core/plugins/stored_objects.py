"""What the hints of the volume plugins read of pods and storage objects."""

from __future__ import annotations

from typing import Any, Protocol

from scheduler_core.objects.fields import Document, mapping, string
from scheduler_core.objects.pod import Pod

_CLAIM = "persistentVolumeClaim"


class HasManifest(Protocol):
    """An object of the cluster; hints read its manifest."""

    @property
    def manifest(self) -> Document: ...


class Lookup(Protocol):
    """The cluster as a plugin's listers see it."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None: ...

    def all(self, kind: str) -> list[Any]: ...


def name_of(item: HasManifest) -> str:
    return string(mapping(item.manifest, "metadata", ""), "name", "metadata")


def namespace_of(item: HasManifest) -> str:
    return string(mapping(item.manifest, "metadata", ""), "namespace", "metadata")


def claim_names(pod: Pod) -> list[str]:
    """PersistentVolumeClaims a pod names itself, generic ephemeral volumes left out."""
    return [_claim_name(volume) for volume in pod.volumes if volume.get(_CLAIM) is not None]


def used_claim_names(pod: Pod) -> list[str]:
    """PersistentVolumeClaims a pod uses; that of a generic ephemeral volume is called `<pod>-<volume>`."""
    names = []
    for volume in pod.volumes:
        if volume.get(_CLAIM) is not None:
            names.append(_claim_name(volume))
        elif volume.get("ephemeral") is not None:
            names.append(f"{pod.name}-{string(volume, 'name', 'spec.volumes')}")
    return names


def _claim_name(volume: Document) -> str:
    return string(mapping(volume, _CLAIM, ""), "claimName", _CLAIM)
