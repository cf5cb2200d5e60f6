"""A scenario's `controllers`: programs beside the scheduler, as annotations of the namespace kube-system."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from string import ascii_letters
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.meta import object_of
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.sim.controllers.programs import NAMESPACE, PROGRAMS

_PREFIX = "playground.dev/"


def with_controllers(given: Any, objects: Any) -> list[Any]:
    """The objects of a scenario, the namespace kube-system with the settings of its programs among them.

    Raises
    ------
    ScenarioError
        Names the field and its value.
    """
    known = [name.removeprefix(_PREFIX) for name in PROGRAMS]
    if not isinstance(given, Mapping) or not given.keys() <= set(known):
        raise ScenarioError([Problem("controllers", f"must be a mapping of {' and '.join(known)}")])
    annotations = {}
    for name, settings in given.items():
        several = settings if isinstance(settings, list) else [settings]
        text = "\n---\n".join(json.dumps(one, sort_keys=True) for one in several)
        try:
            PROGRAMS[_PREFIX + name](text)
        except InvalidObject as error:
            path = f"controllers.{name}{error.path.lstrip(ascii_letters)}"
            raise ScenarioError([Problem(path, error.reason, error.value)]) from None
        annotations[_PREFIX + name] = text
    own: Sequence[Any] = [objects] if isinstance(objects, Mapping) else objects
    place = next((n for n, one in enumerate(own) if _is_namespace(one)), None)
    if place is None:
        return [object_of("v1", "Namespace", {"name": NAMESPACE, "annotations": annotations}), *own]
    meta = own[place]["metadata"]
    changed = {
        **own[place],
        "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}},
    }
    return [*own[:place], changed, *own[place + 1 :]]


def _is_namespace(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("kind") != "Namespace":
        return False
    meta = item.get("metadata")
    return isinstance(meta, Mapping) and meta.get("name") == NAMESPACE
