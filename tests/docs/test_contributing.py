"""What CONTRIBUTING.md names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_links_and_files_are_there() -> None:
    linked = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", TEXT) + re.findall(r"(tests/\S+)", TEXT)
    assert len(linked) > 4 and len(named) > 4
    gone = [name for name in linked + named if not (ROOT / name.strip("`;,")).exists()]
    assert not gone


def test_the_tools_it_runs_are_part_of_the_extra() -> None:
    extra = (ROOT / "pyproject.toml").read_text()
    for tool in re.findall(r"\.venv/bin/(\w+) ", TEXT):
        assert tool in ("python", "pip") or f'"{tool}>=' in extra, tool
