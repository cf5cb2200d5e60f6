"""The tools of the suite are run and heard; the pins are whole and name no address."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from tests import tools

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_step_of_the_suite_tells_what_a_tool_found(capfd: pytest.CaptureFixture[str]) -> None:
    assert {"mypy", "import-linter", "djlint", "djhtml", "ruff check", "ruff format"} == tools.TOOLS.keys()
    program = ("python", "-c", "import sys; print('here'); sys.exit(sys.argv[1])")
    assert tools.found_by({"sound": (*program[:2], ""), "strict": (*program, "2")}) == ["strict"]
    said = capfd.readouterr().out
    assert "sound: nothing found" in said and "here" in said and "strict FAILED" in said


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
