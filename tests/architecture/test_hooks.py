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


HOOKS = {
    "ruff-check": ("manage.py", "import os\n"),
    "ruff-format": ("manage.py", "a = [1,\n 2]\n"),
    "djhtml": ("templates/base.html", "<div>\n<p></p>\n</div>\n"),
    "djlint": ("templates/base.html", "<img>\n"),
}
"""Hook -> a file of the tree it passes, and what it is for."""


@pytest.mark.parametrize(("name", "file", "wrong"), [(name, *row) for name, row in HOOKS.items()])
def test_a_hook_runs_a_tool_of_the_dev_extra_and_finds_what_it_is_for(
    name: str, file: str, wrong: str, tmp_path: Path
) -> None:
    hook, other = hooks()[name], tmp_path / Path(file).name
    python, *command = hook["entry"].split()
    assert (hook["language"], python) == ("system", ".venv/bin/python")
    other.write_text(wrong)
    for path, found in ((ROOT / file, False), (other, True)):
        done = subprocess.run([sys.executable, *command, str(path)], cwd=ROOT, capture_output=True, text=True)
        assert bool(done.returncode) is found, (done.stdout, done.stderr)


def test_the_linters_options_are_those_of_the_suite() -> None:
    assert hooks().keys() == HOOKS.keys()
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
