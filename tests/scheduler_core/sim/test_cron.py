"""Schedules, as robfig/cron reads them: its own table of cases, and what it refuses."""

from __future__ import annotations

from datetime import datetime

import pytest

from scheduler_core.sim.cron import ScheduleError, is_zone, schedule_from

NEW_YORK = "America/New_York"


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "due"),
    [
        ("0/15 * * * *", "UTC", "2012-07-09T14:45:00+00:00", "2012-07-09T15:00:00+00:00"),
        ("0/15 * * * *", "UTC", "2012-07-09T14:59:59+00:00", "2012-07-09T15:00:00+00:00"),
        ("20-35/15 * * * *", "UTC", "2012-07-09T15:45:00+00:00", "2012-07-09T16:20:00+00:00"),
        ("*/15 * * * *", "UTC", "2012-12-31T23:59:45+00:00", "2013-01-01T00:00:00+00:00"),
        ("0 0 9 Apr-Oct ?", "UTC", "2012-07-09T23:35:00+00:00", "2012-08-09T00:00:00+00:00"),
        # A step on `*` says something: one of the two days is enough. Debian's cron wants both.
        ("0 0 */5 Apr,Aug,Oct Mon", "UTC", "2012-07-09T23:35:00+00:00", "2012-08-01T00:00:00+00:00"),
        ("0 0 * Feb Mon/2", "UTC", "2012-07-09T23:35:00+00:00", "2013-02-01T00:00:00+00:00"),
        ("0 0 29 Feb ?", "UTC", "2012-07-09T23:35:00+00:00", "2016-02-29T00:00:00+00:00"),
        # The hour that a clock skips has no run, the one it has twice is one hour of two.
        ("30 2 11 Mar ?", NEW_YORK, "2012-03-11T00:00:00-05:00", "2013-03-11T02:30:00-04:00"),
        ("0 * * * ?", NEW_YORK, "2012-03-11T01:00:00-05:00", "2012-03-11T03:00:00-04:00"),
        ("0 2 * * ?", NEW_YORK, "2012-03-11T01:00:00-05:00", "2012-03-12T02:00:00-04:00"),
        ("0 * * * ?", NEW_YORK, "2012-11-04T01:00:00-04:00", "2012-11-04T01:00:00-05:00"),
        ("30 1 04 Nov ?", NEW_YORK, "2012-11-04T01:45:00-04:00", "2012-11-04T01:30:00-05:00"),
        # Midnight is not there.
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "2018-11-05T00:00:00-02:00"),
        ("TZ=America/New_York 0 9 * * *", "UTC", "2026-07-01T00:00:00+00:00", "2026-07-01T13:00:00+00:00"),
        ("@hourly", "UTC", "2026-01-01T00:00:00+00:00", "2026-01-01T01:00:00+00:00"),
        ("@weekly", "UTC", "2026-01-01T00:00:00+00:00", "2026-01-04T00:00:00+00:00"),
        ("@monthly", NEW_YORK, "2026-01-01T00:00:00-05:00", "2026-02-01T00:00:00-05:00"),
        ("@every 1h30m", "UTC", "2026-01-01T00:00:10+00:00", "2026-01-01T01:30:10+00:00"),
    ],
)
def test_when_it_is_due(schedule: str, zone: str, after: str, due: str) -> None:
    assert schedule_from(schedule, zone).next_s(at(after)) == at(due)


def test_a_day_that_never_comes_is_none() -> None:
    assert schedule_from("0 0 30 Feb ?").next_s(0) is None


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("L * * * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("TZ=Mars/Phobos * * * * *", "provided bad location Mars/Phobos: unknown time zone Mars/Phobos"),
    ],
)
def test_what_cannot_be_read_is_refused_in_upstreams_words(schedule: str, said: str) -> None:
    with pytest.raises(ScheduleError) as error:
        schedule_from(schedule)
    assert str(error.value) == said


@pytest.mark.parametrize("name", ["Mars/Phobos", "../etc/passwd", "/etc/localtime", "Europe"])
def test_no_zone(name: str) -> None:
    assert not is_zone(name)


def test_a_zone() -> None:
    assert is_zone("Europe/Berlin")
