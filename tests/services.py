"""Decides, before Django reads its settings, on which servers the tests run, and says so.

The suite itself always runs on SQLite, in a folder of its own; `tests/test_on_postgresql.py` runs what asks the SQL
dialect (`dialect`) once more on PostgreSQL. Tests marked `nightly` run where a path that they name has changed
(`tests.changes`), where `-m nightly` asks for them, and where their file is named. What a machine lacks (PostgreSQL,
Redis, RabbitMQ, a Chromium, a kubectl, node) is skipped, and a red section at the end says of every skip what was
therefore not tested; ``PLAYGROUND_REQUIRE=postgres,redis`` makes each of the named ones an error instead.
All that a run starts, and its temporary files, are gone when it is (`tests.leftovers`).

========================  ========================================================================
TEST_DATABASE_URL         the PostgreSQL to use, by a role that may create databases
TEST_REDIS_URL            the Redis to use
TEST_AMQP_URL             the RabbitMQ to use
PLAYGROUND_CHROMIUM       the Chromium to use
PLAYGROUND_KUBECTL        the kubectl to use
PLAYGROUND_WASM           where the npm packages of `tests/wasm/package.json` are
PLAYGROUND_TEST_ON        run the suite itself on this database (set by `test_on_postgresql.py`)
PLAYGROUND_BASE           the commit that a change is compared with
========================  ========================================================================
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import changes, leftovers, servers

_is_xdist_worker = "PYTEST_XDIST_WORKER" in os.environ
if not _is_xdist_worker:
    # Inherited by the xdist workers, which pytest-django gives a database each.
    # Folders of tests (`tmp_path`) stay to be looked at, those of the servers and programs they start go with the run.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    _folder = tempfile.mkdtemp(prefix="playground-tests-")
    os.chmod(_folder, 0o711)  # PostgreSQL, which does not run as root, has its folder within
    leftovers.end_with_this_process(_folder)
    os.environ["TMPDIR"] = tempfile.tempdir = _folder
    os.environ["PLAYGROUND_DATA"] = tempfile.mkdtemp(prefix="data-")
    os.environ["CELERY_BROKER_URL"] = "memory://"
    # Hundreds of tests start a Python. Without bytecode each of them compiles the whole tree again: twice the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Of what tests install into environments of their own, most modules are never imported.
    os.environ.setdefault("PIP_NO_COMPILE", "1")
    # What the user's shell says about a real site is not for the tests.
    for _name in ("DATABASE_URL", *(f"PLAYGROUND_{end}" for end in ("MODE", "HOSTS", "SECRET_KEY", "DEBUG"))):
        os.environ.pop(_name, None)
    if url := os.environ.get("PLAYGROUND_TEST_ON"):
        os.environ["DATABASE_URL"] = url

sys.dont_write_bytecode = False

# Folders whose tests start processes of their own: sites, workers, brokers, commands.
WITH_PROCESSES = ("broker", "deploy", "docs", "faults", "play", "remote")

ONE_SITE = ("docs", "remote")
"""Folders whose tests ask one site that is started for them: one process of the suite runs them all."""

postgresql = cache(servers.find_postgresql)
redis = cache(servers.find_redis)
rabbitmq = cache(servers.find_rabbitmq)

SERVICES = {
    "postgres": (postgresql, "no PostgreSQL: none on 127.0.0.1:5432 and no initdb (Debian: postgresql)"),
    "redis": (redis, "no redis-server (Debian: redis-server)"),
    "rabbitmq": (rabbitmq, "no RabbitMQ (Debian: rabbitmq-server)"),
    "browser": (servers.chromium, "no Chromium (Debian: chromium-headless-shell, or chromium)"),
    "kubectl": (servers.kubectl, "no kubectl (Debian: kubernetes-client)"),
    "wasm": (
        servers.wasm,
        "no Python compiled to WebAssembly: node, and what .ci/run makes of tests/wasm/package.json (Debian: npm)",
    ),
    "openssl": (lambda: shutil.which("openssl"), "no openssl to make certificates with (Debian: openssl)"),
}
"""Marker -> what is looked for, what to say when it is not there."""

TOOLS = pytest.StashKey[subprocess.Popen[bytes]]()
"""What runs beside the tests where ``--tools`` asks for it."""

LONG_S = 900
"""A timeout from which on a test is begun with before others."""

FAST_FOLDERS = (
    "engine",
    *(f"scheduler_core/{name}" for name in (
        "cluster", "config", "extender", "framework", "objects", "plugins", "queue", "releases",
    )),
)  # fmt: skip
"""Folders whose tests `-m fast` takes: each is of one small part, and needs neither a database nor a process."""


@cache
def _folder_of(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).parent.as_posix()


def _marks(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


def is_fast(item: pytest.Item) -> bool:
    """Whether a test is one of `-m fast`: in one of its folders, and no search through many examples."""
    from hypothesis import is_hypothesis_test  # not before its own plugin

    return (
        _folder_of(item.path) in FAST_FOLDERS
        and {"slow", "database", *SERVICES}.isdisjoint(_marks(item))
        and "every_threshold" not in getattr(item, "fixturenames", ())
        and not is_hypothesis_test(getattr(item, "function", None))
        and not hasattr(getattr(item, "cls", None), "settings")  # a state machine of Hypothesis
    )


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    # The whole suite is worth three processes on two cores, one of which mostly waits (`pytest_collection_order`), and
    # `-m fast` two; one file, or looking for one failure, is not.
    options = early_config.known_args_namespace
    chosen = options.file_or_dir or any(
        getattr(options, name, None) not in (None, False, "", "fast", "nightly")
        for name in ("keyword", "markexpr", "usepdb", "collectonly", "lf", "stepwise")
    )
    if not chosen and not _is_xdist_worker and getattr(options, "numprocesses", None) is None:
        n_workers = 2 if getattr(options, "markexpr", "") == "fast" else 3
        args[:] = [f"--numprocesses={n_workers}", "--dist=worksteal", *args]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tools", action="store_true", help="check types, style, imports and templates beside the tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where a run is written to a file or a pipe, each test is told of when it is done, not after some thousands.
        sys.stdout.reconfigure(write_through=True)
    required = {name.strip() for name in os.environ.get("PLAYGROUND_REQUIRE", "").split(",")} - {""}
    for name, (find, lack) in SERVICES.items():
        if name in required and not find():
            raise pytest.UsageError(f"PLAYGROUND_REQUIRE={name}, but {lack}")
    if unknown := required - SERVICES.keys():
        raise pytest.UsageError(f"PLAYGROUND_REQUIRE: unknown {', '.join(sorted(unknown))}")
    if config.option.tools and not _is_xdist_worker:
        config.stash[TOOLS] = subprocess.Popen([sys.executable, "-m", "tests.tools"], cwd=changes.ROOT)


def pytest_report_header() -> str:
    database, broker = postgresql(), redis()
    suite = "on the given PostgreSQL" if "PLAYGROUND_TEST_ON" in os.environ else "on SQLite"
    return "; ".join(
        (
            f"services: the suite {suite}",
            f"PostgreSQL {database.where if database else 'NONE'}",
            f"Redis {broker.where if broker else 'NONE'}",
            f"Chromium {servers.chromium() or 'NONE'}",
            f"kubectl {servers.kubectl() or 'NONE'}",
            f"nightly where it differs from {changes.changed()[0]}",
        )
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if {"page", "browser"} & set(fixtures):
            item.add_marker("browser")
        if item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(fixtures):
            item.add_marker("database")
        if is_fast(item):
            item.add_marker("fast")
        marks = _marks(item)
        for name, (find, lack) in SERVICES.items():
            if name in marks and not find():
                item.add_marker(pytest.mark.skip(reason=lack))
        if _waits_for_others(item) and "flaky" not in marks:
            # A machine may be so busy that a wait of the test ends before what it waits for has happened; what is
            # broken breaks again. The summary tells how many tests were run again.
            item.add_marker(pytest.mark.flaky(reruns=1))
    left = [item for item in items if not _is_wanted(config, item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def _is_wanted(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether a test runs now: it is not `nightly`, or asked for, or what it is about has changed."""
    nightly = item.get_closest_marker("nightly")
    own = item.path.relative_to(changes.ROOT).as_posix()
    if nightly is None or "nightly" in config.option.markexpr or any(own in name for name in config.args):
        return True
    return any(path.startswith((own, *nightly.args)) for path in changes.changed()[1])


@pytest.hookimpl(trylast=True, specname="pytest_collection_modifyitems")
def pytest_collection_order(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The fast ones first, so that what is broken is soon told; then what takes longest, so that it is not last.

    File by file: what a file's tests share is made once. Those that mostly wait for processes are spread among the
    others, so that there is always something to compute meanwhile. Each worker begins with its own share, and who is
    done takes over from the end of another's (xdist's ``worksteal``).
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        alone = item.path.parent.name not in ONE_SITE
        files.setdefault(item.path if alone else Path("one site"), []).append(item)
    turn: dict[Path, tuple[int, float]] = {}
    for waits in (False, True):
        some = [path for path, found in files.items() if any(map(_waits_for_processes, found)) == waits]
        some.sort(key=lambda path: -sum(item.get_closest_marker("slow") is not None for item in files[path]))
        for place, path in enumerate(some):
            is_fast = any(item.get_closest_marker("fast") for item in files[path])
            rank = 0 if is_fast else 1 if any(map(_takes_long, files[path])) else 2
            turn[path] = (rank, (place + 0.5) / len(some))
    n_workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    shares: list[list[pytest.Item]] = [[] for _ in range(n_workers)]
    for path in sorted(files, key=lambda path: turn[path]):
        min(shares, key=len).extend(files[path])
    items[:] = [item for share in shares for item in share]


def _waits_for_processes(item: pytest.Item) -> bool:
    return item.path.parent.name in WITH_PROCESSES or item.get_closest_marker("kubectl") is not None


def _takes_long(item: pytest.Item) -> bool:
    """Whether a test alone may be what the others wait for in the end: it says so by its timeout."""
    timeout = item.get_closest_marker("timeout")
    return timeout is not None and timeout.args[0] >= LONG_S


def _waits_for_others(item: pytest.Item) -> bool:
    """Whether the test is not alone: a browser, servers, processes or threads on the database work beside it."""
    django_db = item.get_closest_marker("django_db")
    return (
        _waits_for_processes(item)
        or bool({"transactional_db", "live_server"} & set(getattr(item, "fixturenames", ())))
        or (django_db is not None and bool(django_db.kwargs.get("transaction")))
        or not _marks(item).isdisjoint(SERVICES)
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if TOOLS in session.config.stash and session.config.stash[TOOLS].wait():
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if TOOLS in config.stash and config.stash[TOOLS].returncode:
        terminalreporter.section("TOOLS FAILED", red=True, bold=True)
        terminalreporter.line("see the lines above, or `python -m tests.tools`", red=True)
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("NOT TESTED", red=True, bold=True)
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count} left out: {reason}", red=True)


def _started(found: servers.Found | None) -> Iterator[str]:
    assert found is not None, "a test that uses this fixture carries the service's marker"
    url, stop = found.start()
    yield url
    stop()


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """Address of a PostgreSQL in which databases may be created; for tests marked `postgres`."""
    yield from _started(postgresql())


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Address of a Redis; for tests marked `redis`."""
    yield from _started(redis())


@pytest.fixture(scope="session")
def rabbitmq_url() -> Iterator[str]:
    """Address of a RabbitMQ; for tests marked `rabbitmq`."""
    yield from _started(rabbitmq())
