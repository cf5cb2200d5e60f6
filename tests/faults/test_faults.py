"""A few rounds of faults on a whole site, and broken sites that they must tell from a sound one."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from playground.clusters.clock import wall_now
from tests.faults import points
from tests.faults.mutants import MUTANTS, edited

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 1100
nightly = pytest.mark.nightly(
    "tests/faults/", "playground/broker.py", "playground/play/", "playground/clusters/drive/lease.py",
    "playground/clusters/drive/commit.py", "playground/clusters/drive/advance.py",
)  # fmt: skip


def faults(*options: str) -> dict[str, Any]:
    """A process of its own: it starts a site, and nothing of a test run's settings may go along."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PLAYGROUND_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--quiet", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_an_edit_of_the_code_as_it_is(name: str) -> None:
    mutant = MUTANTS[name]
    text = (ROOT / mutant.path).read_text()
    compile(edited(mutant, text), mutant.path, "exec")


def test_a_deciding_process_has_the_wall_clock_that_the_folder_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rooms = import_module("playground.play.rooms")
    given: dict[str, Any] = {}
    monkeypatch.setattr(rooms, "take_turn", given.update)
    points._wrong_clocks(tmp_path)
    rooms.take_turn()
    (tmp_path / "clocks").write_text("[7200.0]")
    assert given["now"]() - wall_now() > timedelta(seconds=7100)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_fault_loses_doubles_or_misplaces_anything_on_the_embedded_default() -> None:
    report = faults("--on", "embedded", "--rounds", "1", "--seed", "1")
    assert report["violations"] == []
    assert report["rounds"] == 1
    assert report["seen"]["clusters"] == 3
    assert report["seen"]["events"] > 0
    assert report["scenes"]


@nightly
@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.timeout(1200)
def test_no_fault_loses_doubles_or_misplaces_anything_on_a_teams_site() -> None:
    report = faults("--on", "servers", "--rounds", "2", "--seed", "2")
    assert report["violations"] == []
    assert report["seen"]["clusters"] == 6


@nightly
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_broken_site_is_found_out() -> None:
    report = faults("--mutants", "--only", "events-dropped,fence-token-off", "--rounds", "25", "--jobs", "2")
    assert report["not found"] == []
