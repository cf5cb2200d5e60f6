"""Rows of every kind behind one face: which model holds a kind, and a manifest as a row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.db import models
from django.db.models import Q, QuerySet

from playground.clusters import bulk
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
KEPT: Final = {"id", "cluster", "lane"}
MOST_NAMES: Final = 500
"""In one query; SQLite takes a few thousand parameters."""
_IDENTITY: Final = {"namespace", "name", "kind"}


def rows_of(cluster: Cluster, kind: Kind) -> QuerySet[Any]:
    """All rows of a kind in a cluster, unordered."""
    rows = MODELS[kind.model]._default_manager.filter(cluster=cluster)
    if kind.model == "Manifest":
        rows = rows.filter(kind=kind.row_kind)
    return rows


def row_of(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Any | None:
    """One row, or None."""
    rows = rows_of(cluster, kind).filter(name=name)
    if kind.namespaced:
        rows = rows.filter(namespace=namespace)
    return rows.first()


def rows_named(cluster: Cluster, kind: Kind, names: Sequence[str]) -> dict[tuple[str, str], Any]:
    """Rows with one of some names; namespace (empty for kinds without) and name -> row."""
    found = {}
    for start in range(0, len(names), MOST_NAMES):
        for row in rows_of(cluster, kind).filter(name__in=names[start : start + MOST_NAMES]):
            found[(row.namespace if kind.namespaced else ""), row.name] = row
    return found


def uid_of(row: Any) -> str:
    """An object's uid; Events have no column for it."""
    return str(row.manifest["metadata"].get("uid") or "") if isinstance(row, Event) else str(row.uid)


def row_values(
    cluster: Cluster, kind: Kind, manifest: Mapping[str, Any], seq: int, profiles: tuple[str, ...]
) -> dict[str, Any]:
    """The columns of a manifest after admission, all but those in `KEPT`; `seq` becomes its resource version."""
    meta = manifest["metadata"]
    base: dict[str, Any] = {
        "cluster": cluster.pk,
        "name": meta["name"],
        "uid": meta.get("uid") or "",
        "resource_version": seq,
        "manifest": manifest,
    }
    if kind.namespaced:
        base["namespace"] = meta.get("namespace") or "default"
    match kind.model:
        case "Node":
            return base | columns.node_columns(manifest)
        case "Pod":
            return base | columns.pod_columns(manifest, profiles)
        case "PriorityClass":
            return base | columns.priority_class_columns(manifest)
        case "PodDisruptionBudget":
            return base | columns.budget_columns(manifest)
        case "Event":
            return base | {"at_ns": _event_time(manifest, cluster)} | columns.event_columns(manifest)
    labels = columns.labels_of(manifest)
    return base | {"api_version": kind.api_version, "kind": kind.row_kind, "labels": labels}


def _event_time(manifest: Mapping[str, Any], cluster: Cluster) -> int:
    text = manifest.get("eventTime") or manifest.get("lastTimestamp") or manifest.get("firstTimestamp")
    try:
        return parse_time_ns(text) if isinstance(text, str) else cluster.now_ns
    except ValueError:
        return cluster.now_ns


def upsert(rows: Iterable[tuple[Kind, dict[str, Any]]], *, update_lanes: bool = False) -> None:
    """Insert rows (as `row_values` gives them) or overwrite those of the same identity, one statement a model.

    Parameters
    ----------
    update_lanes
        Whether the values of pods have the queue's lane, too: the engine is writing.
    """
    kept = KEPT - {"lane"} if update_lanes else KEPT
    by_model: dict[str, list[dict[str, Any]]] = {}
    for kind, values in rows:
        by_model.setdefault(kind.model, []).append(values)
    for name, same in by_model.items():
        model = MODELS[name]
        fields = [field.name for field in model._meta.concrete_fields if field.name != "id"]
        identity = [
            "cluster",
            *(field for field in fields if field in _IDENTITY and _is_identity(model, field)),
        ]
        default = {field.name: field.get_default() for field in model._meta.concrete_fields}
        bulk.upsert(
            model,
            fields,
            [[values.get(field, default[field]) for field in fields] for values in same],
            identity=identity,
            update=[field for field in fields if field not in kept and field not in identity],
        )


def _is_identity(model: type[models.Model], name: str) -> bool:
    return name != "kind" or model is Manifest


def rows_after(rows: QuerySet[Any], kind: Kind, after: tuple[str, str] | None) -> QuerySet[Any]:
    """Those behind (namespace, name) in the order in which a kind is listed; all where it is None."""
    if after is None:
        return rows
    later = Q(name__gt=after[1])
    if kind.namespaced:
        later = Q(namespace__gt=after[0]) | (Q(namespace=after[0]) & later)
    return rows.filter(later)
