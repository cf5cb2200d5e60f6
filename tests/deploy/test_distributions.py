"""The two wheels of this tree, installed into bare environments far from the checkout, as strangers use them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.builders import make_node, make_pod
from tests.servers import free_port
from tests.site import ROOT, Site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.nightly(
        "pyproject.toml", "constraints.txt", "scheduler_core/pyproject.toml", "playground/__main__.py"
    ),
]
WAIT_S = 120.0
KEPT = ("PIP_", "SSL_", "REQUESTS_")


class Bare:
    """An environment with nothing but what is installed into it; its working folder is empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        self.environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            **{name: value for name, value in os.environ.items() if name.startswith(KEPT)},
        }
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
        subprocess.run(command, check=True, env=self.environment)

    def pip(self, *words: str) -> str:
        """The tests' own pip, which works on this environment: to install another takes long."""
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *words]
        done = subprocess.run(
            command, check=True, env=self.environment, cwd=self.home, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    def install(self, *what: str) -> None:
        self.pip("install", "-q", "-c", str(ROOT / "constraints.txt"), *what)

    def run(self, *words: str, expect: int = 0) -> str:
        done = subprocess.run(
            [self.bin / words[0], *words[1:]],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
        )
        assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout


def built(bare: Bare, project: Path) -> Path:
    """The wheel of a project of this tree."""
    wheels = bare.folder / "wheels"
    wheels.mkdir()
    bare.pip("wheel", "-q", "--no-deps", "-w", str(wheels), str(project))
    [wheel] = wheels.glob("*.whl")
    return wheel


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


def test_the_core_alone_simulates_a_dump(bare: Bare) -> None:
    wheel = built(bare, ROOT / "scheduler_core")
    assert wheel.name.startswith("kube_scheduler_playground_core-")
    bare.install(str(wheel))
    installed = bare.pip("list")
    assert "numpy" in installed and "Django" not in installed and "celery" not in installed
    dump = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [make_node("n1"), make_pod("web"), make_pod("big", cpu="99")],
    }
    (bare.home / "dump.json").write_text(json.dumps(dump))
    told = json.loads(bare.run("scheduler-core", "simulate", "dump.json", "--json", expect=1))
    assert told["bound"] == [{"pod": "default/web", "node": "n1"}]
    assert [one["pod"] for one in told["waiting"]] == ["default/big"]
    assert "Insufficient cpu" in told["waiting"][0]["message"]
    program = (
        "from scheduler_core import Simulation, WriteObject, prepare, load_scenario, run_scenario, RELEASES\n"
        "import scheduler_core, pathlib\n"
        "assert pathlib.Path(scheduler_core.__file__).with_name('py.typed').exists()\n"
        "print(sorted(RELEASES))"
    )
    assert "1.36" in bare.run("python", "-c", program)
    assert bare.run("scheduler-core", "--version").startswith("scheduler-core ")


@pytest.fixture
def played(bare: Bare, tmp_path: Path) -> Iterator[tuple[Bare, Site]]:
    bare.install(str(built(bare, ROOT)))
    port = free_port()
    command = [str(bare.bin / "kube-scheduler-playground"), "--port", str(port)]
    site = Site(command, port, log=tmp_path / "log", environment=bare.environment, cwd=bare.home)
    try:
        site.wait_until_ready(WAIT_S)
        yield bare, site
    finally:
        site.stop()


def test_one_command_leads_to_a_first_explained_pod(played: tuple[Bare, Site]) -> None:
    bare, site = played

    def shown(path: str) -> str:
        status, text = site.ask("GET", path)
        assert status == 200, (path, text[:500])
        return text

    home = shown("/")
    style = next(word for word in home.split('"') if word.startswith("/static/") and ".css" in word)
    assert "{" in shown(style)
    assert "How to read a cycle" in shown("/manual/reading/")
    made = site.send("POST", "/api/v1/clusters/", {"name": "first"})
    cluster = f"/api/v1/clusters/{made['id']}"
    objects = {"apiVersion": "v1", "kind": "List", "items": [make_node("n1"), make_pod("web")]}
    site.send("POST", f"{cluster}/apply", objects)
    site.send("POST", f"{cluster}/run", {"until": "idle"})
    until_s = time.monotonic() + WAIT_S
    while not (cycles := site.send("GET", f"{cluster}/cycles/")["items"]):
        assert time.monotonic() < until_s
        time.sleep(0.2)
    assert cycles[0]["sentence"] == "default/web bound to n1: the only node."
    assert "bound to" in shown(f"/c/{made['id']}/cycles/1/")
    # What it keeps is in the person's own folder for such data, not where it was started.
    assert list((bare.home / ".local" / "share" / "kube-scheduler-playground").glob("*.sqlite3"))
    assert [path.name for path in bare.home.iterdir()] == [".local"]
    assert bare.run("kube-scheduler-playground", "--version").startswith("kube-scheduler-playground ")
