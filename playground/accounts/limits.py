"""How often a person may do something: counted in the database, which all processes share.

A window begins with the first thing that is counted and the next one when it is over. One statement adds one and tells
the sum, so counts are exact however many processes count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.db.models import F

from playground.accounts.models import Tally

_PERIODS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SCOPES: Final = {"requests": "PLAYGROUND_REQUEST_RATE", "writes": "PLAYGROUND_WRITE_RATE"}


@dataclass(frozen=True, slots=True)
class Allowance:
    """Requests left in a window: `limit` in all, `left` now, `reset_s` seconds until the next window.

    `wait_s` is 0 if one more may be made, else the seconds until then.
    """

    limit: int
    left: int
    reset_s: int
    wait_s: int


def allowance(person: Any, scope: str, *, now: float | None = None) -> Allowance:
    """Count one request of a person, and say how many are left.

    Parameters
    ----------
    person
        A user who is logged in.
    scope
        One of `SCOPES`: of everything, or of what changes something.
    """
    most, period_s = parse_rate(getattr(settings, SCOPES[scope]))
    wall = int(time.time() if now is None else now)
    number, started = count(f"{scope}:{person.pk}", period_s=period_s, now=wall)
    reset_s = min(max(1, started + period_s - wall), period_s)
    return Allowance(most, max(0, most - number), reset_s, 0 if number <= most else reset_s)


def parse_rate(rate: str) -> tuple[int, int]:
    """``"1200/min"`` as a number and a period in seconds; the settings have checked it."""
    number, _, period = rate.partition("/")
    return int(number), _PERIODS_S[period[0]]


def count(key: str, *, period_s: int, now: float | None = None) -> tuple[int, int]:
    """Add one to what was counted under a key in the present window.

    Returns
    -------
    int, int
        The sum, and when the window began (seconds since the epoch).
    """
    wall = int(time.time() if now is None else now)
    table = Tally._meta.db_table
    goes_on = f"{table}.started > excluded.started - {int(period_s)}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (key, started, number) VALUES (%s, %s, 1) ON CONFLICT (key) DO UPDATE SET"
            f" number = CASE WHEN {goes_on} THEN {table}.number + 1 ELSE 1 END,"
            f" started = CASE WHEN {goes_on} THEN {table}.started ELSE excluded.started END"
            " RETURNING number, started",
            [key, wall],
        )
        number, started = cursor.fetchone()
    return int(number), int(started)


def give_back(key: str) -> None:
    """Take one off what was counted under a key, if anything was."""
    if not Tally.objects.filter(key=key, number__gt=1).update(number=F("number") - 1):
        Tally.objects.filter(key=key, number=1).delete()


def forget_counts(*, now: float | None = None) -> int:
    """Drop counts of windows that are over for sure; how many."""
    before = int(time.time() if now is None else now) - max(_PERIODS_S.values())
    return Tally.objects.filter(started__lte=before).delete()[0]
