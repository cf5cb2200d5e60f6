"""What a cluster holds, by kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count

from playground.clusters.custom_kinds import table_of
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Manifest
from playground.clusters.rows import MODELS, rows_after, rows_of
from playground.clusters.versions import as_served


def counts_by_kind(cluster: Cluster) -> list[tuple[Kind, int]]:
    """Every kind of the cluster, in table order, and how many objects it has of it. One query a model."""
    held = Manifest.objects.filter(cluster=cluster).values_list("kind").annotate(n=Count("pk"))
    numbers = dict(held.order_by())
    for name, model in MODELS.items():
        if name != "Manifest":
            numbers[name] = model._default_manager.filter(cluster=cluster).count()
    return [(kind, numbers.get(kind.row_kind, 0)) for kind in table_of(cluster).kinds]


def objects_of_kind(
    cluster: Cluster, kind: Kind, *, named: str = "", after: tuple[str, str] | None = None, limit: int
) -> Iterator[dict[str, Any]]:
    """Objects of one kind by namespace and name, those whose name holds a text; `limit` at most. One query."""
    place = ("namespace", "name") if kind.namespaced else ("name",)
    rows = rows_of(cluster, kind).order_by(*place)
    if named:
        rows = rows.filter(name__icontains=named)
    rows = rows_after(rows, kind, after)
    for manifest in rows.values_list("manifest", flat=True)[:limit]:
        yield as_served(kind, manifest)
