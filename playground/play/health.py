"""`/healthz` and `/readyz`: does this process live, and can it serve."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable

from celery import current_app
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from playground.play.models import WorkerHeartbeat

logger = logging.getLogger(__name__)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked of it."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database and broker answer and a worker was seen lately, else 503 and what is amiss."""
    checks = {check.__name__: _outcome(check) for check in (database, broker, worker)}
    ready = all(outcome == "ok" for outcome in checks.values())
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


def _outcome(check: Callable[[], None]) -> str:
    # Whatever a driver raises means "not ready"; which drivers there are is the settings' business. Its words name
    # addresses and users, so they are for the log: strangers may ask this page.
    try:
        check()
    except NotReady as error:
        return str(error)
    except Exception as error:
        logger.warning("%s: %s: %s", check.__name__, type(error).__name__, error)
        return "does not answer"
    return "ok"


class NotReady(Exception):
    """Something answered, but not with what is needed."""


def database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def broker() -> None:
    with current_app.connection_for_write() as broker_connection:
        broker_connection.ensure_connection(max_retries=1, interval_start=0, timeout=2)


def worker() -> None:
    horizon = timezone.now() - datetime.timedelta(seconds=settings.WORKER_SEEN_TIMEOUT_S)
    if not WorkerHeartbeat.objects.filter(seen_at__gte=horizon).exists():
        raise NotReady(f"no worker was seen in the last {settings.WORKER_SEEN_TIMEOUT_S:g} s")
