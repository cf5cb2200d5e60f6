"""Which files a change touches, as git knows it: what `nightly` tests are chosen by."""

import os
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@cache
def changed(root: Path = ROOT) -> tuple[str, tuple[str, ...]]:
    """The commit that is compared with, in words, and the paths of files that differ from it, new ones too.

    It is ``PLAYGROUND_BASE`` where that is set; of a branch, where it left `origin/main`; of `main`, the commit before.
    Where there is neither (a tree without git, a clone of one commit), what is not committed yet is all there is.
    """
    head = git(root, "rev-parse", "HEAD")
    fork = git(root, "merge-base", "HEAD", "origin/main")
    base = os.environ.get("PLAYGROUND_BASE") or (fork if fork != head else "") or "HEAD~1"
    found = git(root, "diff", "--name-only", base) or git(root, "diff", "--name-only", "HEAD")
    new = git(root, "ls-files", "--others", "--exclude-standard")
    return base[:12], tuple(found.split() + new.split())


def git(root: Path, *words: str) -> str:
    """What git says; nothing where it refuses, or is not there."""
    try:
        return subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def one_in(n: int, rows: Iterable[Any], *paths: str, name: Callable[[Any], str] = str) -> list[Any]:
    """Rows for `parametrize`, of which every n-th is run always, the others where one of `paths` has changed."""
    nightly = [pytest.mark.nightly(*paths)]
    return [
        pytest.param(row, id=name(row), marks=nightly if place % n else ()) for place, row in enumerate(rows)
    ]
