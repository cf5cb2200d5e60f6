"""Twenty rounds of faults on what is always there, and twenty on real servers where they are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def live_through(on: str, rounds: int, seed: int) -> dict[str, Any]:
    """A process of its own: it forks workers, and nothing of a test run's threads and connections may go along."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PLAYGROUND_"))
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.faults", "--quiet"),
            *("--on", on, "--rounds", str(rounds), "--seed", str(seed)),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=560,
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_fault_loses_doubles_or_misplaces_a_pod_on_the_embedded_default() -> None:
    report = live_through("embedded", rounds=20, seed=1)
    assert report["violations"] == []
    assert report["rounds"] == 20
    assert len(report["faults"]) == 9
    assert report["workers_died"] > 0


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.timeout(600)
def test_no_fault_loses_doubles_or_misplaces_a_pod_on_postgresql_and_redis() -> None:
    report = live_through("servers", rounds=20, seed=2)
    assert report["violations"] == []
    assert len(report["faults"]) == 9
