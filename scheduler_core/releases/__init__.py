"""The releases of Kubernetes that scheduling can follow, oldest first: one module each, found by its name.

A label says a patch level: 1.35 is what was recorded, v1.35.4. Where a later patch level decides differently it is a
release as well, 1.35.6, that says what it changes of 1.35.

A release is a value (`release.Release`): feature gates with stage and default, the plugins on by default with their
weights, and what changed without a gate. Code asks `release.gate("...")` or `release.has("...")` at the one place
that differs, and never compares version numbers. A new release is one file here, `vMAJOR_MINOR.py`, a patch level
`vMAJOR_MINOR_PATCH.py`, that says what it changes of the one before.

It stands below `config`, whose defaults differ by release.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from importlib import import_module

from scheduler_core.errors import InvalidObject
from scheduler_core.releases.release import ALPHA, BETA, GA, Gate, Release


def found_releases() -> dict[str, Release]:
    """Every release there is a module for, by name, oldest first."""
    numbers = sorted(
        (int(match[1]), int(match[2]), int(match[3] or 0), match[0])
        for module in pkgutil.iter_modules(__path__)
        if (match := re.fullmatch(r"v(\d+)_(\d+)(?:_(\d+))?", module.name))
    )
    releases = (import_module(f"{__name__}.{name}").RELEASE for *_, name in numbers)
    return {release.name: release for release in releases}


RELEASES: Mapping[str, Release] = found_releases()
"""By name (`1.36`), oldest first."""

OLDEST: Release = next(iter(RELEASES.values()))
"""What a `Simulation` and its parts follow where no release is passed."""

NEWEST: Release = [release for name, release in RELEASES.items() if name.count(".") == 1][-1]
"""As it was recorded; a later patch level of it is chosen by name."""

DEFAULT: Release = [release for release in RELEASES.values() if release.n_agreed][-1]
"""What decides where none is named, on the site and by every command: the newest that recordings prove.

A scenario says its release; one that leaves it out is of the oldest, so that its digest never changes.
"""


def release_named(name: object, path: str = "kubernetesRelease") -> Release:
    """The release of a name: `1.36`, `v1.36`, or of any patch such as `v1.36.4`, the last known level up to it.

    Raises
    ------
    InvalidObject
        There is none of that name, or it is no text.
    """
    match = re.fullmatch(r"v?(\d+\.\d+)(?:\.(\d+))?", name) if isinstance(name, str) else None
    found = RELEASES.get(match[1]) if match else None
    if match is None or found is None:
        raise InvalidObject(path, name, f"is no release that is known here: {', '.join(RELEASES)}")
    if match[2] is not None:
        for release in RELEASES.values():
            minor, _, level = release.name.rpartition(".")
            if minor == match[1] and int(level) <= int(match[2]):
                found = release
    return found


def release_from(document: Mapping[str, object] | None) -> Release:
    """The release of what `Release.document` gave; the oldest one for None, which is what old data mean.

    Raises
    ------
    InvalidObject
        There is none of that name.
    """
    if document is None:
        return OLDEST
    switched = document.get("switched")
    release = release_named(document.get("name"))
    return release.with_switched(switched) if isinstance(switched, Mapping) else release


__all__ = [
    "ALPHA",
    "BETA",
    "DEFAULT",
    "GA",
    "NEWEST",
    "OLDEST",
    "RELEASES",
    "Gate",
    "Release",
    "found_releases",
    "release_from",
    "release_named",
]
