"""Short runs a request waits for: the web process only writes a row and reads it again; a worker's room runs it."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any, Final

from playground.clusters import wake
from playground.clusters.errors import InvalidInput
from playground.clusters.jobs import person_of
from playground.clusters.models import Question
from playground.clusters.packed import pack, unpack
from playground.clusters.questions import KINDS, AnsweredKind
from playground.engine.scenarios import (
    AskProcess,
    RunStopped,
    ScenarioError,
    answer_in,
    ask_process,
    problems_data,
)

LONGEST_S: Final = 20.0
"""Processor and wall seconds of such a run: the lane that answers questions must not be filled by one."""
LOOK_EVERY_S: Final = 0.1


def through_a_worker(*, owner: Any = None, wait_s: float = LONGEST_S) -> AskProcess:
    """`ask_process` for web processes, which only write a row and read it again: a worker starts the process.

    Parameters
    ----------
    owner
        Whose turn it takes.
    wait_s
        How long the answer is waited for; `RunStopped` then, and the run is cancelled.
    """

    def ask(request: Mapping[str, Any], timeout_s: float) -> Any:
        params = {
            "request": base64.b64encode(pack(dict(request))).decode(),
            "limit_s": min(timeout_s, LONGEST_S),
        }
        person = person_of(None if owner is None else owner.pk)
        row = Question.objects.create(kind=Question.Kind.PROCESS, params=params, person=person)
        try:
            wake.send("answer", question_id=row.pk)
            wait(row, wait_s)
            row.refresh_from_db()
            return _answer_of(row)
        finally:
            row.delete()

    return ask


def wait(row: Question, wait_s: float) -> None:
    """Wait until it is answered, or the time is over."""
    deadline_s = time.monotonic() + wait_s
    while time.monotonic() < deadline_s:
        if not Question.objects.filter(pk=row.pk, state__in=Question.OPEN).exists():
            return
        time.sleep(LOOK_EVERY_S)


def _answer_of(row: Question) -> Any:
    if row.state == Question.State.FAILED:
        raise RunStopped(row.error)
    if row.answer is None:
        raise RunStopped("no worker had time for it; try again in a moment")
    return answer_in(row.answer)


def _process(question: Question, cluster: None, memory: object) -> dict[str, Any]:
    request = unpack(base64.b64decode(question.params["request"]))
    try:
        return {"answer": ask_process(request, question.params["limit_s"])}
    except ScenarioError as problem:
        return {"problems": problems_data(problem)}


def _not_asked(of: object, params: Mapping[str, Any]) -> dict[str, Any]:
    raise InvalidInput("a run that a request waits for is no question", field="kind")


KINDS[Question.Kind.PROCESS] = AnsweredKind(_not_asked, _process)
