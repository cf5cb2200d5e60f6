"""What the core decides of lessons and of recorded cases, told so that two machines can be compared.

Imported by the suite, and by the Python within node, where there is neither pytest nor this folder's package.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """What comes of the lessons `lessons`, and of the cases at the places `cases[file]`; written to the file `out`."""
    from scheduler_core.cli.conformance import read_cases

    cases = {file: list(read_cases(Path(file))) for file in job["cases"]}
    drawn = {file: [cases[file][place] for place in places] for file, places in job["cases"].items()}
    found = _found(job["lessons"], drawn)
    Path(job["out"]).write_text(json.dumps(found))
    return found


def in_page(given: str) -> str:
    """The same of a job in JSON that has the cases themselves; asked by a page's worker."""
    job = json.loads(given)
    return json.dumps(_found(job["lessons"], job["cases"]))


def _found(lessons: list[str], cases: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    from scheduler_core.cli.conformance import run_case

    return {
        "bits": np.dtype(np.intp).itemsize * 8,
        "lessons": {name: _lesson(name) for name in lessons},
        "cases": {
            file: {case["name"]: [str(difference) for difference in run_case(case)] for case in every}
            for file, every in cases.items()
        },
    }


def rate(given: str) -> str:
    """Pods placed a second, of 300 on 100 nodes, as JSON."""
    from time import perf_counter

    from scheduler_core.scenario import load_scenario, run_scenario

    scenario = load_scenario(given)
    begun = perf_counter()
    run = run_scenario(scenario)
    return json.dumps(len(run.cycles) / (perf_counter() - begun))


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
