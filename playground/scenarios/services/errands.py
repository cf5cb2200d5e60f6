"""Short runs a request waits for. The web process only writes a row and reads it again; a worker's room runs it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from playground.clusters import wake as cluster_wake
from playground.engine.scenarios import AskProcess, RunStopped, ScenarioProblem, ask_process, problem_from
from playground.scenarios import wake
from playground.scenarios.models import Errand
from playground.scenarios.services.recording import packed, unpacked

LONGEST_S: Final = 20.0
"""Processor and wall seconds of an errand: the lane that answers questions must not be filled by one."""
LOOK_EVERY_S: Final = 0.1


def through_a_worker(*, owner: Any = None, wait_s: float = LONGEST_S) -> AskProcess:
    """`ask_process` for web processes: it is a worker that starts the process.

    Parameters
    ----------
    owner
        Whose turn it takes.
    wait_s
        How long the answer is waited for; `RunStopped` then, and the run is cancelled.
    """

    def ask(request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        errand = Errand.objects.create(
            owner=owner, request=packed(dict(request)), limit_s=min(timeout_s, LONGEST_S)
        )
        try:
            cluster_wake.send(wake.ERRAND, errand_id=errand.pk)
            wait(errand, wait_s)
            return _answer_of(errand)
        finally:
            errand.delete()

    return ask


def wait(errand: Errand, wait_s: float) -> None:
    """Until it is done, or the time is over."""
    deadline_s = time.monotonic() + wait_s
    while time.monotonic() < deadline_s:
        if Errand.objects.filter(pk=errand.pk).exclude(state=Errand.State.QUEUED).exists():
            return
        time.sleep(LOOK_EVERY_S)


def _answer_of(errand: Errand) -> dict[str, Any]:
    errand.refresh_from_db()
    if errand.state == Errand.State.DONE:
        answer: dict[str, Any] = unpacked(errand.answer)
        if "problems" in answer:
            raise problem_from(answer["problems"])
        return answer
    if errand.state == Errand.State.FAILED:
        raise RunStopped(errand.problem)
    raise RunStopped("no worker had time for it; try again in a moment")


def run_errand(*, errand_id: int) -> None:
    """Run one that is waited for. Twice is once: an answer is written where there is none."""
    rows = Errand.objects.filter(pk=errand_id, state=Errand.State.QUEUED)
    errand = rows.first()
    if errand is None:
        return
    try:
        answer = ask_process(unpacked(errand.request), errand.limit_s)
    except ScenarioProblem as problem:
        rows.update(state=Errand.State.DONE, answer=packed({"problems": problem.as_data()}))
    except RunStopped as stopped:
        rows.update(state=Errand.State.FAILED, problem=str(stopped))
    else:
        rows.update(state=Errand.State.DONE, answer=packed(answer))
