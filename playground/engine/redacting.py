"""The objects of a cluster as it is, without their names and without what no scheduler reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.releases import DEFAULT
from scheduler_core.scenario.errors import ScenarioError
from scheduler_core.scenario.load import dump_scenario, load_scenario, scenario_document
from scheduler_core.scenario.redact import redact


class UnreadableDump(Exception):
    """An object cannot be read; its place and value."""


@dataclass(frozen=True, slots=True)
class Dump:
    """What may leave a cluster.

    Attributes
    ----------
    objects : list of mapping
        Manifests, owners after what they own.
    scenario : str
        The same as a scenario's YAML.
    renamed : dict of str to dict
        Kind (`Node`, `Pod`, `label`, `value`, ...) -> old -> new; empty where names are kept. It stays here.
    notes : tuple of str
        What was kept all the same, and why.
    """

    objects: list[Mapping[str, Any]]
    scenario: str
    renamed: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]

    def new(self, kind: str, name: str) -> str:
        """The name that something has outside."""
        return self.renamed.get(kind, {}).get(name, name)

    def with_names(self, text: str) -> str:
        """Words about what left, with the names it has here."""
        old = {new: old for names in self.renamed.values() for old, new in names.items()}
        return re.sub(r"\b[a-z]+-\d+\b", lambda found: old.get(found[0], found[0]), text) if old else text


def dump_of(
    manifests: Sequence[Mapping[str, Any]],
    *,
    keep_names: bool = False,
    release: str | None = None,
    title: str = "",
) -> Dump:
    """What of a cluster's objects decides anything, by default without names.

    Raises
    ------
    UnreadableDump
        An object cannot be read; with its place.
    """
    head = {"kubernetesRelease": release or DEFAULT.name, **({"title": title} if title else {})}
    try:
        scenario = load_scenario(scenario_of_dump(manifests, **head))
    except ScenarioError as error:
        raise UnreadableDump("\n".join(str(problem) for problem in error.problems[:10])) from None
    renamed: Mapping[str, Mapping[str, str]] = {}
    notes: tuple[str, ...] = ()
    if not keep_names:
        found = redact(scenario)
        scenario, renamed, notes = found.scenario, found.renamed, found.notes
    document = scenario_document(scenario)
    objects = list(document.get("objects") or ())
    for step in document.get("steps") or ():
        applied = step.get("apply") or ()
        objects += [applied] if isinstance(applied, Mapping) else applied
    return Dump(objects, dump_scenario(scenario), renamed, notes)
