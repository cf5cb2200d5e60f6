"""Fixtures of the scenario tests."""

import pytest

from playground.clusters import wake
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Question


@pytest.fixture
def sent(monkeypatch):
    """Wake-ups that were sent: (task, arguments). No worker is part of these tests unless `work` is called."""
    messages: list[tuple[str, dict]] = []

    def send(task, **kwargs):
        runs = Question.objects.filter(pk=kwargs.get("question_id"), kind=Question.Kind.PROCESS)
        if not runs.exists():  # those are done where they are waited for (tests/conftest.py)
            messages.append((task, kwargs))
        return True

    monkeypatch.setattr(wake, "send", send)
    return messages


@pytest.fixture
def work(sent):
    """Be the worker: do what was sent until nothing is left."""
    from celery import current_app

    from playground.clusters import tasks as cluster_tasks
    from playground.scenarios import tasks as scenario_tasks

    del cluster_tasks, scenario_tasks
    memory = EngineMemory()

    def run() -> None:
        for _ in range(200):
            if not sent:
                return
            task, kwargs = sent.pop(0)
            kwargs.pop("countdown_s", None)
            if task == wake.ADVANCE:  # no task: what decides looks at the rows
                left = advance(**kwargs, memory=memory).more or None
            else:
                left = current_app.tasks[task](**kwargs)
            if left is not None and left is not False:  # its turn was over
                sent.append((task, kwargs))
        raise AssertionError("work does not end")

    return run
