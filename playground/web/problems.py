"""Refusals of the services, ready to be shown at the line and the field they are about."""

from collections.abc import Iterable, Mapping
from typing import Any

from playground.clusters.drive.config import read_config
from playground.clusters.errors import ClusterError, InvalidManifest
from playground.clusters.objects.admission import read_posted
from playground.web.looks import View
from scheduler_core.objects.documents import LineMap, decoded
from scheduler_core.objects.reading import dump_yaml

AROUND = 3


def problems_of(error: ClusterError, text: str | bytes = "", *, by_path: bool = False) -> list[View]:
    """Return the error and its causes in order, each with an excerpt of the text where it has a line.

    `by_path`: of a text of one document, a field's line is looked for where the error has none.

    Returns
    -------
    list of dict
        `message`, `path`, `line` or None, what it is `about`; `excerpt` of lines: number, text, whether it is at fault.
    """
    if isinstance(text, bytes):
        text = decoded(text, "replace")
    lines = text.splitlines()
    found: Iterable[ClusterError] = (error, *error.causes) if isinstance(error, InvalidManifest) else (error,)
    return [_problem(one, lines, text if by_path else "") for one in found]


def _problem(error: ClusterError, lines: list[str], document: str) -> View:
    line, path = getattr(error, "line", None), getattr(error, "path", "")
    if line is None and path and (place := LineMap(document).place(0, path)):
        line = place[0]
    kind, name = getattr(error, "kind", ""), getattr(error, "name", "")
    first, last = max(1, (line or 0) - AROUND), min(len(lines), (line or 0) + AROUND)
    return {
        "message": error.message,
        "path": path or getattr(error, "field", ""),
        "line": line,
        "about": f"{kind} {name}".strip() if isinstance(error, InvalidManifest) else "",
        "excerpt": [(i, lines[i - 1][:400], i == line) for i in range(first, last + 1)] if line else [],
    }


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
