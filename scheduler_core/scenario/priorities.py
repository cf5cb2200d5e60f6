"""PriorityClasses for pods and PodGroups whose class was deleted or changed after they were made.

Admission takes a pod's priority from its class, and refuses a written one that disagrees. So that a recording decides
alike, such a pod gets a class of the value it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.objects.defaults import PREEMPT_LOWER_PRIORITY, SYSTEM_PRIORITY_CLASSES
from scheduler_core.scenario.merge import merged
from scheduler_core.scenario.types import Manifest
from scheduler_core.sim.admission import HIGHEST_USER_PRIORITY

_SYSTEM_NAMES = {value: name for name, value in SYSTEM_PRIORITY_CLASSES.items()}

Written = tuple[str, int | None, str]
"""Class, priority and preemption policy as a pod spec writes them."""


class KnownClasses:
    """The PriorityClasses there are at one moment, followed from write to write."""

    def __init__(self, manifests: Iterable[Manifest] = ()) -> None:
        self._known: dict[str, tuple[int, str]] = {
            name: (value, PREEMPT_LOWER_PRIORITY) for name, value in SYSTEM_PRIORITY_CLASSES.items()
        }
        self._manifests: dict[str, Manifest] = {}
        self._defaults: set[str] = set()
        for manifest in manifests:
            self.wrote(manifest)

    @property
    def has_default(self) -> bool:
        return bool(self._defaults)

    def wrote(self, manifest: Manifest) -> None:
        """An object was written; one of another kind changes nothing."""
        if manifest.get("kind") != "PriorityClass":
            return
        name = str(manifest["metadata"]["name"])
        self._manifests[name] = manifest
        policy = manifest.get("preemptionPolicy") or PREEMPT_LOWER_PRIORITY
        self._known[name] = (manifest.get("value") or 0, policy)
        (self._defaults.add if manifest.get("globalDefault") else self._defaults.discard)(name)

    def patched(self, name: str, patch: Manifest) -> None:
        """A class was changed by a merge patch."""
        if name in self._manifests:
            self.wrote(merged(self._manifests[name], patch))

    def deleted(self, name: str) -> None:
        """A class was deleted."""
        if name in self._manifests:
            del self._manifests[name], self._known[name]
            self._defaults.discard(name)

    def of(self, name: str) -> tuple[int, str] | None:
        """Value and preemption policy of a class; None where there is no such class."""
        return self._known.get(name)

    def agree(self, spec: Manifest) -> bool:
        """Whether admission takes a pod spec as it is written: class, priority and policy say the same."""
        name, written, policy = written_in(spec)
        value: int
        if name:
            found = self._known.get(name)
            if found is None:
                return False
            value, usual = found
            return written in (None, value) and policy in ("", usual)
        if written is None and not policy:
            return True
        return written in (None, 0) and policy in ("", PREEMPT_LOWER_PRIORITY) and not self.has_default


def written_in(spec: Manifest) -> Written:
    """What a pod spec says of its priority."""
    return spec.get("priorityClassName") or "", spec.get("priority"), spec.get("preemptionPolicy") or ""


class ClassesForBarePriorities:
    """Names a class for every pod whose written priority or policy is no class's, and keeps those it made.

    Parameters
    ----------
    names : iterable of str
        Every class the document or cluster ever has: one that is made is called otherwise.

    Attributes
    ----------
    now : KnownClasses
        Those of the moment an object is written; who walks through the writes keeps it so.
    made : list of dict
        Manifests of the classes there were none of, in order of first use; they are there from the beginning on.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.now = KnownClasses()
        self.made: list[dict[str, Any]] = []
        self._taken = {*names, *SYSTEM_PRIORITY_CLASSES}
        self._own: dict[tuple[int, str], str] = {}

    def is_bare(self, manifest: Manifest) -> bool:
        """Whether it is a pod or group whose priority and policy no class explains."""
        spec = manifest.get("spec")
        is_one = manifest.get("kind") in ("Pod", "PodGroup") and isinstance(spec, Mapping)
        return is_one and not self.now.agree(spec or {})

    def explained(self, manifest: Manifest) -> Manifest:
        """The pod or group with a class; any other object, or one with a class that agrees, is returned unchanged."""
        spec = manifest.get("spec")
        if not isinstance(spec, Mapping) or manifest.get("kind") not in ("Pod", "PodGroup"):
            return manifest
        changed = self._spec(spec)
        return manifest if changed is spec else {**manifest, "spec": changed}

    def _spec(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        name, written, policy = written_in(spec)
        if self.now.agree(spec) or (name and self.now.of(name) is None):
            # A class that is not there is told when the object is applied.
            return spec
        value, usual = self.now.of(name) or (0, PREEMPT_LOWER_PRIORITY)
        if written is not None or not name:
            value = written or 0
        if not isinstance(value, int) or (value > HIGHEST_USER_PRIORITY and value not in _SYSTEM_NAMES):
            # No class may have it, and none did.
            return spec
        kept = {key: item for key, item in spec.items() if key not in ("priority", "preemptionPolicy")}
        return {**kept, "priorityClassName": self._class(value, policy or usual)}

    def _class(self, value: int, policy: str) -> str:
        if value in _SYSTEM_NAMES and policy == PREEMPT_LOWER_PRIORITY:
            return _SYSTEM_NAMES[value]
        if (value, policy) in self._own:
            return self._own[value, policy]
        sign = "minus-" if value < 0 else ""
        own = f"priority-{sign}{abs(value)}" + ("" if policy == PREEMPT_LOWER_PRIORITY else "-never")
        name, number = own, 1
        while name in self._taken:
            number += 1
            name = f"{own}-{number}"
        self._taken.add(name)
        self._own[value, policy] = name
        made: dict[str, Any] = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        self.made.append(made if policy == PREEMPT_LOWER_PRIORITY else {**made, "preemptionPolicy": policy})
        return name


def names_of_classes(manifests: Iterable[Manifest]) -> list[str]:
    """Of every PriorityClass among the objects."""
    return [str(item["metadata"]["name"]) for item in manifests if item.get("kind") == "PriorityClass"]
