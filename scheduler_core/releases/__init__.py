"""The releases of Kubernetes that scheduling can follow, oldest first: one table each, found by its name.

A label says a patch level: 1.35 is what was recorded, v1.35.4. Where a later patch level decides differently it is a
release as well, 1.35.6, that says what it changes of 1.35.

A release is a value (`Release`): feature gates with stage and default, the plugins on by default with their
weights, and what changed without a gate. Code asks `release.gate("...")` or `release.has("...")` at the one place
that differs, and never compares version numbers. A new release is one file here, `vMAJOR_MINOR.yaml`, a patch level
`vMAJOR_MINOR_PATCH.yaml`, that says what it changes of the one it follows: gates that are new or have another stage or
default (`Beta on`, `GA on locked`), those that are gone, changes without a gate, and as in `Release` the rest.

It stands below `config`, whose defaults differ by release.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler_core.errors import ConfigurationError, FieldError, InvalidObject, invalid
from scheduler_core.objects.labels import worded_as_label_key
from scheduler_core.schema.fields_check import nearest_name
from scheduler_core.schema.tables import table_beside


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release.

    Attributes
    ----------
    stage : str
        `Alpha`, `Beta` or `GA`.
    default : bool
    locked : bool
        The default cannot be switched.
    """

    stage: str
    default: bool
    locked: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kubernetes, with its gates as they are switched.

    Attributes
    ----------
    name : str
        `1.36`; of a later patch level `1.36.3`.
    patch : str
        The version it stands for, `v1.36.2`.
    gates : mapping of str to Gate
        The feature gates that the scheduler reads, by name.
    changes : mapping of str to str
        What changed without a gate by this release: a name of ours and one sentence.
    weights : mapping of str to int
        Weights in the default set that differ from what the plugins' classes say.
    lacking : mapping of str to tuple of str
        Extension points that plugins did not have in the oldest release.
    gained : mapping of str to str
        Change -> the plugin that lacks nothing with it, and has its weight.
    not_modelled : tuple of str
        What it changes that is not done here, a sentence each.
    rests_on : str
        What is known of it where it was not recorded whole; empty where it was.
    n_agreed : int
        Recorded decisions of that version the engine agrees with (`conformance`); 0 where none were recorded.
    switched : mapping of str to bool
        Gates that are not at their default, and changes that are put back (False).
    """

    name: str
    patch: str
    gates: Mapping[str, Gate]
    changes: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gained: Mapping[str, str] = field(default_factory=dict)
    not_modelled: tuple[str, ...] = ()
    rests_on: str = ""
    n_agreed: int = 0
    switched: Mapping[str, bool] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self.switched.items()))))

    @property
    def title(self) -> str:
        """For people: `Kubernetes 1.36`, and what is switched."""
        gates = ", ".join(f"{name}={str(on).lower()}" for name, on in self.switched.items())
        return f"Kubernetes {self.name}" + (f" with {gates}" if gates else "")

    def gate(self, name: str) -> bool:
        """Whether a feature is on. A gate that the release does not have is off."""
        known = self.gates.get(name)
        return self.switched.get(name, known is not None and known.default)

    def has(self, change: str) -> bool:
        """Whether a change that has no gate has come by this release."""
        return change in self.changes and self.switched.get(change, True)

    def worded(self, error: FieldError) -> FieldError:
        """An error about a name, in the release's words."""
        return dataclasses.replace(error, detail=self.says(error.detail))

    def says(self, text: str) -> str:
        """What is wrong with a name, in the release's words."""
        return worded_as_label_key(text) if self.has("LabelLengthInBytes") else text

    def lacks(self, plugin: str) -> tuple[str, ...]:
        """Extension points that a plugin does not have yet."""
        has_come = any(name == plugin and self.has(change) for change, name in self.gained.items())
        return () if has_come else self.lacking.get(plugin, ())

    def weight(self, plugin: str, default: int) -> int:
        """A plugin's weight in the default set, where its class says `default`."""
        return default if self.lacks(plugin) else self.weights.get(plugin, default)

    def with_gates(self, gates: Mapping[str, bool]) -> Release:
        """The release with feature gates switched.

        Raises
        ------
        ConfigurationError
            Naming every gate that is unknown, locked, or given something else than a boolean.
        """
        errors = [error for name, value in gates.items() if (error := self._gate_error(name, value))]
        if errors:
            raise ConfigurationError("; ".join(map(str, errors)), tuple(errors))
        return self.with_switched(gates)

    def document(self) -> dict[str, object]:
        """Name and switched gates, as checkpoints and records keep them; `from_document` reads it."""
        return {
            "name": self.name,
            **({"switched": dict(self.switched)} if self.switched else {}),
        }

    def _gate_error(self, name: str, value: object) -> FieldError | None:
        path, known = f"featureGates.{name}", self.gates.get(name)
        if known is None:
            near = nearest_name(name, self.gates)
            words = f"is no feature gate of {self.name}" + (f" (did you mean {near}?)" if near else "")
            return invalid(path, value, words)
        if not isinstance(value, bool):
            return invalid(path, value, "must be true or false")
        if known.locked and value is not known.default:
            locked = str(known.default).lower()
            return invalid(path, value, f"cannot be set, the feature is locked to {locked}")
        return None

    def with_switched(self, changed: Mapping[str, bool]) -> Release:
        """The release with gates and changes as given, unchecked."""
        merged = {**self.switched, **changed}
        switched = {
            name: merged[name]
            for name in sorted(merged)
            if merged[name] is not (self.gates[name].default if name in self.gates else name in self.changes)
        }
        return dataclasses.replace(self, switched=switched)


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
        tuple(said.get("not_modelled", ())),
        said.get("rests_on", ""),
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
