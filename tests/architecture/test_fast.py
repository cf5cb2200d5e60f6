"""`pytest -m fast` takes what needs no server and searches nothing, and takes it by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.services import FAST_FOLDERS

ROOT = Path(__file__).resolve().parents[2]


def test_its_folders_are_there() -> None:
    assert [name for name in FAST_FOLDERS if not (ROOT / "tests" / name).is_dir()] == []


def test_fast_takes_examples_and_leaves_searches_and_databases() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"),
            *("-m", "fast", "tests/scheduler_core/queue", "tests/broker"),
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert "tests/scheduler_core/queue/test_scheduling_queue.py" in files
    assert "tests/scheduler_core/queue/test_queue_machine.py" not in files
    assert not any(name.startswith("tests/broker") for name in files)
