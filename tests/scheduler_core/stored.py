"""Objects as an API server would have stored them, a pod's priority as the test wishes it."""

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.objects import defaults


def prepare(manifest: Mapping[str, Any], classes: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The object with its defaults; a priority needs no class here."""
    known = defaults.StoredPriorities(defaults.priority_class_from(item) for item in classes)
    return defaults.prepare(manifest, known)
