"""Refusals of the services, ready to be shown at the line and the field they are about."""

from collections.abc import Iterable
from dataclasses import dataclass

from playground.clusters.errors import ClusterError, InvalidManifest
from playground.engine.documents import decoded

AROUND = 3


@dataclass(frozen=True)
class Line:
    """A line of the posted text; ``bad`` marks the one at fault."""

    number: int
    text: str
    bad: bool


@dataclass(frozen=True)
class Problem:
    """One thing wrong, with the lines around it when the place is known."""

    message: str
    path: str
    line: int | None
    about: str
    excerpt: tuple[Line, ...]


def problems_of(error: ClusterError, text: str | bytes = "") -> list[Problem]:
    """Return the error and its causes in order, each with an excerpt of the text where it has a line."""
    if isinstance(text, bytes):
        text = decoded(text, "replace")
    lines = text.splitlines()
    found: Iterable[ClusterError] = (error, *error.causes) if isinstance(error, InvalidManifest) else (error,)
    return [_problem(one, lines) for one in found]


def _problem(error: ClusterError, lines: list[str]) -> Problem:
    line = getattr(error, "line", None)
    kind, name = getattr(error, "kind", ""), getattr(error, "name", "")
    return Problem(
        message=error.message,
        path=getattr(error, "path", "") or getattr(error, "field", ""),
        line=line,
        about=f"{kind} {name}".strip() if isinstance(error, InvalidManifest) else "",
        excerpt=_excerpt(lines, line) if line else (),
    )


def _excerpt(lines: list[str], line: int) -> tuple[Line, ...]:
    first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
    return tuple(Line(i, lines[i - 1][:400], i == line) for i in range(first, last + 1))
