"""What people did in a branch, done to its parent: as ordinary writes of the parent's log, all of them or none.

Of each write only what it changed is taken over; where the parent has moved on in just that, it is refused. Decisions
are not copied: the parent's scheduler makes its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from playground.clusters.custom_kinds import table_of
from playground.clusters.errors import Conflict
from playground.clusters.kinds import Kind
from playground.clusters.models import Change, Cluster, LogEntry
from playground.clusters.rows import row_of
from playground.clusters.services.apply import apply_documents
from playground.clusters.services.as_written import before_write, is_binding, with_edit
from playground.clusters.services.changes import one_change
from playground.clusters.services.config import set_assumed_expiry, set_config, set_release
from playground.clusters.services.objects import bind_pod, delete_object, replace_object
from playground.clusters.services.updates import without_server_fields
from playground.clusters.services.writer import ObjectKey, locked

MOST_EDITS: Final = 2000
"""Entries of a branch's log that are applied at once."""
_EDITS: Final = (LogEntry.Kind.WRITE, LogEntry.Kind.DELETE, LogEntry.Kind.CONFIG, LogEntry.Kind.EXPIRY)
_ASIDE: Final = ("status", "metadata")


@dataclass(frozen=True, slots=True)
class AppliedBranch:
    """What the parent got.

    Attributes
    ----------
    words
        As a command; an undo of the parent says the same.
    n_edits
        Writes of its log.
    """

    words: str
    n_edits: int


def edits_of(cluster: Cluster, *, since: int | None = None) -> QuerySet[Change]:
    """What people changed since a number of the log, or since the cluster began, oldest first; the newest hundred."""
    seq = cluster.opening_seq if since is None else since
    return (
        Change.objects.filter(cluster=cluster, seq__gt=seq).exclude(words__startswith="run ").order_by("id")
    )


def apply_branch(*, branch: Cluster, parent: Cluster) -> AppliedBranch:
    """Do in the parent what people did in the branch since it was made.

    Raises
    ------
    Conflict
        It is no branch of this cluster, has no edits, or the parent has changed in what they change.
    ClusterError
        The parent refuses a write; nothing of it is kept then.
    """
    if branch.parent_id != parent.pk:
        raise Conflict(f'"{branch.name}" is no branch of "{parent.name}"', kind="Cluster")
    entries = LogEntry.objects.filter(cluster=branch, seq__gt=branch.opening_seq, kind__in=_EDITS)
    entries = entries.exclude(source=LogEntry.Source.ENGINE).exclude(object_kind="Lease").order_by("seq")
    chosen = [entry for entry in entries[: MOST_EDITS + 1] if not entry.payload.get("by")]
    if not chosen:
        raise Conflict(
            f'nothing was changed in "{branch.name}", so there is nothing to apply', kind="Cluster"
        )
    if len(chosen) > MOST_EDITS:
        raise Conflict(f"a branch with more than {MOST_EDITS:,} edits is not applied at once", kind="Cluster")
    words = f'apply the edits of branch "{branch.name}"'
    with one_change(words):
        locked(parent.pk)  # until all is done
        _Application(parent, chosen).run()
    parent.refresh_from_db()
    return AppliedBranch(words, len(chosen))


class _Application:
    """One go through the edits; it knows what was in the parent before, and what it made itself."""

    def __init__(self, parent: Cluster, entries: Sequence[LogEntry]) -> None:
        self.parent = parent
        self.entries = entries
        self.made: set[ObjectKey] = set()
        self.created = {_key(entry) for entry in entries if entry.created}
        deleted = [entry for entry in entries if entry.kind == LogEntry.Kind.DELETE]
        self.was_there = {_key(entry) for entry in deleted if self._find(entry)[1] is not None}

    def run(self) -> None:
        for entry in self.entries:
            match entry.kind:
                case LogEntry.Kind.CONFIG:
                    self._configure(entry.payload)
                case LogEntry.Kind.EXPIRY:
                    set_assumed_expiry(cluster=self.parent, after_ns=int(entry.payload["afterNs"]))
                case LogEntry.Kind.DELETE:
                    self._delete(entry)
                case LogEntry.Kind.WRITE:
                    self._write(entry)

    def _configure(self, payload: Mapping[str, Any]) -> None:
        release = payload.get("release")
        if release is not None:
            if self.parent.release != payload["releaseBefore"]:
                raise _moved_on("the parent follows another release of Kubernetes by now")
            set_release(cluster=self.parent, name=release["name"], gates=release.get("switched"))
            return
        if self.parent.config != payload["before"]:
            raise _moved_on("the parent's scheduler configuration was changed since")
        set_config(cluster=self.parent, config=payload["document"])

    def _delete(self, entry: LogEntry) -> None:
        kind, there = self._find(entry)
        key, name = _key(entry), _named(entry)
        if there is None:
            if key in self.was_there or key in self.made:
                return  # it went with its owner
            raise _moved_on(f"{name}, which the branch deletes, is not in the parent")
        uid = entry.payload["manifest"]["metadata"].get("uid")
        if key not in self.made and uid != there["metadata"].get("uid"):
            raise _moved_on(f"{name} was made anew in the parent since")
        if there["metadata"].get("deletionTimestamp"):
            return
        delete_object(
            cluster=self.parent,
            kind=kind,
            namespace=entry.object_namespace,
            name=entry.object_name,
            # One that comes again under its name has gone before it.
            grace_s=0 if key in self.created else entry.payload.get("gracePeriodSeconds"),
        )

    def _write(self, entry: LogEntry) -> None:
        kind, there = self._find(entry)
        name = _named(entry)
        after = entry.payload["manifest"]
        if entry.created:
            if there is not None:
                raise _moved_on(f"{name}, which the branch creates, is in the parent by now")
            apply_documents(cluster=self.parent, objects=[without_server_fields(after)])
            self.made.add(_key(entry))
            return
        if there is None:
            raise _moved_on(f"{name}, which the branch changes, is not in the parent")
        before = before_write(entry)
        if is_binding(before, after):
            node = there["spec"].get("nodeName")
            if node:
                raise _moved_on(f"{name} is on node {node} in the parent")
            bind_pod(
                cluster=self.parent,
                namespace=entry.object_namespace,
                name=entry.object_name,
                node=after["spec"]["nodeName"],
            )
            return
        before, after = _edited_part(kind, before), _edited_part(kind, after)
        path = _conflict(before, after, there)
        if path:
            raise _moved_on(f"{name} has another {path} in the parent than where the branch was made")
        merged = with_edit(there, before, after)
        if merged != there:
            meta = {key: item for key, item in merged["metadata"].items() if key != "resourceVersion"}
            replace_object(cluster=self.parent, manifest=merged | {"metadata": meta})

    def _find(self, entry: LogEntry) -> tuple[Kind, Mapping[str, Any] | None]:
        kind = table_of(Cluster.objects.get(pk=self.parent.pk)).by_row_kind(entry.object_kind)
        if kind is None:
            raise _moved_on(f"the parent has no kind {entry.object_kind}")
        row = row_of(self.parent, kind, entry.object_namespace, entry.object_name)
        return kind, None if row is None else row.manifest


def _edited_part(kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What people write of an object: its status is what others report of it, but for a node's."""
    meta = manifest["metadata"]
    edited = {
        key: meta[key] for key in ("labels", "annotations", "ownerReferences", "finalizers") if key in meta
    }
    rest = {key: item for key, item in manifest.items() if key not in _ASIDE}
    status = {"status": manifest["status"]} if kind.row_kind == "Node" and "status" in manifest else {}
    return rest | status | {"metadata": edited}


def _conflict(before: Any, after: Any, there: Any, path: str = "") -> str:
    """The first field that the edit changes and that is another one by now; empty for none."""
    if before == after or there == after:
        return ""
    if isinstance(after, Mapping) or isinstance(before, Mapping):
        before, after, there = ({} if item is None else item for item in (before, after, there))
    if not all(isinstance(item, Mapping) for item in (before, after, there)):
        return path if there != before else ""
    for key in sorted({*before, *after}):
        found = _conflict(before.get(key), after.get(key), there.get(key), f"{path}.{key}" if path else key)
        if found:
            return found
    return ""


def _key(entry: LogEntry) -> ObjectKey:
    return (entry.object_kind, entry.object_namespace, entry.object_name)


def _named(entry: LogEntry) -> str:
    place = f"{entry.object_namespace}/" if entry.object_namespace else ""
    return f"{entry.object_kind.partition('.')[0]} {place}{entry.object_name}"


def _moved_on(words: str) -> Conflict:
    return Conflict(f"{words}; nothing was applied", kind="Cluster")


__all__ = ["AppliedBranch", "apply_branch", "edits_of"]
