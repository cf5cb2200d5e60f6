"""Rows of every kind behind one face: which model holds a kind, and a manifest as a row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from django.db import connection, models
from django.db.models import Q, QuerySet

from playground.clusters.errors import found
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Event, Manifest, Node, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.packed import HexField, Packed, PackedJSONField, pack
from playground.engine import columns
from playground.engine.compressed import to_json
from scheduler_core.objects.fields import parse_time_ns

Row = Sequence[Any]
T = TypeVar("T")


def insert_rows(model: type[models.Model], names: Sequence[str], rows: Sequence[Row]) -> None:
    """Insert rows; `names` are the fields (a foreign key by its column) that the values stand for.

    Parameters
    ----------
    rows
        Values as Python has them. Columns that are not named get the database's NULL: name all of a model's.
    """
    if not rows:
        return
    fields = [_field(model, name) for name in names]
    table, columns = _quoted(model, fields)
    stored = _stored(fields, rows)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in stored:
                    copy.write_row(row)
        else:
            marks = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", stored)


def upsert_rows(
    model: type[models.Model],
    names: Sequence[str],
    rows: Sequence[Row],
    *,
    identity: Sequence[str],
    update: Sequence[str],
) -> None:
    """Insert rows; of those whose `identity` is there already, set the columns `update`."""
    if not rows:
        return
    fields = [_field(model, name) for name in names]
    table, columns = _quoted(model, fields)
    quote = connection.ops.quote_name
    key = ", ".join(quote(_field(model, name).column) for name in identity)
    news = ", ".join(
        f"{column} = excluded.{column}" for column in (quote(_field(model, name).column) for name in update)
    )
    conflict = f"ON CONFLICT ({key}) DO UPDATE SET {news}"
    stored = _stored(fields, rows)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            arrays = ", ".join(f"%s::{_array_type(field)}" for field in fields)
            cursor.execute(
                f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) {conflict}",
                [list(column) for column in zip(*stored, strict=True)],
            )
        else:
            marks = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks}) {conflict}", stored)


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)


def _quoted(model: type[models.Model], fields: Sequence[Any]) -> tuple[str, str]:
    quote = connection.ops.quote_name
    return quote(model._meta.db_table), ", ".join(quote(field.column) for field in fields)


def _array_type(field: Any) -> str:
    """`varchar(9)` without its length: a cast to it would cut a value short instead of refusing it."""
    return str(field.rel_db_type(connection) if field.is_relation else field.db_type(connection)).split("(")[
        0
    ] + ("[]")


def _converter(field: Any) -> Callable[[Any], Any] | None:
    if isinstance(field, PackedJSONField):
        return _packed
    if isinstance(field, HexField):
        return bytes.fromhex
    if isinstance(field, models.JSONField):
        return _json
    return None


def _json(value: Any) -> str:
    return to_json(value).decode()


def _packed(value: Any) -> Packed:
    return value if isinstance(value, Packed) else pack(value)


def _stored(fields: Sequence[Any], rows: Sequence[Row]) -> list[list[Any]]:
    convert = [(place, how) for place, how in enumerate(map(_converter, fields)) if how is not None]
    stored = [list(row) for row in rows]
    for row in stored:
        for place, how in convert:
            if row[place] is not None:
                row[place] = how(row[place])
    return stored


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


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many at once as one query takes."""
    return (items[start : start + MOST_NAMES] for start in range(0, len(items), MOST_NAMES))


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


def existing(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Any:
    """One row.

    Raises
    ------
    NotFound
    """
    row = row_of(cluster, kind, namespace, name)
    return found(row, f'{kind.resource} "{name}"', kind=kind.kind, namespace=namespace, name=name)


def rows_named(cluster: Cluster, kind: Kind, names: Sequence[str]) -> dict[tuple[str, str], Any]:
    """Rows with one of some names; namespace (empty for kinds without) and name -> row."""
    return {
        ((row.namespace if kind.namespaced else ""), row.name): row
        for part in in_parts(names)
        for row in rows_of(cluster, kind).filter(name__in=part)
    }


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
        upsert_rows(
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
