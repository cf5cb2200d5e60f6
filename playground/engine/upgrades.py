"""What another release would decide otherwise, asked in a process of its own that can be ended."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from playground.engine.plugins import allowed
from playground.engine.scenarios import ROOT, RUN_TIMEOUT_S, RunStopped, answer_of_process

MOST_TOLD: Final = 500
"""Differences of each cause that are kept; all are counted."""
LOOK_EVERY_S: Final = 0.5

Told = Callable[[str, float], bool]
"""Is told what is being run and the share that is done; False where it is not wanted any more."""


def upgrade_document(
    text: str | bytes,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    told: Told,
    timeout_s: float = RUN_TIMEOUT_S,
) -> dict[str, Any]:
    """Decide a scenario by two releases.

    Parameters
    ----------
    before, after
        Releases as documents (`releases.release_document`).
    told
        Asked about twice a second; False ends the process.

    Returns
    -------
    dict
        `scheduler_core.scenario.upgrade.UpgradePreview.document`, differences cut to `MOST_TOLD`.

    Raises
    ------
    ScenarioProblem
    RunStopped
        It took too long, broke off, or was ended.
    """
    document = text if isinstance(text, str) else text.decode("utf-8-sig")
    request = {"document": document, "upgrade": {"before": before, "after": after, "limit": MOST_TOLD}}
    found: dict[str, Any] = _ask_watched(request, timeout_s, told)["upgrade"]
    return found


def _ask_watched(request: Mapping[str, Any], timeout_s: float, told: Told) -> dict[str, Any]:
    """Ask a fresh process, which tells on its standard error how far it is, and look after it meanwhile."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as out:
        asked.write(json.dumps({**request, "plugins": allowed()}).encode())
        asked.seek(0)
        command = [sys.executable, "-m", "playground.engine.scenario_process"]
        deadline_s = time.monotonic() + timeout_s
        with subprocess.Popen(command, stdin=asked, stdout=out, stderr=said, cwd=ROOT) as process:
            try:
                while True:
                    try:
                        process.wait(LOOK_EVERY_S)
                        break
                    except subprocess.TimeoutExpired:
                        pass
                    if time.monotonic() > deadline_s:
                        raise RunStopped(f"the run was ended after {timeout_s:.0f} s")
                    if not told(*_progress(said)):
                        raise RunStopped("the run was cancelled")
            finally:
                process.kill()
        out.seek(0)
        said.seek(0)
        return answer_of_process(process.returncode, out.read(), said.read())


def _progress(said: Any) -> tuple[str, float]:
    """The last whole line that tells what is being run."""
    said.seek(0)
    for line in reversed(said.read().decode(errors="replace").split("\n")[:-1]):
        if line.startswith("{"):
            found = json.loads(line)
            return found["step"], found["share"]
    return "making the run again", 0.0
