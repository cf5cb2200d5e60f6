"""ruff and mypy find nothing; the pins are whole and name no address."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_ruff_finds_nothing() -> None:
    run("ruff", "check", "--quiet", ".")


def test_all_code_is_formatted() -> None:
    run("ruff", "format", "--check", "--quiet", ".")


@pytest.mark.slow
@pytest.mark.timeout(1200)  # of a busy machine; a quiet one takes half a minute
def test_mypy_finds_nothing() -> None:
    run("mypy")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_pin_is_a_name_and_a_version_and_nothing_else() -> None:
    pin = re.compile(r"[a-z0-9.-]+==[\w.]+( ; [^/@]+)?")
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not pin.fullmatch(line)] == []


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = list(chain(project["dependencies"], *project["optional-dependencies"].values()))
    names = {canonical(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in stated}
    pinned = {
        canonical(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert names - pinned == set()


def test_every_file_the_readme_links_to_is_there() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
