"""Durations are read and written as Go does it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.objects.duration import format_duration, parse_duration_ns
from tests.tables import table


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_reads_back(duration_ns: int) -> None:
    assert parse_duration_ns(format_duration(duration_ns)) == duration_ns


@pytest.mark.parametrize(("text", "duration_ns", "written"), table(__file__, "durations_in_all_their_forms"))
def test_durations_in_all_their_forms(text: str, duration_ns: int, written: str) -> None:
    assert parse_duration_ns(text) == duration_ns
    assert format_duration(duration_ns) == written


@pytest.mark.parametrize(
    "text", ["", "x", "5", "s", "-", ".s", "1 s", "1s ", "1d", "3000000h", "--1s", "1.2.3s"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration_ns(text)
