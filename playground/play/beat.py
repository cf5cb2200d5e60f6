"""A worker's own timer: it says that the worker lives, and wakes the sweeper.

Every worker carries one, so no separate scheduler process can be forgotten or be running twice. The
sweeper may be woken by several workers at once; it looks for work nobody picked up, and finding none twice
costs one query.
"""

from __future__ import annotations

import datetime
import logging
from typing import Any

from celery import Celery, bootsteps
from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone
from kombu.exceptions import OperationalError

from playground.play.models import WorkerHeartbeat

logger = logging.getLogger(__name__)

SWEEP_TASK = "playground.clusters.tasks.sweep"
TIDY_TASKS = ("playground.clusters.tasks.tidy", "playground.scenarios.tasks.tidy")
FORGET_AFTER = datetime.timedelta(days=1)


class WorkerBeat(bootsteps.StartStopStep):
    """Runs while the worker consumes; started anew when its connection to the broker is."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        self._beat(parent)
        self._entry = parent.timer.call_repeatedly(settings.WORKER_BEAT_INTERVAL_S, self._beat, (parent,))
        self._tidy = parent.timer.call_repeatedly(settings.TIDY_INTERVAL_S, self._send_tidy, (parent,))

    def stop(self, parent: Any) -> None:
        self._entry.cancel()
        self._tidy.cancel()
        _guarded(lambda: WorkerHeartbeat.objects.filter(worker=parent.hostname).delete())

    def _beat(self, parent: Any) -> None:
        _guarded(lambda: say_alive(parent.hostname))
        _guarded(lambda: wake_sweeper(parent.app))

    def _send_tidy(self, parent: Any) -> None:
        _guarded(lambda: wake_tidying(parent.app))


def say_alive(worker: str) -> None:
    """Note that `worker` lives now, and forget those not seen for a day."""
    now = timezone.now()
    WorkerHeartbeat.objects.update_or_create(worker=worker, defaults={"seen_at": now})
    WorkerHeartbeat.objects.filter(seen_at__lt=now - FORGET_AFTER).delete()


def wake_sweeper(app: Celery) -> None:
    """Send the sweep; a worker too busy to take it in time drops it, as the next one is on its way."""
    if SWEEP_TASK in app.tasks:
        app.send_task(SWEEP_TASK, expires=settings.WORKER_BEAT_INTERVAL_S)


def wake_tidying(app: Celery) -> None:
    """Send the tasks that clear away what is of no use any more; one that is not taken in time comes again."""
    for task in TIDY_TASKS:
        if task in app.tasks:
            app.send_task(task, expires=settings.TIDY_INTERVAL_S)


def _guarded(action: Any) -> None:
    # The timer must go on when the database or the broker is away for a while.
    try:
        action()
    except (DatabaseError, OperationalError) as error:
        logger.warning("worker beat: %s: %s", type(error).__name__, error)
    finally:
        # Left open it would be carried into the next child the pool forks.
        connections.close_all()
