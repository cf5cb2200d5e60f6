"""`/metrics` for Prometheus: what the scheduler did, and whether the site does its work."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable

from celery import current_app
from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from playground.clusters.metrics import gauge, metrics_text, site_health

logger = logging.getLogger(__name__)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Sums over all clusters; nothing in them names a cluster or a person.

    While the database is away they say just that, and what needs no database.
    """
    up = _answers(_ask_database)
    parts = ["\n".join([*_of_this_machine(up), ""])]
    if up:
        try:
            parts += ["\n".join([*_of_the_site(), ""]), metrics_text()]
        except Error as error:  # gone since
            logger.warning("metrics: %s: %s", type(error).__name__, error)
            parts = ["\n".join([*_of_this_machine(False), ""])]
    return HttpResponse("".join(parts), content_type="text/plain; version=0.0.4; charset=utf-8")


def _of_this_machine(database_is_up: bool) -> list[str]:
    disk = shutil.disk_usage(settings.DATA_DIR)
    return [
        *gauge("playground_database_up", (("", int(database_is_up)),)),
        *gauge("playground_broker_up", (("", int(_answers(_ask_broker))),)),
        *gauge("playground_disk_free_bytes", (("", disk.free),)),
        *gauge("playground_disk_size_bytes", (("", disk.total),)),
    ]


def _of_the_site() -> list[str]:
    health = site_health()
    oldest = ((f'lane="{lane}"', age_s) for lane, age_s in health.oldest_wake_up_s.items())
    workers = ((f'lane="{lane}"', n) for lane, n in health.workers.items())
    leases = (('state="held"', health.leases), ('state="expired"', health.expired_leases))
    return [
        *gauge("playground_oldest_wakeup_age_seconds", oldest),
        *gauge("playground_workers", workers),
        *gauge("playground_leases", leases),
    ]


def _answers(ask: Callable[[], None]) -> bool:
    # Whatever a driver raises means "no"; which drivers there are is the settings' business.
    try:
        ask()
    except Exception as error:
        logger.warning("metrics: %s: %s", type(error).__name__, error)
        return False
    return True


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _ask_broker() -> None:
    with current_app.connection_for_write() as broker_connection:
        broker_connection.ensure_connection(max_retries=1, interval_start=0, timeout=2)
