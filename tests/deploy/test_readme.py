"""The README's team section, followed word by word in a bare environment, to a bound pod."""

import http.client
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.builders import make_node, make_pod
from tests.deploy.commands import ROOT, team
from tests.servers import free_port, make_database

WAIT_S = 200.0
HOST = "playground.example"
# Words of the section that are meant to be replaced.
SECRET = "a secret key of the tests, long enough for the check"
LONG_RUNNING = ("uvicorn ", "celery ")


class Follower:
    """Does what the lines say, in one bare environment; what keeps running is kept running."""

    def __init__(self, folder: Path, database: str, broker: str) -> None:
        self.folder = folder
        self.words = {
            "PLAYGROUND_SECRET_KEY=...": f"PLAYGROUND_SECRET_KEY='{SECRET}'",
            "postgresql://user:password@host/playground": database,
            "redis://host:6379/0": broker,
        }
        self.port = free_port()
        # Nothing of this test's own environment: no packages, no settings.
        self.environment = {
            "PATH": f"{folder / 'venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": os.environ.get("HOME", "/"),
            "LANG": "C.UTF-8",
            "PLAYGROUND_DATA": str(folder / "data"),
            "PYTHONUNBUFFERED": "1",
            **{
                name: value
                for name, value in os.environ.items()
                if name.startswith(("PIP_", "SSL_", "REQUESTS_"))
            },
        }
        self.running: list[subprocess.Popen[bytes]] = []
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, env=self.environment)

    def follow(self, line: str) -> None:
        used = [word for word in self.words if word in line]
        for word in used:
            line = line.replace(word, self.words[word])
        if line.startswith("export "):
            shown = self._shell(f"{line}; env -0")
            self.environment |= dict(item.split("=", 1) for item in shown.split("\0") if "=" in item)
        elif line.startswith(LONG_RUNNING):
            # The port is the one thing added: the usual one may be taken on this machine.
            line += f" --port {self.port}" if line.startswith("uvicorn ") else ""
            with (self.folder / f"{len(self.running)}.log").open("wb") as log:
                self.running.append(
                    subprocess.Popen(line.split(), env=self.environment, cwd=ROOT, stdout=log, stderr=log)
                )
        elif "createsuperuser" in line:
            self._typed(line, (("Username", "root"), ("Email", ""), ("Password", SECRET), ("again", SECRET)))
        else:
            self._shell(line)

    def _shell(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line], env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def _typed(self, line: str, answers: tuple[tuple[str, str], ...]) -> None:
        """Run it at a terminal and answer what it asks."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execvpe(line.split()[0], line.split(), self.environment)
        said = b""
        for asked, answer in answers:
            deadline_s = time.monotonic() + WAIT_S
            while asked.encode() not in said:
                assert select.select([terminal], [], [], deadline_s - time.monotonic())[0], said
                said += os.read(terminal, 1000)
            said = b""
            os.write(terminal, answer.encode() + b"\n")
        assert os.waitpid(pid, 0)[1] == 0
        os.close(terminal)

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


class Browser:
    """Speaks with the site as the proxy does: HTTPS was spoken with the person."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}
        self.token = ""

    def ask(self, method: str, path: str, body: str | None = None, media: str = "") -> tuple[int, str]:
        headers = {"Host": HOST, "X-Forwarded-Proto": "https", "Referer": f"https://{HOST}/"}
        if media:
            headers["Content-Type"] = media
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            headers["X-CSRFToken"] = self.cookies.get("csrftoken", "")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            for cookie in answer.headers.get_all("Set-Cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None) -> Any:
        media = "" if body is None else "application/json"
        status, text = self.ask(method, path, None if body is None else json.dumps(body), media)
        assert status < 300, (path, status, text)
        return json.loads(text) if text else None


@pytest.fixture
def follower(postgresql_url: str, redis_url: str, tmp_path: Path) -> Iterator[Follower]:
    url, drop = make_database(postgresql_url, "readme")
    follower = Follower(tmp_path, url, redis_url)
    yield follower
    follower.end()
    drop()


def eventually(look: Any, say: Any) -> Any:
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        if found := look():
            return found
        time.sleep(0.2)
    raise AssertionError(say())


@pytest.mark.nightly("README.md", "pyproject.toml", "constraints.txt", "playground/settings.py")
@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_team_section_leads_word_by_word_to_a_bound_pod(follower: Follower) -> None:
    lines = team()
    programs = [line.split()[0] for line in lines]
    assert programs[:5] == ["pip", "export", "export", "python", "uvicorn"]
    assert {*programs[5:-1]} == {"celery"} and programs[-1] == "python"
    for line in lines:
        follower.follow(line)
    listed = subprocess.run(
        [follower.folder / "venv" / "bin" / "python", "-m", "pip", "list"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "pytest" not in listed

    browser = Browser(follower.port)

    def served() -> bool:
        try:
            return browser.ask("GET", "/account/login/")[0] == 200
        except OSError:
            return False

    eventually(served, follower.logs)
    status, page = browser.ask("GET", "/account/login/")
    csrf = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert csrf
    form = f"csrfmiddlewaretoken={csrf[1]}&username=root&password={SECRET.replace(' ', '+')}"
    status, page = browser.ask("POST", "/account/login/", form, "application/x-www-form-urlencoded")
    assert status == 302, page
    browser.token = browser.json("POST", "/api/v1/tokens/", {"name": "readme"})["token"]

    made = browser.json("POST", "/api/v1/clusters/", {"name": "from the README"})
    cluster = f"/api/v1/clusters/{made['id']}"
    objects = {"apiVersion": "v1", "kind": "List", "items": [make_node("n1"), make_pod("p1")]}
    browser.json("POST", f"{cluster}/apply", objects)
    browser.json("POST", f"{cluster}/run", {"until": "idle"})
    pod = f"/k8s/{made['id']}/api/v1/namespaces/default/pods/p1"
    bound = eventually(lambda: browser.json("GET", pod)["spec"].get("nodeName"), follower.logs)
    assert bound == "n1"
    eventually(lambda: json.loads(browser.ask("GET", "/readyz")[1])["ready"], follower.logs)
