"""Many objects as data, and back: what they have in common is written, read and parsed once.

Sixty thousand pods have a handful of specs and statuses between them.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, overload

from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.meta import ObjectMeta, object_meta_from
from scheduler_core.objects.pod import Pod, pod_like
from scheduler_core.sim.changes import Manifest

NODE_NAME = "nodeName"
OWN = ("name", "uid", "creationTimestamp", "resourceVersion")
"""Of an object's metadata, what hardly two have in common."""
_NOTHING_OWN: tuple[str | None, ...] = (None,) * len(OWN)
COLUMNS = ("form", "metadata", "spec", "status", NODE_NAME, *OWN)
"""What is told of each object alone."""

_Part = tuple[bytes | None, Any]
"""What equal values have in common, and a value; None where it cannot be told (it is like no other then)."""


class Texts(Sequence[Any]):
    """Values as JSON text, each read when it is asked for.

    Parameters
    ----------
    texts : list of bytes
        Without spaces, equal for equal values.
    loads : callable
        Reads JSON.
    """

    def __init__(self, texts: list[bytes], loads: Callable[[bytes], Any] = json.loads) -> None:
        self.texts = texts
        self._loads = loads
        self._read: dict[int, Any] = {}

    @classmethod
    def of(cls, values: Sequence[Any]) -> Texts:
        """Values as text, if they are not yet."""
        if isinstance(values, cls):
            return values
        return cls(
            [json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() for value in values]
        )

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place not in self._read:
            self._read[place] = self._loads(self.texts[place])
        return self._read[place]


class TextColumn:
    """A list as JSON text, read when an item is asked for.

    Parameters
    ----------
    text : bytes
    loads : callable
        Reads JSON.
    """

    def __init__(self, text: bytes, loads: Callable[[bytes], Any] = json.loads) -> None:
        self._text = text
        self._loads = loads

    @cached_property
    def values(self) -> list[Any]:
        """All of them."""
        values: list[Any] = self._loads(self._text)
        return values

    def __getitem__(self, place: int) -> Any:
        return self.values[place]


class _Taken(NamedTuple):
    """A manifest taken apart."""

    manifest: Manifest
    form: _Part
    metadata: _Part | None
    own: tuple[str | None, ...]
    spec: _Part | None
    status: _Part | None
    node_name: str | None


class Packer:
    """Manifests as JSON-able data, again and again: what was taken apart once is not taken apart again."""

    def __init__(self) -> None:
        self._taken: dict[int, _Taken] = {}
        self._known: dict[bytes, _Part] = {}
        self._unpacked: tuple[Mapping[str, Any], list[Manifest]] | None = None

    def pack(self, manifests: Iterable[Manifest]) -> dict[str, Any]:
        """Manifests, which are never changed in place, as JSON-able data.

        Returns
        -------
        dict
            ``forms``, ``metadata``, ``specs`` and ``statuses``: each distinct one once, without what ``objects`` tells.
            A form is all but the other three.
            ``objects``: columns with an item for each object: the places of its ``form``, ``metadata``, ``spec`` and
            ``status``, what its metadata alone says (`OWN`), and ``nodeName`` of its spec. None stands for a part that
            is not kept apart.
        """
        if self._unpacked is not None:
            self._learn(*self._unpacked)
            self._unpacked = None
        before, known = self._taken, self._known
        taken = [before.get(id(manifest)) or _take_apart(manifest, known) for manifest in manifests]
        self._taken = {id(item.manifest): item for item in taken}
        self._known = {}
        if not taken:
            return {"forms": [], "metadata": [], "specs": [], "statuses": [], "objects": {}}
        # Column by column, as there are many: equal parts are one and the same.
        _, forms, metadata, own, specs, statuses, node_names = zip(*taken, strict=True)
        values, places = zip(*map(self._placed, (forms, metadata, specs, statuses)), strict=True)
        columns = [*places, list(node_names), *map(list, zip(*own, strict=True))]
        return {
            **dict(zip(("forms", "metadata", "specs", "statuses"), values, strict=True)),
            "objects": dict(zip(COLUMNS, columns, strict=True)),
        }

    def _placed(self, parts: Sequence[_Part | None]) -> tuple[list[Any], list[int | None]]:
        """The values of distinct parts, which are known now, and the place of each part among them."""
        distinct = {id(part): part for part in parts if part is not None}
        self._known.update((part[0], part) for part in distinct.values() if part[0] is not None)
        places: dict[int, int | None] = {key: place for place, key in enumerate(distinct)}
        places[id(None)] = None
        return [part[1] for part in distinct.values()], [*map(places.__getitem__, map(id, parts))]

    def unpack(self, document: Mapping[str, Any]) -> Iterator[tuple[Manifest, Any]]:
        """`unpack`; what was unpacked is not taken apart to be packed again."""
        manifests: list[Manifest] = []
        self._unpacked = document, manifests
        for manifest, typed in unpack(document):
            manifests.append(manifest)
            yield manifest, typed

    def _learn(self, document: Mapping[str, Any], manifests: Sequence[Manifest]) -> None:
        """Remember how manifests come apart that were unpacked: most that are unpacked are never packed again."""
        known = self._known

        def told(name: str) -> list[_Part]:
            return [_part(value, known) for value in document[name]]

        forms, metadata, specs, statuses = map(told, ("forms", "metadata", "specs", "statuses"))
        for row, manifest in zip(_rows(document), manifests, strict=True):
            form, meta, spec, status, node_name, *own = row
            self._taken[id(manifest)] = _Taken(
                manifest,
                forms[form],
                None if meta is None else metadata[meta],
                tuple(own),
                None if spec is None else specs[spec],
                None if status is None else statuses[status],
                node_name,
            )


def pack(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """Manifests as JSON-able data, once (`Packer.pack`)."""
    return Packer().pack(manifests)


def _take_apart(manifest: Manifest, known: dict[bytes, _Part]) -> _Taken:
    form = dict(manifest)
    metadata, spec, status = (
        form[key] if isinstance(form.get(key), dict) else None for key in ("metadata", "spec", "status")
    )
    node_name, own = None, _NOTHING_OWN
    if metadata is not None:
        form["metadata"] = None
        # Where None stands, its place among the keys is kept.
        own = tuple(value if type(value := metadata.get(key)) is str else None for key in OWN)
        metadata = metadata | {key: None for key, value in zip(OWN, own, strict=True) if value is not None}
    if spec is not None:
        form["spec"] = None
        if spec.get(NODE_NAME):
            node_name = spec[NODE_NAME]
            spec = {**spec, NODE_NAME: None}
    if status is not None:
        form["status"] = None
    return _Taken(
        manifest,
        _part(form, known),
        None if metadata is None else _part(metadata, known),
        own,
        None if spec is None else _part(spec, known),
        None if status is None else _part(status, known),
        node_name,
    )


def _part(value: Any, known: dict[bytes, _Part]) -> _Part:
    """The part, and one and the same for equal values."""
    try:
        # Version 2 of the format writes equal values as equal bytes; later ones tell apart who is shared.
        mark = marshal.dumps(value, 2)
    except ValueError:
        return None, value
    return known.setdefault(mark, (mark, value))


def unpack(document: Mapping[str, Any]) -> Iterator[tuple[Manifest, Any]]:
    """What `pack` wrote: each manifest, and how the scheduler reads it (None for kinds it does not read).

    Equal specs and statuses are one and the same: objects are never changed in place.
    """
    if isinstance(document, ReadOnce):
        yield from document.found
        return
    kinds = [form["kind"] if is_read(form) else None for form in document["forms"]]
    namespaces = [metadata.get("namespace") for metadata in document["metadata"]]
    pods: dict[tuple[str | None, int, int | None, int | None], Pod] = {}
    metas: dict[int, ObjectMeta] = {}
    for row in _rows(document):
        manifest = manifest_of(document, row)
        form, place, spec, status, node_name, name, uid, created, version = row
        if kinds[form] != "Pod":
            yield manifest, None if kinds[form] is None else parsed(manifest)
            continue
        key = (namespaces[place], form, spec, status)
        known, like = pods.get(key), metas.get(place)
        if known is None:
            typed = pods[key] = parse(manifest).typed
            metas.setdefault(place, typed.meta)
        elif like is None:
            meta = metas[place] = object_meta_from(manifest)
            typed = pod_like(known, manifest, meta, node_name or "")
        else:
            # What is no text is as in the other (`_take_apart`).
            meta = ObjectMeta(
                like.name if name is None else name,
                like.namespace,
                like.uid if uid is None else uid,
                like.labels,
                like.owners,
                like.creation_ns if created is None else parse_time_ns(created),
                like.deletion_ns,
                like.resource_version if version is None else version,
            )
            typed = pod_like(known, manifest, meta, node_name or "")
        yield manifest, typed


class ReadOnce(dict[str, Any]):
    """What `pack` wrote, for many who restore it in this process: its objects are unpacked once.

    Attributes
    ----------
    found : list of (mapping, object)
        What `unpack` gives.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        self.found = list(unpack(dict(self)))


def parsed(manifest: Manifest) -> Any:
    """An object as the scheduler reads it; of equal manifests that were read lately one and the same."""
    try:
        mark = marshal.dumps(dict(manifest), 2)
    except ValueError:
        return parse(manifest).typed
    return _read_before(_Marked(mark, manifest))


class _Marked:
    """A manifest that equals those of the same mark."""

    __slots__ = ("manifest", "mark")

    def __init__(self, mark: bytes, manifest: Manifest) -> None:
        self.mark = mark
        self.manifest = manifest

    def __hash__(self) -> int:
        return hash(self.mark)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Marked) and self.mark == other.mark


@lru_cache(maxsize=20_000)
def _read_before(marked: _Marked) -> Any:
    """An object as the scheduler reads it: nodes hardly change between the checkpoints that are looked at."""
    return parse(marked.manifest).typed


def manifests_in(document: Mapping[str, Any]) -> Iterator[Manifest]:
    """The manifests alone of what `pack` wrote."""
    if isinstance(document, ReadOnce):
        return (manifest for manifest, _ in document.found)
    return (manifest_of(document, row) for row in _rows(document))


def manifest_of(document: Mapping[str, Any], row: Sequence[Any]) -> dict[str, Any]:
    """Rebuild one manifest from its row, the fields that differ from the shared form, in the order of `COLUMNS`."""
    form, place, spec, status, node_name, name, uid, created, version = row
    manifest: dict[str, Any] = document["forms"][form].copy()
    if place is not None:
        manifest["metadata"] = metadata = document["metadata"][place].copy()
        # In the order of `OWN`.
        if name is not None:
            metadata["name"] = name
        if uid is not None:
            metadata["uid"] = uid
        if created is not None:
            metadata["creationTimestamp"] = created
        if version is not None:
            metadata["resourceVersion"] = version
    if spec is not None:
        shared = document["specs"][spec]
        manifest["spec"] = shared if node_name is None else {**shared, NODE_NAME: node_name}
    if status is not None:
        manifest["status"] = document["statuses"][status]
    return manifest


def _rows(document: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    objects = document["objects"]
    return zip(*(objects[column] for column in COLUMNS), strict=True) if objects else iter(())
