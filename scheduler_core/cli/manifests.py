"""Manifests in files: a dump, or a folder of them as a repository keeps it."""

from __future__ import annotations

import dataclasses
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler_core.config import conversion
from scheduler_core.config.construction import files_unread
from scheduler_core.config.decode import configuration_among, documents_of_text
from scheduler_core.config.load import load_configuration
from scheduler_core.errors import ConfigurationError, FieldError, InvalidManifest
from scheduler_core.installed_plugins import known
from scheduler_core.objects import reading
from scheduler_core.objects.documents import LineMap, decoded
from scheduler_core.randomness import MAX_GENERATED_PREFIX, Randomness, name_suffix
from scheduler_core.releases import Release
from scheduler_core.scenario import Scenario, ScenarioError, load_scenario
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.load import ONE_DOCUMENT
from scheduler_core.scenario.types import API_VERSION, KIND, object_key

MAX_BYTES = 1_000_000_000
"""Of a file on one's own machine."""
SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")

Manifest = Mapping[str, Any]


def read_file(name: str) -> bytes:
    """The bytes of a file, `-` for standard input; what gzip packed is unpacked.

    Raises
    ------
    OSError
    ScenarioError
        It begins as a gzip file and is none.
    """
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        # One byte more than may be: the reader of texts says that it is too long.
        return gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ScenarioError([Problem("", f"is no whole gzip file: {error}", file=name)]) from None


def read_scenario(name: str) -> Scenario:
    """The scenario of a file, `-` for standard input.

    Raises
    ------
    OSError
    ScenarioError
    """
    return load_scenario(read_file(name))


def read_manifests(
    what: Iterable[str | Manifest], *, scenarios: bool = False
) -> tuple[list[reading.Posted], list[str]]:
    """The objects of each file, and of all YAML and JSON files of each folder in order of their names.

    Parameters
    ----------
    what
        Paths, `-` for standard input, or objects as data.
    scenarios
        Whether scenarios are wanted, too; they are left out otherwise.

    Returns
    -------
    tuple
        The objects, and what is said of those that were converted or are left out.

    Raises
    ------
    OSError
    ScenarioError
        A text cannot be read, or an object is of no type that is served; with its place.
    """
    found: list[reading.Posted] = []
    file = ""
    try:
        for item in what:
            if isinstance(item, Mapping):
                found += reading.from_objects([item])
                continue
            for path in _files(item):
                file = str(path)
                found += reading.read_posted(read_file(file), max_bytes=MAX_BYTES, file=file)
        if file:
            reading.check_any_object(found)
        found = reading.with_use(found)
    except InvalidManifest as error:
        subject = f"{error.kind} {error.name}".strip()
        problem = Problem(error.path, error.words, None, error.line, error.column, file, subject)
        raise ScenarioError([problem]) from None
    taken, problems, noted = [], [], []
    names = Randomness(0)
    for posted in found:
        type_ = reading.type_of(posted.api_version, posted.kind)
        is_wanted = scenarios and (posted.api_version, posted.kind) == (API_VERSION, KIND)
        if type_.role == reading.WRONG:
            problems.append(_placed(posted, Problem(type_.path, type_.words)))
        elif type_.role != reading.FOREIGN or is_wanted:
            taken.append(_named(posted, names))
        if not is_wanted:
            noted.append(posted)
    if problems:
        raise ScenarioError(problems)
    return taken, reading.notes_of(noted)


def scenario_among(posted: Sequence[reading.Posted]) -> reading.Posted | None:
    """The scenario that a text is, None where it holds objects.

    Raises
    ------
    ScenarioError
        Something follows it.
    """
    if not posted or (posted[0].api_version, posted[0].kind) != (API_VERSION, KIND):
        return None
    if len(posted) > 1:
        raise ScenarioError([_placed(posted[1], Problem("", ONE_DOCUMENT))])
    return posted[0]


def _named(posted: reading.Posted, names: Randomness) -> reading.Posted:
    """It with the name that its generateName makes, as an API server gives one to what is created."""
    meta = posted.manifest.get("metadata")
    prefix = meta.get("generateName") if isinstance(meta, Mapping) else None
    if not isinstance(meta, Mapping) or meta.get("name") or not isinstance(prefix, str) or not prefix:
        return posted
    name = prefix[:MAX_GENERATED_PREFIX] + name_suffix(names)
    return dataclasses.replace(posted, manifest={**posted.manifest, "metadata": {**meta, "name": name}})


def _files(name: str) -> list[Path]:
    folder = Path(name)
    if not folder.is_dir():
        return [folder]
    return sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file())


def with_manifests(
    document: Manifest, posted: Sequence[reading.Posted]
) -> tuple[dict[str, Any], dict[int, reading.Posted]]:
    """A scenario's document with these objects in place of those of the same kind and name, or beside them.

    Returns
    -------
    tuple
        The document, and place in its `objects` -> what came there from a file.
    """
    objects = list(document.get("objects") or ())
    places = {object_key(item): place for place, item in enumerate(objects) if isinstance(item, Mapping)}
    came_from: dict[int, reading.Posted] = {}
    for item in posted:
        key = object_key(item.manifest)
        place = places.setdefault(key, len(objects))
        if place == len(objects):
            objects.append(item.manifest)
        else:
            objects[place] = item.manifest
        came_from[place] = item
    return {**document, "objects": objects}, came_from


def named_by_file(
    error: ScenarioError, came_from: Mapping[int, reading.Posted], whole: reading.Posted | None = None
) -> ScenarioError:
    """The same problems, with file, line, kind and name in place of `objects[12]` for what came from a file.

    Parameters
    ----------
    whole
        The scenario all else is from.
    """

    def placed(problem: Problem) -> Problem:
        found = re.match(r"objects\[(\d+)\]\.?(.*)", problem.path)
        item = came_from.get(int(found[1])) if found else None
        if found is not None and item is not None:
            return _placed(item, dataclasses.replace(problem, path=found[2]))
        if whole is None or problem.file:
            return problem
        return dataclasses.replace(_placed(whole, problem), subject="")

    return ScenarioError([placed(problem) for problem in error.problems])


def notes_by_file(notes: Iterable[str], came_from: Mapping[int, reading.Posted]) -> list[str]:
    """The same notes, with file, line, kind and name in front where one names `objects[12].spec.x` of a file."""

    def placed(note: str) -> str:
        found = re.search(r"objects\[(\d+)\]\.([^\s\"]+)", note)
        item = came_from.get(int(found[1])) if found else None
        if found is None or item is None:
            return note
        problem = Problem(found[2], note.replace(found[0], found[2]))
        return str(dataclasses.replace(_placed(item, problem), path=""))

    return [placed(note) for note in notes]


def _placed(item: reading.Posted, problem: Problem) -> Problem:
    line = item.line(problem.path)
    return dataclasses.replace(problem, file=item.file, line=line, column=None, subject=item.subject)


def scenario_of_dump(manifests: Sequence[Manifest], **more: Any) -> dict[str, Any]:
    """A scenario's document in which the objects of a dump are there, and its pending pods are scheduled.

    Parameters
    ----------
    more
        Other fields of the scenario.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "objects": list(manifests),
        **more,
    }


# ---- configurations


def read_configuration(name: str, release: Release, *, convert: bool) -> dict[str, Any]:
    """The scheduler configuration of a file, out of a ConfigMap or a List, too.

    Parameters
    ----------
    release : Release
        The release it is for.
    convert : bool
        Convert an old version to v1; what changed is printed on standard error.

    Raises
    ------
    OSError
    ScenarioError
        It cannot be read or used; every problem names the file, and the line where it is known.
    """
    text = read_file(name)
    catalog = known().in_release(release).catalog
    changes: tuple[conversion.FieldChange, ...] = ()
    is_whole_file = True
    try:
        documents = documents_of_text(text)
        document = configuration_among(documents)
        # Inside a ConfigMap its lines are others than the file's.
        is_whole_file = any(document is one for one in documents[:1])
        converted = conversion.convert(document, catalog)
        changes = converted.changes
        if convert:
            for change in changes:
                kept = "" if change.is_kept else "not kept: "
                print(f"note: {name}: {kept}{change.field} {change.detail}", file=sys.stderr)
            document = converted.document
        load_configuration(document, catalog, read_file=files_unread)
    except ConfigurationError as error:
        lines = LineMap(decoded(text, "replace") if is_whole_file and not convert else "")
        is_convertible = bool(changes) and not convert
        raise ScenarioError(_in_file(error, name, lines, is_convertible=is_convertible)) from None
    return dict(document)


def _in_file(error: ConfigurationError, name: str, lines: LineMap, *, is_convertible: bool) -> list[Problem]:
    problems = []
    for one in error.errors or (FieldError("", "", None, str(error)),):
        line, column = lines.place(0, one.field) or (None, None)
        problems.append(Problem(one.field, one.detail or str(one), one.value, line, column, name))
    if is_convertible:
        problems.append(Problem("", "--convert-config converts it to v1", file=name))
    return problems
