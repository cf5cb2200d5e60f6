"""A plugin is one file and one line: what is known of it outside follows from its class."""

import re
import subprocess
import sys
from pathlib import Path

from scheduler_core.plugins import IN_TREE, RETIRED
from tests.tables import table

ROOT = Path(__file__).parents[2]
CORE = ROOT / "scheduler_core"

# Names are facts of upstream's own there: what a Policy's predicates became, what upstream's messages say, kinds of
# plugins' arguments in documents; and examples in words.
BY_NAME = table(__file__, "BY_NAME")
SITE_BY_NAME = {
    "web/templatetags/playground.py": "an example",
}
APART = ("cli/", "whatif/model", "releases/")
"""Recorded cases name plugins, the formal model is written independently, and releases say what changed by name."""

NEW = table(__file__, "NEW")

USE = table(__file__, "USE")


def test_a_new_plugin_of_the_tree_touches_two_files(tmp_path: Path) -> None:
    """A copy of the tree with one file more and the list changed runs it by default, with arguments and the kit."""
    tree = tmp_path / "scheduler_core"
    subprocess.run(["cp", "-r", str(CORE), str(tree)], check=True)
    before = {path: path.read_bytes() for path in tree.rglob("*.py")}
    (tree / "plugins" / "odd.py").write_text(NEW)
    table = tree / "plugins" / "__init__.py"
    text = table.read_text()
    table.write_text(
        text.replace("\nIN_TREE:", "\nfrom scheduler_core.plugins.odd import Odd\n\nIN_TREE:", 1).replace(
            "    DefaultBinder,\n", "    DefaultBinder,\n    Odd,\n", 1
        )
    )
    touched = {path for path in tree.rglob("*.py") if before.get(path) != path.read_bytes()}
    assert {path.name for path in touched} == {"odd.py", "__init__.py"} and len(touched) == 2
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_plugins_are_asked_for_by_name_or_class_only_where_upstream_names_them() -> None:
    classes = "|".join(plugin.__name__ for plugin in (*IN_TREE, *RETIRED))
    by_class = re.compile(
        rf"isinstance\([^)]*\b(?:{classes})\b|^from scheduler_core\.plugins\.\w+[\w.]* import", re.M
    )
    by_name = re.compile(rf'(?:==|!=|\bin\b|\bget\(|\[)\s*\(?"(?:{classes})"|^\s*"(?:{classes})":', re.M)
    found = {}
    for path in sorted(CORE.rglob("*.py")):
        place = str(path.relative_to(CORE))
        if place.startswith(("plugins/", *APART)) or place in BY_NAME:
            continue
        text = path.read_text()
        said = [match[0].strip() for pattern in (by_class, by_name) for match in pattern.finditer(text)]
        if said:
            found[place] = said
    assert found == {}


def test_the_site_knows_no_plugin_by_name() -> None:
    """What a page draws, orders or says of a plugin follows from what its class declares."""
    names = re.compile(
        "|".join(rf'["\']{plugin.name}["\']' for plugin in (*IN_TREE, *RETIRED) if not plugin.is_family)
    )
    found = {}
    for path in sorted((ROOT / "playground").rglob("*.py")):
        place = str(path.relative_to(ROOT / "playground"))
        if place not in SITE_BY_NAME and (said := names.findall(path.read_text())):
            found[place] = said
    for path in sorted((ROOT / "templates").rglob("*.html")):
        if said := re.findall(rf"[=!]= ?(?:{names.pattern})", path.read_text()):
            found[path.name] = said
    assert found == {}
