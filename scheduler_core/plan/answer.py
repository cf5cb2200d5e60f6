"""What every answer holds, and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.plan.headroom import Report
from scheduler_core.plan.node_groups import ZONE, group_of, nodes_of
from scheduler_core.plan.question import PlanQuestion

GOOD, WARNING, BAD = "good", "warning", "bad"
N_SEEDS: Final = 20
MOST_LUCK_DECISIONS: Final = 4_000
"""Decisions that the other seeds of one answer may cost; where it would be more, they are not asked."""
MOST_MOVES: Final = 2_000
"""Pods an answer lists; the counts are of all."""
MOST_LINES: Final = 400
OUTSIDE: Final = (
    "Permit and PreBind are not run.",
    "Autoscalers of nodes and pods, and pods that were pending before, do nothing.",
)
NO_TIME: Final = "Time does not pass: grace periods and how long a pod takes to be ready are left out."


@dataclass(slots=True)
class Answer:
    """What is told of one question; `document` is its JSON."""

    verdict: str
    tone: str
    figures: list[tuple[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    map: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    test: dict[str, Any] | None = None
    decisions: int = 0
    luck: dict[str, int] | None = None
    leaves_out: tuple[str, ...] = OUTSIDE
    more: dict[str, Any] = field(default_factory=dict)

    def line(self, tone: str, text: str, note: str = "", **more: Any) -> None:
        """One sentence, with what stands under it."""
        self.lines.append({"tone": tone, "text": text, "note": note, **more})

    def document(self, question: PlanQuestion) -> dict[str, Any]:
        return {
            "question": question.document(),
            "verdict": self.verdict,
            "tone": self.tone,
            "figures": [{"words": words, "value": value} for words, value in self.figures],
            "lines": self.lines[:MOST_LINES],
            "nLines": len(self.lines),
            "moves": self.moves[:MOST_MOVES],
            "nMoves": len(self.moves),
            "map": self.map,
            "steps": self.steps,
            "test": self.test,
            "decisions": self.decisions,
            "luck": self.luck,
            "leavesOut": list(self.leaves_out),
            **self.more,
        }


def told_luck(
    sandbox: Sandbox, n_decisions: int, holds: Callable[[], bool], report: Report
) -> dict[str, int] | None:
    """In how many of some seeds it holds; None when that would cost too much. The seed of the answer is one of them."""
    n_seeds = min(N_SEEDS, 1 + MOST_LUCK_DECISIONS // max(1, n_decisions))
    if n_seeds < 2:
        return None
    found = 1
    for seed in range(1, n_seeds):
        report(seed, n_seeds, f"with seed {seed}")
        sandbox.pin(seed)
        found += holds()
    sandbox.pin(0)
    return {"seeds": n_seeds, "holds": found}


def node_map(sandbox: Sandbox, state: Callable[[str], tuple[str, int, int]]) -> list[dict[str, Any]]:
    """Groups of nodes, each node with its state, requested cpu in percent, and a number that its state explains."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for node in nodes_of(sandbox):
        group = group_of(node.meta.labels)
        kept = groups.setdefault(
            (group.name, group.shape), {"name": group.name, "shape": group.shape, "nodes": []}
        )
        what, share, number = state(node.name)
        kept["nodes"].append([node.name, what, share, number, node.meta.labels.get(ZONE, "")])
    return [groups[key] for key in sorted(groups)]
