"""Small breaks of the code, each of which the rounds must find: a harness that misses one would miss its like.

A mutant is an edit of one file in a copy of the tree; the code itself knows nothing of it. One whose lines have
changed does not apply any more, which is an error (and a test).
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.tables import table

COPIED = ("playground", "scheduler_core")


@dataclass(frozen=True)
class Mutant:
    """One edit: `old` stands exactly once in the file.

    Attributes
    ----------
    what
        In a few words, what is wrong then.
    """

    what: str
    path: str
    old: str
    new: str


MUTANTS = {name: Mutant(**edit) for name, edit in table(__file__, "MUTANTS").items()}


def mutated(name: str, tree: Path, folder: Path) -> Path:
    """A copy of the tree with this mutant.

    Raises
    ------
    ValueError
        Its lines are not in the tree, or stand there more than once.
    """
    mutant = MUTANTS[name]
    text = edited(mutant, (tree / mutant.path).read_text())
    folder.mkdir()
    for entry in tree.iterdir():
        if entry.name in COPIED:
            shutil.copytree(entry, folder / entry.name)
        elif not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    (folder / mutant.path).write_text(text)
    return folder


def edited(mutant: Mutant, text: str) -> str:
    """The file with the edit."""
    if text.count(mutant.old) != 1:
        raise ValueError(
            f"{mutant.path} has {mutant.old!r} {text.count(mutant.old)} times; the mutant must say it anew"
        )
    return text.replace(mutant.old, mutant.new)
