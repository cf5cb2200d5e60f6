"""Branches: clusters in which an edit or a plan of an answer is made, and a branch applied to its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from playground.clusters.custom_kinds import table_of
from playground.clusters.drive.config import set_assumed_expiry, set_config, set_release
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import Conflict, NotFound
from playground.clusters.kinds import Kind, by_kind, named
from playground.clusters.lifecycle import before_write, clone_cluster, is_binding
from playground.clusters.log.changes import one_change
from playground.clusters.log.rows import row_of, rows_of
from playground.clusters.log.writer import ObjectKey, locked, writing
from playground.clusters.models import Change, Cluster, LogEntry, Node, Pod, Question
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.deletion import delete_in
from playground.clusters.objects.updates import without_server_fields
from playground.clusters.objects.write import bind_pod, delete_object, replace_object, set_cordon
from playground.engine.batch import merged_changes

_WITH_EDITS: Final[Mapping[str, str]] = {
    Question.Kind.FIX: "fixes",
    Question.Kind.GROUP: "remedies",
    Question.Kind.LOOPS: "cures",
}
"""Kinds of questions whose answers hold changes that a new cluster can be made with, and where."""


def branch_with_edit(*, question: Question, rank: int, owner: Any = None) -> Cluster:
    """A new cluster with the objects of this one and one proven edit made, which runs; the original stays as it is.

    Parameters
    ----------
    rank
        Of the edit, from 1; 0 is the best fix.

    Raises
    ------
    NotFound
        The answer has no such edit.
    """
    listed = _WITH_EDITS.get(question.kind, "")
    answer, cluster = question.answer or {}, question.cluster
    edits = [answer.get("best"), *(answer.get(listed) or ())]
    edit = edits[rank] if 0 <= rank < len(edits) else None
    if edit is None or cluster is None:
        raise NotFound(f"edit {rank} not found", kind="Question", name=question.public_id)
    title = edit["title"] if "title" in edit else edit["sentence"]
    name = f"{cluster.name[:50]}: {title[:45]}"
    with transaction.atomic():
        clone = clone_cluster(cluster=cluster, name=name, owner=owner)
        make_change(clone, edit["change"])
        request_run(cluster=clone, until="idle")
    return clone


def make_change(cluster: Cluster, change: Mapping[str, Any]) -> None:
    """Make an edit's change; pods that wait at Permit start over in a new cluster anyway."""
    pods = named("Pod")

    def delete(key: str) -> None:
        namespace, _, name = key.partition("/")
        delete_object(cluster=cluster, kind=pods, namespace=namespace, name=name, grace_s=0)

    for key, node in change.get("move", ()):
        namespace, _, name = key.partition("/")
        manifest = Pod.objects.get(cluster=cluster, namespace=namespace, name=name).manifest
        delete(key)
        _create(cluster, {**manifest, "spec": {**manifest["spec"], "nodeName": node}})
    written = change.get("write") or []  # one object, several, or none
    for manifest in written if isinstance(written, list) else [written]:
        meta = manifest["metadata"]
        if manifest["kind"] == "Pod":
            # What a pod asks for cannot be changed in place.
            delete(f"{meta['namespace']}/{meta['name']}")
            _create(cluster, manifest)
        else:
            apply_documents(cluster=cluster, objects=[manifest])
    if "scheduler" in change:
        set_config(cluster=cluster, config=change["scheduler"])
    # After what is written: an owner recreates its pods by the template that it has then.
    for key in change.get("delete", ()):
        delete(key)


def _create(cluster: Cluster, manifest: Mapping[str, Any]) -> None:
    kept = {key: value for key, value in manifest.items() if key != "status"}
    apply_documents(cluster=cluster, objects=[{**kept, "metadata": _ungiven(manifest["metadata"])}])


def _ungiven(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without what an API server gives."""
    return {key: value for key, value in meta.items() if key not in _GIVEN}


# ---- A cluster of its own in which a plan has been carried out

STAY: Final = ("blocked", "ending")
"""Outcomes of pods that a drain leaves where they are."""
_GIVEN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def branch_of_plan(*, question: Question, owner: Any = None) -> Cluster:
    """A new cluster with the objects of this one in which the answer's steps were done; it runs to idle.

    Pods whose owner is among the objects are made again by it; those whose owner is only named by a reference, as in
    a dump of pods alone, are made again here.

    Raises
    ------
    Conflict
        There is no answer, or nothing is done in it.
    """
    answer, cluster = question.answer, question.cluster
    if question.kind != Question.Kind.PLAN or answer is None or cluster is None:
        raise Conflict("there is no answer yet to make a branch of", kind="Question")
    if not answer["steps"]:
        raise Conflict(
            "nothing is done in this answer, so there is nothing to see in a branch", kind="Question"
        )
    with transaction.atomic():
        name = f"{cluster.name[:40]}: {answer['verdict'][:55]}"
        clone = clone_cluster(cluster=cluster, name=name, owner=owner)
        with one_change(f"carry out the plan: {answer['verdict']}"):
            _carry_out(clone, answer)
        request_run(cluster=clone, until="idle")
    return clone


def _carry_out(cluster: Cluster, answer: Mapping[str, Any]) -> None:
    made = [step["apply"] for step in answer["steps"] if "apply" in step]
    if made:
        apply_documents(cluster=cluster, objects=made)
    drained = [step["drain"] for step in answer["steps"] if "drain" in step]
    for name in drained:
        set_cordon(cluster=cluster, node=name, unschedulable=True)
    gone = [
        step["delete"]["name"] for step in answer["steps"] if step.get("delete", {}).get("kind") == "Node"
    ]
    leaving = [
        move["pod"]
        for move in answer["moves"]
        if move["outcome"] not in STAY or (gone and move["onceDeleted"])
    ]
    pods, nodes = named("Pod"), named("Node")
    again: list[dict[str, Any]] = []
    wanted = set(leaving)
    rows = Pod.objects.filter(cluster=cluster, node_name__in=[*drained, *gone])
    with writing(cluster) as writer:
        for row in rows.order_by("namespace", "name"):
            if f"{row.namespace}/{row.name}" not in wanted:
                continue
            manifest = row.manifest
            delete_in(writer, pods, manifest, 0)
            if _owner_is_missing(cluster, manifest):
                again.append(_anew(manifest))
        for node in Node.objects.filter(cluster=cluster, name__in=gone).order_by("name"):
            writer.delete(LogEntry.Source.API, nodes, node.manifest)
    if again:
        apply_documents(cluster=cluster, objects=again)


def _owner_is_missing(cluster: Cluster, manifest: Mapping[str, Any]) -> bool:
    """Whether its controller would make it again and is only known by its reference."""
    references = manifest["metadata"].get("ownerReferences") or []
    controller = next((item for item in references if item.get("controller")), None)
    if controller is None or controller["kind"] in ("DaemonSet", "Node"):
        return False
    kind = by_kind(controller["kind"])
    if kind is None:
        return True
    rows = rows_of(cluster, kind).filter(name=controller["name"])
    return not rows.filter(namespace=manifest["metadata"]["namespace"]).exists()


def _anew(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The pod as its owner would make it, under the name it had."""
    spec = {key: value for key, value in manifest["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _ungiven(manifest["metadata"]), "spec": spec}


# ---- What people did in a branch, done to its parent: as ordinary writes of the parent's log, all of them or none
#
# Of each write only what it changed is taken over; where the parent has moved on in just that, it is refused.
# Decisions
# are not copied: the parent's scheduler makes its own.

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
        merged = merged_changes(before, after, there)
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
