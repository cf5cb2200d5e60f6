"""The preemption table: candidates, victims, and the criteria that eliminated each candidate.

kube-scheduler compares candidates by six criteria in turn and stops as soon as one is left.
Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption, v1.34.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CANDIDATE_LIMIT = 20
CRITERIA = (
    "Fewest PDB violations",
    "Lowest highest-victim priority",
    "Lowest sum of priorities",
    "Fewest victims",
    "Latest start time",
    "First in order",
)


@dataclass(frozen=True)
class Victim:
    """A pod that would be evicted; ``priority`` is None when the explanation does not say it."""

    namespace: str
    name: str
    priority: int | None
    violates_pdb: bool


@dataclass(frozen=True)
class CriterionCell:
    """State: keep (compared and stayed), kill (compared and lost), gone (not compared any more)."""

    value: str
    state: str


@dataclass(frozen=True)
class Candidate:
    """One node on which evicting pods would help."""

    node: str
    victims: tuple[Victim, ...]
    n_pdb_violations: int
    chosen: bool
    criteria: tuple[CriterionCell, ...]
    result: str


@dataclass(frozen=True)
class Criterion:
    """Column of the table; ``survivors`` like "7 → 5", empty when it was not needed."""

    number: int
    name: str
    survivors: str


@dataclass(frozen=True)
class PreemptionView:
    """Everything the PostFilter panel shows."""

    eligible: bool
    message: str
    candidates: tuple[Candidate, ...]
    n_candidates: int
    n_nodes: int
    nominated: str | None
    victims: tuple[Victim, ...]
    criteria: tuple[Criterion, ...]
    tied: tuple[str, ...]
    clears_nomination: bool
    helpless: tuple[tuple[str, int], ...]


def view_preemption(explanation: Mapping[str, Any], *, limit: int = CANDIDATE_LIMIT) -> PreemptionView | None:
    """Build the preemption table, or None when PostFilter did not run.

    ``preemption.criteria``, when the explanation carries it, is a list in the order compared of
    ``{name, values: {node: value}, survivors: [node]}``.
    """
    preemption: Mapping[str, Any] | None = explanation.get("preemption")
    if not preemption:
        return None
    given: Sequence[Mapping[str, Any]] = preemption.get("candidates") or ()
    nominated = preemption.get("nominatedNode") or None
    order = [str(c["node"]) for c in given]
    compared: Sequence[Mapping[str, Any]] = preemption.get("criteria") or ()
    criteria = _criteria(compared, len(order))
    lost_at = _lost_at(order, compared)
    candidates = []
    for c in given:
        node = str(c["node"])
        violated = set(c.get("pdbViolations") or ())
        chosen = node == nominated
        candidates.append(
            Candidate(
                node=node,
                victims=tuple(_victim(v, violated) for v in c.get("victims") or ()),
                n_pdb_violations=int(c.get("numPDBViolations") or 0),
                chosen=chosen,
                criteria=_cells(node, compared, lost_at.get(node)),
                result=_result(chosen, lost_at.get(node), nominated),
            )
        )
    # Who stayed longest comes first; the order of the explanation decides the rest.
    candidates.sort(key=lambda c: (not c.chosen, -(lost_at.get(c.node) or len(CRITERIA) + 1)))
    shown = candidates[:limit]
    verdicts = explanation.get("filter") or {}
    return PreemptionView(
        eligible=bool(preemption.get("eligible", True)),
        message=str(preemption.get("message") or ""),
        candidates=tuple(shown),
        n_candidates=len(candidates),
        n_nodes=len(verdicts),
        nominated=nominated,
        victims=tuple(_victim(v, set()) for v in preemption.get("victims") or ()),
        criteria=criteria,
        tied=tuple(preemption.get("tied") or ()),
        clears_nomination=bool(preemption.get("clearsNomination")),
        helpless=_helpless(verdicts, set(order)),
    )


def _victim(victim: Any, violated: set[str]) -> Victim:
    if isinstance(victim, Mapping):
        full = str(victim.get("pod") or f"{victim.get('namespace', 'default')}/{victim.get('name', '')}")
        priority = victim.get("priority")
        violates = bool(victim.get("violatesPDB")) or full in violated
    else:
        full, priority, violates = str(victim), None, str(victim) in violated
    namespace, _, name = full.rpartition("/")
    return Victim(namespace or "default", name, priority, violates)


def _criteria(compared: Sequence[Mapping[str, Any]], n_candidates: int) -> tuple[Criterion, ...]:
    if not compared:
        return ()
    columns = []
    left = n_candidates
    for i, name in enumerate(CRITERIA):
        survivors = ""
        if i < len(compared):
            after = len(compared[i].get("survivors") or ())
            survivors = f"{left} → {after}"
            left = after
        columns.append(Criterion(i + 1, name, survivors))
    return tuple(columns)


def _lost_at(order: Sequence[str], compared: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number (from 1) of the criterion that eliminated a candidate, for those eliminated."""
    lost: dict[str, int] = {}
    left = set(order)
    for i, criterion in enumerate(compared, start=1):
        survivors = set(criterion.get("survivors") or ())
        for node in order:
            if node in left and node not in survivors:
                lost[node] = i
        left &= survivors
    return lost


def _cells(
    node: str, compared: Sequence[Mapping[str, Any]], lost_at: int | None
) -> tuple[CriterionCell, ...]:
    if not compared:
        return ()
    cells = []
    for i in range(len(CRITERIA)):
        if i >= len(compared) or (lost_at is not None and i >= lost_at):
            cells.append(CriterionCell("", "gone"))
            continue
        value = (compared[i].get("values") or {}).get(node)
        state = "kill" if lost_at == i + 1 else "keep"
        cells.append(CriterionCell("" if value is None else str(value), state))
    return tuple(cells)


def _result(chosen: bool, lost_at: int | None, nominated: str | None) -> str:
    if chosen:
        return "chosen"
    if lost_at is not None:
        return f"out at {lost_at}"
    return "not chosen" if nominated else ""


def _helpless(verdicts: Mapping[str, Any], candidates: set[str]) -> tuple[tuple[str, int], ...]:
    """Say why the other nodes were no candidates, with counts."""
    counts: Counter[str] = Counter()
    for node, verdict in verdicts.items():
        if verdict is None or node in candidates:
            continue
        if verdict.get("code") == "UnschedulableAndUnresolvable":
            counts["Preemption is not helpful for scheduling"] += 1
        else:
            counts["Evicting pods of lower priority frees too little"] += 1
    return tuple(sorted(counts.items()))
