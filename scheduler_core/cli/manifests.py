"""Manifests in files: a dump, or a folder of them as a repository keeps it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler_core.objects.defaults import NAMESPACED_KINDS
from scheduler_core.objects.documents import DocumentError, load_documents
from scheduler_core.releases import SIMULATION
from scheduler_core.scenario import ScenarioError
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.types import API_VERSION, KIND

MAX_BYTES = 1_000_000_000
"""Of a file on one's own machine."""
SUFFIXES = (".yaml", ".yml", ".json")

Manifest = Mapping[str, Any]


def manifests_of(documents: Iterable[Manifest]) -> list[Manifest]:
    """Documents, with every `kind: List` opened."""
    return [
        item
        for document in documents
        for item in (
            document.get("items") or [] if str(document.get("kind")).endswith("List") else [document]
        )
    ]


def read_manifests(paths: Iterable[str]) -> list[tuple[str, Manifest]]:
    """(file, manifest) of each file, and of all YAML and JSON files of each folder in order of their names.

    `-` is standard input.

    Raises
    ------
    OSError
    DocumentError
        With the file's name in front of its path.
    """
    found: list[tuple[str, Manifest]] = []
    for name in paths:
        folder = Path(name)
        files = [folder]
        if folder.is_dir():
            files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
        for path in files:
            try:
                text = sys.stdin.buffer.read() if name == "-" else path.read_bytes()
                loaded = load_documents(text, max_bytes=MAX_BYTES)
            except DocumentError as error:
                raise ScenarioError(
                    [Problem(f"{path}: {error.path}".rstrip(": "), error.reason, error.value, error.line)]
                ) from None
            found += [(str(path), item) for item in manifests_of(document.value for document in loaded)]
    return found


def with_manifests(
    document: Manifest, files: Sequence[tuple[str, Manifest]]
) -> tuple[dict[str, Any], dict[int, str]]:
    """A scenario's document with these objects in place of those of the same kind and name, or beside them.

    Returns
    -------
    tuple
        The document, and place in its `objects` -> the file it is from.
    """
    objects = list(document.get("objects") or ())
    places = {_key(item): place for place, item in enumerate(objects) if isinstance(item, Mapping)}
    came_from: dict[int, str] = {}
    for name, item in files:
        key = _key(item)
        place = places.setdefault(key, len(objects))
        if place == len(objects):
            objects.append(item)
        else:
            objects[place] = item
        came_from[place] = name
    return {**document, "objects": objects}, came_from


def named_by_file(error: ScenarioError, came_from: Mapping[int, str]) -> ScenarioError:
    """The same problems, with the file in place of `objects[12]` for what came from one."""

    def told(problem: Problem) -> Problem:
        found = re.match(r"objects\[(\d+)\]\.?(.*)", problem.path)
        name = came_from.get(int(found[1])) if found else None
        if found is None or name is None:
            return problem
        return Problem(f"{name}: {found[2]}", problem.reason, problem.value)

    return ScenarioError([told(problem) for problem in error.problems])


def _key(manifest: Manifest) -> tuple[str, str, str]:
    meta = manifest.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    kind = str(manifest.get("kind"))
    namespace = str(meta.get("namespace") or ("default" if kind in NAMESPACED_KINDS else ""))
    return kind, namespace, str(meta.get("name"))


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
        "simulation": SIMULATION,
        "objects": list(manifests),
        **more,
    }
