from __future__ import annotations

from playground.celery import app
from playground.play.beat import SWEEP_TASK, TIDY_TASKS, wake_sweeper, wake_tidying


def waiting() -> int:
    with app.connection_for_write() as connection:
        queue = connection.SimpleQueue(app.conf.task_default_queue)
        return queue.qsize()


def test_a_worker_wakes_the_sweeper_by_its_name() -> None:
    app.loader.import_default_modules()
    assert SWEEP_TASK in app.tasks
    before = waiting()
    wake_sweeper(app)
    assert waiting() == before + 1


def test_a_worker_has_clusters_and_shares_tidied() -> None:
    app.loader.import_default_modules()
    before = waiting()
    wake_tidying(app)
    assert waiting() == before + len(TIDY_TASKS) == before + 2
