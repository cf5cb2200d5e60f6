"""Schedules of CronJobs: what robfig/cron takes, and what it refuses in which words."""

from __future__ import annotations

import pytest

from scheduler_core.validation.jobs import ScheduleError, check_schedule, is_zone


@pytest.mark.parametrize(
    "schedule",
    [
        "0/15 * * * *", "20-35/15 * * * *", "0 0 9 Apr-Oct ?", "0 0 */5 Apr,Aug,Oct Mon", "0 0 * Feb Mon/2",
        "0 0 30 Feb ?", "@hourly", "@every 1h30m", "@every 1.5h",
    ],
)  # fmt: skip
def test_what_can_be_read(schedule: str) -> None:
    check_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
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
    ],
)
def test_what_cannot_be_read_is_refused_in_upstreams_words(schedule: str, said: str) -> None:
    with pytest.raises(ScheduleError) as error:
        check_schedule(schedule)
    assert str(error.value) == said


@pytest.mark.parametrize("name", ["Mars/Phobos", "../etc/passwd", "/etc/localtime", "Europe"])
def test_no_zone(name: str) -> None:
    assert not is_zone(name)


def test_a_zone() -> None:
    assert is_zone("Europe/Berlin")
