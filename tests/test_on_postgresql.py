"""The tests of what is written to the database and read from it, once more on PostgreSQL.

Taken are the rooms that own models and queries, as a whole; of the surfaces above them, the files that go through
every page and every operation once, and those in which several write at a time. What else the engine or a surface does
with what it was given (decisions, words, refusals, permissions, clients) is the same on every database
(`any_database` says so of a test in a room that is taken).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TAKEN = (
    *(f"tests/{room}" for room in ("broker", "clusters", "play", "scenarios")),
    *(
        f"tests/accounts/test_{name}.py"
        for name in ("login_limits", "quotas", "sessions", "tokens_and_teams")
    ),
    *(
        f"tests/api/test_{name}.py"
        for name in ("clusters", "drafts", "events", "forks", "objects", "questions", "repeats", "what_if")
    ),
    *(f"tests/kube_api/test_{name}.py" for name in ("deletion", "patches", "reading", "watch", "writing")),
    *(f"tests/web/test_{name}.py" for name in ("objects_pages", "pages", "plan_pages", "story")),
)
PART = "database and not (any_database or browser or kubectl or postgres)"


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.flaky(
    reruns=0
)  # its own tests are run again where it helps; all of them again would help nothing
@pytest.mark.timeout(2700)  # a suite of its own, also on a busy machine
def test_the_database_tests_pass_on_postgresql_too(
    postgresql_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_") and name not in ("PLAYGROUND_REQUIRE", "DJANGO_ALLOW_ASYNC_UNSAFE")
    }
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-rfE"),
            *("-n", "2", "-m", PART, *TAKEN),
        ],
        env=environment | {"PLAYGROUND_TEST_ON": postgresql_url},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = result.stdout.splitlines()
    with capsys.disabled():
        print(f"\non PostgreSQL: {lines[-1] if lines else result.stderr}")
    assert result.returncode == 0, _told(lines) + result.stderr[-2000:]


def _told(lines: list[str]) -> str:
    """Which tests failed, each in a line, and the beginning of what pytest says of them."""
    failed = [line[:300] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    begins = next(
        (place for place, line in enumerate(lines) if " FAILURES " in line or " ERRORS " in line), 0
    )
    return "\n".join((*failed, *lines[-1:], *lines[begins : begins + 150]))
