"""Verdicts on other schedulers' decisions, in words; made of the columns when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from playground.clusters.row_types import ForeignDecision
from scheduler_core.incident.suspects import words_of
from scheduler_core.incident.verdicts import cause_of
from scheduler_core.schema.tables import table_beside
from scheduler_core.whatif.judge import CauseOfDifference

_TABLES: Final = table_beside(__package__, "words.yaml")
TITLES: Final[Mapping[str, str]] = _TABLES["titles"]
CRITERIA: Final[Mapping[str, str]] = _TABLES["criteria"]


def why(told: ForeignDecision) -> str:
    """Why the two agree or differ, in one to three sentences, with the cause of what differs; empty until it is
    judged."""
    if not told.verdict:
        return ""
    if told.verdict == "unknown":
        return f"{'; '.join(told.reasons)}."
    said = {"bind": _bind, "preempt": _preemption}.get(told.kind, _no_node)(told)
    found = cause(told)
    if found is None:
        return said
    return f"{said} {words_of(found, told.verdict)}"


def cause(told: ForeignDecision) -> CauseOfDifference | None:
    """Why a decision differs, or would on the newest state; None where it does not, or none was looked for."""
    if told.cause_facts is None:
        return None
    return cause_of({"kind": told.cause, **told.cause_facts})


def _bind(told: ForeignDecision) -> str:
    if told.verdict == "agree":
        if told.n_tied > 1:
            return f"One of {told.n_tied} nodes with {told.points} points; both drew it."
        if told.points is None:
            return "The only node that fits." if told.n_feasible == 1 else "Room was made there."
        fit = f"{told.n_feasible:,} nodes fit; it has the" if told.n_feasible > 1 else "The"
        return f"{fit} most points, {told.points}."
    if told.verdict == "tie":
        return f"Both have the most points, {told.points}, as {told.n_tied} nodes do: any of them is right."
    if told.verdict == "infeasible":
        by = f"{told.plugin}: " if told.plugin else ""
        return f"{by}{', '.join(told.reasons)}. Bound all the same; an API server does not check it."
    points = f"{told.points} points against {told.our_points}."
    if not told.plugin or told.score is None:
        return points
    return f"{points} {told.plugin} says {told.score} of 100 there, {told.our_score} here."


def _no_node(told: ForeignDecision) -> str:
    if told.verdict == "agree":
        last = f" {told.plugin} rejects the last nodes." if told.plugin else ""
        return f"No node fits, and evicting pods would not help.{last}"
    if told.outcome == "preempting":
        return f"Here {_listed(told.our_victims)} would be evicted, which frees {told.our_node}."
    nodes = "node fits" if told.n_feasible == 1 else "nodes fit"
    said = f" It says: {told.message.rstrip('.')}." if told.message else ""
    return f"Here {told.n_feasible} {nodes}.{said}"


def _preemption(told: ForeignDecision) -> str:
    if told.verdict == "agree":
        return f"Both evict {_listed(told.our_victims)} there."
    if told.verdict == "tie":
        return f"{told.our_node} is as good: the same by every criterion."
    if told.verdict == "infeasible":
        return f"Evicting pods there does not help: {', '.join(told.reasons)}."
    if told.outcome == "bound":
        return f"No pod has to go: the pod fits on {told.our_node}."
    if told.plugin == "victims":
        return f"It evicts {_listed(told.victims)}; here {_listed(told.our_victims)} on {told.our_node}."
    because = CRITERIA.get(told.plugin, told.plugin)
    return f"{told.our_node} {because}: {_listed(told.our_victims)}."


def _listed(pods: Sequence[str]) -> str:
    if not pods:
        return "no pod"
    shown = ", ".join(pod.rpartition("/")[2] for pod in pods[:3])
    return shown if len(pods) <= 3 else f"{shown} and {len(pods) - 3} more"
