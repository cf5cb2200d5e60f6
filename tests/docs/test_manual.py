"""Every command and snippet of the manual is run, chapter by chapter, as a reader would.

A fenced block says what it is: `yaml file=NAME` and `python file=NAME` are written, `sh` is run (`exit=N`: with this
status), `text output` is what the commands before it say, `python` is run; `>>>` in one is a doctest. `not-run="why"`
is not run, and counted here.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.scenario.gallery import ORDER

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CHAPTERS = sorted(DOCS.glob("*.md"))
IN_THE_TEXT = "http://127.0.0.1:8000"
NOT_RUN = {"README": 1, "import": 1, "team": 1, "drive": 2}
"""Chapter -> blocks that are not run, each with its reason beside it."""
OF: dict[str, tuple[str, ...]] = {
    "controllers": ("scheduler_core/autoscaler/", "scheduler_core/descheduler/", "scheduler_core/karpenter/"),
    "drive": ("playground/kube_api/", "scheduler_core/sim/"),
    "follow": ("playground/remote/", "scheduler_core/incident/"),
    "plan": ("scheduler_core/whatif/",),
    "releases": ("scheduler_core/releases/", "scheduler_core/scenario/upgrade.py"),
    "scenarios": ("playground/scenarios/", "scheduler_core/scenario/"),
}
"""Chapters that take long -> what they are about: run where it, or the chapter, has changed, and by night."""


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int
    language: str
    words: dict[str, str]
    text: str


def blocks(chapter: Path) -> Iterator[Block]:
    lines = iter(enumerate(chapter.read_text().splitlines(), 1))
    for number, line in lines:
        if not line.startswith("```"):
            continue
        language, *words = shlex.split(line.removeprefix("```")) or [""]
        body = []
        for _, inside in lines:
            if inside.startswith("```"):
                break
            body.append(inside)
        said = dict(word.partition("=")[::2] for word in words)
        yield Block(number, language, said, "\n".join(body) + "\n")


def script(chapter: Path, folder: Path) -> tuple[str, dict[int, list[str]]]:
    """One bash script for the runnable blocks of a chapter, and what must be said by the block of a line."""
    lines, expected, last = ["set -u"], {}, 0
    for block in blocks(chapter):
        if "not-run" in block.words:
            continue
        if "file" in block.words:
            (folder / block.words["file"]).write_text(block.text)
        elif block.language == "sh":
            last, status = block.line, int(block.words.get("exit", "0"))
            fails = f'echo "line {block.line}: status $status"; cat out.{block.line}; exit 1'
            strict = ("set -e", "set +e") if not status else ("", "")
            lines += [
                f"trap 'status=$?; [ \"$status\" = 0 ] || {{ {fails}; }}' EXIT",
                strict[0],
                f"{{\n{block.text}}} > out.{block.line} 2>&1",
                "status=$?",
                strict[1],
                f"[ $status -eq {status} ] || {{ {fails}; }}",
            ]
        elif block.words.keys() == {"output"}:
            expected.setdefault(last, []).extend(block.text.splitlines())
        elif block.language == "python" and ">>>" not in block.text:
            name = f"block_{block.line}.py"
            (folder / name).write_text(block.text)
            lines.append(f'python3 {name} || {{ echo "line {block.line}"; exit 1; }}')
        elif not (block.language == "python" and ">>>" in block.text):
            raise AssertionError(f"{chapter.name}:{block.line}: say how this block is run, or why it is not")
    return "\n".join(lines), expected


def by_night(chapter: Path) -> Any:
    own = (f"docs/{chapter.name}", "scheduler_core/cli/", *OF.get(chapter.stem, ()))
    return pytest.param(
        chapter, id=chapter.stem, marks=[pytest.mark.nightly(*own)] if chapter.stem in OF else []
    )


@pytest.mark.parametrize("chapter", [by_night(chapter) for chapter in CHAPTERS])
def test_every_command_and_snippet_of_a_chapter_does_what_it_says(
    chapter: Path, address: str, tmp_path: Path
) -> None:
    text, expected = script(chapter, tmp_path)
    own = Path(sys.executable).parent
    environment = {
        "PATH": f"{own}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "COLUMNS": "200",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-c", text.replace(IN_THE_TEXT, address)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line, words in expected.items():
        said = (tmp_path / f"out.{line}").read_text()
        for word in words:
            assert word in said, f"{chapter.name}:{line} does not say {word!r}, but: {said}"
    n_failed, _ = doctest.testfile(str(chapter), module_relative=False)
    assert n_failed == 0


def test_what_is_not_run_says_why_and_is_counted() -> None:
    found: dict[str, int] = {}
    for chapter in CHAPTERS:
        for block in blocks(chapter):
            if "not-run" in block.words:
                assert len(block.words["not-run"]) > 20, f"{chapter.name}:{block.line}"
                found[chapter.stem] = found.get(chapter.stem, 0) + 1
    assert found == NOT_RUN


def test_links_of_the_manual_lead_somewhere() -> None:
    for chapter in CHAPTERS:
        for target in re.findall(r"\]\(([^)\s]+)\)", chapter.read_text()):
            if target.startswith("/gallery/"):
                assert target.strip("/").rpartition("/")[2] in ORDER, (chapter.name, target)
            elif not target.startswith(("http", "/", "#")):
                assert (chapter.parent / target.partition("#")[0]).exists(), (chapter.name, target)
