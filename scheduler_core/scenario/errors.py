"""What is wrong with a scenario: every place, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong.

    Attributes
    ----------
    path : str
        Field path, e.g. `steps[4].apply[0].spec.containers[0].resources.requests.cpu`; empty for the whole.
    reason : str
        In words, without the place.
    value : object
        The value at fault where it is a short one, else None.
    line, column : int or None
        In the text, from 1.
    file, subject : str
        The file and the object (kind and name) it is in, where that is known.
    """

    path: str
    reason: str
    value: Any = None
    line: int | None = None
    column: int | None = None
    file: str = ""
    subject: str = ""

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line is not None else ""
        where = "".join(f"{part}: " for part in (self.file, line, self.subject) if part)
        shown = ""
        if isinstance(self.value, str | int | float):
            text = f'"{self.value}"' if isinstance(self.value, str) else f"{self.value}"
            shown = f"{text[:80]} "
        field = f"{self.path}: " if self.path else ""
        return f"{where}{field}{shown}{self.reason}"


class ScenarioError(ValueError):
    """A scenario that cannot be read or run; nothing of it is kept.

    Attributes
    ----------
    problems : tuple of Problem
        Never empty.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        more = len(self.problems) - 20
        lines = [str(problem) for problem in self.problems[:20]]
        super().__init__("\n".join([*lines, f"... and {more} more"] if more > 0 else lines))
