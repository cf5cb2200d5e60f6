"""Changes of one line in the product, and whether the tests of its package find them: `python -m tests.seeded`.

Not part of the suite: it measures the suite. The same seed chooses the same places at two commits, wherever the files
were moved, as long as a function keeps its name and the line: a rule that lost its last test shows as one found less.
Each change is made in a worktree of the commit, so that the tree that is worked in stays as it is.
"""

import argparse
import ast
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
N_CHANGES, SEED = 40, 41
PRODUCT = ("scheduler_core", "playground")
LEFT_OUT = ("migrations", "__main__.py", "settings.py")
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
LEFT_OUT_MARKERS = ("slow", "nightly", "browser", "kubectl", "postgres", "redis", "rabbitmq")
TIMEOUT_S = 900


@dataclass(frozen=True)
class Change:
    """One line of a file with another expression in it; columns are of its UTF-8."""

    path: str
    function: str
    line: int
    start: int
    end: int
    new: str
    text: str

    @property
    def package(self) -> str:
        return "/".join(Path(self.path).parts[:2])

    def made(self) -> str:
        source = self.text.encode()
        return (source[: self.start] + self.new.encode() + source[self.end :]).decode()

    def rank(self, seed: int) -> str:
        return hashlib.sha256(f"{seed} {self.function} {self.made().strip()}".encode()).hexdigest()


def changed(node: ast.AST) -> ast.expr | None:
    """Another expression in place of a node; none where there is nothing to change about it."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            return ast.Compare(left, [FLIPPED[type(op)]()], right)
        case ast.If(test=test) | ast.IfExp(test=test):
            return ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return ast.Constant(value + 1)
        case ast.Return(value=ast.expr()):
            return ast.Constant(None)
    return None


def changes_of(path: str, source: str) -> Iterator[Change]:
    """All changes that could be made to the functions of a file."""
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                new = changed(node)
                place = getattr(node, "test" if isinstance(node, (ast.If, ast.IfExp)) else "value", node)
                old = place if isinstance(place, ast.expr) else node
                if new is None or not isinstance(old, ast.expr) or old.lineno != old.end_lineno:
                    continue
                assert old.end_col_offset is not None
                where = (old.lineno, old.col_offset, old.end_col_offset)
                text = ast.unparse(ast.fix_missing_locations(ast.copy_location(new, old)))
                yield Change(path, function.name, *where, f"({text})", lines[old.lineno - 1])


def chosen(root: Path, n: int, seed: int) -> list[Change]:
    """As many changes: those of the least ranks, in which a package has as many as it has places."""
    found: dict[str, Change] = {}
    for path in sorted(path for top in PRODUCT for path in (root / top).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not any(part in name for part in LEFT_OUT):
            for change in changes_of(name, path.read_text()):
                found.setdefault(change.rank(seed), change)
    return [found[rank] for rank in sorted(found)[:n]]


def tests_of(change: Change, root: Path) -> list[list[str]]:
    """Folders of the tests that are asked, the nearest first."""
    top, room = change.package.split("/")
    if top == "playground":
        asked = [
            [f"tests/{room}"],
            ["tests/clusters", "tests/scenarios", "tests/api", "tests/web", "tests/kube_api", "tests/cases"],
        ]
    else:
        asked = [[f"tests/scheduler_core/{room}"], ["tests/scheduler_core", "tests/cases"]]
    there = ([folder for folder in folders if (root / folder).is_dir()] for folders in asked)
    return [folders for folders in there if folders]


def found_by(change: Change, root: Path) -> str:
    """The first test that fails with the change, which is undone again; empty where none does."""
    path = root / change.path
    source = path.read_text()
    lines = source.splitlines(keepends=True)
    lines[change.line - 1] = change.made() + "\n"
    path.write_text("".join(lines))
    known = (root / "pyproject.toml").read_text()
    marked = " and ".join(f"not {name}" for name in LEFT_OUT_MARKERS if f'"{name}' in known)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--reruns",
        "0",
        "-m",
        marked,
    ]
    try:
        for folders in tests_of(change, root):
            try:
                done = subprocess.run(
                    [*command, *folders], cwd=root, capture_output=True, text=True, timeout=TIMEOUT_S
                )
            except subprocess.TimeoutExpired:
                return "what never ends is seen"
            if done.returncode == 4:
                raise SystemExit(done.stderr)
            if done.returncode not in (0, 5):
                said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return said[0] if said else f"exit code {done.returncode}"
        return ""
    finally:
        path.write_text(source)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD", help="what is measured (default: HEAD)")
    parser.add_argument("-n", type=int, default=N_CHANGES, help=f"changes (default: {N_CHANGES})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"what chooses them (default: {SEED})")
    parser.add_argument(
        "--only", type=int, nargs="+", help="numbers of changes to run, from 1 (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="show the changes and run nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seeded-") as folder:
        root = Path(folder, "tree")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(root), options.commit], check=True)
        try:
            asked = list(enumerate(chosen(root, options.n, options.seed), start=1))
            asked = [(n, change) for n, change in asked if not options.only or n in options.only]
            n_found = 0
            for n, change in asked:
                where = (
                    f"{n:>3} {change.path}:{change.line} {change.text.strip()}  ->  {change.made().strip()}"
                )
                if options.list:
                    print(where)
                    continue
                found = found_by(change, root)
                n_found += bool(found)
                print(f"{'found    ' if found else 'NOT FOUND'} {where}", flush=True)
                print(f"          {found}", flush=True)
            if not options.list:
                print(f"{n_found} of {len(asked)} found")
        finally:
            subprocess.run([*git, "remove", "--force", str(root)], check=True)


if __name__ == "__main__":
    main()
