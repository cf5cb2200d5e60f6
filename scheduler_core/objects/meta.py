"""What every object carries: name, namespace, uid, labels, owners; conditions of its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from scheduler_core.errors import InvalidObject
from scheduler_core.objects import fields


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """One entry of `metadata.ownerReferences`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


class ObjectMeta(NamedTuple):
    """The part of `metadata` the scheduler reads. A tuple: a frozen dataclass takes a microsecond more to make."""

    name: str
    namespace: str
    uid: str
    labels: dict[str, str]
    owners: tuple[OwnerReference, ...]
    creation_ns: int | None
    deletion_ns: int | None
    resource_version: str

    def with_uid(self, uid: str) -> ObjectMeta:
        """The same with another uid."""
        name, namespace, _, labels, owners, creation_ns, deletion_ns, version = self
        return ObjectMeta(name, namespace, uid, labels, owners, creation_ns, deletion_ns, version)

    @property
    def controller(self) -> OwnerReference | None:
        """The managing controller (`metav1.GetControllerOf`)."""
        for owner in self.owners:
            if owner.controller:
                return owner
        return None


class Named:
    """An object that has `meta`, and what is most often asked of it."""

    __slots__ = ()
    manifest: fields.Document
    meta: ObjectMeta

    # Asked some eighty times for each pod that is placed: without a call of Python's each.
    name: str = property(attrgetter("meta.name"))  # type: ignore[assignment]
    namespace: str = property(attrgetter("meta.namespace"))  # type: ignore[assignment]
    uid: str = property(attrgetter("meta.uid"))  # type: ignore[assignment]
    labels: dict[str, str] = property(attrgetter("meta.labels"))  # type: ignore[assignment]

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.manifest["metadata"].get("annotations") or {}

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.meta.namespace}/{self.meta.name}"


def object_meta_from(manifest: fields.Document) -> ObjectMeta:
    """Parse `metadata`; namespace and uid are taken as they stand (`defaults.prepare` fills them)."""
    return _plain_meta(manifest.get("metadata")) or _checked_meta(manifest)


def _plain_meta(meta: Any) -> ObjectMeta | None:
    """What most metadata says, in a third of the time; None where a field has to be looked at more closely."""
    if type(meta) is not dict or "deletionTimestamp" in meta or "ownerReferences" in meta:
        return None
    get = meta.get
    name, uid, created = get("name"), get("uid", ""), get("creationTimestamp")
    namespace, version, labels = get("namespace", ""), get("resourceVersion", ""), get("labels")
    if not (type(name) is type(uid) is type(namespace) is type(version) is str and name):
        return None
    if created is not None and type(created) is not str:
        return None
    try:
        return ObjectMeta(
            name,
            namespace,
            uid,
            {} if labels is None else _labels(tuple(labels.items())),
            (),
            None if created is None else fields.parse_time_ns(created),
            None,
            version,
        )
    except (AttributeError, TypeError, ValueError):
        return None


@lru_cache(maxsize=20_000)
def _labels(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """`string_map` of many objects that have the same, which is never changed."""
    for item in items:
        if not type(item[0]) is type(item[1]) is str:
            raise TypeError
    return dict(sorted(items))


def _checked_meta(manifest: fields.Document) -> ObjectMeta:
    meta = fields.mapping(manifest, "metadata", "")
    path = "metadata"
    name = fields.string(meta, "name", path)
    if not name:
        raise InvalidObject("metadata.name", meta.get("name"), "is required")
    return ObjectMeta(
        name=name,
        namespace=fields.string(meta, "namespace", path),
        uid=fields.string(meta, "uid", path),
        labels=fields.string_map(meta, "labels", path),
        owners=_owners(meta, path) if meta.get("ownerReferences") is not None else (),
        creation_ns=fields.timestamp_ns(meta, "creationTimestamp", path),
        deletion_ns=fields.timestamp_ns(meta, "deletionTimestamp", path),
        resource_version=fields.string(meta, "resourceVersion", path),
    )


def _owners(meta: fields.Document, path: str) -> tuple[OwnerReference, ...]:
    return tuple(
        OwnerReference(
            fields.string(owner, "apiVersion", owner_path),
            fields.string(owner, "kind", owner_path),
            fields.string(owner, "name", owner_path),
            fields.string(owner, "uid", owner_path),
            fields.boolean(owner, "controller", owner_path),
        )
        for owner_path, owner in fields.mappings(meta, "ownerReferences", path)
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlainObject(Named):
    """An object of which only its metadata is read; `manifest` is the whole of it. Others are read further."""

    manifest: fields.Document
    meta: ObjectMeta


def plain_object_from(manifest: fields.Document) -> PlainObject:
    """Parse the metadata of any object."""
    return PlainObject(manifest, object_meta_from(manifest))


def object_of(api_version: str, kind: str, metadata: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """An object as a manifest."""
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


# --- Who owns whom among some manifests: an owner that came first would make once more what is there already.


def generations(manifests: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many generations of what it owns are among the manifests, of each owner that is named.

    Parameters
    ----------
    manifests
        As a client wrote them: anything may be in their metadata.

    Returns
    -------
    dict of str to int
        Uid -> 1 for what owns objects that own nothing, 2 for the owner of such an owner, ... An owner that owns itself
        counts once.
    """
    owned: dict[str, set[str]] = {}
    for manifest in manifests:
        for owner in owner_uids_of(manifest):
            owned.setdefault(owner, set()).add(uid_of(manifest))
    heights: dict[str, int] = {}

    def height(uid: str, below: frozenset[str] = frozenset()) -> int:
        if uid not in owned or uid in below:
            return 0
        if uid not in heights:
            heights[uid] = 1 + max(height(child, below | {uid}) for child in owned[uid])
        return heights[uid]

    return {uid: height(uid) for uid in owned}


def uid_of(manifest: Mapping[str, Any]) -> str:
    """Empty where it says none."""
    uid = _mapping(manifest.get("metadata")).get("uid")
    return uid if isinstance(uid, str) else ""


def owner_uids_of(manifest: Mapping[str, Any]) -> list[str]:
    """Of the owners it names, without those that have none."""
    references = _mapping(manifest.get("metadata")).get("ownerReferences")
    uids = [_mapping(item).get("uid") for item in references] if isinstance(references, list) else []
    return [uid for uid in uids if isinstance(uid, str) and uid]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# --- Finalizers: who has to be done with an object before it goes.


def finalizers_of(manifest: Mapping[str, Any]) -> list[str]:
    """Finalizers of programs that are to take them off; Kubernetes' own are done with at once."""
    names = (manifest.get("metadata") or {}).get("finalizers") or ()
    return [name for name in names if isinstance(name, str) and is_foreign(name)]


def is_foreign(name: str) -> bool:
    """Whether a finalizer is another program's to take off."""
    domain, slash, _ = name.partition("/")
    own = domain == "kubernetes.io" or domain.endswith((".kubernetes.io", ".k8s.io"))
    return bool(slash) and not own


def condition_of(manifest: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    """The condition of that type in an object's status."""
    conditions: Iterable[Any] = (manifest.get("status") or {}).get("conditions") or ()
    for condition in conditions:
        if condition.get("type") == type_:
            found: Mapping[str, Any] = condition
            return found
    return None
