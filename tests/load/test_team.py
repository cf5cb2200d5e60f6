"""The short form of ``python -m tests.load team``: the README's commands, twenty clusters, outages of the broker."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.load.team import Round, be_busy

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.redis]
SHORT = {"clusters": 4, "pods": 30, "streams": 10, "seconds": 10.0, "outage": 3.0, "every": 5.0}
LONG = {"clusters": 20, "pods": 100, "streams": 60, "seconds": 30.0, "outage": 6.0, "every": 13.0}
nightly = pytest.mark.nightly(
    "tests/load/", "playground/broker.py", "playground/play/", "playground/celery.py"
)


@pytest.mark.parametrize(
    "size", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=nightly)]
)
def test_a_busy_site_with_one_deciding_worker_and_a_broker_that_is_away_does_its_work(
    tmp_path: Path, size: dict[str, Any]
) -> None:
    with contextlib.ExitStack() as stops:
        report = be_busy(Round(**size), tmp_path, stops)
    assert report["violations"] == []
    assert report["runs"] and report["outages"] and report["bound_s"]["pods"]
