"""The releases of Kubernetes that scheduling can follow, oldest first: one table each, found by its name.

A label says a patch level: 1.35 is what was recorded, v1.35.4. Where a later patch level decides differently it is a
release as well, 1.35.6, that says what it changes of 1.35.

A release is a value (`Release`): feature gates with stage and default, the plugins on by default with their
weights, and what changed without a gate. Code asks `release.gate("...")` or `release.has("...")` at the one place
that differs, and never compares version numbers. A new release is one file here, `vMAJOR_MINOR.yaml`, a patch level
`vMAJOR_MINOR_PATCH.yaml`: the table of what it changes of the one it follows. Its rows are grouped by how each is
known, `proved` by recorded decisions, `from_notes`, or `not_modelled`; the text of a row is `Beta on. What the gate
does.` for a gate (also `GA on locked`; without a sentence it keeps that of the release before), `gone on`, `gone off`
or `gone OtherGate` for one that is no more and what holds now, a sentence for a change without a gate. The rest is as
in `Release`. `releases.draft` writes such a file from upstream's list of gates.

It is below `config`, whose defaults differ by release.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

from scheduler_core.errors import ConfigurationError, FieldError, InvalidObject, invalid
from scheduler_core.objects.labels import worded_as_label_key
from scheduler_core.schema.fields_check import nearest_name
from scheduler_core.schema.tables import table_of

PROVED, FROM_NOTES, NOT_MODELLED = "proved", "from release notes", "not modelled"
KNOWN: Final = {"proved": PROVED, "from_notes": FROM_NOTES, "not_modelled": NOT_MODELLED}
"""How a difference between releases is known: the key of a release's table, and the word that people read."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release.

    Attributes
    ----------
    stage : str
        `Alpha`, `Beta`, `GA` or `Deprecated`.
    default : bool
    locked : bool
        The default cannot be switched.
    known : str
        One of `KNOWN`'s words: how it is known what the gate does by default in this release.
    sentence : str
        What it does.
    """

    stage: str
    default: bool
    locked: bool = False
    known: str = PROVED
    sentence: str = ""

    @property
    def state(self) -> str:
        """For people: `Beta, on`."""
        return f"{self.stage}, {'on' if self.default else 'off'}{', locked' if self.locked else ''}"


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """What a release changes without a gate: a sentence, and how it is known (one of `KNOWN`'s words)."""

    sentence: str
    known: str = PROVED


@dataclass(frozen=True, slots=True)
class Gone:
    """A gate that a release no longer has: what holds for good, or the gate that does the same; and how it is known."""

    now: bool | str
    known: str

    @property
    def sentence(self) -> str:
        """For people."""
        if isinstance(self.now, str):
            return f"{self.now} does the same."
        return f"It is always {'on' if self.now else 'off'}."


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """One thing in which two releases differ.

    Attributes
    ----------
    name : str
        Of the gate, or ours of a change without one.
    known : str
        One of `KNOWN`'s words.
    sentence : str
        What it is.
    before, after : str
        State of the gate in either release (`Gate.state`), empty where there is none; both are empty for a change.
    """

    name: str
    known: str
    sentence: str
    before: str = ""
    after: str = ""

    @property
    def is_gate(self) -> bool:
        """Whether it is a feature gate."""
        return bool(self.before or self.after)

    @property
    def text(self) -> str:
        """For people: the sentence, with the gate's states."""
        states = f"{self.before or 'none'} -> {self.after or 'gone'}" if self.is_gate else ""
        return ". ".join(filter(None, (states, self.sentence)))


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kubernetes, with its gates as they are switched.

    Attributes
    ----------
    name : str
        `1.36`; of a later patch level `1.36.3`.
    patch : str
        The version it is, `v1.36.2`.
    gates : mapping of str to Gate
        The feature gates that the scheduler reads, by name.
    changes : mapping of str to ReleaseChange
        What changed without a gate by this release, by a name of ours. Nothing asks for those that are not modelled.
    gone : mapping of str to Gone
        Gates there were before.
    weights : mapping of str to int
        Weights in the default set that differ from what the plugins' classes say.
    lacking : mapping of str to tuple of str
        Extension points that plugins did not have in the oldest release.
    gained : mapping of str to str
        ReleaseChange -> the plugin that lacks nothing with it, and has its weight.
    n_agreed : int
        Recorded decisions of that version, or with its gates, that the engine agrees with (`conformance`).
    follows : str
        Name of the release it changes; empty for the oldest.
    switched : mapping of str to bool
        Gates that are not at their default, and changes that are put back (False).
    """

    name: str
    patch: str
    gates: Mapping[str, Gate]
    changes: Mapping[str, ReleaseChange] = field(default_factory=dict)
    gone: Mapping[str, Gone] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gained: Mapping[str, str] = field(default_factory=dict)
    n_agreed: int = 0
    follows: str = ""
    switched: Mapping[str, bool] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self.switched.items()))))

    @property
    def title(self) -> str:
        """For people: `Kubernetes 1.36`, and what is switched."""
        gates = ", ".join(f"{name}={str(on).lower()}" for name, on in self.switched.items())
        return f"Kubernetes {self.name}" + (f" with {gates}" if gates else "")

    def gate(self, name: str) -> bool:
        """Whether a feature is on. A gate that the release does not have is off, or as `gone` says."""
        known = self.gates.get(name)
        if known is None and name not in self.switched:
            now = self.gone[name].now if name in self.gone else False
            return self.gate(now) if isinstance(now, str) else now
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


def differences(older: Release, newer: Release) -> list[ReleaseDifference]:
    """Everything in which two releases differ: what is proved first, gates before changes without one.

    How it is known of the later one counts, on the way back too.
    """
    found = []
    later = max(older, newer, key=lambda release: tuple(map(int, release.name.split("."))))
    for name in sorted({*older.gates, *newer.gates}):
        states = [_state(release, name) for release in (older, newer)]
        if states[0] != states[1]:
            tables: list[Mapping[str, Gate | Gone]] = [later.gates, later.gone, older.gates, newer.gates]
            said = next(table[name] for table in tables if name in table)
            found.append(ReleaseDifference(name, said.known, said.sentence, *states))
    for name, change in {**older.changes, **newer.changes}.items():
        if older.has(name) is not newer.has(name):
            found.append(ReleaseDifference(name, change.known, change.sentence))
    order = list(KNOWN.values())
    return sorted(found, key=lambda one: order.index(one.known))


def _state(release: Release, name: str) -> str:
    gate = release.gates.get(name)
    state = gate.state if gate else ""
    if name not in release.switched:
        return state
    return ", ".join(filter(None, (state, f"switched {'on' if release.switched[name] else 'off'}")))


def steps_between(older: Release, newer: Release) -> list[Release]:
    """The releases an upgrade (or the way back) passes, both ends included; of those between, no patch levels."""
    names = list(RELEASES)
    first, last = names.index(older.name), names.index(newer.name)
    between = [
        RELEASES[name] for name in names[min(first, last) + 1 : max(first, last)] if name.count(".") == 1
    ]
    # The recorded level of a minor release is no step of the way to a later level of the same.
    between = [
        one for one in between if not any(end.name.startswith(f"{one.name}.") for end in (older, newer))
    ]
    return [older, *(between if first < last else reversed(between)), newer]


FOLDERS: list[Traversable] = [resources.files(__package__)]
"""Where tables of releases are."""


def found_releases() -> dict[str, Release]:
    """Every release there is a table for, by name, oldest first."""
    files = [
        file for folder in FOLDERS for file in folder.iterdir() if re.fullmatch(r"v[\d_]+\.yaml", file.name)
    ]
    found: dict[str, Release] = {}
    for file in sorted(files, key=lambda file: [int(part) for part in re.findall(r"\d+", file.name)]):
        name = ".".join(re.findall(r"\d+", file.name))
        found[name] = release_of_table(name, table_of(file.read_text("utf-8")), found)
    return found


_GATE: Final = re.compile(r"(Alpha|Beta|GA|Deprecated) (on|off)( locked)?(?:\. (.+))?", re.DOTALL)
_GONE: Final = re.compile(r"gone (\w+)")
_ON: Final = {"on": True, "off": False}


def release_of_table(name: str, said: Mapping[str, Any], known: Mapping[str, Release]) -> Release:
    """The release of a table of what it changes of one that is known."""
    before = known[said["follows"]] if "follows" in said else Release(name, "", {})
    gates, changes, gone = dict(before.gates), dict(before.changes), dict(before.gone)
    for key, word in KNOWN.items():
        for row, text in said.get(key, {}).items():
            if match := _GATE.fullmatch(text):
                stage, default, locked, sentence = match.groups()
                sentence = sentence or (gates[row].sentence if row in gates else "")
                gates[row] = Gate(stage, default == "on", bool(locked), word, sentence)
            elif match := _GONE.fullmatch(text):
                now = match[1]
                gone[row] = Gone(_ON.get(now, now), word)
                gates.pop(row, None)
            else:
                changes[row] = ReleaseChange(text, word)
    tables = {key: {**getattr(before, key), **said.get(key, {})} for key in ("weights", "lacking", "gained")}
    return Release(
        name, said["patch"], gates, changes, gone, **tables, n_agreed=said.get("agreed", 0),
        follows=said.get("follows", ""),
    )  # fmt: skip


RELEASES: Mapping[str, Release] = found_releases()
"""By name (`1.36`), oldest first."""

OLDEST: Release = next(iter(RELEASES.values()))
"""What a `Simulation` and its parts follow where no release is passed."""

NEWEST: Release = [release for name, release in RELEASES.items() if name.count(".") == 1][-1]
"""As it was recorded; a later patch level of it is chosen by name."""

DEFAULT: Release = [release for release in RELEASES.values() if release.n_agreed][-1]
"""What decides where none is named, on the site and by every command: the newest with recorded decisions.

A scenario says its release; one that leaves it out is of the oldest, so that its digest never changes.
"""


def release_named(name: object, path: str = "kubernetesRelease") -> Release:
    """The release of a name: `1.36`, `v1.36`, or of any patch such as `v1.36.4`, the last known level up to it.

    What a provider or a pre-release writes behind the patch (`v1.36.4-eks-1`, `v1.38.0-alpha.1`) does not count.

    Raises
    ------
    InvalidObject
        There is none of that name, or it is no text.
    """
    match = re.fullmatch(r"v?(\d+\.\d+)(?:\.(\d+)(?:[-+].*)?)?", name) if isinstance(name, str) else None
    found = RELEASES.get(match[1]) if match else None
    if match is None or found is None:
        raise InvalidObject(path, name, f"is no release that is known here: {', '.join(RELEASES)}")
    if match[2] is not None:
        for release in RELEASES.values():
            minor, _, level = release.name.rpartition(".")
            if minor == match[1] and int(level) <= int(match[2]):
                found = release
    return found


def release_nearest(version: str) -> Release:
    """The release of an API server's version (`v1.36.4-eks-1`), or else the known one that is nearest to it.

    The default one where it says no version.
    """
    with contextlib.suppress(InvalidObject):
        return release_named(version)
    match = re.match(r"v?1\.(\d+)", version)
    if match is None:
        return DEFAULT
    minor = int(match[1])
    return min([*RELEASES.values()][::-1], key=lambda release: abs(int(release.name.split(".")[1]) - minor))


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
