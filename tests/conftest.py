"""What every test may use."""

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

from scheduler_core.thresholds import INFINITY, Thresholds, using
from tests import in_thread, quick, scenario_processes, servers

# The suite tries the same examples every time, so that it fails for the change at hand and for nothing else;
# `--hypothesis-profile=search` looks for new ones. A busy machine is no reason to fail, hence no deadlines.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, max_examples=30)
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


WITH_THRESHOLDS = (
    *(f"scheduler_core/{name}/" for name in ("cluster", "framework", "plugins", "queue")),
    *(f"scheduler_core/{name}.py" for name in ("thresholds", "schedule_one", "fork")),
)
"""What chooses between two ways, and what they are made of."""
by_night = pytest.mark.nightly(*WITH_THRESHOLDS)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Thresholds(), id="default"),
        pytest.param(Thresholds.all_at(0), id="zero", marks=by_night),
        pytest.param(Thresholds.all_at(INFINITY), id="infinity", marks=by_night),
    ],
)
def every_threshold(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where two ways lead to the same answer: as usual, always the way for many, always the way for few.

    The last two where one of the ways has changed, and by night.
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


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a playground is that is started for real, once for all tests that only ask it."""
    from tests.play.test_play import Playground

    playground = Playground(tmp_path_factory.mktemp("playground") / "data")
    try:
        playground.wait_until_it_says("Playground ready")
        yield f"http://127.0.0.1:{playground.port}"
    finally:
        playground.stop()


@pytest.fixture(scope="session")
def served_site() -> Iterator[in_thread.Site]:
    """The site in a thread, once for all tests: what a browser has of its scripts and styles serves the next test."""
    with in_thread.served() as site:
        yield site


@pytest.fixture
def asgi_server(transactional_db: None, served_site: in_thread.Site) -> Iterator[str]:
    """Address of the site, served over HTTP; nothing is asked of it any more when the tables are emptied."""
    yield f"http://{served_site.place}"
    served_site.settle()


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Wake-ups, (task, arguments): written down in place of being sent. No worker is part of a test without `work`."""
    from playground.clusters import wake
    from playground.clusters.models import Question

    written: list[tuple[str, dict[str, Any]]] = []

    def send(task: str, **how: Any) -> bool:
        asked = how.get("question_id")
        # A run is done where it is waited for, see below.
        if asked is None or not Question.objects.filter(pk=asked, kind=Question.Kind.PROCESS).exists():
            written.append((task, how))
        return True

    monkeypatch.setattr(wake, "send", send)
    return written


@pytest.fixture
def work(wakes: list[tuple[str, dict[str, Any]]]) -> Callable[[], None]:
    """Be the worker: do what was sent until nothing is left."""
    from playground.clusters import jobs
    from playground.clusters.drive.advance import advance
    from playground.clusters.drive.memory import EngineMemory

    jobs.load()
    memory = EngineMemory()

    def run() -> None:
        for _ in range(200):
            if not wakes:
                return
            task, how = wakes.pop(0)
            how.pop("countdown_s", None)
            if task == "advance":  # no task: what decides looks at the rows
                left: Any = advance(**how, memory=memory).more or None
            else:
                left = jobs.TASKS[task].do(**how)
            if left is not None and left is not False:  # its turn was over
                wakes.append((task, how))
        raise AssertionError("work does not end")

    return run


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
