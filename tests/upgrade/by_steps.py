"""Makes the database of a site that was upgraded step by step, or tells what a database consists of.

DATABASE_URL=... python -m tests.upgrade.by_steps steps    # the old steps until shortly before the last ones
DATABASE_URL=... python -m tests.upgrade.by_steps migrate  # what an operator runs
DATABASE_URL=... python -m tests.upgrade.by_steps schema   # tables, columns, indexes and constraints as JSON
"""

from __future__ import annotations

import json
import sys
from typing import Any

BETWEEN = ("clusters", "0040_drafts")
"""Where the old steps end: accounts and scenarios are whole by then, clusters is not."""


def by_old_steps(connection: Any) -> Any:
    """An executor that knows the migrations from before they were squashed, and goes through each of them."""
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.loader import MigrationLoader

    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    for squashed in [key for key, node in executor.loader.graph.nodes.items() if node.replaces]:
        executor.loader.graph.remove_replacement_node(squashed, [])
        del executor.loader.disk_migrations[squashed]
    return executor


def steps() -> None:
    from django.db import connection

    executor = by_old_steps(connection)
    whole = [
        max(key for key in executor.loader.graph.nodes if key[0] == app) for app in ("auth", "scenarios")
    ]
    executor.migrate([*whole, BETWEEN])


def schema() -> dict[str, Any]:
    """What each table of the site consists of, in an order of names: a column's place in its table says nothing."""
    from django.apps import apps
    from django.db import connection

    tables = sorted(model._meta.db_table for model in apps.get_models(include_auto_created=True))
    with connection.cursor() as cursor:
        described = _of_postgresql if connection.vendor == "postgresql" else _of_sqlite
        return {table: described(cursor, table) for table in tables}


def _of_sqlite(cursor: Any, table: str) -> dict[str, Any]:
    def rows(text: str) -> list[Any]:
        return [list(row) for row in cursor.execute(text).fetchall()]

    made = rows(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")[0][0]
    return {
        "columns": sorted(row[1:] for row in rows(f"PRAGMA table_info({table})")),
        "keys": sorted(row[2:] for row in rows(f"PRAGMA foreign_key_list({table})")),
        "indexes": sorted(
            [row[2:], [of[2] for of in rows(f"PRAGMA index_info({row[1]})")]]
            for row in rows(f"PRAGMA index_list({table})")
        ),
        "named": sorted(
            row
            for row in rows(
                f"SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table}'"
            )
            if row[1]
        ),
        # Each column, and each constraint with its name, as they were written.
        "parts": sorted(_parts(made)),
    }


def _parts(made: str) -> list[str]:
    inside, depth, parts = made[made.index("(") + 1 : made.rindex(")")], 0, [""]
    for letter in inside:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [" ".join(part.split()) for part in parts]


def _of_postgresql(cursor: Any, table: str) -> dict[str, Any]:
    def rows(text: str) -> list[Any]:
        cursor.execute(text, [table])
        return sorted(list(row) for row in cursor.fetchall())

    return {
        "columns": rows(
            "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull, attidentity::text, attstorage::text,"
            " coalesce((SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef"
            " WHERE adrelid = attrelid AND adnum = attnum), '')"
            " FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        ),
        "indexes": rows("SELECT indexname::text, indexdef FROM pg_indexes WHERE tablename = %s"),
        "constraints": rows(
            "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass"
        ),
        "options": rows("SELECT coalesce(reloptions, '{}') FROM pg_class WHERE oid = %s::regclass"),
    }


def main(what: str) -> None:
    import django

    django.setup()
    if what == "steps":
        steps()
    elif what == "migrate":
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        call_command("migrate", check_unapplied=True, verbosity=0)
    else:
        print(json.dumps(schema()))


if __name__ == "__main__":
    main(sys.argv[1])
