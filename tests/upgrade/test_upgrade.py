"""The database of a site that ran on commit 22dc818, opened by the tree of today."""

from __future__ import annotations

import json
import lzma
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import make_database

ROOT = Path(__file__).resolve().parents[2]
OLD = Path(__file__).parent / "data" / "22dc818"
# What a page may answer to a plain GET; a link to what is only posted to is a 405.
WELL = {200, 204, 286, 302, 405}


def restore_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(lzma.decompress(OLD.with_suffix(".sqlite.sql.xz").read_bytes()).decode())
    connection.close()


def restore_postgresql(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(lzma.decompress(OLD.with_suffix(".postgresql.sql.xz").read_bytes()).decode())


def visited(url: str, facts: Path, data: Path) -> dict[str, Any]:
    """What `visit` finds in the database at `url`."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.upgrade.visit", str(facts)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "PLAYGROUND_DATA": str(data)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout)


def assert_all_is_there(found: dict[str, Any], facts: dict[str, Any]) -> None:
    for what in ("cycles", "pods", "decisions", "comparison_states"):
        assert found["held"][what] == facts[what]
    assert set(found["token"].values()) == {200}, found["token"]
    assert {path: found["pages"][path] for path in found["starts"] if found["pages"][path] != 200} == {}
    assert {path: status for path, status in found["pages"].items() if status not in WELL} == {}
    assert len(found["pages"]) > 150
    assert set(facts["decisions"]) <= set(found["proofs"])
    assert all(found["proofs"].values()), found["proofs"]
    assert set(found["comparison_states"].values()) == {"done"}


@pytest.fixture
def postgresql_copy(postgresql_url: str) -> Iterator[str]:
    url, drop = make_database(postgresql_url, "upgrade")
    restore_postgresql(url)
    yield url
    drop()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_old_sqlite_site_is_migrated_opens_whole_and_goes_on_to_the_same_decisions(tmp_path: Path) -> None:
    restore_sqlite(tmp_path / "playground.sqlite3")
    path = OLD.with_suffix(".sqlite.json")
    facts = json.loads(path.read_text())
    found = visited(f"sqlite:///{tmp_path / 'playground.sqlite3'}", path, tmp_path)
    assert_all_is_there(found, facts)
    assert found["after"] == facts["after"]


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_old_postgresql_site_is_migrated_opens_whole_and_goes_on_to_the_same_decisions(
    postgresql_copy: str, tmp_path: Path
) -> None:
    path = OLD.with_suffix(".postgresql.json")
    facts = json.loads(path.read_text())
    found = visited(postgresql_copy, path, tmp_path)
    assert_all_is_there(found, facts)
    assert found["after"] == facts["after"]
