"""What was found of single edits after which a pod would fit, and how far the search goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scheduler_core.advice.edits import FailedEdit, ProvenEdit


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far the search goes.

    Attributes
    ----------
    per_kind : int or None
        So many edits of each kind that are about one node or one pod (uncordon, delete, move, free room, add) are
        proven, the cheapest first; None proves all.
    exhaustive_pods : int
        Up to so many pods every single one's going is tried by a whole cycle. Above, all are tried in lock-step for
        their own node, and those that matter elsewhere by whole cycles.
    elsewhere : int
        How many of the latter.
    failed_per_kind : int
        How many edits of a kind that do not help are told.
    others : bool
        Whether pods that run are asked to go; without, what is left are edits of the pod and of nodes.
    alike : int
        Decisions that proving the edits for all pods of the workload may cost.
    """

    per_kind: int | None = 6
    exhaustive_pods: int = 150
    elsewhere: int = 60
    failed_per_kind: int = 3
    others: bool = True
    alike: int = 400


@dataclass(slots=True)
class Advice:
    """The answer.

    Attributes
    ----------
    pod : str
        `namespace/name`.
    outcome : str
        What the cycle decides as things are: `bound` (the pod fits, there is nothing to edit), `preempting`,
        `unschedulable` or `error`.
    node : str or None
        Where it would go as things are.
    message : str or None
        What the cycle says as things are.
    edits : list of ProvenEdit
        The cheapest first.
    failed : list of FailedEdit
        Some that do not help.
    n_tried : int
        Edits judged in all.
    n_decisions : int
        Cycles that were run for it.
    n_unlooked : int
        Edits that place the pod and were not tried for the others of its workload: `SearchLimits.alike` decisions
        had been run.
    n_more : dict of str to int
        Kind -> how many further edits of that kind are known to help, not proven for being more of the same.
    """

    pod: str
    n_nodes: int
    outcome: str
    node: str | None
    message: str | None
    edits: list[ProvenEdit] = field(default_factory=list)
    failed: list[FailedEdit] = field(default_factory=list)
    n_tried: int = 0
    n_decisions: int = 0
    n_unlooked: int = 0
    n_more: dict[str, int] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "pod": self.pod,
            "nNodes": self.n_nodes,
            "outcome": self.outcome,
            "node": self.node,
            "message": self.message,
            "edits": [item.document() for item in self.edits],
            "failed": [item.document() for item in self.failed],
            "nTried": self.n_tried,
            "nDecisions": self.n_decisions,
            "nUnlooked": self.n_unlooked,
            "nMore": dict(self.n_more),
        }
