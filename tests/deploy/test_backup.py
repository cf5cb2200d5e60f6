"""Backup and restore by the commands of deploy/README.md."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.commands import ROOT, commands
from tests.servers import make_database, postgresql_folders

WAIT_S = 100.0


@pytest.fixture
def two_databases(postgresql_url: str) -> Iterator[tuple[str, str]]:
    here, drop_here = make_database(postgresql_url, "backup")
    elsewhere, drop_elsewhere = make_database(postgresql_url, "restored")
    yield here, elsewhere
    drop_here()
    drop_elsewhere()


class Site:
    """What runs commands against one database."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        folders = (sys.prefix + "/bin", *map(str, postgresql_folders()), os.environ["PATH"])
        self.environment = {
            **os.environ,
            "DATABASE_URL": url,
            "PLAYGROUND_DATA": str(data),
            "CELERY_BROKER_URL": "memory://",
            "PYTHONPATH": str(ROOT),
            "PATH": os.pathsep.join(folders),
        }

    def run(self, command: str, folder: Path = ROOT) -> str:
        # The commands of the book are for a shell in the tree; a dump may lie elsewhere.
        command = command.replace("python manage.py", f"python {ROOT / 'manage.py'}")
        done = subprocess.run(
            ["bash", "-c", command],
            env=self.environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
        return done.stdout

    def n_cycles(self) -> int:
        import psycopg

        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT count(*) FROM clusters_cycle").fetchone()
        return int(row[0]) if row else 0


@pytest.mark.nightly("deploy/README.md", "playground/settings.py")
@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_backup_of_a_busy_site_restored_elsewhere_goes_on_to_the_same_decisions(
    two_databases: tuple[str, str], tmp_path: Path
) -> None:
    here, elsewhere = (Site(url, tmp_path / name) for url, name in zip(two_databases, "ab", strict=True))
    here.run("python manage.py migrate")
    here.run("python -m tests.deploy.busy make")
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.busy", "work"],
        env=here.environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    deadline_s = time.monotonic() + WAIT_S
    while here.n_cycles() < 10:
        assert worker.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.02)
    [backup] = commands("deploy/README.md", "Back up")
    here.run(backup, tmp_path)
    original = json.loads(worker.communicate()[0])
    assert len(original["cycles"]) >= 300

    for command in commands("deploy/README.md", "Restore"):
        elsewhere.run(command, tmp_path)
    # It was taken in the middle: neither nothing had been decided then, nor everything.
    assert 10 <= elsewhere.n_cycles() < 300
    assert json.loads(elsewhere.run("python -m tests.deploy.busy work")) == original
