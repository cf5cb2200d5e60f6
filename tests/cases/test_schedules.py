"""Schedules of CronJobs: what robfig/cron takes, and what it refuses in which words."""

import pytest

from scheduler_core.validation.jobs import ScheduleError, check_schedule, is_zone
from tests.tables import table


@pytest.mark.parametrize("schedule", table(__file__, "what_can_be_read"))
def test_what_can_be_read(schedule: str) -> None:
    check_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "said"),
    table(__file__, "what_cannot_be_read_is_refused_in_upstreams_words"),
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
