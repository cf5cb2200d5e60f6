"""The queue and every plugin's hints agree with what the real scheduler was recorded to do."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from scheduler_core.cli.conformance_queue import run_hint_case, run_queue_case

DATA = Path(__file__).parents[2] / "conformance" / "data"


def recorded_cases(family: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_every_recorded_queue_agrees_step_by_step() -> None:
    cases = recorded_cases("queue")
    assert len(cases) == 80
    assert {case["name"]: found for case in cases if (found := run_queue_case(case))} == {}


def test_every_recorded_registration_match_event_and_hint_agrees() -> None:
    cases = recorded_cases("queueing-hints")
    kinds = Counter(case["kind"] for case in cases)
    assert kinds == {"hint": 224, "events": 45, "match": 40, "registrations": 19}
    assert {case["name"]: found for case in cases if (found := run_hint_case(case))} == {}


def test_a_wrong_step_is_reported_with_its_number() -> None:
    case = recorded_cases("queue")[0]
    case["expect"]["steps"][1]["active"] = []
    (difference,) = run_queue_case(case)
    assert difference.key == "steps[1].active"
    assert difference.got == ["default/p0", "default/p1"]
