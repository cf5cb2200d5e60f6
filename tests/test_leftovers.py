"""What a run of the tests started is gone when the run is, also one that was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import leftovers
from tests.tables import table

STARTS = table(__file__, "STARTS")


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="no /proc: what is left is not found here"
)
def test_what_a_killed_run_has_started_ends(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != leftovers.NAME}
    run = subprocess.Popen(
        [sys.executable, "-c", STARTS, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert run.stdout
    mark = f"{leftovers.NAME}={run.stdout.readline().strip()}"
    assert len(leftovers.marked(mark)) == 1
    run.kill()
    run.wait()
    run.stdout.close()
    ends = time.monotonic() + 30
    while leftovers.marked(mark) or folder.exists():
        assert time.monotonic() < ends
        time.sleep(0.05)
