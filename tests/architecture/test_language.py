"""Plain words: the idiom this project once had of its own stays out of code, pages and documents.

A class has a name of its own, unless both are the same thing or local to their files.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("deploy", "docs", "examples", "playground", "scheduler_core", "static", "templates", "tests")
TEXTS = (".css", ".html", ".js", ".md", ".py")
# Say who or what it is: a pod, a client, a person, no pod.
IDIOM = re.compile(
    r"\b(nobody|somebody|whoever|deeds?|dear(er)?"
    r"|(sessions|rows|logs|shares|checkpoints) of before)\b|DEAR_",
    re.IGNORECASE,
)
EXCEPT = {
    # A user of Unix is called so.
    ("tests/servers.py", "nobody"),
    # Names of what went.
    ("CHANGELOG.md", "deed"),
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


# Of the first line of a docstring: say what it does, gives or is.
VAGUE = re.compile(
    r"\b(told|stands|as it was|what there is to|said of|of (its|their|his|her) own)\b", re.IGNORECASE
)


# Of what people read: pages, the manual, messages.
SAID = re.compile(
    r"\b(told|stands?|as (it|they) (was|were)|what there is to|said of|of (its|their|his|her|your|one's) own"
    r"|everybody|looks for the answer|(is|are) made again|is followed|gave back|shall)\b",
    re.IGNORECASE,
)
_TAGS = re.compile(r"\{#.*?#\}|\{%\s*comment.*?endcomment\s*%\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_ATTRIBUTES = re.compile(r"\b(class|id|name|href|hx-[\w-]+|data-[a-z-]+|for|value|action)=\"[^\"]*\"")
_COMMENTS = re.compile(r"(?<!:)//.*")
PACKAGES = ("playground", "scheduler_core")
PARAMETERS = "playground/web/site.py"
"""Names of query parameters, in one text."""


def idioms(text: str, pattern: re.Pattern[str] = SAID) -> list[str]:
    return [found.group() for found in pattern.finditer(text)]


def idioms_of_code(source: str) -> list[str]:
    """Those of first lines of docstrings, and of other texts of several words."""
    if not SAID.search(source):  # as `VAGUE` would, too
        return []
    nodes = list(ast.walk(ast.parse(source)))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]
    found = [word for text in docstrings for word in idioms(text.partition("\n")[0], VAGUE)]
    apart = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and id(node) not in apart:
                found += idioms(text)
    return found


def read_by_people(root: Path) -> dict[str, list[str]]:
    """File -> its texts: templates without their tags, the manual, tables of words, texts of scripts."""
    texts = {
        path: [_ATTRIBUTES.sub(" ", _TAGS.sub(" ", path.read_text()))]
        for path in (root / "templates").rglob("*.html")
    }
    manual = (*(root / "docs").glob("*.md"), root / "README.md", root / "CONTRIBUTING.md")
    tables = (path for package in PACKAGES for path in (root / package).rglob("*.yaml"))
    scripts = (root / "static/js").glob("*.js")
    texts |= {
        path: [re.sub(r"(?m)^ *#.*", "", path.read_text())] for path in (*manual, *tables) if path.exists()
    }
    texts |= {path: re.findall(r"'[^'\n]* [^'\n]*'", _COMMENTS.sub("", path.read_text())) for path in scripts}
    return {str(path.relative_to(root)): found for path, found in texts.items()}


def idioms_by_file(root: Path) -> dict[str, list[str]]:
    found = {
        name: [word for text in texts for word in idioms(text)]
        for name, texts in read_by_people(root).items()
    }
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            found[str(path.relative_to(root))] = idioms_of_code(path.read_text(encoding="utf-8"))
    return {name: words for name, words in found.items() if words and name != PARAMETERS}


def test_what_people_read_is_plain() -> None:
    assert idioms_by_file(ROOT) == {}


def test_an_idiom_of_a_page_or_a_message_would_be_found(tmp_path: Path) -> None:
    for name, text in (
        ("templates/a.html", '<p class="told">{{ told }} It stands here.</p>'),
        ("playground/a.py", '"""What a pod was told.\n\nTold."""\nWORDS = "it is told once"'),
        ("scheduler_core/cli/a.yaml", "a:\n  # told\n  help: as it was"),
        ("static/js/a.js", "// it is told\nsay('all shall see');"),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    assert idioms_by_file(tmp_path) == {
        "templates/a.html": ["stands"],
        "playground/a.py": ["told", "told"],
        "scheduler_core/cli/a.yaml": ["as it was"],
        "static/js/a.js": ["shall"],
    }


ALIKE = table(__file__, "ALIKE")
"""Names of several classes, by the reason why."""


def names_of_several(root: Path) -> dict[str, set[str]]:
    """Public classes that several files define -> those files; what REST answers is named after its resource."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in (*(root / "scheduler_core").rglob("*.py"), *(root / "playground").rglob("*.py")):
        place = str(path.relative_to(root))
        if "/migrations/" not in place and not place.startswith("playground/api/"):
            for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
                found[name].add(place)
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_class_has_a_name_of_its_own() -> None:
    alike = {name for names in ALIKE.values() for name in names.split()}
    found = names_of_several(ROOT)
    assert set(found) - alike == set(), "rename one, or say in ALIKE why a reader is not misled"
    assert alike - set(found) == set(), "ALIKE names what is no longer defined twice"
