"""Rows of every kind behind one face: which model holds a kind, and a manifest as a row."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Self, TypeVar

from django.db import connection, models
from django.db.models import Q, QuerySet

from playground.clusters.errors import found
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Event, Manifest, Node, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.packed import HexField, Packed, PackedJSONField, pack
from playground.engine import columns
from playground.engine.compressed import to_json
from scheduler_core.objects.fields import parse_time_ns

Row = Collection[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class PageOfRows(Generic[T]):
    """A page of rows, from 1, and how many were found."""

    rows: list[T]
    n_found: int
    page: int
    n_pages: int

    @classmethod
    def of(cls, n_rows: int, page: int, limit: int, read: Callable[[slice], list[T]]) -> Self:
        """The page of so many rows that is asked for, or the nearest there is; `read` gives a part of them."""
        n_pages = max(1, -(-n_rows // limit))
        page = min(max(1, page), n_pages)
        return cls(read(slice((page - 1) * limit, page * limit)), n_rows, page, n_pages)


def insert_rows(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows.

    Parameters
    ----------
    rows
        Values as Python has them by field (a foreign key by its column); all of the same fields in the same order.
        Columns that are not named get the database's NULL: name all of a model's.
    """
    if not rows:
        return
    into, marks, convert = _columns(model, tuple(rows[0]), connection.vendor)
    stored = _stored(convert, [row.values() for row in rows])
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in stored:
                    copy.write_row(row)
        else:
            cursor.executemany(f"INSERT INTO {into} VALUES ({marks})", stored)


def keep_newest(rows: QuerySet[Any], n: int) -> None:
    """Delete all of these rows but the newest."""
    last = rows.order_by("-pk").values_list("pk", flat=True)[n : n + 1].first()
    if last is not None:
        rows.filter(pk__lte=last).delete()


def upsert_rows(
    model: type[models.Model],
    names: tuple[str, ...],
    rows: Sequence[Row],
    *,
    identity: tuple[str, ...],
    update: tuple[str, ...],
) -> None:
    """Insert rows; of those whose `identity` is there already, set the columns `update`."""
    if not rows:
        return
    into, marks, convert = _columns(model, names, connection.vendor)
    statement = _upsert(model, into, marks, identity, update)
    stored = _stored(convert, rows)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(statement, [list(column) for column in zip(*stored, strict=True)])
        else:
            cursor.executemany(statement, stored)


# Both are asked with each write: the fields of a model are looked at once.


@cache
def _columns(
    model: type[models.Model], names: tuple[str, ...], vendor: str
) -> tuple[str, str, tuple[tuple[int, Callable[[Any], Any]], ...]]:
    """Table with its columns, a mark for each value (of PostgreSQL a whole column), and how some are converted."""
    fields = [_field(model, name) for name in names]
    quote = connection.ops.quote_name
    into = f"{quote(model._meta.db_table)} ({', '.join(quote(field.column) for field in fields)})"
    types = [_array_type(field) for field in fields] if vendor == "postgresql" else []
    marks = ", ".join([f"%s::{name}" for name in types] or ["%s"] * len(fields))
    converted = [(place, how) for place, how in enumerate(map(_converter, fields)) if how is not None]
    return into, marks, tuple(converted)


@cache
def _upsert(
    model: type[models.Model], into: str, marks: str, identity: tuple[str, ...], update: tuple[str, ...]
) -> str:
    quote = connection.ops.quote_name
    key = ", ".join(quote(_field(model, name).column) for name in identity)
    columns = [quote(_field(model, name).column) for name in update]
    news = ", ".join(f"{column} = excluded.{column}" for column in columns)
    values = f"SELECT * FROM unnest({marks})" if "::" in marks else f"VALUES ({marks})"
    return f"INSERT INTO {into} {values} ON CONFLICT ({key}) DO UPDATE SET {news}"


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)


def _array_type(field: Any) -> str:
    """`varchar(9)` without its length: a cast to it would cut a value short instead of refusing it."""
    type_ = field.rel_db_type(connection) if field.is_relation else field.db_type(connection)
    return f"{type_.split('(')[0]}[]"


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


def _stored(convert: Sequence[tuple[int, Callable[[Any], Any]]], rows: Sequence[Row]) -> list[list[Any]]:
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
    return base | {"api_version": manifest["apiVersion"], "kind": kind.row_kind, "labels": labels}


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
    by_model: dict[str, list[dict[str, Any]]] = {}
    for kind, values in rows:
        by_model.setdefault(kind.model, []).append(values)
    for name, same in by_model.items():
        model = MODELS[name]
        defaults, identity, update = _columns_written(model, update_lanes)
        upsert_rows(
            model,
            tuple(defaults),
            [[*map((defaults | values).get, defaults)] for values in same],
            identity=identity,
            update=update,
        )


@cache
def _columns_written(
    model: type[models.Model], update_lanes: bool
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Field -> its default, what names a row, and what is set of a row that is there."""
    kept = KEPT - {"lane"} if update_lanes else KEPT
    names = {"cluster", "namespace", "name"} | ({"kind"} if model is Manifest else set())
    defaults = {
        field.name: field.get_default() for field in model._meta.concrete_fields if field.name != "id"
    }
    return (
        defaults,
        tuple(name for name in defaults if name in names),
        tuple(name for name in defaults if name not in kept | names),
    )


def rows_after(rows: QuerySet[Any], kind: Kind, after: tuple[str, str] | None) -> QuerySet[Any]:
    """Those behind (namespace, name) in the order in which a kind is listed; all where it is None."""
    if after is None:
        return rows
    later = Q(name__gt=after[1])
    if kind.namespaced:
        later = Q(namespace__gt=after[0]) | (Q(namespace=after[0]) & later)
    return rows.filter(later)
