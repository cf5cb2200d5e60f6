"""Many rows at once, past the model instances: COPY on PostgreSQL, one prepared statement on SQLite."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, models

from playground.clusters.packed import HexField, Packed, PackedJSONField, pack
from playground.engine.compressed import to_json

Row = Sequence[Any]


def insert(model: type[models.Model], names: Sequence[str], rows: Sequence[Row]) -> None:
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


def upsert(
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
