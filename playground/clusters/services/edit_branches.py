"""Branches in which one edit of an answer is made: a new cluster, while the original stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from playground.clusters.errors import NotFound
from playground.clusters.kinds import by_kind
from playground.clusters.models import Cluster, Pod, Question
from playground.clusters.services.apply import apply_documents
from playground.clusters.services.lifecycle import clone_cluster
from playground.clusters.services.objects import delete_object
from playground.clusters.services.runs import request_run

_WITH_EDITS: Final[Mapping[str, str]] = {Question.Kind.EDITS: "edits", Question.Kind.GROUP: "remedies"}
"""Kinds of questions whose answers hold changes that a new cluster can be made with, and where."""


def branch_with_edit(*, question: Question, rank: int, owner: Any = None) -> Cluster:
    """A new cluster with the objects of this one and one proven edit made, which runs; the original stays as it is.

    Parameters
    ----------
    rank
        Of the edit, from 1.

    Raises
    ------
    NotFound
        The answer has no such edit.
    """
    listed = _WITH_EDITS.get(question.kind, "")
    edits = (question.answer or {}).get(listed) or []
    if not 1 <= rank <= len(edits):
        raise NotFound(f"edit {rank} not found", kind="Question", name=question.public_id)
    edit = edits[rank - 1]
    title = edit["title"] if "title" in edit else edit["sentence"]
    name = f"{question.cluster.name[:50]}: {title[:45]}"
    with transaction.atomic():
        clone = clone_cluster(cluster=question.cluster, name=name, owner=owner)
        _make_change(clone, edit["change"])
        request_run(cluster=clone, until="idle")
    return clone


def _make_change(cluster: Cluster, change: Mapping[str, Any]) -> None:
    """Make an edit's change; pods that wait at Permit start over in a new cluster anyway."""
    pods = by_kind("Pod")
    assert pods is not None

    def delete(key: str) -> None:
        namespace, _, name = key.partition("/")
        delete_object(cluster=cluster, kind=pods, namespace=namespace, name=name, grace_s=0)

    for key in change.get("delete", ()):
        delete(key)
    if "move" in change:
        key, node = change["move"]
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


def _create(cluster: Cluster, manifest: Mapping[str, Any]) -> None:
    meta = {
        key: value
        for key, value in manifest["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
    }
    kept = {key: value for key, value in manifest.items() if key != "status"}
    apply_documents(cluster=cluster, objects=[{**kept, "metadata": meta}])
