"""Wake-ups: the one place that sends tasks. Services call it and never import tasks.

A message carries no truth. It says 'look at this cluster'; lost, late and doubled ones change only the delay.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from celery import current_app
from django.db import transaction

from playground.clusters import jobs, lanes
from playground.clusters.models import Cluster

logger = logging.getLogger(__name__)

ADVANCE = "playground.clusters.tasks.advance"
RECOMPUTE_TRACE = "playground.clusters.tasks.recompute_trace"
ANSWER = "playground.clusters.tasks.answer"
SEEDS = "playground.clusters.tasks.run_seeds"
READY = "playground.clusters.tasks.ready_engine"
DRAFT = "playground.clusters.tasks.work_on_draft"


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
    """Have a task done; False if that could not be said (the sweeper says it again).

    A wake-up of a cluster is a message; work of the other lanes is a row, and its message says only "look".

    Parameters
    ----------
    task
        Dotted name of the task.
    countdown_s
        Wall seconds before it may start.
    **kwargs
        Keyword arguments of the task: ids only.
    """
    lane = lanes.lane_of(task)
    try:
        if lane == lanes.DECIDE:
            _message(task, lane, kwargs, countdown_s)
        elif jobs.put(task, kwargs, after_s=countdown_s or 0.0) is not None:
            look(lane)
    except Exception:
        logger.exception("wake-up not sent; the sweeper will send it again", extra={"task": task, **kwargs})
        return False
    return True


def send_group(task: str, many: Iterable[Mapping[str, Any]]) -> bool:
    """Have one task done many times; False if not all could be said.

    Parameters
    ----------
    many
        Keyword arguments of each.
    """
    lane = lanes.lane_of(task)
    try:
        for kwargs in many:
            jobs.put(task, kwargs)
        look(lane)
    except Exception:
        logger.exception("group of tasks not sent", extra={"task": task})
        return False
    return True


def look(lane: str) -> None:
    """Tell a worker of the lane that work waits; those of its workers that are idle look every few seconds anyway."""
    _message(lanes.LOOK, lane, {"lane": lane}, None)


def _message(task: str, lane: str, kwargs: Mapping[str, Any], countdown_s: float | None) -> None:
    current_app.send_task(
        task, kwargs=dict(kwargs), queue=lane, countdown=countdown_s, ignore_result=True, retry=False
    )


def pulse(lane: str) -> None:
    """Send a wake-up that only proves that the lane works; one that is not taken in time is followed by the next."""
    current_app.send_task(
        lanes.PULSE, kwargs={"lane": lane}, queue=lane, expires=lanes.PULSE_TIMEOUT_S, retry=False
    )
