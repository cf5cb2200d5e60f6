"""What the core decides of lessons and of recorded cases, told so that two machines can be compared.

Imported by the suite, and by the Python within node, where there is neither pytest nor this folder's package.
"""

import hashlib
import json
from typing import Any

import numpy as np


def answer(given: str) -> str:
    """What comes of the lessons `lessons` and of the cases `cases`, by file; a job and its answer are JSON."""
    from scheduler_core.cli.conformance import run_case

    job = json.loads(given)
    found = {
        "bits": np.dtype(np.intp).itemsize * 8,
        "lessons": {name: _lesson(name) for name in job["lessons"]},
        "cases": {
            file: {case["name"]: [str(difference) for difference in run_case(case)] for case in every}
            for file, every in job["cases"].items()
        },
    }
    return json.dumps(found)


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
