"""Refusals of the services, ready to be shown at the line and the field they are about."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from playground.clusters.drive.config import read_config
from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.objects.admission import read_posted
from scheduler_core.objects.documents import decoded
from scheduler_core.objects.reading import dump_yaml

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


def problems_of(error: ClusterError, text: str | bytes = "", *, by_path: bool = False) -> list[Problem]:
    """Return the error and its causes in order, each with an excerpt of the text where it has a line.

    `by_path`: of a text of one document, a field's line is looked for where the error has none.
    """
    if isinstance(text, bytes):
        text = decoded(text, "replace")
    lines = text.splitlines()
    found: Iterable[ClusterError] = (error, *error.causes) if isinstance(error, InvalidManifest) else (error,)
    return [_problem(one, lines, text if by_path else "") for one in found]


def _problem(error: ClusterError, lines: list[str], document: str) -> Problem:
    line = getattr(error, "line", None) or line_of(document, getattr(error, "path", ""))
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


_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")


def read_mapping(text: str) -> dict[str, Any]:
    """Return the one document of a text, read by the same guarded reader as every manifest.

    Raises
    ------
    InvalidManifest
        Bad YAML, with its line; or not exactly one document.
    """
    posted = read_posted(text)
    if len(posted) != 1:
        raise InvalidManifest(f"expected one document, found {len(posted)}")
    return dict(posted[0].manifest)


def read_configuration(text: str) -> dict[str, Any]:
    """Return the scheduler configuration of a text, also out of a ConfigMap among other manifests.

    Raises
    ------
    InvalidManifest
        Bad YAML, with its line; nothing; or several configurations.
    """
    posted = read_posted(text)
    if not posted:
        raise InvalidManifest("expected a configuration, found nothing")
    return read_config([one.manifest for one in posted])


def yaml_of(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the documents as YAML, without the ``---`` before the first one."""
    return dump_yaml(documents).removeprefix("---\n")


def line_of(text: str, path: str) -> int | None:
    """Return the line (from 1) of a field path like ``profiles[0].plugins``, or of its deepest part there is.

    >>> line_of("a:\\n- b: 1\\n  c: 2\\n", "a[0].c"), line_of("a: 1", "b")
    (3, None)
    """
    if not path:
        return None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    line = None
    for step in _STEP.findall(path):
        found = _child(node, step)
        if found is None:
            return line
        node, line = found
    return line


def _child(node: Any, step: str) -> tuple[Any, int] | None:
    if isinstance(node, yaml.SequenceNode) and step.startswith("["):
        index = int(step[1:-1])
        if index < len(node.value):
            return node.value[index], node.value[index].start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line + 1
    return None
