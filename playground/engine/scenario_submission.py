"""What an API server would refuse of a scenario's objects when it is submitted: names, and priorities without a class.

Scenarios that are stored already were taken as they are, and open for ever; so this is asked of new ones alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from playground.engine.validation import validate_metadata
from scheduler_core.errors import ForbiddenObject, InvalidObject
from scheduler_core.objects.defaults import PriorityClasses, priority_class_from
from scheduler_core.scenario.canonical import in_run_order
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.load import object_key
from scheduler_core.scenario.merge import merged
from scheduler_core.scenario.types import Scenario, Step
from scheduler_core.sim.admission import check_priority_class

Manifest = Mapping[str, Any]


def submission_problems(scenario: Scenario) -> Iterator[Problem]:
    """One problem at most of each object, in the order in which a run takes them in."""
    following = _Following()
    places = {id(manifest): index for index, manifest in enumerate(scenario.objects)}
    for manifest in in_run_order(scenario.objects):
        yield from following.written(manifest, f"objects[{places[id(manifest)]}]")
    for index, manifest in enumerate(scenario.kept):
        yield from _metadata_problem(manifest, f"kept[{index}]")
    for number, step in enumerate(scenario.steps):
        for index, manifest in enumerate(step.apply or ()):
            yield from following.written(manifest, f"steps[{number}].apply[{index}]")
        following.did(step)


class _Following:
    """PriorityClasses of the moment, and who is there already: the priority of those is settled."""

    def __init__(self) -> None:
        self._manifests: dict[str, Manifest] = {}
        self._seen: set[tuple[str, str, str]] = set()
        self._classes = PriorityClasses()

    def written(self, manifest: Manifest, path: str) -> Iterator[Problem]:
        yield from _metadata_problem(manifest, path)
        key = object_key(manifest)
        try:
            if key[0] == "PriorityClass":
                others = [item for name, item in self._manifests.items() if name != key[2]]
                check_priority_class(manifest, others, self._manifests.get(key[2]))
                self._manifests[key[2]] = manifest
                self._read()
            elif key[0] == "Pod" and key not in self._seen:
                self._classes.resolve(manifest.get("spec") or {})
            elif key[0] == "PodGroup" and key not in self._seen:
                self._classes.resolve_group(manifest.get("spec") or {})
        except InvalidObject as error:
            yield _problem(error, path)
        self._seen.add(key)

    def did(self, step: Step) -> None:
        """A step may take a class away, or change whether it is the default one."""
        if step.delete is not None and step.delete.kind == "PriorityClass":
            self._manifests.pop(step.delete.name, None)
        elif step.patch is not None and step.patch.kind == "PriorityClass":
            before = self._manifests.get(step.patch.name)
            if before is None:
                return
            self._manifests[step.patch.name] = merged(before, step.patch.patch)
        else:
            return
        self._read()

    def _read(self) -> None:
        self._classes = PriorityClasses([priority_class_from(item) for item in self._manifests.values()])


def _metadata_problem(manifest: Manifest, path: str) -> Iterator[Problem]:
    try:
        validate_metadata(manifest, str(manifest.get("kind")))
    except InvalidObject as error:
        yield _problem(error, path)


def _problem(error: InvalidObject, path: str) -> Problem:
    # What admission says names the value itself.
    value = None if isinstance(error, ForbiddenObject) else error.value
    return Problem(f"{path}.{error.path}", error.reason, value)
