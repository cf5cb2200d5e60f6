"""The glossary and the decisions: what they link to is there, and the index is whole."""

import re
import subprocess
import tomllib
from pathlib import Path

from scheduler_core import ENGINE_VERSION

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
DECISIONS = ROOT / "docs" / "decisions"


def gone(document: Path) -> list[str]:
    """Relative links of a document that lead nowhere."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", document.read_text())
    assert targets, document
    return [target for target in targets if not (document.parent / target).exists()]


def words_of(document: Path) -> list[list[str]]:
    """Rows of the tables of words of a document, without their heads."""
    text = document.read_text().partition("## Words\n")[2] or document.read_text()
    section = text.partition("\n## ")[0] if document != GLOSSARY else text
    return [row.split(" | ") for row in re.findall(r"^\| (?!word|---)(.+) \|$", section, re.MULTILINE)]


def test_each_word_is_explained_once_and_those_of_the_code_name_a_module_that_is_there() -> None:
    of_users = words_of(GLOSSARY)
    assert len(of_users) > 30 and {len(row) for row in of_users} == {2}
    of_code = [
        row for room in ("scheduler_core", "playground") for row in words_of(ROOT / room / "README.md")
    ]
    assert len(of_code) > 30
    for word, meaning, where in of_code:
        assert re.fullmatch(r"\[[^]]+\]\([\w./]+\.py\)", where), word
        assert meaning.endswith("."), word
    for rows in (of_users, of_code):
        words = [row[0] for row in rows]
        assert len(set(words)) == len(words)
        assert all(row[1].endswith(".") for row in rows)
    for document in (GLOSSARY, ROOT / "scheduler_core" / "README.md", ROOT / "playground" / "README.md"):
        assert gone(document) == [], document


def test_every_decision_is_in_the_index_and_says_where_it_lives() -> None:
    files = sorted(path.name for path in DECISIONS.glob("[0-9]*.md"))
    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))
    index = (DECISIONS / "README.md").read_text()
    assert re.findall(r"^\d+\. \[[^]]+\]\(([^)]+)\)$", index, re.MULTILINE) == files
    for name in files:
        text = (DECISIONS / name).read_text()
        title = re.match(r"# \d+\. (.+)\n", text)
        assert title and f"[{title[1]}]({name})" in index, name
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequence", "Where"], name
        assert gone(DECISIONS / name) == [], name


def test_readers_find_them() -> None:
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text()
        assert "(docs/glossary.md)" in text and "(docs/decisions/README.md)" in text, document
    assert "(glossary.md)" in (ROOT / "docs" / "README.md").read_text()


def test_modules_that_a_readme_names_are_there() -> None:
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    for document in (name for name in listed if Path(name).name in ("README.md", "CONTRIBUTING.md")):
        named = re.findall(r"`([a-z_/0-9]+\.py)[`#]", (ROOT / document).read_text())
        away = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in listed)]
        assert not away, f"{document} names {away}"


def test_both_distributions_have_the_version_that_the_changelog_begins_with() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?\n", changes, re.MULTILINE)
    assert newest and "### Upgrade notes" in changes
    site = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = tomllib.loads((ROOT / "scheduler_core" / "pyproject.toml").read_text())
    assert core["tool"]["hatch"]["version"]["path"] == "version.py"  # the core's version is its engine's
    assert newest[1] == site["version"] == ENGINE_VERSION
    assert gone(ROOT / "CHANGELOG.md") == []


ROOMS = ("deploy", "docs", "examples", "playground", "scheduler_core", "static", "templates", "tests")
PLACE = re.compile(rf"`((?:{'|'.join(ROOMS)})/[\w./-]+\.\w+)`")


def test_files_that_documents_name_from_the_top_are_there() -> None:
    documents = [*ROOT.glob("*.md"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.md"))]
    named = {(path.name, place) for path in documents for place in PLACE.findall(path.read_text())}
    assert len(named) > 40
    assert not [(name, place) for name, place in sorted(named) if not (ROOT / place).exists()]
