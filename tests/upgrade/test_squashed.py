"""The migrations in one step make what the old ones make, and a database of any day between still upgrades."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.servers import make_database

ROOT = Path(__file__).resolve().parents[2]
Node = tuple[str, str]


def told(url: str, *acts: str, data: Path) -> dict[str, Any]:
    """The schema of the database at `url` after these acts of `by_steps`."""
    for act in (*acts, "schema"):
        result = subprocess.run(
            [sys.executable, "-m", "tests.upgrade.by_steps", act],
            cwd=ROOT,
            env={
                **os.environ,
                "DATABASE_URL": url,
                "PLAYGROUND_DATA": str(data),
                "DJANGO_SETTINGS_MODULE": "playground.settings",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr[-4000:]
    schema: dict[str, Any] = json.loads(result.stdout)
    return schema


@pytest.mark.slow
def test_old_steps_and_the_squashed_one_make_the_same_sqlite_database(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path / name}.sqlite3" for name in ("old", "new")]
    old = told(urls[0], "steps", "migrate", data=tmp_path)
    assert len(old) > 50
    assert told(urls[1], "migrate", data=tmp_path) == old


@pytest.fixture
def two_databases(postgresql_url: str) -> Iterator[list[str]]:
    made = [make_database(postgresql_url, name) for name in ("steps", "squashed")]
    yield [url for url, _ in made]
    for _, drop in made:
        drop()


@pytest.mark.postgres
@pytest.mark.slow
def test_old_steps_and_the_squashed_one_make_the_same_postgresql_database(
    two_databases: list[str], tmp_path: Path
) -> None:
    old = told(two_databases[0], "steps", "migrate", data=tmp_path)
    new = told(two_databases[1], "migrate", data=tmp_path)
    # The table was called so before its last step; PostgreSQL keeps the names of what belongs to it.
    for table in (old["clusters_change"], new["clusters_change"]):
        for what in ("indexes", "constraints"):
            table[what] = sorted(
                definition.replace("clusters_deed_pkey", "clusters_change_pkey")
                for name, definition in table[what]
            )
    assert old == new
    assert ["fillfactor=35"] in new["clusters_metric"]["options"][0]


def days() -> list[dict[Node, Any]]:
    """What may be applied: the old steps up to each of them, and all of them without the last of one app."""
    graph = MigrationLoader(None, replace_migrations=False).graph
    steps = {key: node for key, node in graph.nodes.items() if not node.replaces}
    order = [
        key
        for key in dict.fromkeys(key for leaf in sorted(steps) for key in graph.forwards_plan(leaf))
        if key in steps
    ]
    found = [order[:count] for count in range(len(order) + 1)]
    for first in order:
        after = set(graph.backwards_plan(first))
        found.append([key for key in order if key not in after])
    return [{key: steps[key] for key in one} for one in found]


@pytest.mark.django_db
def test_the_database_of_every_day_goes_on_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    states = days()
    whole = set(max(states, key=len))
    assert len(whole) > 68 and len(states) > 140
    taken_whole = 0
    for applied in states:
        monkeypatch.setattr(
            MigrationRecorder, "applied_migrations", lambda self, applied=applied: dict(applied)
        )
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        done = set(applied)
        for migration, backwards in plan:
            stands_for = {tuple(one) for one in migration.replaces} or {(migration.app_label, migration.name)}
            assert not backwards and not stands_for & done, (migration, sorted(applied)[-3:])
            done |= stands_for
            taken_whole += bool(migration.replaces)
        assert done == whole, sorted(whole - done)
    assert taken_whole  # where an app has no table yet
