"""The harness's door to a site: HTTP as people have it, its processes, its orders, its broker."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.points import WHERE

HOST = "playground.example"
READY_S = 120.0
PATIENCE_S = 120.0
ANSWER_S = 100.0
"""Long: a request that is given up may be done later, and be taken for one of its time."""


class SiteDown(Exception):
    """The site did not answer for so long that this is a violation."""


class Site:
    """A running site.

    Parameters
    ----------
    tree
        Folder with the code it runs: this one, or a mutant's copy.
    environment
        Its variables; the harness has the same.
    folder
        For orders and logs.
    token
        Of a team's site.
    """

    def __init__(
        self, tree: Path, environment: dict[str, str], folder: Path, port: int, token: str = ""
    ) -> None:
        self.port = port
        self.orders = folder / "orders"
        self.orders.mkdir(exist_ok=True)
        self.log = folder / "site.log"
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers |= {
                "Authorization": f"Bearer {token}",
                "Host": HOST,
                "X-Forwarded-Proto": "https",
            }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.faults.start"),
                    *("team" if token else "embedded", str(port), str(self.orders)),
                ],
                cwd=tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    # ---- as people have it

    def try_once(self, method: str, path: str, body: Any = None, media: str = "") -> tuple[int, Any]:
        """Status and JSON of the answer.

        Raises
        ------
        OSError
            No answer came; what was asked for may have been done, or not.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        headers = self._headers | ({"Content-Type": media} if media else {})
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text) if text else None
        except ValueError:
            return answer.status, text[:500].decode(errors="replace")

    def insist(self, method: str, path: str, body: Any = None, media: str = "") -> tuple[int, Any]:
        """The first answer that says yes or no; a request without one is made again, as people do.

        Raises
        ------
        SiteDown
        """
        until_s = time.monotonic() + PATIENCE_S
        last: Any = None
        while time.monotonic() < until_s:
            try:
                last = self.try_once(method, path, body, media)
                if last[0] < 500 and last[0] != 429:
                    return int(last[0]), last[1]
            except OSError as error:
                last = error
            time.sleep(0.05)
        raise SiteDown(f"{method} {path} had no answer in {PATIENCE_S:g} s: {last}")

    def wait_until_ready(self) -> None:
        until_s = time.monotonic() + READY_S
        last: Any = None
        while time.monotonic() < until_s:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                last = self.try_once("GET", "/readyz")
                if last[0] == 200:
                    return
            time.sleep(0.1)
        raise SiteDown(f"the site did not become ready: {last}\n{self.log.read_text()[-3000:]}")

    # ---- its processes

    def processes(self) -> dict[int, str]:
        """Process id -> name, of all processes of the site but the one that starts them again."""
        rows = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError, IndexError):
                    text = (entry / "stat").read_text()
                    name = text[text.index("(") + 1 : text.rindex(")")]
                    state, parent = text.rpartition(")")[2].split()[:2]
                    rows.append((int(entry.name), int(parent), state, name))
        found: dict[int, str] = {}
        parents = {self.process.pid}
        while parents:
            more = {
                pid: name
                for pid, parent, state, name in rows
                if parent in parents and pid not in found and state != "Z"
            }
            found |= more
            parents = set(more)
        return found

    def say_where_they_stand(self) -> None:
        """Every process writes its stacks to the log."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, WHERE)
                time.sleep(0.1)

    def stop(self) -> None:
        """End it with all its processes."""
        left = self.processes()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- orders

    def order(self, place: str, how: str, cluster: int | None = None) -> None:
        """The process that next passes ``before.<step>`` or ``after.<step>`` (with this cluster's lease) suffers it."""
        path = self.orders / place
        draft = path.with_name(f"draft.{place}")
        draft.write_text(json.dumps({"how": how, "cluster": cluster}))
        draft.rename(path)

    def withdraw(self, place: str) -> None:
        (self.orders / place).unlink(missing_ok=True)

    def stalled(self, place: str) -> list[Stalled]:
        return [Stalled(path) for path in sorted(self.orders.glob(f"taken.{place}.*"))]

    def tell(self, name: str, what: Any) -> None:
        """``max-cycles``, ``clocks``: what the processes read at each turn; None takes it back."""
        path = self.orders / name
        if what is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(json.dumps(what))

    def tidy(self) -> None:
        """No order is left, and all who were stalled go on."""
        for path in self.orders.iterdir():
            path.unlink(missing_ok=True)


class Stalled:
    """A process that stands before or after a step."""

    def __init__(self, taken: Path) -> None:
        self._taken = taken
        self.pid = int(taken.name.split(".")[-2])

    @property
    def is_there(self) -> bool:
        """Whether it stands there still."""
        return self._taken.exists() and Path(f"/proc/{self.pid}").exists()

    def go_on(self, within_s: float = 20.0) -> str:
        """How the step ended: ``returned``, or the error's name; empty if that is not known."""
        ended = self._taken.with_name(self._taken.name.replace("taken.", "ended.", 1))
        self._taken.unlink(missing_ok=True)
        until_s = time.monotonic() + within_s
        while time.monotonic() < until_s and Path(f"/proc/{self.pid}").exists():
            if ended.exists() and (how := ended.read_text()):
                return how
            time.sleep(0.01)
        return ended.read_text() if ended.exists() else ""


def wait_for(found: Callable[[], Any], within_s: float) -> Any:
    """What it finds, looked for again and again; None when it was not found in time."""
    until_s = time.monotonic() + within_s
    while True:
        result = found()
        if result or time.monotonic() > until_s:
            return result or None
        time.sleep(0.02)
