"""Whether a scenario without its names still decides the same, and whether a name still stands in it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.scenario.load import scenario_document
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.redact import Redacted
from scheduler_core.scenario.redact_fields import LABEL_MAPS
from scheduler_core.scenario.run import run
from scheduler_core.scenario.types import Scenario


@dataclass(frozen=True, slots=True)
class RedactionCheck:
    """Whether a redacted scenario decides as the original does.

    Attributes
    ----------
    cycle : int or None
        The first cycle that differs.
    """

    same: bool
    sentence: str
    cycle: int | None = None


def verify_redaction(original: Scenario, redacted: Scenario) -> RedactionCheck:
    """Run both and compare cycle by cycle, up to the renaming (which is inferred, and must be one to one)."""
    a = run(dataclasses.replace(original, expect=()), full_traces=False)
    b = run(dataclasses.replace(redacted, expect=()), full_traces=False)
    return same_up_to_names(a, b)


def same_up_to_names(a: ScenarioRun, b: ScenarioRun) -> RedactionCheck:
    """Compare two runs up to a one-to-one renaming of pods and nodes."""
    there: dict[tuple[str, str], str] = {}
    back: dict[tuple[str, str], str] = {}

    def matches(what: str, old: Any, new: Any) -> bool:
        if not old or not new:
            return not old and not new
        return bool(there.setdefault((what, old), new) == new and back.setdefault((what, new), old) == old)

    for first, second in zip(a.cycles, b.cycles, strict=False):
        victims_a, victims_b = first.victims, second.victims
        same = (
            first.outcome == second.outcome
            and first.n_feasible == second.n_feasible
            and first.n_nodes == second.n_nodes
            and first.best_total == second.best_total
            and first.at_ns == second.at_ns
            and matches("pod", first.pod, second.pod)
            and matches("node", first.node, second.node)
            and matches("node", first.nominated_node, second.nominated_node)
            and len(victims_a) == len(victims_b)
            and all(matches("pod", old, new) for old, new in zip(victims_a, victims_b, strict=True))
        )
        if not same:
            said = f"cycle {first.number} differs: {first.pod} {first.outcome} against {second.pod} {second.outcome}"
            return RedactionCheck(False, said, first.number)
    if len(a.cycles) != len(b.cycles):
        said = f"the original has {len(a.cycles)} cycles, the redacted scenario {len(b.cycles)}"
        return RedactionCheck(False, said, min(len(a.cycles), len(b.cycles)) + 1)
    return RedactionCheck(True, f"all {len(a.cycles)} decisions are the same under other names")


def leaked_names(redacted: Redacted, names: Iterable[str] = ()) -> list[str]:
    """Old names that still stand somewhere in the redacted document; none is right.

    Parameters
    ----------
    names : iterable of str
        More words that must not be found.
    """
    old = {name for renamed in redacted.renamed.values() for name in renamed} | set(names)
    texts = _texts(scenario_document(redacted.scenario), "")
    words = {word for text in texts for word in (text, *re.findall(r"[\w./:@-]+", text))}
    return sorted(name for name in old if name in words)


def _texts(value: Any, key: str) -> Iterator[str]:
    """Every text that is no field name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        if key in (*LABEL_MAPS, "selector"):
            yield from (name for name in value if name not in ("matchLabels", "matchExpressions"))
        for name, item in value.items():
            if name not in ("kind", "apiVersion"):
                yield from _texts(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, key)


def without_failing(result: ScenarioRun) -> tuple[Scenario, int]:
    """The run's scenario without expectations that do not hold, and how many there were.

    What holds is said in words the run itself uses, and those of a redacted scenario give no name away.
    """
    failing = {finding.path for finding in result.findings if not finding.holds}
    scenario = result.scenario
    steps = []
    for place, step in enumerate(scenario.steps):
        if step.expect is None:
            steps.append(step)
            continue
        kept = tuple(
            item for index, item in enumerate(step.expect) if f"steps[{place}].expect[{index}]" not in failing
        )
        if kept:
            steps.append(dataclasses.replace(step, expect=kept))
    expect = tuple(item for index, item in enumerate(scenario.expect) if f"expect[{index}]" not in failing)
    return dataclasses.replace(scenario, steps=tuple(steps), expect=expect), len(failing)
