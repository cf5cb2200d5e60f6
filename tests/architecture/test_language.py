"""Plain words: the idiom this project once had of its own stays out of code, pages and documents."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("deploy", "docs", "examples", "playground", "scheduler_core", "static", "templates", "tests")
TEXTS = (".css", ".html", ".js", ".md", ".py")
# Say who or what it is: a pod, a client, a person, no pod.
IDIOM = re.compile(r"\b(nobody|somebody|whoever|deeds?)\b|DEAR_", re.IGNORECASE)
EXCEPT = {
    # A user of Unix is called so.
    ("tests/servers.py", "nobody"),
    # A field of REST that clients may still read.
    ("CHANGELOG.md", "deed"),
    ("playground/api/serializers/drafts.py", "deed"),
    ("playground/api/views/drafts.py", "deed"),
    # What a migration made before it was renamed by one.
    ("playground/clusters/migrations/0039_deeds.py", "deed"),
    ("playground/clusters/migrations/0039_deeds.py", "deeds"),
    ("playground/clusters/migrations/0040_drafts.py", "deed"),
    ("playground/clusters/migrations/0042_changes.py", "deed"),
}


def idiom_in(root: Path) -> set[tuple[str, str]]:
    """File and word of each occurrence."""
    files = [*root.glob("*.md"), *(path for folder in FOLDERS for path in (root / folder).rglob("*"))]
    return {
        (str(path.relative_to(root)), found.group().lower())
        for path in files
        if path.suffix in TEXTS and path.is_file() and path.name != Path(__file__).name
        for found in IDIOM.finditer(path.read_text(encoding="utf-8"))
    }


def test_no_idiom_of_our_own() -> None:
    assert idiom_in(ROOT) == EXCEPT


def test_an_idiom_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "words.md").write_text("Whoever reads this, and DEAR_CHECKPOINT_MS.")
    assert idiom_in(tmp_path) == {("docs/words.md", "whoever"), ("docs/words.md", "dear_")}
