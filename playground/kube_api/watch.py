"""Watches: the log as a stream of ADDED, MODIFIED and DELETED.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go, v1.34
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest

from playground.clusters import kinds, pulse
from playground.clusters.access import cluster_now
from playground.clusters.choices import EntryKind
from playground.clusters.clock import virtual_now_ns
from playground.clusters.kinds import Kind, as_served
from playground.clusters.objects.queries import (
    ObjectSelection,
    entry_before,
    first_seq,
    is_expired,
    last_entry,
    list_objects,
    log_after,
)
from playground.clusters.row_types import Cluster, LogEntry
from playground.kube_api.built_in import built_in_objects, is_built_in, made_in, of_namespaces
from playground.kube_api.reading import Form, check_version_match, form_of, selection_for, switched, whole
from playground.kube_api.requests import Target
from playground.kube_api.status import Refusal, failure

DEFAULT_S: Final = 1800
BOOKMARK_S: Final = 15.0
BATCH: Final = 500
_OBJECT_ENTRIES: Final = (EntryKind.WRITE, EntryKind.DELETE)

WatchEvent = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Watch:
    """One open watch; `read` gives the lines that are due.

    Attributes
    ----------
    since
        Newest sequence number that was looked at.
    initial
        The present objects are still to be sent.
    sent
        Of objects sent as initial ones: their resourceVersion, so that the log does not repeat them.
    user
        Who asked: nothing more is sent once they may not read the cluster any more.
    over
        Nothing more will come.
    """

    cluster_id: int
    generation: int
    target: Target
    selection: ObjectSelection
    form: Form
    since: int
    initial: bool
    bookmarks: bool
    mark_initial_end: bool
    timeout_s: float
    user: Any = None
    sent: dict[tuple[str, str], int] = field(default_factory=dict)
    columns_sent: bool = False
    over: bool = False

    def read(self, until: int | None = None) -> list[bytes]:
        """Lines for everything that happened since the last call, or a closing error.

        Parameters
        ----------
        until
            Sequence number to read up to; None = whatever there is. Streams that read up to the same one tell of a
            commit together.
        """
        cluster = cluster_now(self.cluster_id, self.user)
        if cluster is None:
            self.over = True
            return []
        if cluster.generation != self.generation:
            self.over = True
            status = failure(
                "Expired", "The resourceVersion for the provided watch is too old: the cluster was reset"
            )
            return [_line("ERROR", status)]
        lines = []
        if self.initial:
            self.initial = False
            self.since = cluster.last_seq
            lines = [self._shown(cluster, "ADDED", manifest) for manifest in self._present(cluster)]
            if self.mark_initial_end:
                lines.append(self._bookmark(cluster, initial_end=True))
        last = cluster.last_seq if until is None else min(until, cluster.last_seq)
        lines += [self._shown(cluster, what, manifest) for what, manifest in self._changes(cluster, last)]
        return lines

    def bookmark(self) -> list[bytes]:
        """Up to where this watch has seen everything."""
        cluster = cluster_now(self.cluster_id, self.user)
        return [] if cluster is None else [self._bookmark(cluster)]

    def _present(self, cluster: Cluster) -> list[dict[str, Any]]:
        rows = list_objects(cluster, self.target.kind, namespace=self.target.namespace or None)
        rows = self.selection.narrowed(self.target.kind, rows)
        if self.target.name:
            rows = rows.filter(name=self.target.name)
        found = []
        now_ns = virtual_now_ns(cluster)
        for manifest in rows.values_list("manifest", flat=True).iterator(chunk_size=500):
            if is_expired(self.target.kind, manifest, now_ns):
                continue
            if self.selection.matches(manifest):
                meta = manifest["metadata"]
                self.sent[(meta.get("namespace", ""), meta["name"])] = int(meta["resourceVersion"])
                found.append(manifest)
        return [*found, *built_in_objects(cluster, self.target, self.selection)]

    def _changes(self, cluster: Cluster, last: int) -> list[WatchEvent]:
        kind, began = self.target.kind, self.since
        found: list[tuple[int, WatchEvent]] = []
        for entry in _entries(cluster, kind, self.target.namespace, began, last):
            change = self._change(cluster, entry)
            if change is not None:
                found.append((entry.seq, change))
        if of_namespaces(kind, self.target.name):
            found += self._of_namespaces(cluster, began, last)
            found.sort(key=itemgetter(0))
        self.since = max(began, last)
        return [change for _, change in found]

    def _of_namespaces(self, cluster: Cluster, began: int, last: int) -> Iterator[tuple[int, WatchEvent]]:
        """What no client writes, since each namespace comes and goes with it."""
        namespace_kind = kinds.named("Namespace")
        for entry in _entries(cluster, namespace_kind, "", began, last):
            manifest = entry.payload.get("manifest")
            gone = _is_gone(entry)
            if not (entry.created or gone) or not isinstance(manifest, dict):
                continue
            if self.target.namespace not in ("", entry.object_name):
                continue
            for made in made_in(cluster, self.target, self.selection, manifest):
                name = made["metadata"]["name"]
                before = gone and last_entry(
                    cluster.pk, self.target.kind.row_kind, entry.object_name, name, before=entry.seq
                )
                # One that had been written tells by itself that it is gone.
                if not before or not _is_gone(before):
                    yield entry.seq, ("DELETED" if gone else "ADDED", made)

    def _change(self, cluster: Cluster, entry: LogEntry) -> WatchEvent | None:
        manifest = entry.payload.get("manifest")
        if entry.kind not in _OBJECT_ENTRIES or not isinstance(manifest, dict):
            return None
        key = (entry.object_namespace, entry.object_name)
        if self.target.name and entry.object_name != self.target.name:
            return None
        if self.sent and entry.seq <= self.sent.get(key, -1):
            return None
        gone = _is_gone(entry)
        matches = self.selection.matches(manifest)
        stood = entry.created and is_built_in(self.target.kind, *key) and not _is_gone(entry_before(entry))
        if not self.selection.may_change:
            if not matches:
                return None
            created = entry.created and not stood
            return ("DELETED" if gone else "ADDED" if created else "MODIFIED"), manifest
        before = self._stood(cluster, key) if stood else self._matched_before(entry)
        if matches:
            return ("ADDED" if before is None else "DELETED" if gone else "MODIFIED"), manifest
        if before is None:
            return None
        # As it was while it matched, in the version of its leaving.
        version = {"resourceVersion": manifest["metadata"]["resourceVersion"]}
        return "DELETED", {**before, "metadata": {**before["metadata"], **version}}

    def _matched_before(self, entry: LogEntry) -> dict[str, Any] | None:
        """The object before an entry, if it was one of those that are watched."""
        before = None if entry.created else entry_before(entry)
        manifest = None if before is None or _is_gone(before) else before.payload.get("manifest")
        return manifest if manifest and self.selection.matches(manifest) else None

    def _stood(self, cluster: Cluster, key: tuple[str, str]) -> dict[str, Any] | None:
        """The object that no client had written, if it was one of those that are watched."""
        target = dataclasses.replace(self.target, name=key[1])
        return next(made_in(cluster, target, self.selection, {"metadata": {"name": key[0]}}), None)

    def _shown(self, cluster: Cluster, what: str, manifest: dict[str, Any]) -> bytes:
        kind = self.target.kind
        shown = self.form.one(cluster, kind, as_served(kind, manifest))
        if self.form.shape == "Table":
            if self.columns_sent:
                shown["columnDefinitions"] = None
            self.columns_sent = True
        return _line(what, shown)

    def _bookmark(self, cluster: Cluster, *, initial_end: bool = False) -> bytes:
        kind = self.target.kind
        metadata: dict[str, Any] = {"resourceVersion": str(self.since), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self.form.shape == "Table":
            shown = self.form.many(cluster, kind, [], metadata)
            shown["columnDefinitions"] = None
            return _line("BOOKMARK", shown)
        wrapped = ("meta.k8s.io/v1", "PartialObjectMetadata") if self.form.shape else kind.key
        return _line("BOOKMARK", {"kind": wrapped[1], "apiVersion": wrapped[0], "metadata": metadata})


def _entries(cluster: Cluster, kind: Kind, namespace: str, since: int, last: int) -> Iterator[LogEntry]:
    while True:
        entries = log_after(cluster, since, until=last, kind=kind, namespace=namespace or None, limit=BATCH)
        yield from entries
        if len(entries) < BATCH:
            return
        since = entries[-1].seq


def _is_gone(entry: LogEntry | None) -> bool:
    return entry is not None and entry.kind == EntryKind.DELETE and bool(entry.payload.get("gone", True))


def _line(what: str, shown: dict[str, Any]) -> bytes:
    return json.dumps({"type": what, "object": shown}, separators=(",", ":")).encode() + b"\n"


def watch_of(request: HttpRequest, cluster: Cluster, target: Target) -> Watch:
    """The watch a request asks for.

    Raises
    ------
    Refusal
        BadRequest, or Expired: the log no longer reaches back that far.
    """
    check_version_match(request, watches=True)
    text = request.GET.get("resourceVersion", "")
    since = whole(request, "resourceVersion")
    if since:
        first = first_seq(cluster)
        if first is not None:
            first = max(first, cluster.compacting_seq)
        # After a reset numbers go on: a client that saw the last one before it has seen objects that are gone.
        earliest = first if first is None or cluster.generation > 1 else first - 1
        if earliest is not None and since < earliest:
            raise Refusal("Expired", f"too old resource version: {since} ({first})")
    wants_initial = request.GET.get("sendInitialEvents", "")
    initial = switched(request, "sendInitialEvents") if wants_initial else text in ("", "0")
    bookmarks = switched(request, "allowWatchBookmarks")
    timeout_s = whole(request, "timeoutSeconds") or DEFAULT_S
    return Watch(
        cluster_id=cluster.pk,
        generation=cluster.generation,
        target=target,
        selection=selection_for(request, target),
        form=form_of(request),
        since=since or cluster.last_seq,
        initial=initial,
        bookmarks=bookmarks,
        mark_initial_end=bool(wants_initial) and initial and bookmarks,
        timeout_s=min(float(timeout_s), 24 * 3600.0),
        user=getattr(request, "user", None),
    )


def _call(read: Callable[..., list[bytes]], *arguments: Any) -> list[bytes]:
    try:
        return read(*arguments)
    finally:
        connections.close_all()


async def stream(watch: Watch) -> AsyncIterator[bytes]:
    """The watch's lines as they come, until its time is over."""
    call = sync_to_async(_call, thread_sensitive=False)
    end = time.monotonic() + watch.timeout_s
    marked = time.monotonic()
    with pulse.watching(watch.cluster_id) as watcher:
        while True:
            watcher.changed.clear()
            for line in await call(watch.read, watcher.last_seq):
                yield line
            now = time.monotonic()
            if watch.over:
                return
            if watch.bookmarks and (now >= end or now - marked >= BOOKMARK_S):
                marked = now
                for line in await call(watch.bookmark):
                    yield line
            if now >= end:
                return
            try:
                await asyncio.wait_for(watcher.changed.wait(), max(0.01, min(end - now, BOOKMARK_S)))
            except TimeoutError:
                continue


def bounded(watch: Watch) -> list[bytes]:
    """What a server that cannot stream answers: everything up to now, then the end; clients watch again."""
    lines = watch.read()
    return lines + watch.bookmark() if watch.bookmarks and not watch.over else lines
