"""Real Celery workers on the brokers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import Celery

from playground import broker

WAIT_S = 40.0


class Workers:
    """Starts workers on one broker and reads what their tasks wrote."""

    def __init__(self, url: str, folder: Path) -> None:
        self.out = folder / "out"
        self.log = folder / "log"
        self.app = Celery("sender", broker=url, set_as_current=False, fixups=[])
        self.app.conf.update(broker.celery_settings(url))
        self._environment = {**os.environ, "BROKER_TEST_URL": url, "BROKER_TEST_OUT": str(self.out)}
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, concurrency: int = 2) -> subprocess.Popen[bytes]:
        arguments = ("--without-gossip", "--without-mingle", "--without-heartbeat", f"-c{concurrency}")
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "celery",
                    "-A",
                    "tests.broker.tasks_app",
                    "worker",
                    "-Pprefork",
                    *arguments,
                ],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def send(self, task: str, *arguments: object, **options: object) -> None:
        self.app.send_task(task, arguments, **options)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the worker and its children at once, as a machine that loses its memory would."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def lines(self) -> list[str]:
        return self.out.read_text().split("\n")[:-1] if self.out.exists() else []

    def wait_for(self, done: Callable[[list[str]], bool]) -> list[str]:
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s:
            if done(lines := self.lines()):
                return lines
            time.sleep(0.05)
        raise AssertionError(f"{self.lines()}\n{self.log.read_text()[-3000:] if self.log.exists() else ''}")

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                self.kill(process)
        self.app.close()


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    # Celery prefers this variable, which the suite sets, to what an application says.
    monkeypatch.delenv("CELERY_BROKER_URL")
    workers = Workers(broker.url_for(tmp_path / "messages"), tmp_path)
    yield workers
    workers.stop()


@pytest.mark.slow
def test_of_two_workers_one_takes_a_message_and_a_new_one_goes_on_after_a_kill(workers: Workers) -> None:
    first = workers.start()
    workers.start()
    workers.send("note", "one")
    assert workers.wait_for(lambda lines: bool(lines)) == ["one"]
    workers.kill(first)
    workers.start()
    workers.send("note", "two")
    assert workers.wait_for(lambda lines: len(lines) > 1) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("rabbitmq", marks=[pytest.mark.rabbitmq, pytest.mark.nightly("playground/broker.py")]),
    ],
)
def test_the_same_tasks_run_on_the_brokers_of_a_team(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CELERY_BROKER_URL")
    url = request.getfixturevalue(f"{kind}_url")
    workers = Workers(url, tmp_path)
    try:
        workers.start()
        for number in range(5):
            workers.send("note", str(number))
        # It is the workers who make the queues in which RabbitMQ keeps countdowns.
        workers.wait_for(lambda lines: len(lines) == 5)
        workers.send("note", "later", countdown=1)
        assert sorted(workers.wait_for(lambda lines: len(lines) == 6)) == ["0", "1", "2", "3", "4", "later"]
    finally:
        workers.stop()
