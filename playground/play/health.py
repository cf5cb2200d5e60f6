"""`/healthz`, `/readyz` and `/metrics`: does this process live, can it serve, and what did it do."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.db import DatabaseError, Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from playground.clusters import lanes, trouble
from playground.clusters.foreign.following import live_gauges
from playground.clusters.metrics import gauge, metrics_text, site_gauges

logger = logging.getLogger(__name__)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked of it."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, broker and disk do their work and every lane's loop goes round, else 503 and what is amiss.

    A lane's word is proved by its work: the process that does it looked at the rows, and committed that it did.
    """
    checks = {
        "database": _outcome(_database),
        "broker": _outcome(trouble.broker_trouble),
        "disk": _outcome(trouble.disk_trouble),
    }
    checks |= {lane: _outcome(partial(trouble.lane_trouble, lane)) for lane in lanes.LANES}
    ready = all(outcome == "ok" for outcome in checks.values())
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


def _outcome(check: Callable[[], str]) -> str:
    # Whatever a driver raises means "not ready"; its words may hold addresses and names, which are for the log.
    try:
        return check() or "ok"
    except DatabaseError as error:
        logger.warning("%s: %s", type(error).__name__, error)
        return trouble.cause_of(error)
    except Exception as error:
        logger.warning("%s: %s", type(error).__name__, error)
        return f"It cannot be reached ({type(error).__name__})."


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


# --- `/metrics` for Prometheus: what the scheduler did, and whether the site does its work.


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Sums over all clusters; nothing in them names a cluster or a person.

    While the database is away they say just that, and what needs no database.
    """
    up = _outcome(_database) == "ok"
    parts = ["\n".join([*_of_this_machine(up), ""])]
    if up:
        try:
            parts += ["\n".join([*site_gauges(), *live_gauges(), ""]), metrics_text()]
        except Error as error:  # gone since
            logger.warning("metrics: %s: %s", type(error).__name__, error)
            parts = ["\n".join([*_of_this_machine(False), ""])]
    return HttpResponse("".join(parts), content_type="text/plain; version=0.0.4; charset=utf-8")


def _of_this_machine(database_is_up: bool) -> list[str]:
    disk = shutil.disk_usage(settings.DATA_DIR)
    return [
        *gauge("playground_database_up", (("", int(database_is_up)),)),
        *gauge("playground_broker_up", (("", int(_outcome(trouble.broker_trouble) == "ok")),)),
        *gauge("playground_disk_free_bytes", (("", disk.free),)),
        *gauge("playground_disk_size_bytes", (("", disk.total),)),
    ]
