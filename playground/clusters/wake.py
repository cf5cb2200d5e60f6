"""Wake-ups: the one place that sends tasks. Services call it and never import tasks.

A message carries no truth. It says 'look at this cluster'; lost, late and doubled ones change only the delay.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from celery import current_app, group
from django.db import transaction

from playground.clusters.models import Cluster

logger = logging.getLogger(__name__)

ADVANCE = "playground.clusters.tasks.advance"
RECOMPUTE_TRACE = "playground.clusters.tasks.recompute_trace"
ANSWER = "playground.clusters.tasks.answer"
SEEDS = "playground.clusters.tasks.run_seeds"
READY = "playground.clusters.tasks.ready_engine"


def cluster_on_commit(cluster: Cluster) -> None:
    """Ask a worker to look at the cluster once the current transaction is committed.

    Parameters
    ----------
    cluster
        As its locked row is now: a visit with a newer lease than that sees what this transaction wrote.
    """
    ids = {"cluster_id": cluster.pk, "seen_token": cluster.lease_token}
    transaction.on_commit(lambda: send(ADVANCE, **ids), robust=True)


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


def send_group(task: str, many: Iterable[Mapping[str, Any]]) -> bool:
    """Send one task many times at once, as a group; False if the broker could not be reached.

    Parameters
    ----------
    many
        Keyword arguments of each.
    """
    try:
        signatures = [current_app.signature(task, kwargs=dict(kwargs), ignore_result=True) for kwargs in many]
        group(signatures).apply_async(retry=False, add_to_parent=False)
    except Exception:
        logger.exception("group of tasks not sent", extra={"task": task})
        return False
    return True
