"""What asks the SQL dialect (`dialect`) once more on PostgreSQL, and by night the rooms that own models and queries.

Locks, upserts, JSON and labels, limits, order, constraints and raw SQL are where databases differ; what else the engine
or a surface does with what it was given (decisions, words, refusals, permissions, clients) is the same on each.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    f"tests/{room}"
    for room in ("accounts", "api", "broker", "clusters", "kube_api", "play", "scenarios", "web")
]
ALL = "database and not (any_database or browser or kubectl or postgres or nightly)"


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.flaky(
    reruns=0
)  # its own tests are run again where it helps; all of them again would help nothing
@pytest.mark.timeout(2700)  # a suite of its own, also on a busy machine
@pytest.mark.parametrize(
    "chosen",
    [
        "dialect",
        pytest.param(
            ALL,
            id="all",
            marks=pytest.mark.nightly("playground/clusters/log/rows.py", "playground/migrating.py"),
        ),
    ],
)
def test_what_is_stored_and_found_is_the_same_on_postgresql(
    postgresql_url: str, capsys: pytest.CaptureFixture[str], chosen: str
) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_") and name not in ("PLAYGROUND_REQUIRE", "DJANGO_ALLOW_ASYNC_UNSAFE")
    }
    files = _marked() if chosen == "dialect" else ROOMS
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-rfE"),
            *("-n", "0" if chosen == "dialect" else "2", "-m", chosen, *files),
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


def _marked() -> list[str]:
    """The files with such tests: to collect all others takes longer than to run these."""
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("test_*.py"))]
    return [str(path.relative_to(ROOT)) for path in files if "mark.dialect" in path.read_text()]


def _told(lines: list[str]) -> str:
    """Which tests failed, each in a line, and the beginning of what pytest says of them."""
    failed = [line[:300] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    begins = next(
        (place for place, line in enumerate(lines) if " FAILURES " in line or " ERRORS " in line), 0
    )
    return "\n".join((*failed, *lines[-1:], *lines[begins : begins + 150]))
