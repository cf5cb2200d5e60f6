"""What admission would refuse of a scenario's objects when it is submitted: priorities without a class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import PriorityClasses, prepare, priority_class_from
from scheduler_core.scenario.canonical import in_run_order
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.load import object_key, problems_of
from scheduler_core.scenario.merge import merged
from scheduler_core.scenario.types import Scenario, Step
from scheduler_core.validation.admission import check_only_default
from scheduler_core.validation.updates import check_priority_class_update

Manifest = Mapping[str, Any]


def submission_problems(scenario: Scenario) -> Iterator[Problem]:
    """One problem at most of each object, in the order in which a run takes them in."""
    following = _Following()
    places = {id(manifest): index for index, manifest in enumerate(scenario.objects)}
    for manifest in in_run_order(scenario.objects):
        yield from following.written(manifest, f"objects[{places[id(manifest)]}]")
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
        key = object_key(manifest)
        try:
            if key[0] == "PriorityClass":
                others = [item for name, item in self._manifests.items() if name != key[2]]
                check_only_default(manifest, others)
                if (old := self._manifests.get(key[2])) is not None:
                    check_priority_class_update(prepare(manifest), old)
                self._manifests[key[2]] = manifest
                self._read()
            elif key[0] == "Pod" and key not in self._seen:
                self._classes.resolve(manifest.get("spec") or {})
            elif key[0] == "PodGroup" and key not in self._seen:
                self._classes.resolve_group(manifest.get("spec") or {})
        except InvalidObject as error:
            yield from problems_of(error, path)
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
