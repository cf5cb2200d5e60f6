"""`/healthz` and `/readyz`: does this process live, and can it serve."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from playground.clusters import lanes, trouble

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
    checks = {"database": _outcome(_database), "broker": _outcome(_broker), "disk": _outcome(_disk)}
    checks |= {lane: _outcome(partial(_lane, lane)) for lane in lanes.LANES}
    ready = all(outcome == "ok" for outcome in checks.values())
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


class NotReady(Exception):
    """Something answered, but not with what is needed; the sentence is for strangers too."""


def _outcome(check: Callable[[], None]) -> str:
    # Whatever a driver raises means "not ready"; its words may hold addresses and names, which are for the log.
    try:
        check()
    except NotReady as error:
        return str(error)
    except DatabaseError as error:
        logger.warning("readyz: %s: %s", type(error).__name__, error)
        return trouble.cause_of(error)
    except Exception as error:
        logger.warning("readyz: %s: %s", type(error).__name__, error)
        return f"It cannot be reached ({type(error).__name__})."
    return "ok"


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _broker() -> None:
    _raise(trouble.broker_trouble())


def _disk() -> None:
    _raise(trouble.disk_trouble())


def _lane(lane: str) -> None:
    _raise(trouble.lane_trouble(lane))


def _raise(said: str) -> None:
    if said:
        raise NotReady(said)
