"""The forked processes of the suite answer as those that the site starts."""

import json
import subprocess
from typing import Any

import pytest

from playground.engine import scenarios
from playground.engine.scenarios import RunStopped, answer_of_process, ask_process, run_process
from scheduler_core.scenario.gallery import gallery_text
from tests.scenario_processes import run_forked


def asked(**request: Any) -> bytes:
    ran = {"do": "run", "objects_at": None, "traces_up_to": 2000, "plugins": {"names": None}}
    return json.dumps(ran | request).encode()


@pytest.mark.parametrize("document", [gallery_text("preemption-budget"), "nodes: 3"], ids=["runs", "refused"])
def test_a_forked_process_answers_as_a_fresh_one(document: str) -> None:
    fresh, forked = (run(asked(document=document), 120) for run in (run_process, run_forked))
    assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout)
    assert forked.returncode == 0


def test_a_document_is_read_whole_by_a_process_that_is_slow_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds, looked after before it is read."""
    monkeypatch.setattr(scenarios, "LOOK_EVERY_S", 0.01)
    done = run_process(asked(document="nodes: 3\n" + 300_000 * "#"), 60)
    assert (done.returncode, b"problems" in done.stdout) == (0, True)


def test_what_breaks_off_says_why_in_both() -> None:
    said = []
    for run in (run_process, run_forked):
        done = run(json.dumps({"do": "trace", "number": 1}).encode(), 120)
        with pytest.raises(RunStopped) as stopped:
            answer_of_process(done.returncode, done.stdout, done.stderr)
        said.append(str(stopped.value))
    assert (
        said
        == ["the run broke off: TypeError: traced() missing 1 required positional argument: 'document'"] * 2
    )


def test_both_end_with_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for run in (run_process, run_forked):
        with pytest.raises(subprocess.TimeoutExpired):
            run(asked(document=gallery_text("preemption-budget")), 0.001)
        monkeypatch.setattr("playground.engine.scenarios.run_process", run)
        with pytest.raises(RunStopped, match="the run was ended after 0 s"):
            ask_process({"do": "model", "document": gallery_text("preemption-budget")}, 0.001)
