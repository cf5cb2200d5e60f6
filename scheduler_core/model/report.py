"""What the model says of a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.model.departures import DEPARTURES
from scheduler_core.model.verdict import FAILS, LEAVES, PROPERTIES, STATUSES, PropertyVerdict


@dataclass(frozen=True, slots=True)
class CheckedCycle:
    """One cycle; a property that has nothing to say of it has no verdict."""

    number: int
    pod: str
    outcome: str
    counts: Mapping[str, int]
    """`possible`, `feasible` and `viable` nodes."""
    verdicts: tuple[PropertyVerdict, ...]

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "cycle": self.number,
            "pod": self.pod,
            "outcome": self.outcome,
            **self.counts,
            "verdicts": [verdict.document() for verdict in self.verdicts],
        }


@dataclass(slots=True)
class ModelReport:
    """All cycles of a run."""

    cycles: list[CheckedCycle] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing fails; what Kubernetes does on purpose is no failure."""
        return not any(verdict.status == FAILS for cycle in self.cycles for verdict in cycle.verdicts)

    def counts(self) -> dict[str, dict[str, int]]:
        """Property -> status -> cycles."""
        found = {name: dict.fromkeys(STATUSES, 0) for name in PROPERTIES}
        for cycle in self.cycles:
            for verdict in cycle.verdicts:
                found[verdict.property][verdict.status] += 1
        return found

    def with_status(self, status: str) -> list[tuple[CheckedCycle, PropertyVerdict]]:
        """Verdicts of one kind, in order of cycles."""
        return [(cycle, item) for cycle in self.cycles for item in cycle.verdicts if item.status == status]

    def departures(self) -> list[dict[str, Any]]:
        """Where Kubernetes left the model: each kind with its sentence, how often, and its first cycle."""
        found: dict[str, dict[str, Any]] = {}
        for cycle, verdict in self.with_status(LEAVES):
            entry = found.setdefault(
                verdict.departure,
                {
                    "departure": verdict.departure,
                    "property": verdict.property,
                    "why": DEPARTURES[verdict.departure],
                    "count": 0,
                    "first": {"cycle": cycle.number, "sentence": verdict.sentence},
                },
            )
            entry["count"] += 1
        return list(found.values())

    @property
    def sentence(self) -> str:
        """The whole in one sentence."""
        n_cycles = len(self.cycles)
        if not n_cycles:
            return "No cycle was run, so there is nothing to check."
        failing = sorted({cycle.number for cycle, _ in self.with_status(FAILS)})
        of = "the only cycle" if n_cycles == 1 else f"all {n_cycles:,} cycles"
        if failing:
            which = "cycle" if len(failing) == 1 else "cycles"
            numbers = ", ".join(map(str, failing[:5])) + (" and others" if len(failing) > 5 else "")
            return f"The model is violated in {len(failing):,} of {n_cycles:,} cycles ({which} {numbers})."
        leaving = {cycle.number for cycle, _ in self.with_status(LEAVES)}
        if not leaving:
            return f"The model holds in {of}."
        if len(leaving) == n_cycles:
            return f"Kubernetes leaves the model on purpose in {of}; nothing is violated."
        return (
            f"The model holds in {n_cycles - len(leaving):,} of {n_cycles:,} cycles;"
            f" in {len(leaving):,} Kubernetes leaves it on purpose."
        )

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "status": "holds" if self.holds else "fails",
            "sentence": self.sentence,
            "counts": self.counts(),
            "departures": self.departures(),
            "violations": [
                {"cycle": cycle.number, "pod": cycle.pod, **verdict.document()}
                for cycle, verdict in self.with_status(FAILS)
            ],
            "cycles": [cycle.document() for cycle in self.cycles],
        }
