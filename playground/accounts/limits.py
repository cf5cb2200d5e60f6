"""How often somebody may do something: counted in the database, which all processes share.

Windows are fixed (this minute, these five minutes). One statement adds one and tells the sum, so counts are exact
however many processes count.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.db import connection

from playground.accounts.models import Tally

_PERIODS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SCOPES: Final = {"requests": "PLAYGROUND_REQUEST_RATE", "writes": "PLAYGROUND_WRITE_RATE"}


def wait_s(person: Any, scope: str, *, now: float | None = None) -> int:
    """Count one request of a person; 0 if he may, else the seconds until he may again.

    Parameters
    ----------
    person
        A user who is logged in.
    scope
        One of `SCOPES`: of everything, or of what changes something.
    """
    most, period_s = parse_rate(getattr(settings, SCOPES[scope]))
    wall = time.time() if now is None else now
    if count(f"{scope}:{person.pk}", period_s=period_s, now=wall) <= most:
        return 0
    return int(period_s - wall % period_s) + 1


def parse_rate(rate: str) -> tuple[int, int]:
    """``"1200/min"`` as a number and a period in seconds; the settings have checked it."""
    number, _, period = rate.partition("/")
    return int(number), _PERIODS_S[period[0]]


def count(key: str, *, period_s: int, now: float | None = None) -> int:
    """Add one to what was counted under a key in the present window; returns the sum."""
    started = _start(period_s, now)
    table = Tally._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (key, started, number) VALUES (%s, %s, 1)"
            f" ON CONFLICT (key) DO UPDATE SET started = excluded.started, number ="
            f" CASE WHEN {table}.started = excluded.started THEN {table}.number + 1 ELSE 1 END"
            " RETURNING number",
            [key, started],
        )
        return int(cursor.fetchone()[0])


def counted(key: str, *, period_s: int, now: float | None = None) -> int:
    """What was counted under a key in the present window."""
    rows = Tally.objects.filter(key=key, started=_start(period_s, now))
    return rows.values_list("number", flat=True).first() or 0


def forget_counts(*, now: float | None = None) -> int:
    """Drop counts of windows that are over for sure; how many."""
    before = _start(1, now) - max(_PERIODS_S.values())
    return Tally.objects.filter(started__lt=before).delete()[0]


def _start(period_s: int, now: float | None) -> int:
    wall = int(time.time() if now is None else now)
    return wall - wall % period_s
