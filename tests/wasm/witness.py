"""What the core decides of lessons and of recorded cases, told so that two machines can be compared.

Imported by the suite, and by the Python within node, where there is neither pytest nor this folder's package.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """What comes of the lessons `lessons`, and of the cases at the places `cases[file]`; written to the file `out`."""
    from scheduler_core.cli.conformance import read_cases, run_case

    found: dict[str, Any] = {"bits": np.dtype(np.intp).itemsize * 8, "lessons": {}, "cases": {}}
    for name in job["lessons"]:
        found["lessons"][name] = _lesson(name)
    for file, places in job["cases"].items():
        cases = list(read_cases(Path(file)))
        for case in (cases[place] for place in places):
            differing = [str(difference) for difference in run_case(case)]
            found["cases"].setdefault(file, {})[case["name"]] = differing
    Path(job["out"]).write_text(json.dumps(found))
    return found


def _lesson(name: str) -> list[Any]:
    """Digests of the scenario, its decisions and their sentences; whether what it expects holds."""
    from scheduler_core.scenario import run_scenario, scenario_digest
    from scheduler_core.scenario.gallery import gallery_scenario

    scenario = gallery_scenario(name)
    run = run_scenario(scenario)
    sentences = "\n".join(trace.explain()["sentence"] for trace in run.cycles)
    return [
        scenario_digest(scenario),
        run.digest,
        hashlib.sha256(sentences.encode()).hexdigest(),
        all(finding.holds for finding in run.findings),
    ]
