"""The preemption panel: candidates, how their victims were found, what eliminated each, and the room it makes.

kube-scheduler compares candidates by five criteria in turn, stops as soon as one is left, and takes any of those
that are equal in all of them.
Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption, v1.34.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from playground.clusters.history.cycles import Aftermath
from playground.clusters.row_types import Cycle
from playground.web.looks import View

CANDIDATE_LIMIT = 20
STEPS_LIMIT = 8
"""Candidates whose reprieve steps are shown."""
NODES_NAMED = 3
MOST_SQUARES = 72
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


def view_preemption(explanation: Mapping[str, Any], *, limit: int = CANDIDATE_LIMIT) -> View | None:
    """Build the preemption panel, or None when PostFilter did not run.

    Parameters
    ----------
    explanation : mapping
        Reads ``preemption`` (`scheduler_core.framework.preemption.trace`; the recorded cases have less of it) and
        ``filter``.
    limit : int
        At most this many candidates, those that stayed longest first.

    Returns
    -------
    dict
        `failed`: a plugin gave an error instead of an answer. `candidates` are nodes on which evicting pods would help:
        `steps` say of each pod of lower priority whether it could be given back, `lost` by which criterion, from 1,
        another candidate was better, `criteria` how each was compared: keep (stayed), kill (lost), gone (not compared
        any more); `explained` those whose victims are shown as they were found. `helpless` nodes are none, by reason.
        `room` of the chosen node is in percent of what it can give.
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
    candidates = [_candidate(c, nominated, priorities, len(asked), tied) for c in ranked]
    verdicts = explanation.get("filter") or {}
    chosen = next((c for c in given if c["node"] == nominated), None)
    explained = [candidate for candidate in candidates if candidate["steps"]][:STEPS_LIMIT]
    return {
        "eligible": bool(preemption.get("eligible", True)),
        "failed": preemption.get("code") == "Error",
        "ineligible_reason": str(preemption.get("ineligibleReason") or ""),
        "message": str(preemption.get("message") or ""),
        "candidates": candidates,
        "chosen": next((candidate for candidate in candidates if candidate["chosen"]), None),
        "explained": explained,
        "n_unexplained": len(given) - len(explained),
        "n_candidates": len(given),
        "n_nodes": len(verdicts),
        "nominated": nominated,
        "victims": [_victim(v, priorities, {}) for v in preemption.get("victims") or ()],
        "criteria": _criteria(asked, len(given), tied),
        "decided_by": _decided_by(preemption.get("decidedBy")),
        "tied": tied,
        "tie_stream": str(preemption.get("tieStream") or ""),
        "cleared": [_victim(v, {}, {}) for v in preemption.get("clearedNominations") or ()],
        "helpless": _helpless(preemption.get("notCandidates") or ()),
        "room": _room(chosen.get("room") or {}) if chosen else [],
    }


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
) -> View:
    steps = c.get("steps") or ()
    violating = {s["pod"]: _budgets(s) for s in steps if s["violatesBudget"] and not s["kept"]}
    lost = _NUMBER.get(c.get("eliminatedAt") or "")
    return {
        "node": str(c["node"]),
        "victims": [_victim(v, priorities, violating) for v in c.get("victims") or ()],
        "n_pdb_violations": int(c.get("numPDBViolations") or 0),
        "chosen": c["node"] == nominated,
        "criteria": _cells(c, n_asked, lost, tied),
        "result": _result(c, lost, nominated),
        "steps": [
            {
                "pod": _victim(s["pod"], priorities, {s["pod"]: _budgets(s)} if s["violatesBudget"] else {}),
                "kept": bool(s["kept"]),
            }
            for s in steps
        ],
        "n_kept": sum(bool(s["kept"]) for s in steps),
        "before_extenders": [v.rpartition("/")[2] for v in c.get("victimsBeforeExtenders") or ()],
        "lost": lost,
    }


def _budgets(step: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = (name.rpartition("/") for name in step.get("budgets") or ())
    return tuple((namespace, name) for namespace, _, name in names)


def _victim(
    pod: str, priorities: Mapping[str, int], violated: Mapping[str, tuple[tuple[str, str], ...]]
) -> View:
    """A pod that would be evicted; its `priority` is None where the explanation does not say it, `budgets` are those
    its eviction violates, as (namespace, name)."""
    namespace, _, name = pod.rpartition("/")
    return {
        "namespace": namespace,
        "name": name,
        "priority": priorities.get(pod),
        "violates_pdb": pod in violated,
        "budgets": violated.get(pod, ()),
    }


def _criteria(asked: Sequence[Mapping[str, Any]], n_candidates: int, tied: Sequence[str]) -> list[View]:
    """Rungs of the ladder: how many candidates were left before and after each; None where it was not needed.

    A square is a candidate that was `kept` or went `out`; of more than fit, their share.
    """
    if not asked:
        return []
    left_after: dict[str, int] = {str(criterion["name"]): int(criterion["left"]) for criterion in asked}
    left_after |= {ANY: 1} if tied else {}
    rungs: list[View] = []
    left = n_candidates
    for number, (key, name) in enumerate((*CRITERIA.items(), (ANY, ANY)), start=1):
        before, after = left, left_after.get(key)
        left = before if after is None else after
        squares = min(before, MOST_SQUARES)
        kept = 0 if after is None else max(1, after * squares // before)
        rungs.append(
            {
                "number": number,
                "name": name,
                "before": before,
                "after": after,
                "decided": after == 1 and before > 1,
                "kept": range(kept),
                "out": range(0 if after is None else squares - kept),
            }
        )
    return rungs


def _cells(c: Mapping[str, Any], n_asked: int, lost: int | None, tied: Sequence[str]) -> list[View]:
    """How a candidate was compared; ``exact`` is the value that was compared, where another one is shown."""
    if not n_asked:
        return []
    values = c.get("criterionValues") or {}
    cells = []
    for number, (key, name) in enumerate(CRITERIA.items(), start=1):
        if key not in values:
            cells.append({"name": name, "value": "", "state": "gone"})
            continue
        value, exact = values[key], ""
        if key == SUM:
            exact = str(value)
            value -= PRIORITY_OFFSET * len(c.get("victims") or ())
        words = "not started" if value is None else str(value)
        state = "kill" if number == lost else "keep"
        cells.append({"name": name, "value": words, "state": state, "exact": exact})
    last = {"value": "equal", "state": "keep"} if c["node"] in tied else {"value": "", "state": "gone"}
    return [*cells, {"name": ANY, **last}]


def _result(c: Mapping[str, Any], lost: int | None, nominated: str | None) -> str:
    if c["node"] == nominated:
        return "chosen"
    if c.get("cutByExtender"):
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


def _helpless(given: Sequence[Mapping[str, Any]]) -> list[View]:
    """Say why every other node is no candidate, in groups of the same reason, the largest first."""
    groups = [
        {
            "reason": ", ".join(one["reasons"]),
            "plugin": str(one.get("plugin") or ""),
            "count": int(one["count"]),
            "nodes": one["nodes"][:NODES_NAMED],
        }
        for one in given
    ]
    return sorted(groups, key=lambda group: -group["count"])


def _room(room: Mapping[str, Mapping[str, int]]) -> list[View]:
    bars = []
    for resource, amounts in room.items():
        allocatable, before, after = amounts["allocatable"], amounts["before"], amounts["after"]
        needed = amounts.get("needed", 1 if resource == "pods" else 0)
        freed = before + needed - after
        scale = 100 / allocatable if allocatable else 0
        bars.append(
            {
                "resource": resource,
                "allocatable": allocatable,
                "before": before,
                "after": after,
                "needed": needed,
                "freed": freed,
                "free_before": allocatable - before,
                "free_after": allocatable - after,
                "stays": round(min(100, (before - freed) * scale), 2),
                "goes": round(min(100, freed * scale), 2),
                "comes": round(min(100, needed * scale), 2),
            }
        )
    return bars


def next_steps(cycle: Cycle, node: str, after: Aftermath) -> list[View]:
    """Tell the steps in order of time; those without a moment (`at_ns` None), which is not known yet, come last.

    `cycle` links the pod's next attempt.
    """
    steps: list[View] = []

    def step(at_ns: int | None, text: str, done: bool, number: int | None = None) -> None:
        steps.append({"at_ns": at_ns, "text": text, "done": done, "cycle": number})

    set_to = f"status.nominatedNodeName: {node} is set; {cycle.pod_name} goes back to the queue"
    step(cycle.at_ns, set_to, True)
    for victim in after.victims:
        name = victim.pod.rpartition("/")[2]
        if victim.asked_ns is None:
            step(None, f"{name} is asked to end", False)
            continue
        if victim.until_ns is not None:
            grace_s = (victim.until_ns - victim.asked_ns) / 1e9
            step(victim.asked_ns, f"{name} starts terminating, {grace_s:.0f} s of grace", True)
        end = f"{name} is gone; its end moves {cycle.pod_name} back to activeQ"
        step(victim.gone_ns or victim.until_ns, end, victim.gone_ns is not None)
    again = after.next_cycle
    if again is not None:
        where = f" to {again.node}" if again.node else ""
        step(again.at_ns, f"Attempt {again.attempt}: {again.outcome}{where}", True, again.number)
    else:
        words = f"The next attempt tries {node} first. A pod of higher priority may still take the room"
        step(None, words, False)
    return sorted(steps, key=lambda one: (one["at_ns"] is None, one["at_ns"] or 0))
