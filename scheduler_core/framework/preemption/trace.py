"""What is kept of a preemption: columns, of which sentences and lists are made when it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler_core.cluster.node_table import Index, Rows
from scheduler_core.cluster.pod_table import NO_START_NS
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework.interface import PostFilterResult
from scheduler_core.framework.preemption.candidates import (
    CRITERIA,
    LARGEST_WINS,
    UNDECIDED,
    CandidateChoice,
    Candidates,
)
from scheduler_core.framework.preemption.reprieve import DryRun, Sampling
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.objects.pod import Pod

Document = dict[str, Any]

NOT_TRIED = "enough candidates had been found before this node's turn"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
_START = CRITERIA.index("latestEarliestStart")


@dataclass(slots=True)
class PreemptionTrace:
    """One preemption, step by step. It refers to live columns: read it before the cluster changes.

    Attributes
    ----------
    ineligible_reason : str
        Why the pod may not preempt others; empty when it may.
    potential : ndarray, int64
        Rows where preemption might help, in evaluation order.
    run : DryRun or None
        The nodes tried.
    places : ndarray, intp
        Places in `run` of the candidates found.
    found : Candidates or None
        The same candidates.
    candidates : Candidates or None
        Those that extenders left.
    choice : CandidateChoice or None
        Aligned with `candidates`.
    chosen : int
        Place in `candidates` of the chosen one, -1 for none.
    tie_stream : str
        The stream a draw among equals came from; empty without one.
    cleared : tuple of Pod
        Lower pods whose nomination is taken back.
    """

    pod: Pod
    snapshot: Snapshot
    ineligible_reason: str = ""
    potential: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    sampling: Sampling | None = None
    run: DryRun | None = None
    places: Index = field(default_factory=lambda: np.zeros(0, np.intp))
    found: Candidates | None = None
    candidates: Candidates | None = None
    choice: CandidateChoice | None = None
    chosen: int = -1
    tie_stream: str = ""
    cleared: tuple[Pod, ...] = ()

    def summary(self) -> Document:
        """The outcome and some numbers: what is kept of every cycle, JSON-able."""
        candidates = self.candidates if self.chosen >= 0 else None
        n_left = 0 if self.choice is None else len(self.choice.left)
        return {
            "eligible": not self.ineligible_reason,
            "ineligibleReason": self.ineligible_reason or None,
            "nPotential": len(self.potential),
            "nTried": 0 if self.run is None else len(self.run.rows),
            "nCandidates": len(self.places),
            "nominatedNode": None if candidates is None else candidates.name_of(self.chosen),
            "victims": [pod.key for pod in candidates.victims_of(self.chosen)] if candidates else [],
            "clearedNominations": [pod.key for pod in self.cleared],
            "decidedBy": self._decided_by(),
            "ambiguous": n_left > 1,
            "nTied": n_left if n_left > 1 else 0,
            "tieStream": self.tie_stream or None,
        }

    def explain(self) -> Document:
        """Everything, JSON-able.

        Returns
        -------
        dict
            `summary()` and
            `sampling` {potential, offset, wanted, tried} or null;
            `candidates`, sorted by node: {node, victims, numPDBViolations, violatedBudgets, steps, room, eliminatedAt,
            criterionValues, cutByExtender}, where steps are the pods in the order they were tried to be given back:
            {pod, priority, startTime, violatesBudget, budgets, kept}; kept = it can stay, else it is a victim;
            budgets are the PodDisruptionBudgets violated, by namespace/name;
            room is {resource: {allocatable, before, after, needed}} for what the pod requests, and `pods` (without
            needed): in use now, and with the pod instead of the victims, in whole units (millicores, bytes);
            `victimsBeforeExtenders` where an extender changed the list;
            `criteria` [{name, wins, best, left}], the ones asked;
            `tied` [node], sorted; `notCandidates` [{code, plugin, reasons, count, nodes}].
        """
        body = self.summary()
        body["sampling"] = self.sampling and {
            "potential": len(self.potential),
            "offset": self.sampling.offset,
            "wanted": self.sampling.n_wanted,
            "tried": body["nTried"],
        }
        body["candidates"] = self._candidates()
        body["criteria"] = self._criteria()
        body["tied"] = self._tied()
        body["notCandidates"] = self._not_candidates()
        return body

    # ---- inside

    def _tied(self) -> list[str]:
        if self.choice is None or self.candidates is None:
            return []
        left = self.choice.left.tolist()
        return sorted([self.candidates.names[place] for place in left]) if len(left) > 1 else []

    def _decided_by(self) -> str | None:
        if self.choice is None:
            return None
        if not self.choice.n_asked:
            return "onlyCandidate"
        return "tie" if len(self.choice.left) > 1 else CRITERIA[self.choice.n_asked - 1]

    def _candidates(self) -> list[Document]:
        run, found, candidates = self.run, self.found, self.candidates
        if run is None or found is None or candidates is None:
            return []
        place_of = {name: place for place, name in enumerate(candidates.names)}
        entries = []
        for index, (name, run_place) in enumerate(zip(found.names, self.places.tolist(), strict=True)):
            place = place_of.get(name, -1)
            before = [pod.key for pod in found.victims_of(index)]
            entry = {
                "node": name,
                "victims": before if place < 0 else [pod.key for pod in candidates.victims_of(place)],
                "numPDBViolations": int(
                    found.n_violations[index] if place < 0 else candidates.n_violations[place]
                ),
                "violatedBudgets": self._violated(run, run_place),
                "steps": self._steps(run, run_place),
                "room": self._room(
                    int(run.rows[run_place]),
                    found.victim_ids(index) if place < 0 else candidates.victim_ids(place),
                ),
                "eliminatedAt": None,
                "criterionValues": {} if place < 0 else self._values(place),
                "cutByExtender": place < 0,
            }
            if entry["victims"] != before:
                entry["victimsBeforeExtenders"] = before
            if self.choice is not None and place >= 0:
                at = int(self.choice.eliminated_at[place])
                entry["eliminatedAt"] = None if at == UNDECIDED else CRITERIA[at]
            entries.append(entry)
        return sorted(entries, key=lambda entry: str(entry["node"]))

    def _violated(self, run: DryRun, place: int) -> list[str]:
        """The budgets that the node's victims violate, sorted; steps name them pod by pod."""
        tried = run.tried[int(run.rows[place])]
        names = [name for index, of_pod in tried.budgets.items() if not tried.kept[index] for name in of_pod]
        return sorted(dict.fromkeys(names))

    def _steps(self, run: DryRun, place: int) -> list[Document]:
        tried = run.tried[int(run.rows[place])]
        steps = []
        for index in tried.steps:
            pod = self.snapshot.pods[tried.pod_ids[index]]
            steps.append(
                {
                    "pod": pod.key,
                    "priority": pod.priority,
                    "startTime": None if pod.start_ns is None else format_time_ns(pod.start_ns),
                    "violatesBudget": tried.violates[index],
                    "budgets": sorted(tried.budgets.get(index, ())),
                    "kept": tried.kept[index],
                }
            )
        return steps

    def _room(self, row: int, victims: list[int]) -> Document:
        nodes, pods = self.snapshot.nodes, self.snapshot.pods
        resources = self.snapshot.vocabulary.resources
        room = {}
        for name, amount in self.pod.requests.items():
            resource_id = resources.find(name)
            if not amount or not 0 <= resource_id < len(nodes.requested):
                continue
            before = int(nodes.requested[resource_id, row])
            freed = int(pods.requests[resource_id, victims].sum())
            room[name] = {
                "allocatable": int(nodes.allocatable[resource_id, row]),
                "before": before,
                "after": before - freed + amount,
                "needed": amount,
            }
        n_pods = int(nodes.n_pods[row])
        room["pods"] = {
            "allocatable": int(nodes.allowed_pods[row]),
            "before": n_pods,
            "after": n_pods - len(victims) + 1,
        }
        return room

    def _values(self, place: int) -> Document:
        """Values of the criteria this candidate was asked."""
        choice = self.choice
        if choice is None:
            return {}
        at = int(choice.eliminated_at[place])
        n_asked = choice.n_asked if at == UNDECIDED else at + 1
        return {CRITERIA[index]: _value(index, int(choice.values[index, place])) for index in range(n_asked)}

    def _criteria(self) -> list[Document]:
        choice = self.choice
        if choice is None:
            return []
        result = []
        left = np.arange(choice.values.shape[1])
        for index in range(choice.n_asked):
            asked = choice.values[index, left]
            best = int(asked.max() if LARGEST_WINS[index] else asked.min())
            left = left[asked == best]
            result.append(
                {
                    "name": CRITERIA[index],
                    "wins": "largest" if LARGEST_WINS[index] else "smallest",
                    "best": _value(index, best),
                    "left": len(left),
                }
            )
        return result

    def _not_candidates(self) -> list[Document]:
        """Why every other node was no candidate, nodes with the same reasons together."""
        nodes, order = self.snapshot.nodes, self.snapshot.order.tolist()
        if self.ineligible_reason:
            return []
        groups: dict[tuple[str | None, str | None, tuple[str, ...]], list[str]] = {}
        tried: dict[int, None] = {}
        if self.run is not None:
            statuses = self.run.statuses
            candidates = set(self.places.tolist())
            for place, (row, verdict) in enumerate(
                zip(self.run.rows.tolist(), self.run.verdict.tolist(), strict=True)
            ):
                tried[row] = None
                if verdict >= 0:
                    status = statuses[verdict]
                    key = (status.code.name, status.plugin or None, status.reasons)
                elif place not in candidates:
                    key = (None, None, (NOT_TRIED,))
                else:
                    continue
                groups.setdefault(key, []).append(nodes.name(row))
        potential = set(self.potential.tolist())
        for row in order:
            if row not in tried:
                reason = NOT_TRIED if row in potential else NOT_HELPFUL
                groups.setdefault((None, None, (reason,)), []).append(nodes.name(row))
        return [
            {"code": code, "plugin": plugin, "reasons": list(reasons), "count": len(names), "nodes": names}
            for (code, plugin, reasons), names in groups.items()
        ]


def preemption_document(result: PostFilterResult, event: str | None, *, full: bool) -> Document:
    """What PostFilter did, in the recorded words; to be called before the cluster changes.

    Parameters
    ----------
    event : str or None
        The whole FailedScheduling text.
    full : bool
        With every candidate and step, not the summary alone.

    Returns
    -------
    dict
        `PreemptionTrace.explain()` (or `summary()`) of the plugin that preempts, if one was asked, and `code`,
        `message`, `event` and `clearsNomination` of PostFilter as a whole.
    """
    trace = result.trace
    return {
        **({} if trace is None else trace.explain() if full else trace.summary()),
        "code": result.status.code.name,
        "message": result.status.message,
        "event": event,
        "nominatedNode": result.nominated_node_name or None,
        "victims": [victim.key for victim in result.victims],
        "clearsNomination": result.nominated_node_name == "",
    }


def _value(criterion: int, value: int) -> int | str | None:
    """A value as shown: start times as text, None for "has not started"."""
    if criterion != _START:
        return value
    return None if value == NO_START_NS else format_time_ns(value)
