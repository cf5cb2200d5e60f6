"""Rows of every kind behind one face: which model holds a kind, and a manifest as a row."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import models
from django.db.models import QuerySet

from playground.clusters.kinds import Kind
from playground.clusters.models import (
    Cluster,
    Event,
    Manifest,
    Node,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
)
from playground.engine import columns
from playground.engine.times import parse_time_ns

MODELS: Final[dict[str, type[models.Model]]] = {
    "Event": Event,
    "Manifest": Manifest,
    "Node": Node,
    "Pod": Pod,
    "PodDisruptionBudget": PodDisruptionBudget,
    "PriorityClass": PriorityClass,
}
# A pod's queue state is the engine's to say, so a new manifest leaves it alone.
_KEPT: Final = {"id", "cluster", "lane"}
_IDENTITY: Final = {"namespace", "name", "kind"}


def rows_of(cluster: Cluster, kind: Kind) -> QuerySet[Any]:
    """All rows of a kind in a cluster, unordered."""
    rows = MODELS[kind.model]._default_manager.filter(cluster=cluster)
    if kind.model == "Manifest":
        rows = rows.filter(kind=kind.kind)
    return rows


def row_of(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Any | None:
    """One row, or None."""
    rows = rows_of(cluster, kind).filter(name=name)
    if kind.namespaced:
        rows = rows.filter(namespace=namespace)
    return rows.first()


def build_row(
    cluster: Cluster, kind: Kind, manifest: Mapping[str, Any], seq: int, profiles: tuple[str, ...]
) -> models.Model:
    """An unsaved row of a manifest after admission; `seq` becomes its resource version."""
    meta = manifest["metadata"]
    base: dict[str, Any] = {
        "cluster": cluster,
        "name": meta["name"],
        "uid": meta.get("uid") or "",
        "resource_version": seq,
        "manifest": manifest,
    }
    if kind.namespaced:
        base["namespace"] = meta.get("namespace") or "default"
    match kind.model:
        case "Node":
            return Node(**base, **columns.node_columns(manifest))
        case "Pod":
            return Pod(**base, **columns.pod_columns(manifest, profiles))
        case "PriorityClass":
            return PriorityClass(**base, **columns.priority_class_columns(manifest))
        case "PodDisruptionBudget":
            return PodDisruptionBudget(**base, **columns.budget_columns(manifest))
        case "Event":
            return Event(**base, at_ns=_event_time(manifest, cluster), **columns.event_columns(manifest))
    return Manifest(**base, api_version=kind.api_version, kind=kind.kind, labels=columns.labels_of(manifest))


def _event_time(manifest: Mapping[str, Any], cluster: Cluster) -> int:
    text = manifest.get("eventTime") or manifest.get("lastTimestamp") or manifest.get("firstTimestamp")
    try:
        return parse_time_ns(text) if isinstance(text, str) else cluster.now_ns
    except ValueError:
        return cluster.now_ns


def upsert(rows: Iterable[models.Model]) -> None:
    """Insert rows or overwrite those of the same identity, one statement a model and batch."""
    by_model: dict[type[models.Model], list[models.Model]] = {}
    for row in rows:
        by_model.setdefault(type(row), []).append(row)
    for model, same in by_model.items():
        names = [field.name for field in model._meta.concrete_fields]
        identity = ["cluster", *(name for name in names if name in _IDENTITY and _is_identity(model, name))]
        model._default_manager.bulk_create(
            same,
            update_conflicts=True,
            unique_fields=identity,
            update_fields=[name for name in names if name not in _KEPT and name not in identity],
            batch_size=500,
        )


def _is_identity(model: type[models.Model], name: str) -> bool:
    return name != "kind" or model is Manifest
