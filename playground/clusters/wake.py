"""Wake-ups: the one place that has tasks done. Services call it and never what does them.

A message carries no truth. It says "look", and the rows say what there is to do; workers look anyway every few
moments, so lost, late and doubled messages change only the delay.
"""

import logging
import os
import threading
from typing import Any

from celery import current_app
from django.db import transaction

from playground.clusters import jobs, lanes
from playground.clusters.models import Cluster

logger = logging.getLogger(__name__)


def cluster_on_commit(cluster: Cluster) -> None:
    """Ask a worker to look at the cluster once the current transaction is committed."""
    on_commit("advance", cluster_id=cluster.pk)


def on_commit(task: str, **kwargs: Any) -> None:
    """Have a task done once the current transaction is committed."""
    transaction.on_commit(lambda: send(task, **kwargs), robust=True)


def send(task: str, *, countdown_s: float | None = None, **kwargs: Any) -> bool:
    """Have a task done; False if that could not be written down.

    What a cluster wants its own rows say; other work becomes a row here.

    Parameters
    ----------
    task
        Its name in `tasks.yaml`.
    countdown_s
        Wall seconds before it may start.
    **kwargs
        Keyword arguments of the task: ids only.
    """
    lane = jobs.TASKS[task].lane
    try:
        if lane == lanes.DECIDE or jobs.put(task, kwargs, after_s=countdown_s or 0.0) is not None:
            look(lane)
    except Exception:
        logger.exception("wake-up not sent", extra={"task": task, **kwargs})
        return False
    return True


def look(lane: str) -> None:
    """Tell a worker of the lane that work waits; returns at once, even while the broker is away."""
    _teller.tell(lane)


class _Teller:
    """A thread that sends the messages: once for each lane, however often it was asked to meanwhile."""

    def __init__(self) -> None:
        self._lanes: set[str] = set()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def tell(self, lane: str) -> None:
        self._lanes.add(lane)
        self._asked.set()
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._stay, name="wake", daemon=True)
                    self._thread.start()

    def _stay(self) -> None:
        while self._asked.wait():
            self._asked.clear()
            for lane in lanes.LANES:
                if lane in self._lanes:
                    self._lanes.discard(lane)
                    self._send(lane)

    def _send(self, lane: str) -> None:
        try:
            current_app.send_task(
                lanes.LOOK, kwargs={"lane": lane}, queue=lane, ignore_result=True, retry=False
            )
        except Exception as error:
            logger.warning("a worker of the lane %s looks by itself: %s", lane, error)


_teller = _Teller()


def _anew_in_child() -> None:
    global _teller
    _teller = _Teller()


os.register_at_fork(after_in_child=_anew_in_child)
