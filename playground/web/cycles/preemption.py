"""The preemption panel: candidates, how their victims were found, what eliminated each, and the room it makes.

kube-scheduler compares candidates by five criteria in turn, stops as soon as one is left, and takes any of those
that are equal in all of them.
Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption, v1.34.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playground.clusters.history.cycles import Aftermath

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle

CANDIDATE_LIMIT = 20
STEPS_LIMIT = 8
"""Candidates whose reprieve steps are shown."""
NODES_NAMED = 8
PRIORITY_OFFSET = 2**31
SUM = "lowestPrioritySum"

# As the engine calls them, and as the page does.
CRITERIA = {
    "fewestBudgetViolations": "Fewest PDB violations",
    "lowestHighestPriority": "Lowest highest-victim priority",
    SUM: "Lowest sum of priorities",
    "fewestVictims": "Fewest victims",
    "latestEarliestStart": "Latest start time",
}
ANY = "Any of those left"
_NUMBER = {name: number for number, name in enumerate(CRITERIA, start=1)}


@dataclass(frozen=True)
class Victim:
    """A pod that would be evicted; ``priority`` is None when the explanation does not say it.

    ``budgets`` are those its eviction violates, as (namespace, name); empty where an old record names none.
    """

    namespace: str
    name: str
    priority: int | None
    violates_pdb: bool
    budgets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ReprieveStep:
    """One pod of lower priority that was taken away, and whether it could be given back."""

    pod: Victim
    kept: bool


@dataclass(frozen=True)
class CriterionCell:
    """State: keep (compared and stayed), kill (compared and lost), gone (not compared any more).

    ``name`` is that of the criterion, ``exact`` the value as it was compared, where another one is shown.
    """

    name: str
    value: str
    state: str
    exact: str = ""


@dataclass(frozen=True)
class RoomBar:
    """One resource of the chosen node; shares in percent of what it can give."""

    resource: str
    allocatable: int
    before: int
    after: int
    needed: int
    freed: int
    stays: float
    goes: float
    comes: float

    @property
    def free_before(self) -> int:
        """What was free before the eviction."""
        return self.allocatable - self.before

    @property
    def free_after(self) -> int:
        """What is free once the pod is there."""
        return self.allocatable - self.after


@dataclass(frozen=True)
class Candidate:
    """One node on which evicting pods would help."""

    node: str
    victims: tuple[Victim, ...]
    n_pdb_violations: int
    chosen: bool
    criteria: tuple[CriterionCell, ...]
    result: str
    steps: tuple[ReprieveStep, ...]
    before_extenders: tuple[str, ...]
    lost: int | None = None
    """The criterion, from 1, by which another candidate was better."""

    @property
    def n_kept(self) -> int:
        """How many pods were given back."""
        return sum(step.kept for step in self.steps)


@dataclass(frozen=True)
class Criterion:
    """Column of the table; ``survivors`` like "7 → 5", empty when it was not needed."""

    number: int
    name: str
    survivors: str


@dataclass(frozen=True)
class Helpless:
    """Nodes that are no candidates for the same reason; the first few by name."""

    reason: str
    plugin: str
    count: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class PreemptionView:
    """Everything the PostFilter panel shows; ``failed``: a plugin gave an error instead of an answer."""

    eligible: bool
    failed: bool
    ineligible_reason: str
    message: str
    candidates: tuple[Candidate, ...]
    n_candidates: int
    n_nodes: int
    nominated: str | None
    victims: tuple[Victim, ...]
    criteria: tuple[Criterion, ...]
    decided_by: str
    tied: tuple[str, ...]
    tie_stream: str
    cleared: tuple[Victim, ...]
    helpless: tuple[Helpless, ...]
    room: tuple[RoomBar, ...]

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that was taken."""
        return next((candidate for candidate in self.candidates if candidate.chosen), None)

    @property
    def explained(self) -> tuple[Candidate, ...]:
        """The candidates whose victims are shown as they were found."""
        return tuple(candidate for candidate in self.candidates if candidate.steps)[:STEPS_LIMIT]

    @property
    def n_unexplained(self) -> int:
        """Candidates left out there."""
        return self.n_candidates - len(self.explained)


def view_preemption(explanation: Mapping[str, Any], *, limit: int = CANDIDATE_LIMIT) -> PreemptionView | None:
    """Build the preemption panel, or None when PostFilter did not run.

    Parameters
    ----------
    explanation : mapping
        Reads ``preemption`` (`scheduler_core.framework.preemption.trace`; the recorded cases have less of it) and
        ``filter``.
    limit : int
        At most this many candidates, those that stayed longest first.
    """
    preemption: Mapping[str, Any] | None = explanation.get("preemption")
    if not preemption:
        return None
    given: Sequence[Mapping[str, Any]] = preemption.get("candidates") or ()
    nominated = preemption.get("nominatedNode") or None
    priorities = _priorities(given)
    asked: Sequence[Mapping[str, Any]] = preemption.get("criteria") or ()
    tied = tuple(preemption.get("tied") or ())
    # Who stayed longest comes first; the order of the explanation decides the rest.
    ranked = sorted(given, key=lambda c: (c["node"] != nominated, -_stayed(c)))[:limit]
    candidates = tuple(_candidate(c, nominated, priorities, len(asked), tied) for c in ranked)
    verdicts = explanation.get("filter") or {}
    chosen = next((c for c in given if c["node"] == nominated), None)
    return PreemptionView(
        eligible=bool(preemption.get("eligible", True)),
        failed=preemption.get("code") == "Error",
        ineligible_reason=str(preemption.get("ineligibleReason") or ""),
        message=str(preemption.get("message") or ""),
        candidates=candidates,
        n_candidates=len(given),
        n_nodes=len(verdicts),
        nominated=nominated,
        victims=tuple(_victim(v, priorities, {}) for v in preemption.get("victims") or ()),
        criteria=_criteria(asked, len(given), tied),
        decided_by=_decided_by(preemption.get("decidedBy")),
        tied=tied,
        tie_stream=str(preemption.get("tieStream") or ""),
        cleared=tuple(_victim(v, {}, {}) for v in preemption.get("clearedNominations") or ()),
        helpless=_helpless(preemption.get("notCandidates") or ()),
        room=_room(chosen.get("room") or {}) if chosen else (),
    )


def _stayed(candidate: Mapping[str, Any]) -> int:
    if candidate.get("cutByExtender"):
        return 0
    return _NUMBER.get(candidate.get("eliminatedAt") or "", len(CRITERIA) + 1)


def _priorities(given: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {step["pod"]: step["priority"] for c in given for step in c.get("steps") or ()}


def _candidate(
    c: Mapping[str, Any],
    nominated: str | None,
    priorities: Mapping[str, int],
    n_asked: int,
    tied: tuple[str, ...],
) -> Candidate:
    node = str(c["node"])
    steps = c.get("steps") or ()
    violating = {s["pod"]: _budgets(s) for s in steps if s["violatesBudget"] and not s["kept"]}
    chosen = node == nominated
    cut = bool(c.get("cutByExtender"))
    lost = _NUMBER.get(c.get("eliminatedAt") or "")
    return Candidate(
        node=node,
        victims=tuple(_victim(v, priorities, violating) for v in c.get("victims") or ()),
        n_pdb_violations=int(c.get("numPDBViolations") or 0),
        chosen=chosen,
        criteria=_cells(c, n_asked, lost, tied),
        result=_result(chosen, lost, cut, nominated),
        steps=tuple(
            ReprieveStep(
                _victim(s["pod"], priorities, {s["pod"]: _budgets(s)} if s["violatesBudget"] else {}),
                bool(s["kept"]),
            )
            for s in steps
        ),
        before_extenders=tuple(v.rpartition("/")[2] for v in c.get("victimsBeforeExtenders") or ()),
        lost=lost,
    )


def _budgets(step: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = (name.rpartition("/") for name in step.get("budgets") or ())
    return tuple((namespace, name) for namespace, _, name in names)


def _victim(
    pod: str, priorities: Mapping[str, int], violated: Mapping[str, tuple[tuple[str, str], ...]]
) -> Victim:
    namespace, _, name = pod.rpartition("/")
    return Victim(namespace, name, priorities.get(pod), pod in violated, violated.get(pod, ()))


def _criteria(
    asked: Sequence[Mapping[str, Any]], n_candidates: int, tied: tuple[str, ...]
) -> tuple[Criterion, ...]:
    if not asked:
        return ()
    left_after = {str(criterion["name"]): int(criterion["left"]) for criterion in asked}
    columns = []
    left = n_candidates
    for number, (key, name) in enumerate(CRITERIA.items(), start=1):
        survivors = ""
        if key in left_after:
            survivors = f"{left:,} → {left_after[key]:,}"
            left = left_after[key]
        columns.append(Criterion(number, name, survivors))
    columns.append(Criterion(len(CRITERIA) + 1, ANY, f"{len(tied):,} → 1" if tied else ""))
    return tuple(columns)


def _cells(
    c: Mapping[str, Any], n_asked: int, lost: int | None, tied: tuple[str, ...]
) -> tuple[CriterionCell, ...]:
    if not n_asked:
        return ()
    values = c.get("criterionValues") or {}
    cells = []
    for number, (key, name) in enumerate(CRITERIA.items(), start=1):
        if key not in values:
            cells.append(CriterionCell(name, "", "gone"))
            continue
        value, exact = values[key], ""
        if key == SUM:
            exact = str(value)
            value -= PRIORITY_OFFSET * len(c.get("victims") or ())
        cells.append(
            CriterionCell(
                name,
                "not started" if value is None else str(value),
                "kill" if number == lost else "keep",
                exact,
            )
        )
    last = CriterionCell(ANY, *(("equal", "keep") if c["node"] in tied else ("", "gone")))
    return (*cells, last)


def _result(chosen: bool, lost: int | None, cut: bool, nominated: str | None) -> str:
    if chosen:
        return "chosen"
    if cut:
        return "left out by an extender"
    if lost is not None:
        return f"out at {lost}"
    return "not chosen" if nominated else ""


def _decided_by(key: Any) -> str:
    if key == "onlyCandidate":
        return "it is the only candidate"
    if key == "tie":
        return "several are equal in everything"
    return f"decided by: {CRITERIA[key].lower()}" if key in CRITERIA else ""


def _helpless(given: Sequence[Mapping[str, Any]]) -> tuple[Helpless, ...]:
    """Say why every other node is no candidate, in groups of the same reason, the largest first."""
    groups = [
        Helpless(
            ", ".join(one["reasons"]),
            str(one.get("plugin") or ""),
            int(one["count"]),
            tuple(one["nodes"][:NODES_NAMED]),
        )
        for one in given
    ]
    return tuple(sorted(groups, key=lambda group: -group.count))


def _room(room: Mapping[str, Mapping[str, int]]) -> tuple[RoomBar, ...]:
    bars = []
    for resource, amounts in room.items():
        allocatable, before, after = amounts["allocatable"], amounts["before"], amounts["after"]
        needed = amounts.get("needed", 1 if resource == "pods" else 0)
        freed = before + needed - after
        scale = 100 / allocatable if allocatable else 0
        bars.append(
            RoomBar(
                resource=resource,
                allocatable=allocatable,
                before=before,
                after=after,
                needed=needed,
                freed=freed,
                stays=round(min(100, (before - freed) * scale), 2),
                goes=round(min(100, freed * scale), 2),
                comes=round(min(100, needed * scale), 2),
            )
        )
    return tuple(bars)


@dataclass(frozen=True)
class NextStep:
    """One step; `at_ns` None when the moment is not known yet. `cycle` links the pod's next attempt."""

    at_ns: int | None
    text: str
    done: bool
    cycle: int | None = None


def next_steps(cycle: Cycle, node: str, after: Aftermath) -> list[NextStep]:
    """Tell the steps in order of time; those without a moment come last."""
    steps = [
        NextStep(
            cycle.at_ns,
            f"status.nominatedNodeName: {node} is set; {cycle.pod_name} goes back to the queue",
            True,
        )
    ]
    for victim in after.victims:
        name = victim.pod.rpartition("/")[2]
        if victim.asked_ns is None:
            steps.append(NextStep(None, f"{name} is asked to end", False))
            continue
        if victim.until_ns is not None:
            grace_s = (victim.until_ns - victim.asked_ns) / 1e9
            steps.append(
                NextStep(victim.asked_ns, f"{name} starts terminating, {grace_s:.0f} s of grace", True)
            )
        ends_ns = victim.gone_ns or victim.until_ns
        steps.append(
            NextStep(
                ends_ns,
                f"{name} is gone; its end moves {cycle.pod_name} back to activeQ",
                victim.gone_ns is not None,
            )
        )
    again = after.next_cycle
    if again is not None:
        where = f" to {again.node}" if again.node else ""
        steps.append(
            NextStep(again.at_ns, f"Attempt {again.attempt}: {again.outcome}{where}", True, again.number)
        )
    else:
        steps.append(
            NextStep(
                None,
                f"The next attempt tries {node} first. A pod of higher priority may still take the room",
                False,
            )
        )
    known = [step for step in steps if step.at_ns is not None]
    known.sort(key=lambda step: step.at_ns or 0)
    return [*known, *(step for step in steps if step.at_ns is None)]
