"""What scheduler_core/scenario/README.md shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import scheduler_core.scenario
from scheduler_core.cli.main import main
from scheduler_core.scenario.types import SUBJECTS, VERB_FIELDS

README = (Path(scheduler_core.scenario.__file__).parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_example_runs_and_says_what_the_readme_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two-nodes.yaml"
    path.write_text(blocks("yaml")[0])
    assert main(["replay", str(path), "--check"]) == 0
    printed = re.sub(r" \([^)]*\)|; decisions \w+", "", capsys.readouterr().out)
    shown = README.partition("$ python -m scheduler_core replay two-nodes.yaml --check\n")[2].partition(
        "```"
    )[0]
    assert printed == shown


def test_the_python_example_runs() -> None:
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})


def test_every_step_and_subject_is_told() -> None:
    for word in (*VERB_FIELDS, *SUBJECTS):
        assert f"`{word}" in README, word


def test_every_module_is_told() -> None:
    folder = Path(scheduler_core.scenario.__file__).parent
    for path in folder.glob("*.py"):
        if path.stem not in ("__init__", "merge"):
            assert f"`{path.stem}`" in README, path.stem
