"""Templates and style sheets can be reviewed: formatted (templates: tests/tools.py), and no line too long."""

import re
from pathlib import Path

import cssbeautifier
import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
STYLES = sorted((ROOT / "static" / "css").glob("*.css"))
PACKAGES = ("templates", "static", "playground", "scheduler_core")
WIDTH = 160


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_styles_are_formatted(path: Path) -> None:
    options = cssbeautifier.default_options()
    options.indent_size = 2
    options.end_with_newline = True
    text = path.read_text()
    assert cssbeautifier.beautify(text, options) == text, (
        "format it: css-beautify --replace --indent-size 2 --end-with-newline " + str(path.relative_to(ROOT))
    )


def test_what_scrolls_is_named_and_reached_by_keyboard() -> None:
    unnamed = [
        f"{path.relative_to(ROOT)}: {tag}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for tag in re.findall(r'<div class="scroll[ "][^>]*>', path.read_text())
        if not all(word in tag for word in ('tabindex="0"', 'role="group"', 'aria-label="'))
    ]
    assert not unnamed


def test_no_line_is_too_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*"))
        if path.suffix in (".css", ".html")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDTH
    ]
    assert not long, f"more than {WIDTH} characters: {long}"
