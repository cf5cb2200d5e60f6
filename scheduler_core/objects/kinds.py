"""The kinds of objects that shape placement, and how those a scheduler reads are parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from scheduler_core.errors import InvalidObject
from scheduler_core.objects import storage
from scheduler_core.objects.fields import Document, string
from scheduler_core.objects.meta import ObjectMeta, plain_object_from
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.policy import pod_disruption_budget_from, pod_group_from, selecting_object_from
from scheduler_core.schema.tables import table_beside

READ: Final = "read"
MAKES: Final = "makes"


class ShapingKind(NamedTuple):
    """A kind that shapes placement.

    Attributes
    ----------
    group : str
        API group, empty for core.
    namespaced : bool
    rank : int
        Place in the order in which objects are made, from 0: namespaces and classes before what names them.
    role : str
        `READ`: the scheduler or admission goes by it; `MAKES`: a controller acts on it, and what it makes counts.
    effect : str
        What an object of it does to placement, for people.
    parse : callable, optional
        From a prepared manifest to the typed object, of kinds the scheduler reads.
    """

    group: str
    namespaced: bool
    rank: int
    role: str
    effect: str
    parse: Callable[[Document], Any] | None = None


class ParsedObject(NamedTuple):
    """A typed object and its place among others; `namespace` is empty for kinds that live in none."""

    kind: str
    namespace: str
    name: str
    typed: Any


_PARSED: Final[Mapping[str, Callable[[Document], Any]]] = {
    **dict.fromkeys(
        (
            "Namespace",
            "DeviceClass",
            "ResourceSlice",
            "DeviceTaintRule",
            "ResourceClaim",
            "ResourceClaimTemplate",
        ),
        plain_object_from,
    ),
    "Node": node_from,
    "StorageClass": storage.storage_class_from,
    "CSIDriver": storage.csi_driver_from,
    "CSINode": storage.csi_node_from,
    "CSIStorageCapacity": storage.csi_storage_capacity_from,
    "PersistentVolume": storage.persistent_volume_from,
    "PersistentVolumeClaim": storage.persistent_volume_claim_from,
    **dict.fromkeys(("Service", "ReplicationController", "ReplicaSet", "StatefulSet"), selecting_object_from),
    "PodDisruptionBudget": pod_disruption_budget_from,
    "PodGroup": pod_group_from,
    "Pod": pod_from,
    "VolumeAttachment": storage.volume_attachment_from,
}
SHAPING: Final[Mapping[str, ShapingKind]] = {
    name: ShapingKind(group, namespaced, rank, role, effect, _PARSED.get(name))
    for name, (group, namespaced, rank, role, effect) in table_beside(__package__, "kinds.yaml").items()
}
"""What shapes placement, each kind under the one API group it belongs to, in the order in which kinds are shown.

An entry is all that makes a kind part of logs that replay, of scenarios and of what is taken from a dump."""
KINDS: Final[Mapping[str, ShapingKind]] = {
    name: kind for name, kind in SHAPING.items() if kind.parse is not None
}
"""Those of them the scheduler reads."""


def is_read(manifest: Document) -> bool:
    """Whether an object is of a kind the scheduler reads: `Service`, but not Knative's `Service`."""
    kind = KINDS.get(str(manifest.get("kind", "")))
    return kind is not None and _group(manifest) in (None, kind.group)


def parse(manifest: Document) -> ParsedObject:
    """The typed object of a prepared manifest (`defaults.prepare`), with the key listers keep it under.

    Parameters
    ----------
    manifest : mapping
        With `kind`; `apiVersion` may be left out.

    Raises
    ------
    InvalidObject
        The kind is none the scheduler reads, or a field cannot be read.

    Examples
    --------
    >>> parsed = parse({"kind": "Node", "metadata": {"name": "n1"}})
    >>> parsed.kind, parsed.namespace, parsed.name
    ('Node', '', 'n1')
    """
    name = string(manifest, "kind", "")
    kind = KINDS.get(name)
    if kind is None or kind.parse is None or not is_read(manifest):
        shown = f"{manifest.get('apiVersion', '')} {name}".strip()
        raise InvalidObject("kind", shown, "is not read by a scheduler")
    typed = kind.parse(manifest)
    meta: ObjectMeta = typed.meta
    return ParsedObject(name, meta.namespace if kind.namespaced else "", meta.name, typed)


def _group(manifest: Document) -> str | None:
    version = manifest.get("apiVersion")
    if version is None:
        return None
    group, slash, _ = str(version).partition("/")
    return group if slash else ""
