"""The kubectls there are: the oldest and the newest of them speak to a real server."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import servers


@cache
def kubectls() -> dict[tuple[int, int], str]:
    """Every kubectl on PATH, beside it, of this Python's packages and in PLAYGROUND_KUBECTLS, by its own version."""
    own = str(Path(sys.executable).parent)
    folders = [*os.get_exec_path(), own, *os.environ.get("PLAYGROUND_KUBECTLS", "").split(os.pathsep)]
    names = [servers.kubectl(), *(shutil.which("kubectl", path=folder) for folder in folders if folder)]
    found = {str(Path(name).resolve()) for name in names if name}
    for folder in {str(Path(name).parent) for name in found} | {*folders} - {""}:
        found |= {str(path) for path in Path(folder).glob("kubectl.[0-9]*")}
    versions: dict[tuple[int, int], str] = {}
    for program in sorted(found):
        said = subprocess.run(
            [program, "version", "--client", "-o", "json"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        ).stdout
        version = re.search(r'"gitVersion": "v(\d+)\.(\d+)\.', said)
        # A dispatcher only chooses among the others.
        if version and "dispatcher" not in said:
            versions[(int(version[1]), int(version[2]))] = program
    return versions


def extremes() -> list[str]:
    """The oldest and the newest."""
    versions = kubectls() if servers.kubectl() else {}
    return (
        [versions[key] for key in dict.fromkeys((min(versions), max(versions)))] if versions else ["kubectl"]
    )


def programs() -> list[Any]:
    """Parameters of a test with each of them: the newest, and by night the oldest."""
    oldest, newest = extremes()[0], extremes()[-1]
    by_night = pytest.param(oldest, marks=pytest.mark.nightly("playground/kube_api/"))
    return [newest] if oldest == newest else [newest, by_night]


class Kubectl:
    """One kubectl with a home and a cluster of its own."""

    def __init__(self, program: str, server: str, home: Path) -> None:
        self.arguments = [program, "--server", server, "--request-timeout=30s"]
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"], "KUBECONFIG": str(home / "none")}

    def run(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.arguments, *words],
            input=text,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=90,
            check=False,
        )

    def __call__(self, *words: str, text: str | None = None) -> str:
        done = self.run(*words, text=text)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.arguments, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )


def kubeconfig(server: str) -> dict[str, Any]:
    """What clients read from ``~/.kube/config``, for a cluster without a login."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
        "current-context": "c",
    }
