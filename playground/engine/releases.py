"""Releases of Kubernetes as the site knows them: plain documents, their gates, and which one new clusters follow."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import scheduler_core
from scheduler_core import releases
from scheduler_core.releases import Gate, ReleaseDifference, differences

DEFAULT: Final = releases.DEFAULT.name
"""What a new cluster follows where none is named."""


@dataclass(frozen=True, slots=True)
class ReleaseOutline:
    """A release that clusters may follow.

    Attributes
    ----------
    patch
        The version it is, `v1.36.2`.
    n_agreed
        Recorded decisions of that version, or with its gates, that the engine agrees with; 0 = none were recorded.
    gates
        By name.
    follows
        Name of the release it changes; empty for the oldest.
    differences
        What it changes of that one, and how each is known.
    """

    name: str
    patch: str
    n_agreed: int
    gates: Mapping[str, Gate]
    follows: str
    differences: tuple[ReleaseDifference, ...]

    @property
    def changes(self) -> tuple[ReleaseDifference, ...]:
        """What it changed without a gate."""
        return tuple(one for one in self.differences if not one.is_gate)

    @property
    def counts(self) -> dict[str, int]:
        """How many differences are known in which way; ways without one are left out."""
        return dict(Counter(one.known for one in self.differences))


def release_outlines() -> list[ReleaseOutline]:
    """Every release, oldest first."""
    known = releases.RELEASES
    return [
        ReleaseOutline(
            release.name,
            release.patch,
            release.n_agreed,
            release.gates,
            release.follows,
            tuple(differences(known[release.follows], release)) if release.follows else (),
        )
        for release in known.values()
    ]


def all_patches() -> str:
    """For pages about no cluster: `1.34 to 1.36`."""
    oldest, newest = releases.OLDEST.name, releases.NEWEST.name
    return oldest if oldest == newest else f"{oldest} to {newest}"


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
