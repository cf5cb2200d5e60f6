"""What is amiss with the site, in words for people: the disk, the database, the broker, the lanes.

A sentence names the cause and never an address, a user or a path of the server: strangers may read it.
"""

import errno
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from celery import current_app
from django.conf import settings
from django.db import Error
from django.utils import timezone

from playground import broker as brokers
from playground.clusters import lanes
from playground.clusters.lanes import is_alive, on_this_machine
from playground.clusters.models import LanePulse, Run

logger = logging.getLogger(__name__)

DISK_FULL: Final = "The disk is full."
DATABASE_GONE: Final = "The database cannot be reached."
BROKER_GONE: Final = "The broker cannot be reached."
DATABASE_BUSY: Final = "The database is busy; try again."
PATIENCE_S: Final = 5.0
"""Work that has waited for less is not asked why."""
LOOK_EVERY_S: Final = 3.0
BROKER_S: Final = 2.0
"""A broker that does not answer within so long is away."""
LEAST_FREE_BYTES: Final = 4 * 2**20
_FULL_STATES: Final = ("53100",)  # disk_full, of PostgreSQL
_GONE_STATES: Final = ("57P01", "57P02", "57P03", "53300")
"""Of PostgreSQL: it is shut down, starts, or takes no more connections; class 08 is a connection that broke."""
_FULL_WORDS: Final = ("disk is full", "no space left")
_GONE_WORDS: Final = (
    "unable to open database",
    "connection",
    "server closed",
    "consuming input",
    "not known",
)


def cause_of(error: Error) -> str:
    """Why a database did not do what was asked of it."""
    state = getattr(error.__cause__, "sqlstate", None) or ""
    said = str(error).lower()
    if state in _FULL_STATES or any(words in said for words in _FULL_WORDS):
        return DISK_FULL
    if state in _GONE_STATES or state.startswith("08") or any(words in said for words in _GONE_WORDS):
        return DATABASE_GONE
    return DATABASE_BUSY


def disk_trouble() -> str:
    """Whether the data folder can be written; empty when it can."""
    if shutil.disk_usage(settings.DATA_DIR).free < LEAST_FREE_BYTES:
        return DISK_FULL
    try:
        with tempfile.TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(bytes(65536))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return (
            DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else "The data folder cannot be written."
        )
    return ""


def lane_trouble(lane: str) -> str:
    """Why nothing goes on in a lane; empty when a loop of it gave a sign lately. One query."""
    newest = LanePulse.objects.filter(lane=lane).order_by("-passed_at").first()
    if newest is None:
        return f"No worker serves the lane {lane}."
    now = timezone.now()
    if newest.passed_at > now - timedelta(seconds=lanes.SILENT_S):
        return ""
    ago_s = f"{(now - newest.passed_at).total_seconds():,.0f} s"
    here = newest.process.startswith(on_this_machine())
    if here and not is_alive(newest.process):
        return f"No worker serves the lane {lane}: the last one ended {ago_s} ago."
    if here:
        return f"The workers of the lane {lane} are stuck, or at one thing: they gave no sign for {ago_s}."
    return f"No worker serves the lane {lane}, or they are stuck: they gave no sign for {ago_s}."


def broker_trouble() -> str:
    """Whether the broker takes messages; empty when it does. The embedded one is made anew if it cannot be read."""
    try:
        brokers.check(settings.CELERY_BROKER_URL)
        with current_app.connection_for_write() as connection:
            if "socket_timeout" in connection.transport_options:  # a server that stands still is away, too
                connection.transport_options = connection.transport_options | {"socket_timeout": BROKER_S}
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_S)
    except (
        Exception
    ) as error:  # whatever a driver raises; its words may hold addresses, which are for the log
        logger.warning("broker: %s: %s", type(error).__name__, error)
        return BROKER_GONE
    return ""


def why_waiting(lane: str, since: datetime) -> str:
    """Why work in a lane has waited since then; empty when nothing is amiss, or it has hardly waited. One query."""
    if timezone.now() - since < timedelta(seconds=PATIENCE_S):
        return ""
    return _amiss(lane)


def _amiss(lane: str) -> str:
    """The cause before what it causes: nothing goes on in a lane while the disk is full."""
    return _lately(disk_trouble) or lane_trouble(lane)


def why_run_waits(run: Run | None) -> str:
    """Why a run does not go on; empty when it does, or is over."""
    if run is None or not run.is_open:
        return ""
    return why_waiting(lanes.DECIDE, run.created)


def why_clocks_wait() -> str:
    """Why no running clock is followed; empty when nothing is amiss."""
    return _lately(_amiss, lanes.DECIDE)


_kept: Final[dict[str, tuple[float, str]]] = {}


def _lately(ask: Callable[..., str], *of: str) -> str:
    """What it said within the last seconds: pages ask often, and to look at the disk is to write on it."""
    at_s, said = _kept.get(ask.__name__, (-LOOK_EVERY_S, ""))
    now_s = time.monotonic()
    if now_s - at_s >= LOOK_EVERY_S:
        said = ask(*of)
        _kept[ask.__name__] = (now_s, said)
    return said
