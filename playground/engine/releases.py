"""Releases of Kubernetes as the site knows them: plain documents, their gates, and which one new clusters follow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import scheduler_core
from scheduler_core import releases
from scheduler_core.releases import Release

DEFAULT: Final = releases.DEFAULT.name
"""What a new cluster follows where none is named."""


@dataclass(frozen=True, slots=True)
class GateOutline:
    """A feature gate in one release.

    Attributes
    ----------
    before
        The default in the release before; None where that one does not have the gate.
    """

    name: str
    stage: str
    default: bool
    locked: bool
    before: bool | None


@dataclass(frozen=True, slots=True)
class ReleaseOutline:
    """A release that clusters may follow.

    Attributes
    ----------
    patch
        The version that was recorded, `v1.36.2`.
    n_agreed
        Recorded decisions of that version that the engine agrees with; 0 = none were recorded.
    gates
        By name.
    changes
        What it changed without a gate: name and sentence, those of earlier releases left out.
    not_modelled
        What it changes that the engine does not do.
    rests_on
        What is known of it where it was not recorded whole.
    flipped
        Gates whose default is not that of the release before.
    """

    name: str
    patch: str
    n_agreed: int
    gates: tuple[GateOutline, ...]
    changes: tuple[tuple[str, str], ...]
    flipped: tuple[str, ...]
    not_modelled: tuple[str, ...]
    rests_on: str


def release_names() -> tuple[str, ...]:
    """Oldest first."""
    return tuple(releases.RELEASES)


def release_outlines() -> list[ReleaseOutline]:
    """Every release, oldest first."""
    found = []
    before: Release | None = None
    for release in releases.RELEASES.values():
        found.append(_outline(release, before))
        before = release
    return found


def _outline(release: Release, before: Release | None) -> ReleaseOutline:
    known = {} if before is None else before.gates
    gates = tuple(
        GateOutline(
            name, gate.stage, gate.default, gate.locked, known[name].default if name in known else None
        )
        for name, gate in sorted(release.gates.items())
    )
    earlier = {} if before is None else before.changes
    return ReleaseOutline(
        release.name,
        release.patch,
        release.n_agreed,
        gates,
        tuple((name, said) for name, said in release.changes.items() if name not in earlier),
        tuple(gate.name for gate in gates if before is not None and bool(gate.before) is not gate.default),
        release.not_modelled,
        release.rests_on,
    )


def release_of(document: Mapping[str, Any] | None) -> Release:
    """The release of a document (`Cluster.release`); None is the oldest."""
    return releases.release_from(document)


def patch_of(document: Mapping[str, Any] | None) -> str:
    """The version that is followed, `v1.36.2`."""
    return release_of(document).patch


def all_patches() -> str:
    """For pages about no cluster: `1.34 to 1.36`."""
    oldest, newest = releases.OLDEST.name, releases.NEWEST.name
    return oldest if oldest == newest else f"{oldest} to {newest}"


def title_of(document: Mapping[str, Any] | None) -> str:
    """For people: `Kubernetes 1.36`, and what is switched."""
    return release_of(document).title


# ---- Where the engine is known to differ from kube-scheduler: the list in its README, for pages and answers

_HEADING = re.compile(r"^#+\s+(.*)$")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def engine_readme() -> str:
    """scheduler_core's README; empty where it is not shipped."""
    path = Path(scheduler_core.__file__).with_name("README.md")
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def known_differences(markdown: str) -> list[str]:
    """Return the points (or rows) under the heading 'Known differences', as plain text.

    >>> known_differences("# X\\n## Known differences\\n- `a` is\\n  late\\n- b\\n## Next\\n- c")
    ['a is late', 'b']
    """
    points: list[str] = []
    inside = False
    fresh = True
    for line in markdown.splitlines():
        heading = _HEADING.match(line)
        if heading:
            inside = heading[1].strip().lower().startswith("known differences")
            continue
        text = line.strip()
        if not inside:
            continue
        if not text:
            fresh = True
        elif text[:2] in ("- ", "* "):
            points.append(text[2:])
            fresh = False
        elif text.startswith("|"):
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            if not all(set(cell) <= set("-: ") for cell in cells):
                points.append(": ".join(cell for cell in cells if cell))
        elif points and not fresh:
            points[-1] += f" {text}"
        else:
            points.append(text)
            fresh = False
    return [_LINK.sub(r"\1", point).replace("`", "").replace("**", "") for point in points]
