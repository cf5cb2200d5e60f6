"""Schedules as CronJobs write them: robfig/cron's standard dialect, on wall clocks that are put forward and back.

Not a package's: those that are kept well read a step on `*` as `*`, take 7 for Sunday and move what falls into the
hour that a clock skips, where Kubernetes skips it, too.

Source: github.com/robfig/cron v3.0.1 parser.go, spec.go, constantdelay.go
Differs: the time zones are those of this machine's database, or of the package `tzdata`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND_NS = 10**9
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_EVERY_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_EVERY_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_YEARS_AHEAD = 5


class ScheduleError(ValueError):
    """A schedule that cannot be read, in the words of upstream's parser."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a CronJob is due.

    Attributes
    ----------
    minutes, hours, days, months, weekdays : frozenset of int
    any_day, any_weekday : bool
        The field is `*` or `?`: of two fields that both say something, one is enough.
    every_s : int
        Of `@every`: so long after the last time; 0 otherwise.
    zone : str
        Name of the time zone.
    """

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False
    any_weekday: bool = False
    every_s: int = 0
    zone: str = "UTC"

    def next_s(self, after_s: int) -> int | None:
        """The first time after a moment, both in whole seconds since the Unix epoch; None within five years.

        Examples
        --------
        >>> schedule_from("30 6 * * 1-5").next_s(0)  # Thursday, January 1st 1970
        23400
        """
        if self.every_s:
            return after_s + self.every_s
        zone = _zone(self.zone)
        at = _local(after_s + 1, zone)
        limit = at.year + _YEARS_AHEAD
        # What is below the field that moved on begins anew, once.
        began = False
        while at.year <= limit:
            if at.month not in self.months:
                first = _wall(at) if began else _wall(at).replace(day=1, hour=0)
                began = True
                at = _dated(_next_month(first), zone)
                continue
            if not self._on(at):
                day = _wall(at) if began else _wall(at).replace(hour=0)
                began = True
                at = _dated(day + timedelta(days=1), zone)
                if at.hour:
                    # Midnight is not there, or twice, where a clock is changed at midnight.
                    hours = 24 - at.hour if at.hour > 12 else -at.hour
                    at = _local(int(at.timestamp()) + 3600 * hours, zone)
                continue
            if at.hour not in self.hours:
                second = int(at.timestamp())
                if not began:
                    second = int(_dated(_wall(at), zone).timestamp())
                began = True
                at = _local(second + 3600, zone)
                continue
            if at.minute not in self.minutes:
                second = int(at.timestamp())
                at = _local(second + 60 - (0 if began and not at.second else at.second), zone)
                began = True
                continue
            if at.second:
                at = _local(int(at.timestamp()) + 60 - at.second, zone)
                began = True
                continue
            return int(at.timestamp())
        return None

    def _on(self, at: datetime) -> bool:
        day, weekday = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return day and weekday if self.any_day or self.any_weekday else day or weekday


def schedule_from(text: str, zone: str = "UTC") -> Schedule:
    """Read a schedule: five fields, `@hourly` and its like, or `@every 90s`; `TZ=` before it names a zone.

    Raises
    ------
    ScheduleError
    """
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        named, _, rest = text.partition(" ")
        zone, text = named.partition("=")[2], rest.strip()
        if not is_zone(zone):
            raise ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
    if text.startswith("@"):
        return _described(text, zone)
    fields = text.split()
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    sets = [_field(written, *bounds) for written, bounds in zip(fields, _BOUNDS, strict=True)]
    minutes, hours, days, months, weekdays = (numbers for numbers, _ in sets)
    return Schedule(minutes, hours, days, months, weekdays, sets[2][1], sets[4][1], zone=zone)


def _described(text: str, zone: str) -> Schedule:
    if text in _DESCRIPTORS:
        return schedule_from(_DESCRIPTORS[text], zone)
    if not text.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    written = text.removeprefix("@every ")
    parts = list(_EVERY_PART.finditer(written))
    if not parts or "".join(part[0] for part in parts) != written:
        raise ScheduleError(f'failed to parse duration {text}: time: invalid duration "{written}"')
    total_ns = sum(round(float(part[1]) * _EVERY_NS[part[2]]) for part in parts)
    return Schedule(every_s=max(total_ns // SECOND_NS, 1), zone=zone)


def _field(written: str, low: int, high: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """The numbers of a field, and whether one of its parts is a star."""
    numbers: set[int] = set()
    starred = False
    for part in (item for item in written.split(",") if item):
        more, is_star = _part(part, low, high, names)
        numbers |= more
        starred |= is_star
    return frozenset(numbers), starred


def _part(part: str, low: int, high: int, names: dict[str, int]) -> tuple[set[int], bool]:
    range_, *steps = part.split("/")
    bounds = range_.split("-")
    is_star = bounds[0] in ("*", "?")
    single = len(bounds) == 1
    if is_star:
        start, end = low, high
    else:
        start = _number(bounds[0], names)
        end = start if single else _number(bounds[1], names)
        if len(bounds) > 2:
            raise ScheduleError(f"too many hyphens: {part}")
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if steps:
        step = _number(steps[0], {})
        if single and not is_star:
            end = high
        is_star = is_star and step <= 1
    if start < low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")
    return set(range(start, end + 1, step)), is_star


def _number(written: str, names: dict[str, int]) -> int:
    named = names.get(written.lower())
    if named is not None:
        return named
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", written):
        raise ScheduleError(
            f'failed to parse int from {written}: strconv.Atoi: parsing "{written}": invalid syntax'
        )
    if int(written) < 0:
        raise ScheduleError(f"negative number ({written}) not allowed: {written}")
    return int(written)


def is_zone(name: str) -> bool:
    """Whether there is a time zone of that name."""
    try:
        _zone(name)
    except (ValueError, KeyError, OSError):
        return False
    return True


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    # That one is there without a database.
    return UTC if name in ("", "UTC") else ZoneInfo(name)


def _wall(at: datetime) -> datetime:
    """What the clock on the wall shows, to the hour."""
    return at.replace(tzinfo=None, minute=0, second=0)


def _local(second: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(second, zone)


def _dated(wall: datetime, zone: tzinfo) -> datetime:
    """The moment a wall clock shows a time; of one that is not there, what Go's time.Date takes for it."""
    moment = wall.replace(tzinfo=UTC)
    offset = moment.astimezone(zone).utcoffset() or timedelta()
    then = (moment - offset).astimezone(zone).utcoffset() or timedelta()
    return (moment - then).astimezone(zone)


def _next_month(first: datetime) -> datetime:
    years, month = divmod(first.month, 12)
    return first.replace(year=first.year + years, month=month + 1)
