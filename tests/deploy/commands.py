"""The command lines that README.md and deploy/README.md tell people to run."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def commands(file: str, heading: str) -> list[str]:
    """The lines of the indented blocks under a heading, in order."""
    text = (ROOT / file).read_text()
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"{file} has no section {heading}"
    return [line.strip() for line in re.findall(r"^    (\S.*)$", section[1], re.MULTILINE)]


def team() -> list[str]:
    """What the README's team section runs."""
    return commands("README.md", "For a team")
