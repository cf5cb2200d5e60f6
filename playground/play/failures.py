"""Counts tasks that failed, whichever process they failed in."""

from __future__ import annotations

import logging
from typing import Any

from django.db import Error

from playground.clusters.metrics import Counts

logger = logging.getLogger(__name__)

FAILURES = "playground_task_failures_total"


def count_failure(task: str) -> None:
    """Add one to the task's failures; a database that is away must not make one failure two."""
    try:
        counts = Counts()
        counts.add(FAILURES, task=task)
        counts.flush()
    except Error as error:
        logger.warning("the failure of %s is not counted: %s: %s", task, type(error).__name__, error)


def on_task_failure(sender: Any = None, **kwargs: Any) -> None:
    """Receives Celery's signal in the worker's own process."""
    count_failure(getattr(sender, "name", "") or "unknown")
