"""The short form of ``python -m tests.load team``: the README's commands, twenty clusters, outages of the broker."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.load.team import Round, be_busy

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.redis]


def test_a_busy_site_with_one_deciding_worker_and_a_broker_that_is_away_does_its_work(tmp_path: Path) -> None:
    round_ = Round(clusters=20, pods=100, streams=60, seconds=30.0, outage=6.0, every=13.0)
    with contextlib.ExitStack() as stops:
        report = be_busy(round_, tmp_path, stops)
    assert report["violations"] == []
    assert report["runs"] and len(report["outages"]) == 2 and report["bound_s"]["pods"] > 3
