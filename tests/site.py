"""A site that a test has started: asked over HTTP as people do, seen by its processes, and ended with them."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playground.play.processes import descendants

ROOT = Path(__file__).resolve().parents[1]
HOST = "playground.example"
"""Of a team's site, whose proxy speaks HTTPS with the person."""
MANY = "100000"
TEAM = {
    "PLAYGROUND_MODE": "team",
    "PLAYGROUND_SECRET_KEY": "a secret key of the tests, long enough for the check",
    "PLAYGROUND_HOSTS": HOST,
    "PLAYGROUND_REQUEST_RATE": f"{MANY}/min",
    "PLAYGROUND_WRITE_RATE": f"{MANY}/min",
    "PLAYGROUND_MAX_CLUSTERS": MANY,
}
"""Environment of a team's site, with no limit that a test would meet."""
PAUSE_S = 0.05


class SiteDown(Exception):
    """The site gave no answer that says yes or no for as long as one was waited for."""


class Door:
    """HTTP to a site on this machine.

    Parameters
    ----------
    token
        Of a team's site.
    answer_s
        So long an answer is waited for.
    patience_s
        So long a request without an answer that says yes or no is made again.
    """

    def __init__(
        self, port: int, *, token: str = "", answer_s: float = 60.0, patience_s: float = 60.0
    ) -> None:
        self.port, self.address = port, f"http://127.0.0.1:{port}"
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers |= {"Authorization": f"Bearer {token}", "Host": HOST, "X-Forwarded-Proto": "https"}
        self._answer_s, self._patience_s = answer_s, patience_s

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self._answer_s)

    def ask(self, method: str, path: str, body: Any = None, media: str = "") -> tuple[int, str]:
        """Status and text of the answer.

        Raises
        ------
        OSError
            No answer came; what was asked for may have been done, or not.
        """
        headers = self.headers | ({"Content-Type": media} if media else {})
        with contextlib.closing(self.connect()) as connection:
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode(errors="replace")
            except http.client.HTTPException as error:
                raise OSError(str(error)) from None

    def insist(self, method: str, path: str, body: Any = None, media: str = "") -> tuple[int, Any]:
        """Status and JSON of the first answer that says yes or no.

        Raises
        ------
        SiteDown
        """
        until_s = time.monotonic() + self._patience_s
        while True:
            last: Any
            try:
                status, text = last = self.ask(method, path, body, media)
                if status < 500 and status != 429:
                    return status, _read(text)
            except OSError as error:
                last = error
            if time.monotonic() > until_s:
                raise SiteDown(f"{method} {path} had no answer in {self._patience_s:g} s: {last}")
            time.sleep(PAUSE_S)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """JSON of an answer that says yes, or that an earlier try of ours had come through."""
        status, answer = self.insist(method, path, body)
        if status == 409 and method == "POST":
            return {}
        assert status < 400, f"{method} {path}: {status} {str(answer)[:300]}"
        return answer


class Site(Door):
    """A site whose processes are below one, which starts them again.

    Parameters
    ----------
    log
        File for what it says.
    cwd
        Folder with the code that it runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        *,
        log: Path,
        environment: Mapping[str, str],
        cwd: Path = ROOT,
        **how: Any,
    ) -> None:
        super().__init__(port, **how)
        self.log = log
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self, patience_s: float = 180.0) -> None:
        until_s, last = time.monotonic() + patience_s, (0, "")
        while self.process.poll() is None and time.monotonic() < until_s:
            with contextlib.suppress(OSError):
                last = self.ask("GET", "/readyz")
                if last[0] == 200:
                    return
            time.sleep(PAUSE_S)
        raise SiteDown(f"the site did not become ready: {last}\n{self.log.read_text()[-3000:]}")

    def processes(self) -> dict[int, str]:
        """Process id -> name, of all processes of the site but the one that starts them again."""
        found = {}
        for pid in descendants(self.process.pid):
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text()
                name, _, state = stat.partition("(")[2].rpartition(")")
                if not state.startswith(" Z"):
                    found[pid] = name
        return found

    def stop(self) -> None:
        """End it with all its processes."""
        left = self.processes()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _read(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text[:500]
