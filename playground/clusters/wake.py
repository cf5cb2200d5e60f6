"""Wake-ups: the one place that sends tasks. Services call it and never import tasks.

A message carries no truth. It says 'look at this cluster'; lost, late and doubled ones change only the delay.
"""

import logging
from typing import Any

from celery import current_app
from django.db import transaction

logger = logging.getLogger(__name__)

ADVANCE = "playground.clusters.tasks.advance"
RECOMPUTE_TRACE = "playground.clusters.tasks.recompute_trace"


def cluster_on_commit(cluster_id: int, *, countdown_s: float | None = None) -> None:
    """Ask a worker to look at the cluster once the current transaction is committed.

    Parameters
    ----------
    cluster_id
        Primary key of the cluster.
    countdown_s
        Wall seconds to wait before the worker looks; None = at once.
    """
    transaction.on_commit(lambda: send(ADVANCE, countdown_s=countdown_s, cluster_id=cluster_id), robust=True)


def send(task: str, *, countdown_s: float | None = None, **kwargs: Any) -> bool:
    """Send a task by name; False if the broker could not be reached (the sweeper sends it again).

    Parameters
    ----------
    task
        Dotted name of the task.
    countdown_s
        Wall seconds before it may start.
    **kwargs
        Keyword arguments of the task: ids only.
    """
    try:
        current_app.send_task(task, kwargs=kwargs, countdown=countdown_s, ignore_result=True, retry=False)
    except Exception:
        logger.exception("wake-up not sent; the sweeper will send it again", extra={"task": task, **kwargs})
        return False
    return True
