"""PriorityClasses for pods that carry a bare priority: recordings of before admission asked for a class.

A pod's priority comes from its class, and a written one that disagrees is refused. Documents and clusters of earlier
versions may hold pods with a priority of their own; each gets a class of that value, so that everything is decided
as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.objects.defaults import PREEMPT_LOWER_PRIORITY, SYSTEM_PRIORITY_CLASSES
from scheduler_core.scenario.types import Manifest
from scheduler_core.sim.admission import HIGHEST_USER_PRIORITY

_SYSTEM_NAMES = {value: name for name, value in SYSTEM_PRIORITY_CLASSES.items()}


class ClassesForBarePriorities:
    """Names a class for every pod whose written priority or policy is no class's, and keeps those it made.

    Parameters
    ----------
    manifests : iterable of mapping
        Every object of the document or cluster; its PriorityClasses are read.

    Attributes
    ----------
    made : list of dict
        Manifests of the classes there were none of, in order of first use.
    """

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        classes = [item for item in manifests if item.get("kind") == "PriorityClass"]
        self._known: dict[str, tuple[int, str]] = {
            name: (value, PREEMPT_LOWER_PRIORITY) for name, value in SYSTEM_PRIORITY_CLASSES.items()
        }
        for item in classes:
            policy = item.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY
            self._known[item["metadata"]["name"]] = (item.get("value") or 0, policy)
        self._has_default = any(item.get("globalDefault") for item in classes)
        self.made: list[dict[str, Any]] = []

    def explained(self, manifest: Manifest) -> Manifest:
        """The object with a class for its pod, or its template's; itself where nothing is bare."""
        spec = manifest.get("spec")
        if not isinstance(spec, Mapping):
            return manifest
        if manifest.get("kind") == "Pod":
            changed = self._spec(spec)
            return manifest if changed is spec else {**manifest, "spec": changed}
        template = spec.get("template")
        of_pods = template.get("spec") if isinstance(template, Mapping) else None
        if not isinstance(template, Mapping) or not isinstance(of_pods, Mapping):
            return manifest
        changed = self._spec(of_pods)
        if changed is of_pods:
            return manifest
        return {**manifest, "spec": {**spec, "template": {**template, "spec": changed}}}

    def _spec(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        name, written = spec.get("priorityClassName") or "", spec.get("priority")
        policy = spec.get("preemptionPolicy") or ""
        value, usual = self._known.get(name, (0, PREEMPT_LOWER_PRIORITY))
        if name:
            if name not in self._known or (written in (None, value) and policy in ("", usual)):
                return spec
        elif written is None and not policy:
            return spec
        else:
            value = written or 0
            if value == 0 and policy in ("", PREEMPT_LOWER_PRIORITY) and not self._has_default:
                return spec
        if not isinstance(value, int) or (value > HIGHEST_USER_PRIORITY and value not in _SYSTEM_NAMES):
            # No class may have it, and none did.
            return spec
        kept = {key: item for key, item in spec.items() if key not in ("priority", "preemptionPolicy")}
        return {**kept, "priorityClassName": self._class(value, policy or usual)}

    def _class(self, value: int, policy: str) -> str:
        if value in _SYSTEM_NAMES and policy == PREEMPT_LOWER_PRIORITY:
            return _SYSTEM_NAMES[value]
        sign = "minus-" if value < 0 else ""
        own = f"priority-{sign}{abs(value)}" + ("" if policy == PREEMPT_LOWER_PRIORITY else "-never")
        name, number = own, 1
        while self._known.get(name, (value, policy)) != (value, policy):
            number += 1
            name = f"{own}-{number}"
        if name not in self._known:
            self._known[name] = (value, policy)
            made: dict[str, Any] = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
            self.made.append(made if policy == PREEMPT_LOWER_PRIORITY else {**made, "preemptionPolicy": policy})
        return name


def with_classes(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A scenario's document in which every pod has its priority from a class; itself where each has already.

    Parameters
    ----------
    document : mapping
        As it was read from the text, in any valid spelling.
    """
    objects = document.get("objects") or []
    steps = document.get("steps") or []
    applied = [step["apply"] for step in steps if isinstance(step, Mapping) and step.get("apply")]
    lists = [item if isinstance(item, list) else [item] for item in applied]
    classes = ClassesForBarePriorities(item for items in (objects, *lists) for item in items)
    new_objects = [classes.explained(item) for item in objects]
    new_steps = []
    changed = any(new is not old for new, old in zip(new_objects, objects, strict=True))
    for step in steps:
        if isinstance(step, Mapping) and step.get("apply"):
            items = step["apply"] if isinstance(step["apply"], list) else [step["apply"]]
            explained = [classes.explained(item) for item in items]
            if any(new is not old for new, old in zip(explained, items, strict=True)):
                step, changed = {**step, "apply": explained}, True
        new_steps.append(step)
    if not changed:
        return document
    result = {**document, "objects": [*classes.made, *new_objects]}
    return {**result, "steps": new_steps} if steps else result
