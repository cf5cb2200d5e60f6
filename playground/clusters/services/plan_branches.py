"""A cluster of its own in which a plan has been carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from playground.clusters.errors import Conflict
from playground.clusters.kinds import by_kind
from playground.clusters.models import Cluster, LogEntry, Node, Pod, Question
from playground.clusters.rows import rows_of
from playground.clusters.services.apply import apply_documents
from playground.clusters.services.changes import one_change
from playground.clusters.services.deletion import delete_in
from playground.clusters.services.lifecycle import clone_cluster
from playground.clusters.services.objects import set_cordon
from playground.clusters.services.runs import request_run
from playground.clusters.services.writer import writing

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
    answer = question.answer
    if question.kind != Question.Kind.PLAN or answer is None:
        raise Conflict("there is no answer yet to make a branch of", kind="Question")
    if not answer["steps"]:
        raise Conflict(
            "nothing is done in this answer, so there is nothing to see in a branch", kind="Question"
        )
    with transaction.atomic():
        name = f"{question.cluster.name[:40]}: {answer['verdict'][:55]}"
        clone = clone_cluster(cluster=question.cluster, name=name, owner=owner)
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
    pods, nodes = by_kind("Pod"), by_kind("Node")
    assert pods is not None and nodes is not None
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
    meta = {key: value for key, value in manifest["metadata"].items() if key not in _GIVEN}
    spec = {key: value for key, value in manifest["spec"].items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


__all__ = ["branch_of_plan"]
