"""What every worker carries beside its queues: pulses through its lanes, rooms for work, and a watch over itself.

So no separate scheduler process can be forgotten or be running twice. A pulse is a wake-up like any other: it is sent
into the lane when none went through it lately, and whichever worker takes it does there what is to be done regularly
(`clusters.services.pulses`).
"""

from __future__ import annotations

import logging
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.db import DatabaseError, connections
from kombu.exceptions import OperationalError

from playground.clusters import lanes, wake
from playground.clusters.services.pulses import forget_worker, send_pulse
from playground.play.rooms import Room
from playground.play.watch import ProcessWatch

logger = logging.getLogger(__name__)

TIDY_TASKS = ("playground.clusters.tasks.tidy", "playground.scenarios.tasks.tidy")
SIGN_EVERY_S = 0.5


class LaneStep(bootsteps.StartStopStep):
    """Runs while the worker consumes; started anew when its connection to the broker is."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._served = [lane for lane in lanes.LANES if lane in parent.app.amqp.queues.consume_from]
        self._rooms = [Room(lane) for lane in self._served if lane != lanes.DECIDE]

    def start(self, parent: Any) -> None:
        served = self._served
        every = parent.timer.call_repeatedly
        self._entries = [every(lanes.PULSE_EVERY_S, self._pulse, (served,))]
        for room in self._rooms:
            room.start()
        if self._rooms:
            self._entries.append(every(settings.TIDY_INTERVAL_S, wake_tidying))
        self._watch = ProcessWatch(served, self._rooms)
        if getattr(parent, "hub", None) is not None:
            # With an event loop timers are called by it; without, by a thread, and the transport tells (watch.py).
            self._entries.append(every(SIGN_EVERY_S, self._watch.sign))
        self._watch.start()
        self._pulse(served)

    def stop(self, parent: Any) -> None:
        for entry in self._entries:
            entry.cancel()
        self._watch.stop()
        for room in self._rooms:
            room.stop()
        guarded(lambda: forget_worker(worker=parent.hostname))

    def _pulse(self, served: list[str]) -> None:
        for lane in served:
            guarded(lambda lane=lane: send_pulse(lane=lane))


def wake_tidying() -> None:
    """Have cleared away what is of no use any more."""
    for task in TIDY_TASKS:
        wake.send(task)


def guarded(action: Any) -> None:
    """Do it; the timer must go on when the database or the broker is away for a while."""
    try:
        action()
    except (DatabaseError, OperationalError) as error:
        logger.warning("worker beat: %s: %s", type(error).__name__, error)
    finally:
        connections.close_all()
