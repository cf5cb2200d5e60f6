"""The hooks of a commit and the public CI run what the suite and `.ci/run` run."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import tools

ROOT = Path(__file__).resolve().parents[2]


def hooks() -> dict[str, dict[str, Any]]:
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local", "a hook from elsewhere would be fetched from there"
    return {hook["id"]: hook for hook in repository["hooks"]}


def test_every_hook_runs_a_tool_of_the_dev_extra_and_passes() -> None:
    files = {
        "ruff-check": "manage.py",
        "ruff-format": "manage.py",
        "djhtml": "templates/base.html",
        "djlint": "templates/base.html",
    }
    assert hooks().keys() == files.keys()
    for name, hook in hooks().items():
        assert hook["language"] == "system"
        python, *command = hook["entry"].split()
        assert python == ".venv/bin/python"
        done = subprocess.run(
            [sys.executable, *command, files[name]], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (name, done.stdout, done.stderr)


def test_a_hook_finds_what_it_is_for(tmp_path: Path) -> None:
    wrong = {
        "ruff-check": ("wrong.py", "import os\n"),
        "ruff-format": ("wrong.py", "a = [1,\n 2]\n"),
        "djhtml": ("wrong.html", "<div>\n<p></p>\n</div>\n"),
        "djlint": ("wrong.html", "<img>\n"),
    }
    for name, hook in hooks().items():
        file, text = wrong[name]
        (tmp_path / file).write_text(text)
        done = subprocess.run(
            [sys.executable, *hook["entry"].split()[1:], str(tmp_path / file)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode, (name, done.stdout)


def test_the_linters_options_are_those_of_the_suite() -> None:
    assert f"--ignore {tools.NOT_ASKED}" in hooks()["djlint"]["entry"]


@pytest.mark.parametrize(
    ("name", "when", "script"),
    [("ci", {"push", "pull_request"}, ".ci/run"), ("nightly", {"schedule"}, ".ci/run -m nightly")],
)
def test_the_public_ci_runs_the_one_script(name: str, when: set[str], script: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yaml").read_text())
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow[True]) == when
    [job] = workflow["jobs"].values()
    steps = job["steps"]
    assert [step["run"] for step in steps if "run" in step] == [script]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
