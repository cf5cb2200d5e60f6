"""The releases of Kubernetes that scheduling can follow, oldest first: one table each, found by its name.

A label says a patch level: 1.35 is what was recorded, v1.35.4. Where a later patch level decides differently it is a
release as well, 1.35.6, that says what it changes of 1.35.

A release is a value (`release.Release`): feature gates with stage and default, the plugins on by default with their
weights, and what changed without a gate. Code asks `release.gate("...")` or `release.has("...")` at the one place
that differs, and never compares version numbers. A new release is one file here, `vMAJOR_MINOR.yaml`, a patch level
`vMAJOR_MINOR_PATCH.yaml`, that says what it changes of the one it follows: gates that are new or have another stage or
default (`Beta on`, `GA on locked`), those that are gone, changes without a gate, and as in `Release` the rest.

It stands below `config`, whose defaults differ by release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.releases.release import Gate
from scheduler_core.releases.release import Release as Release
from scheduler_core.schema.tables import table_beside


def found_releases() -> dict[str, Release]:
    """Every release there is a table for, by name, oldest first."""
    files = [file for folder in __path__ for file in Path(folder).glob("v*.yaml")]
    found: dict[str, Release] = {}
    for number, file in sorted((tuple(map(int, file.stem[1:].split("_"))), file) for file in files):
        name = ".".join(map(str, number))
        found[name] = _release(name, table_beside(str(file), file.name), found)
    return found


def _release(name: str, said: Mapping[str, Any], known: Mapping[str, Release]) -> Release:
    before = known[said["follows"]] if "follows" in said else Release(name, "", {})
    gates = {key: gate for key, gate in before.gates.items() if key not in said.get("gone", ())}
    for key, text in said.get("gates", {}).items():
        stage, default, *locked = text.split()
        gates[key] = Gate(stage, default == "on", bool(locked))
    return Release(
        name,
        said["patch"],
        gates,
        {**before.changes, **said.get("changes", {})},
        {**before.weights, **said.get("weights", {})},
        {**before.lacking, **said.get("lacking", {})},
        {**before.gained, **said.get("gained", {})},
        said.get("agreed", 0),
    )


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
