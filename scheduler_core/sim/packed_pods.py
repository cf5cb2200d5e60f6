"""The pods of a checkpoint, found by their names and read only where one is asked for.

Of sixty thousand pods a scheduler that decides about one looks at a few: of the others it wants to know how much they
request, where they stand and which labels they have, and that sixty thousand have in common by the hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.pod_table import NO_START_NS, UnreadPods
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.pod import Pod, says_nothing_of_requests
from scheduler_core.sim.manifests import COLUMNS, NODE_NAME, manifest_of, parsed

Key = tuple[str, str]
"""A pod's namespace and name."""


class PackedPods:
    """The pods among packed objects.

    Parameters
    ----------
    document : mapping
        What `pack` gave, with its objects as columns.

    Attributes
    ----------
    place_of : dict of (str, str) to int
        Place among the objects of each pod, by namespace and name.
    others : list of int
        Places of objects of the other kinds that a scheduler reads.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._columns = document["objects"] or {column: [] for column in COLUMNS}
        self._read: dict[int, Pod] = {}
        kinds = [form["kind"] if is_read(form) else None for form in document["forms"]]
        is_pod, is_other = (
            np.array(found, np.bool_)
            for found in ([kind == "Pod" for kind in kinds], [kind not in ("Pod", None) for kind in kinds])
        )
        self._form = np.array(self._columns["form"], np.int64)
        self._meta, self._spec, self._status = map(self._places, ("metadata", "spec", "status"))
        self.others: list[int] = np.flatnonzero(is_other[self._form]).tolist()
        places = np.flatnonzero(is_pod[self._form]).tolist()
        self._namespaces = [str(part.get("namespace") or "") for part in document["metadata"]]
        namespaces = map(self._namespaces.__getitem__, self._meta[places].tolist())
        names = map(self._columns["name"].__getitem__, places)
        self.place_of: dict[Key, int] = dict(zip(zip(namespaces, names, strict=True), places, strict=True))

    def manifest(self, place: int) -> dict[str, Any]:
        """The manifest of any of the objects."""
        return manifest_of(self._document, [self._columns[column][place] for column in COLUMNS])

    def pod(self, place: int) -> Pod:
        """The pod at a place, one and the same each time."""
        pod = self._read.get(place)
        if pod is None:
            pod = self._read[place] = parse(self.manifest(place)).typed
        return pod

    def uid(self, key: Key) -> str | None:
        """The uid of the pod of that name, None where there is none."""
        place = self.place_of.get(key)
        return None if place is None else self._columns["uid"][place]

    def places(self, order: Iterable[int | str]) -> list[int]:
        """Places of an order of pods (`checkpoint.pod_order`).

        Raises
        ------
        KeyError
            A pod is none of the objects any more.
        """
        order = list(order)
        if all(type(item) is int for item in order):
            return order  # type: ignore[return-value]
        uids = self._columns["uid"]
        place_of_uid = {uids[place]: place for place in self.place_of.values()}
        return [item if type(item) is int else place_of_uid[item] for item in order]

    def node_names(self, places: Sequence[int]) -> list[str]:
        """Where pods stand; empty for those that stand nowhere."""
        column = self._columns[NODE_NAME]
        return [column[place] or "" for place in places]

    def unread(self, places: Sequence[int]) -> UnreadPods:
        """Pods as columns."""
        at = np.array(places, np.int64)
        uids = self._columns["uid"]
        likes, like = self._likes(at)
        first, of_meta = np.unique(self._meta[at], return_index=True, return_inverse=True)[1:]
        metas = [self.pod(places[place]).meta for place in first.tolist()]
        first, of_status = np.unique(self._status[at], return_index=True, return_inverse=True)[1:]
        starts = [self.pod(places[place]).start_ns for place in first.tolist()]
        terms = np.array([pod.has_affinity or bool(pod.host_ports) for pod in likes], np.bool_)
        return UnreadPods(
            uids=[uids[place] for place in places],
            like=like,
            likes=likes,
            namespaced_labels=[(meta.namespace, tuple(meta.labels.items())) for meta in metas],
            pod_class=of_meta,
            start_ns=np.array([NO_START_NS if start is None else start for start in starts], np.int64)[
                of_status
            ],
            terminating=np.array([meta.deletion_ns is not None for meta in metas], np.bool_)[of_meta],
            looked_at=np.flatnonzero(terms[like]).tolist(),
            read=lambda place: self.pod(places[place]),
        )

    def close(self) -> None:
        """Give its memory back at once; it is of no use any more."""
        self._read.clear()
        self.place_of.clear()
        self._columns = {}

    def _places(self, column: str) -> NDArray[np.int64]:
        return np.array([-1 if place is None else place for place in self._columns[column]], np.int64)

    def _likes(self, at: NDArray[np.int64]) -> tuple[list[Pod], NDArray[np.int64]]:
        """Pods with all that others have of what they request, and which of them is like each."""
        names = {name: number for number, name in enumerate(dict.fromkeys(self._namespaces))}
        namespace = np.array([names[name] for name in self._namespaces], np.int64)[self._meta[at]]
        # A pod that is being resized has its requests from its status.
        tells = [not says_nothing_of_requests(status) for status in self._document["statuses"]]
        resized = np.where(np.array([*tells, False])[self._status[at]], self._status[at], -1)
        key = np.zeros(len(at), np.int64)
        for column in (namespace, self._form[at], self._spec[at], resized):
            key = key * (int(column.max(initial=0)) + 2) + column + 1
        first, like = np.unique(key, return_index=True, return_inverse=True)[1:]
        likes = [self._like(int(at[place]), bool(resized[place] >= 0)) for place in first.tolist()]
        return likes, like

    def _like(self, place: int, is_resized: bool) -> Pod:
        """A pod without what is its own: the next checkpoint has such pods too, and they are read once."""
        manifest = self.manifest(place)
        namespace = manifest["metadata"].get("namespace")
        pod: Pod = parsed(
            {
                **manifest,
                "metadata": {"name": "like", "namespace": namespace},
                "spec": {key: value for key, value in manifest["spec"].items() if key != NODE_NAME},
                "status": manifest["status"] if is_resized else {},
            }
        )
        return pod
