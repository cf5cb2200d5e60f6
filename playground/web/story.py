"""A pod's story as its page shows it, and where the pod is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from playground.clusters import selectors
from playground.clusters.choices import CycleOutcome
from playground.clusters.selectors.pod_traces import PodTraces
from playground.web.explanation import Outcome, outcome_of
from playground.web.judge import DecisionView, view_decision

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle, Pod

# Class of the timeline's dot, by title or else by what it is.
_CSS: Final[Mapping[str, str]] = {
    "Into activeQ": "k-a",
    "Into backoffQ": "k-ev",
    "Into Unschedulable": "k-u",
    "Expired": "k-u",
    "Bound": "k-b",
    "Nominated": "k-p",
    "Nomination": "k-p",
    "Running": "k-r",
    "Terminating": "k-u",
    "cycle": "k-cyc",
    "event": "k-ev",
    "deleted": "k-u",
}
_CSS_OF_DECISION: Final[Mapping[str, str]] = {"bind": "k-b", "preempt": "k-p"}


@dataclass(frozen=True)
class ShownStep(selectors.StoryStep):
    """A step with its looks."""

    @property
    def css(self) -> str:
        if self.what == "decision":
            return _CSS_OF_DECISION.get(self.decision.kind if self.decision else "", "k-u")
        return _CSS.get(self.title) or _CSS.get(self.what, "k-none")

    @property
    def look(self) -> Outcome | None:
        return outcome_of(self.outcome) if self.outcome else None

    @property
    def judged(self) -> DecisionView | None:
        return view_decision(self.decision) if self.decision else None


def story_steps(story: PodTraces, *, now_ns: int | None = None) -> list[ShownStep]:
    """The steps of the one story there is (`selectors.story_steps`)."""
    return [ShownStep(**vars(step)) for step in selectors.story_steps(story, now_ns=now_ns)]


def story_sentence(story: PodTraces, *, is_foreign: bool = False) -> tuple[Outcome, str]:
    """Say in one sentence where the pod is now; `is_foreign` says that no profile here has its schedulerName."""
    pod = story.pod
    n = sum(1 + cycle.repeats for cycle in story.cycles)
    tries = f"after {n} attempt{'' if n == 1 else 's'}" if n else "without an attempt of this scheduler"
    if pod is None:
        return outcome_of("gone"), f"is gone; {n} attempt{' is' if n == 1 else 's are'} on record."
    if pod.terminating:
        return outcome_of("error"), f"is terminating on {pod.node_name or 'no node'}."
    theirs = story.decisions[-1] if story.decisions else None
    if pod.node_name and not n and theirs is not None:
        return outcome_of("bound"), f"is on {pod.node_name}, where {theirs.program} bound it."
    if pod.node_name and pod.waits_for:
        return outcome_of("waiting"), f"is on {pod.node_name}, where its kubelet does not start it."
    if pod.node_name:
        word = "ran" if pod.phase in ("Succeeded", "Failed") else "is"
        return outcome_of("bound"), f"{word} on {pod.node_name} {tries}."
    if pod.waits_for and theirs is not None:
        if pod.nominated_node:
            return outcome_of(
                "preempting"
            ), f"waits for {pod.nominated_node}, where {theirs.program} made room."
        return outcome_of("unschedulable"), f"waits for {theirs.program}, which found no node for it."
    if pod.waits_for and is_foreign:
        return outcome_of("pending"), f"waits for the scheduler {pod.scheduler_name}."
    if pod.waits_for:
        return outcome_of("error"), "is never scheduled here."
    if pod.lane == "permit":
        return outcome_of("waiting"), f"waits at Permit {tries}."
    if pod.lane == "binding":
        return outcome_of(
            "binding"
        ), f"is assumed on {pod.reserved_node} {tries}; its Binding is not heard of yet."
    if story.cycles and story.cycles[-1].outcome == CycleOutcome.EXPIRED and pod.lane in ("", "foreign"):
        node = story.cycles[-1].node
        return (
            outcome_of("expired"),
            f"was assumed on {node} {tries} and expired; it is tried again when it changes.",
        )
    if pod.nominated_node:
        return outcome_of("preempting"), f"waits for {pod.nominated_node} to be freed, {tries}."
    where = {"active": "in activeQ", "backoff": "in backoffQ", "gated": "held by a gate"}.get(pod.lane)
    if pod.lane == "unschedulable":
        return outcome_of("unschedulable"), f"fits nowhere {tries}; it waits for an event that could help."
    return outcome_of("pending"), f"is pending{', ' + where if where else ''}, {tries}."


def cache_state(pod: Pod | None, last: Cycle | None) -> str:
    """Say what the scheduler's cache holds of a pod with that last cycle: added, assumed, expired, or nothing."""
    if pod is None or pod.phase in ("Succeeded", "Failed"):
        return "removed: what has ended takes no room"
    if pod.node_name:
        return f"added: counted on {pod.node_name}"
    is_its = last is not None and last.pod_uid == pod.uid
    if (
        last is not None
        and is_its
        and last.node
        and last.outcome in (CycleOutcome.BOUND, CycleOutcome.WAITING, CycleOutcome.BINDING)
    ):
        return f"assumed: counted on {last.node} until its binding is heard of"
    if last is not None and is_its and last.outcome == CycleOutcome.EXPIRED:
        return f"expired: it was counted on {last.node}, and is no longer"
    return "not in it: pending pods take no room"


def group_of(pod: Pod | None) -> str:
    """The PodGroup the pod names, where its API does (1.36)."""
    spec = {} if pod is None else pod.manifest.get("spec") or {}
    return str((spec.get("schedulingGroup") or {}).get("podGroupName") or "")
