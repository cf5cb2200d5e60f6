"""What a run leaves out is said at its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests import services


class Reporter:
    """As much of pytest's as a summary is told to."""

    def __init__(self, *reasons: str) -> None:
        self.stats = {
            "skipped": [SimpleNamespace(longrepr=("test_sky.py", 7, f"Skipped: {one}")) for one in reasons]
        }
        self.said: list[str] = []

    def section(self, title: str, **_: Any) -> None:
        self.said.append(title)

    def line(self, words: str, **_: Any) -> None:
        self.said.append(words)


def test_every_skip_is_told_with_its_reason() -> None:
    reporter = Reporter("no sun", "no second moon", "no second moon")
    services.pytest_terminal_summary(reporter)  # type: ignore[arg-type]
    assert reporter.said == ["NOT TESTED", "2 left out: no second moon", "1 left out: no sun"]


def test_where_nothing_is_left_out_nothing_is_said() -> None:
    reporter = Reporter()
    services.pytest_terminal_summary(reporter)  # type: ignore[arg-type]
    assert not reporter.said
