"""The program around the cycles: its policy, when it runs, and whether it only says what it would do.

It is given as upstream's flags and the chart's `schedule`, beside the policy; or as a DeschedulerPolicy alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from scheduler_core.descheduler.policy import Document, PolicyError, StartError, policy_from, read_policy
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.documents import pasted_values
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import known_fields

FIELDS: Final = ("policy", "descheduling-interval", "schedule", "dry-run")
_FIELD: Final = re.compile(r"(\*|\d+(?:-\d+)?)(?:/(\d+))?")
_RANGES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MOST_DAYS: Final = 366
_SECOND_NS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Schedule:
    """Minutes, hours, days of the month, months and days of the week of a CronJob; times are UTC."""

    text: str
    fields: tuple[frozenset[int], ...]
    any_day: bool
    any_weekday: bool

    def next_ns(self, after_ns: int) -> int | None:
        """The first moment after another one; None where there is none within a year."""
        at = datetime.fromtimestamp(after_ns // _SECOND_NS, UTC).replace(second=0) + timedelta(minutes=1)
        minutes, hours, *_ = self.fields
        for _ in range(_MOST_DAYS):
            if self._has_day(at):
                for hour in sorted(hours):
                    for minute in sorted(minutes):
                        if (hour, minute) >= (at.hour, at.minute):
                            return int(at.replace(hour=hour, minute=minute).timestamp()) * _SECOND_NS
            at = at.replace(hour=0, minute=0) + timedelta(days=1)
        return None

    def _has_day(self, at: datetime) -> bool:
        _, _, days, months, weekdays = self.fields
        of_month, of_week = at.day in days, at.isoweekday() % 7 in {day % 7 for day in weekdays}
        either = of_month or of_week if not (self.any_day or self.any_weekday) else of_month and of_week
        return at.month in months and either


def schedule_from(text: str) -> Schedule:
    """Read a schedule in the five fields of cron.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> schedule_from("*/15 2 * * *").next_ns(0) // (60 * 10**9)
    120
    """
    words = text.split()
    if len(words) != len(_RANGES):
        raise ValueError("must have the five fields of cron, as */15 * * * *")
    found = []
    for word, (least, most) in zip(words, _RANGES, strict=True):
        values: set[int] = set()
        for part in word.split(","):
            match = _FIELD.fullmatch(part)
            if match is None:
                raise ValueError(f'"{part}" is no number, range or step of cron')
            first, _, last = match[1].partition("-")
            low, high = (least, most) if first == "*" else (int(first), int(last or first))
            if match[2] and first != "*" and not last:
                high = most
            if not least <= low <= high <= most or match[2] == "0":
                raise ValueError(f'"{part}" is not from {least} to {most}')
            values |= set(range(low, high + 1, int(match[2] or 1)))
        found.append(frozenset(values))
    return Schedule(text, tuple(found), words[2] == "*", words[4] == "*")


@dataclass(frozen=True, slots=True)
class DeschedulerSettings:
    """What runs, and when: every so often, by a schedule, or once."""

    policy: Document
    interval_ns: int = 0
    schedule: Schedule | None = None
    dry_run: bool = False

    def next_ns(self, now_ns: int) -> int | None:
        """When the next cycle is; None where there is none."""
        if self.schedule is not None:
            return self.schedule.next_ns(now_ns)
        return now_ns + self.interval_ns if self.interval_ns else None


def read_settings(text: str) -> DeschedulerSettings:
    """Read a program, or a policy alone, which runs once.

    Raises
    ------
    InvalidObject
        Names the field and its value.
    """
    documents = pasted_values(text, "descheduler")
    if len(documents) == 1 and "kind" not in documents[0]:
        return settings_from(documents[0])
    try:
        return settings_from({"policy": read_policy(text)})
    except PolicyError as error:
        raise InvalidObject("descheduler", None, str(error)) from None


def settings_from(document: Any) -> DeschedulerSettings:
    """Check a program.

    Raises
    ------
    InvalidObject
        Names the field and its value.
    """
    known_fields(document, FIELDS, "descheduler")
    policy, schedule = document.get("policy"), document.get("schedule")
    if not isinstance(policy, Mapping):
        raise InvalidObject("descheduler.policy", policy, "must be a DeschedulerPolicy")
    try:
        policy_from(policy, None)
    except PolicyError as error:
        raise InvalidObject("descheduler.policy", None, f"cannot be used: {error}") from None
    except StartError:
        pass  # Each cycle says it, as the real program does.
    interval = str(document.get("descheduling-interval") or "0s")
    try:
        interval_ns = parse_duration_ns(interval)
        if interval_ns < 0 or 0 < interval_ns < _SECOND_NS:
            raise ValueError
    except ValueError:
        path = "descheduler.descheduling-interval"
        raise InvalidObject(path, interval, "must be a duration of a second at least, as 5m") from None
    try:
        parsed = None if schedule is None else schedule_from(str(schedule))
    except ValueError as error:
        raise InvalidObject("descheduler.schedule", schedule, str(error)) from None
    dry = document.get("dry-run", False)
    if not isinstance(dry, bool):
        raise InvalidObject("descheduler.dry-run", dry, "must be true or false")
    return DeschedulerSettings(policy, interval_ns, parsed, dry)
