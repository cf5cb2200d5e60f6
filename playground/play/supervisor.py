"""Keeps one Celery worker child running while the playground does."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
# A worker that lived this long was well; its end starts the back-off anew.
HEALTHY_AFTER_S = 60.0
STOP_TIMEOUT_S = 3.0


class WorkerSupervisor:
    """Starts the worker, starts it again when it ends, stops it with us.

    Parameters
    ----------
    command
        Arguments of the worker process; its standard input closes when this process ends.
    log
        File that gets the worker's output.
    report
        Called with a sentence when the worker ended and will be started again.
    """

    def __init__(self, command: list[str], log: Path, report: Callable[[str], None]) -> None:
        self._command = command
        self._log = log
        self._report = report
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="worker-supervisor", daemon=True)
        self._child: subprocess.Popen[bytes] | None = None
        self._kill_at_s = 0.0

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> None:
        self._child = self._spawn()
        self._thread.start()

    def begin_stop(self) -> None:
        """Ask the worker to finish within `STOP_TIMEOUT_S`; `stop` then waits for it."""
        self._kill_at_s = time.monotonic() + STOP_TIMEOUT_S
        self._stopping.set()
        self._thread.join()
        if self._child is not None:
            self._child.terminate()

    def stop(self) -> None:
        """Let the worker finish in the time it has, then kill it; messages it did not finish are kept."""
        if not self._stopping.is_set():
            self.begin_stop()
        child = self._child
        if child is None:
            return
        try:
            child.wait(max(self._kill_at_s - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdin:
            child.stdin.close()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C is for this process, which then stops the worker in order.
                start_new_session=True,
            )

    def _watch(self) -> None:
        backoff_s = FIRST_BACKOFF_S
        started_s = time.monotonic()
        while not self._stopping.is_set():
            assert self._child is not None
            try:
                code = self._child.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            if time.monotonic() - started_s >= HEALTHY_AFTER_S:
                backoff_s = FIRST_BACKOFF_S
            self._report(f"The worker ended ({code}); starting it again in {backoff_s:g} s. See {self._log}")
            if self._child.stdin:
                self._child.stdin.close()
            if self._stopping.wait(backoff_s):
                break
            backoff_s = min(backoff_s * 2, LONGEST_BACKOFF_S)
            self._child = self._spawn()
            started_s = time.monotonic()


def worker_command(processes: int) -> list[str]:
    return [sys.executable, "-m", "playground.play.worker", f"--concurrency={processes}"]
