"""What every test may use."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from scheduler_core.thresholds import INFINITY, Thresholds, using
from tests import quick, scenario_processes, servers

# The suite tries the same examples every time, so that it fails for the change at hand and for nothing else;
# `--hypothesis-profile=search` looks for new ones. A busy machine is no reason to fail, hence no deadlines.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("search", derandomize=False, deadline=None, max_examples=2000)
hypothesis.settings.load_profile("suite")


def pytest_collection_finish() -> None:
    # As a site does: the collector looks no more at the million objects that stay for as long as the tests run.
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def quick_where_django_takes_its_time() -> None:
    quick.hash_passwords_at_once()
    quick.look_for_static_files_once()
    quick.empty_tables_without_ado()


few = pytest.mark.nightly(
    "scheduler_core/thresholds.py", "scheduler_core/plugins/", "scheduler_core/framework/"
)


@pytest.fixture(
    scope="module",
    params=[Thresholds(), Thresholds.all_at(0), pytest.param(Thresholds.all_at(INFINITY), marks=few)],
    ids=["default", "zero", "infinity"],
)
def every_threshold(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where two ways lead to the same answer: as usual, always the way for many, always the way for few.

    By day not the last: what most tests have is few enough for that way as usual.
    """
    with using(request.param):
        yield


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    # Playwright's synchronous interface runs an event loop in the thread that also touches the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    return {
        **browser_type_launch_args,
        "executable_path": servers.chromium(),
        # One process less for each browser draws pages.
        "args": ["--disable-dev-shm-usage", "--disable-gpu", "--in-process-gpu"],
    }


@pytest.fixture
def asgi_server(transactional_db: None) -> Iterator[str]:
    """Address of the site, served over HTTP."""
    from tests.in_thread import served

    with served() as place:
        yield f"http://{place}"


@pytest.fixture(autouse=True)
def errands_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is part of most tests: what a request has one run is run where it waits.

    Tests that start the site's own processes are not touched: those are other processes. It may take longer here:
    a slow machine would have a share "not run yet" whose document is to be refused.
    """
    from playground.clusters import questions
    from playground.scenarios.services import errands

    def run(row: Any, wait_s: float) -> None:
        questions.answer(question_id=row.pk)

    monkeypatch.setattr(errands, "wait", run)
    monkeypatch.setattr(errands, "LONGEST_S", 120.0)


@pytest.fixture(autouse=True)
def nothing_remembered_of_another_tests_clusters() -> Iterator[None]:
    """A cluster's number is never given twice by a site, but by a database that tests roll back."""
    from playground.clusters.drive.memory import ENGINES
    from playground.clusters.history.redecide import HISTORIES

    yield
    ENGINES.clear()
    HISTORIES.clear()


@pytest.fixture(autouse=True)
def scenarios_run_in_forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, tests that start the site's own processes are not touched, and start those of scenarios, too."""
    from playground.engine import scenarios

    monkeypatch.setattr(scenarios, "run_process", scenario_processes.run_forked)
