"""The first draft of a release's table, from upstream's list of gates and its release notes as a person pastes them.

What is known is said of the release before: a gate that changes its stage keeps what is modelled of it. What is new is
`not_modelled` until it is modelled. `python -m scheduler_core release draft` shows and writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from scheduler_core.errors import InvalidObject
from scheduler_core.releases import KNOWN, NOT_MODELLED, RELEASES, Gate, Release
from scheduler_core.schema.tables import table_of


@dataclass(frozen=True, slots=True)
class ReleaseDraft:
    """A release as far as texts of upstream tell it.

    Attributes
    ----------
    table : mapping
        As a file of this package has it, keys in its order.
    new, changed, gone : tuple of str
        Gates that the scheduler reads, by what becomes of them.
    others : tuple of str
        Gates that came or changed with this release and do not sound like scheduling: left out of the table.
    known_notes, new_notes : tuple of str
        Notes about scheduling: those that a release's table mentions by number already, and the rest.
    """

    table: Mapping[str, Any]
    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    others: tuple[str, ...]
    known_notes: tuple[str, ...]
    new_notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The file."""
        return yaml.safe_dump(dict(self.table), sort_keys=False, allow_unicode=True, width=120)


ABOUT_SCHEDULING: Final = re.compile(
    r"Schedul|Preempt|PodGroup|Workload|Gang|(?<!Memory)Affinity|TopologySpread|Taint|^DRA|Nominat"
    r"|DeclaredFeatures|VolumeLimit|StorageCapacity|OpportunisticBatching|PodLevelResources|PodVerticalScaling"
)
"""Names of gates that kube-scheduler probably reads; pkg/scheduler/framework/plugins/feature says which it does."""
_NOTE: Final = re.compile(
    r"^[-*] (?P<text>.+?)\s*\(\[#(?P<number>\d+)\].*?\[SIG (?P<sigs>[^\]]*)\]\s*$", re.DOTALL
)
_NUMBER: Final = re.compile(r"\b(1[34]\d{4})\b")


def draft(
    name: str, gates: str, notes: str = "", *, follows: Release | None = None, patch: str = ""
) -> ReleaseDraft:
    """The draft of a release.

    Parameters
    ----------
    name : str
        Such as `1.38`.
    gates : str
        Text of `versioned_feature_list.yaml` or of `kube_features.go`; specs of later releases are left aside.
    notes : str
        Text of CHANGELOG-1.38.md, or a part of it.
    follows : Release, optional
        The newest before it by default.

    Raises
    ------
    InvalidObject
        The texts hold no gates, or the name is no minor release after another.
    """
    number = _numbered(name)
    before = (
        follows
        or [
            one for one in RELEASES.values() if len(_numbered(one.name)) == 2 and _numbered(one.name) < number
        ][-1]
    )
    specs = _specs(gates)
    comments = {name: said for said, name in _commented(gates)}
    found = {key: gate for key, listed in specs.items() if (gate := _in_force(listed, number))}
    came = {key for key in found if any(_numbered(str(spec["version"])) == number for spec in specs[key])}
    rows: dict[str, dict[str, str]] = {key: {} for key in KNOWN}
    new, changed, others = [], [], []
    for key in sorted(found):
        old, gate = before.gates.get(key), found[key]
        said = f"{gate.stage} {'on' if gate.default else 'off'}{' locked' if gate.locked else ''}"
        if old is not None and old.state != gate.state:
            changed.append(key)
            rows["not_modelled" if old.known == NOT_MODELLED else "from_notes"][key] = said
        elif old is None and key in came and ABOUT_SCHEDULING.search(key):
            new.append(key)
            rows["not_modelled"][key] = f"{said}. {comments.get(key) or _worded(key)}."
        elif old is None and key in came:
            others.append(key)
    gone = sorted(key for key in before.gates if key not in found)
    for key in gone:
        # A gate goes when its feature is there for good, or was given up.
        rows["from_notes"][key] = f"gone {'on' if before.gates[key].default else 'off'}"
    mentioned = {
        number for release in RELEASES.values() for change in release.changes.values()
        for number in _NUMBER.findall(change.sentence)
    }  # fmt: skip
    known_notes, new_notes = [], []
    for number_of_note, text in _notes(notes):
        if number_of_note in mentioned:
            known_notes.append(f"{text} ({number_of_note})")
            continue
        new_notes.append(f"{text} ({number_of_note})")
        rows["not_modelled"][f"Note{number_of_note}"] = f"{text.rstrip('.')} ({number_of_note})."
    table = {
        "follows": before.name,
        "patch": patch or f"v{name}.0",
        **{key: row for key, row in rows.items() if row},
    }
    return ReleaseDraft(
        table, tuple(new), tuple(changed), tuple(gone), tuple(others),
        tuple(known_notes), tuple(new_notes),
    )  # fmt: skip


def _numbered(name: str) -> tuple[int, ...]:
    match = re.fullmatch(r"v?(\d+(?:\.\d+)+)", name)
    if match is None:
        raise InvalidObject("name", name, "is no release such as 1.38")
    return tuple(map(int, match[1].split(".")))


def _specs(text: str) -> Mapping[str, list[Mapping[str, Any]]]:
    """Gate -> what holds from which release on, of either of upstream's two texts."""
    found = _go_specs(text) if "featuregate." in text else _yaml_specs(text)
    if not found:
        raise InvalidObject(
            "--gates", text[:40], "holds no feature gates of upstream (a YAML list or kube_features.go)"
        )
    return found


def _yaml_specs(text: str) -> dict[str, list[Mapping[str, Any]]]:
    try:
        listed = table_of(text)
        return {item["name"]: item["versionedSpecs"] for item in listed}
    except (yaml.YAMLError, TypeError, KeyError) as error:
        raise InvalidObject("--gates", text[:40], f"is no list of feature gates: {error}") from None


_ABOUT_A_GATE: Final = re.compile(r"(owners?|kep|alpha|beta|stable|GA|deprecated)\s*:", re.IGNORECASE)
_COMMENT: Final = re.compile(r"((?:^\s*//[^\n]*\n)+)\s*(\w+)\s+featuregate\.Feature = ", re.MULTILINE)


def _commented(text: str) -> Iterator[tuple[str, str]]:
    """The first sentence of a gate's comment in Go, without owners and KEPs, and its name."""
    for comment, name in _COMMENT.findall(text):
        lines = [line.strip().removeprefix("//").strip() for line in comment.strip().splitlines()]
        said = " ".join(
            line
            for line in lines
            if not re.match(r"(owners?|kep|alpha|beta|stable|GA|deprecated)\s*:", line, re.I)
        )
        yield re.split(r"(?<=[.]) (?=[A-Z])", said.strip())[0].rstrip("."), name


_GO_GATE: Final = re.compile(r"^\s*(?:\w+\.)?(\w+): \{\n(.*?)^\s*\},", re.DOTALL | re.MULTILINE)
_GO_SPEC: Final = re.compile(r"\{(Version: version\.(?:MustParse|MajorMinor)\([^\n]*)\}")


def _go_specs(text: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for name, body in _GO_GATE.findall(text):
        specs: list[Mapping[str, Any]] = []
        for spec in _GO_SPEC.findall(body):
            version = re.search(r'\("?(\d+)(?:\.|, )(\d+)"?\)', spec)
            stage = re.search(r"PreRelease: featuregate\.(\w+)", spec)
            specs.append(
                {
                    "version": f"{version[1]}.{version[2]}" if version else "1.0",
                    "default": "Default: true" in spec,
                    "lockToDefault": "LockToDefault: true" in spec,
                    "preRelease": stage[1] if stage else "Alpha",
                }
            )
        if specs:
            found[name] = specs
    return found


def _in_force(specs: list[Mapping[str, Any]], number: tuple[int, ...]) -> Gate | None:
    """The last spec up to a release."""
    held = [spec for spec in specs if _numbered(str(spec["version"])) <= number]
    if not held:
        return None
    last = held[-1]
    return Gate(str(last["preRelease"]), bool(last["default"]), bool(last.get("lockToDefault")))


def _notes(text: str) -> Iterator[tuple[str, str]]:
    """Number and first sentence of each note of SIG Scheduling, or about the scheduler."""
    for item in re.split(r"\n(?=\s{0,2}[-*] )|\n\s*\n#", text):
        match = _NOTE.match(item.strip())
        if match is None:
            continue
        said = " ".join(match["text"].split())
        if "Scheduling" in match["sigs"] or re.search(
            r"kube-scheduler|\bscheduler\b|\bDRA\b", said, re.IGNORECASE
        ):
            yield match["number"], re.split(r"(?<=[.!]) (?=[A-Z`])", said)[0].rstrip(".")


def _worded(name: str) -> str:
    """A gate's name as words, until a person writes what it does."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|\d+", name)
    return " ".join([words[0], *(word if word.isupper() else word.lower() for word in words[1:])])
