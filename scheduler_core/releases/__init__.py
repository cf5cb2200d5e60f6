"""The releases of Kubernetes that scheduling can follow, oldest first: one module each, found by its name.

A release is a value (`release.Release`): feature gates with stage and default, the plugins on by default with their
weights, and what changed without a gate. Code asks `release.gate("...")` or `release.has("...")` at the one place
that differs, and never compares version numbers. A new release is one file here, `vMAJOR_MINOR.py`, that says what it
changes of the one before.

It stands below `config`, whose defaults differ by release.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from importlib import import_module

from scheduler_core.errors import InvalidObject
from scheduler_core.releases.release import ALPHA, BETA, GA, SIMULATION, Gate, Release


def found_releases() -> dict[str, Release]:
    """Every release there is a module for, by name, oldest first."""
    numbers = sorted(
        (int(match[1]), int(match[2]), match[0])
        for module in pkgutil.iter_modules(__path__)
        if (match := re.fullmatch(r"v(\d+)_(\d+)", module.name))
    )
    releases = (import_module(f"{__name__}.{name}").RELEASE for _, _, name in numbers)
    return {release.name: release for release in releases}


RELEASES: Mapping[str, Release] = found_releases()
"""By name (`1.36`), oldest first."""

OLDEST: Release = next(iter(RELEASES.values()))
"""What a `Simulation` and its parts follow where no release is passed."""

NEWEST: Release = list(RELEASES.values())[-1]

DEFAULT: Release = [release for release in RELEASES.values() if release.n_agreed][-1]
"""What decides where none is named, on the site and by every command: the newest that recordings prove.

A scenario says its release; one that leaves it out is of the oldest, so that its digest never changes.
"""


def release_named(name: object, path: str = "kubernetesRelease") -> Release:
    """The release of a name: `1.36`, `v1.36`, or any patch of it such as `v1.36.2`.

    Raises
    ------
    InvalidObject
        There is none of that name, or it is no text.
    """
    match = re.fullmatch(r"v?(\d+\.\d+)(?:\.\d+)?", name) if isinstance(name, str) else None
    found = RELEASES.get(match[1]) if match else None
    if found is None:
        raise InvalidObject(path, name, f"is no release that is known here: {', '.join(RELEASES)}")
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
    simulation = document.get("simulation")
    release = release.with_simulation(simulation if isinstance(simulation, int) else 1)
    return release.with_switched(switched) if isinstance(switched, Mapping) else release


__all__ = [
    "ALPHA",
    "BETA",
    "DEFAULT",
    "GA",
    "NEWEST",
    "OLDEST",
    "RELEASES",
    "SIMULATION",
    "Gate",
    "Release",
    "found_releases",
    "release_from",
    "release_named",
]
