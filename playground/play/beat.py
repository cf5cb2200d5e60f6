"""What every worker carries beside its queues: places for the work of its lanes, and a watch over them.

It belongs to the worker, not to its connection to the broker: while that is away, work goes on.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from celery import bootsteps

from playground.clusters import lanes
from playground.play.rooms import Deciding, Room
from playground.play.watch import ProcessWatch, end_now

_BORN = os.getpid()
"""The process that imported this: one of another number was forked."""


class LaneStep(bootsteps.StartStopStep):
    """Runs as long as the worker."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        worker = parent.hostname
        served = [lane for lane in lanes.LANES if lane in parent.app.amqp.queues.consume_from]
        self._places = [
            Deciding(worker) if lane == lanes.DECIDE else Room(lane, worker=worker) for lane in served
        ]
        self._watch = ProcessWatch(self._places, end=begin_anew)

    def start(self, parent: Any) -> None:
        for place in self._places:
            place.start()
        self._watch.start()

    def stop(self, parent: Any) -> None:
        self._watch.stop()
        for place in self._places:
            place.stop()


def begin_anew() -> None:
    """Be the same command again, so that nothing else is needed to start it; a process that was forked just ends."""
    if os.getpid() == _BORN:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    end_now()
