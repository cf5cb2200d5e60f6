"""A pod's story as its page shows it, and where the pod is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from playground.clusters.choices import CycleOutcome
from playground.clusters.history.story import STORY_LIMIT, PodTraces, StoryStep
from playground.clusters.history.story import story_steps as steps_of
from playground.clusters.row_types import Cycle, Pod
from playground.engine.configuration import backoffs_ns
from playground.web import amounts
from playground.web.judge import view_decision
from playground.web.looks import Outcome, View, outcome_of, piece

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
    "controller": "k-ev",
    "deleted": "k-u",
}
_CSS_OF_DECISION: Final[Mapping[str, str]] = {"bind": "k-b", "preempt": "k-p"}


@dataclass(frozen=True)
class ShownStep(StoryStep):
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
    def judged(self) -> View | None:
        return view_decision(self.decision) if self.decision else None


def story_steps(story: PodTraces, *, now_ns: int | None = None) -> list[ShownStep]:
    """The steps of the one story there is (`selectors.story_steps`)."""
    return [ShownStep(**vars(step)) for step in steps_of(story, now_ns=now_ns)]


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


N_TICKS = 6
LEAST_WIDTH = 0.4
LABEL_FROM = 12.0

# title of a step -> lane
_LANE_OF = {
    "Into activeQ": "activeQ",
    "Into backoffQ": "backoffQ",
    "Into Unschedulable": "Unschedulable",
}
_LANE_CSS = {
    "activeQ": "l-a",
    "Cycle": "l-cyc",
    "backoffQ": "l-w",
    "Unschedulable": "l-u",
    "Permit": "l-p",
    "Binding": "l-p",
    "On its node": "l-r",
}
LANES = tuple(_LANE_CSS)


def backoffs_elsewhere(
    story: PodTraces, config: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> list[tuple[int, int]]:
    """From and until when a backoff was counted while the pod was in Unschedulable; of the newest story only."""
    if len(story.cycles) >= STORY_LIMIT:
        return []
    failed = [
        cycle
        for cycle in story.cycles
        if cycle.outcome in (CycleOutcome.UNSCHEDULABLE, CycleOutcome.PREEMPTING, CycleOutcome.ERROR)
    ]
    attempts = [cycle for cycle in failed for _ in range(1 + cycle.repeats)]
    errors = [cycle.outcome == CycleOutcome.ERROR for cycle in attempts]
    lengths = backoffs_ns(config, errors, release)
    to_unschedulable = {
        move.at_ns for move in story.moves if move.source == "inFlight" and move.target == "unschedulable"
    }
    return [
        (cycle.at_ns, cycle.at_ns + length)
        for cycle, length in zip(attempts, lengths, strict=True)
        if cycle.at_ns in to_unschedulable
    ]


def swim_lanes(
    story: PodTraces,
    steps: Sequence[ShownStep],
    *,
    start_ns: int,
    now_ns: int,
    backoffs: Sequence[tuple[int, int]] = (),
) -> View | None:
    """Draw the stays in lanes; None when everything happened in one moment, or nothing is known.

    Returns
    -------
    dict
        `lanes` that matter: their `spans` in percent of the time shown (`label` is empty where there is no room for
        it); `total`, how long the pod was there altogether, or how many cycles it had; `outlines`, backoffs that are
        counted while the pod waits elsewhere, their words `after` them. `ticks` of the axis are (percent, words).
    """
    stays: dict[str, list[tuple[int, int, str]]] = {lane: [] for lane in LANES}
    for step in steps:
        lane = _LANE_OF.get(step.title)
        if lane and step.stayed_ns is not None:
            words = "waits for an event" if lane == "Unschedulable" else step.detail
            stays[lane].append((step.at_ns, step.at_ns + step.stayed_ns, words))
    for cycle in story.cycles:
        stays["Cycle"].append((cycle.at_ns, cycle.at_ns, f"{cycle.number}, {cycle.outcome}"))
    bound = next((step for step in steps if step.title == "Bound"), None)
    bound_ns = None if bound is None else bound.at_ns
    gone_ns = next((step.at_ns for step in reversed(steps) if step.title == "Deleted"), None)
    waits = [cycle.at_ns for cycle in story.cycles if cycle.outcome in ("waiting", "binding")]
    lane = "" if story.pod is None else {"permit": "Permit", "binding": "Binding"}.get(story.pod.lane, "")
    expired_ns = next((step.at_ns for step in steps if step.title == "Expired"), None)
    if lane and waits:
        stays[lane].append((waits[-1], now_ns, "waits"))
    elif expired_ns is not None and story.cycles:
        assumed_ns = max(
            (cycle.at_ns for cycle in story.cycles if cycle.at_ns <= expired_ns), default=expired_ns
        )
        stays["Binding"].append((assumed_ns, expired_ns, "waited, and expired"))
    elif bound is not None and story.cycles and story.cycles[-1].at_ns < bound.at_ns:
        last = story.cycles[-1]
        # Its extender posted the Binding, or the scheduler once Permit let it; of another cycle nothing was waited for.
        if last.outcome == CycleOutcome.BOUND:
            stays["Binding" if bound.posted else "Permit"].append((last.at_ns, bound.at_ns, "waited"))
    if bound_ns is not None:
        node = story.pod.node_name if story.pod is not None else ""
        stays["On its node"].append((bound_ns, gone_ns or now_ns, node))
    moments = [at for spans in stays.values() for span in spans for at in span[:2]]
    # Older moves may have been dropped: half of the lanes would mislead.
    if not moments or not story.moves or story.moves[0].source:
        return None
    first, end_ns = min(moments), max(moments)
    if end_ns <= first:
        return None
    scale = 100 / (end_ns - first)
    lanes = []
    for name, spans in stays.items():
        if not spans and name in ("Permit", "Binding"):
            continue
        total = (
            str(len(spans)) if name == "Cycle" else amounts.duration(sum(end - at for at, end, _ in spans))
        )
        lanes.append(
            {
                "name": name,
                "css": _LANE_CSS[name],
                "spans": [_span(at, end, words, first, scale) for at, end, words in spans],
                "total": total,
                "outlines": [_outline(at, end, first, scale, start_ns) for at, end in backoffs]
                if name == "backoffQ"
                else [],
            }
        )
    ticks = [
        (
            round(100 * i / N_TICKS, 2),
            amounts.since_start(first + (end_ns - first) * i // N_TICKS, start_ns),
        )
        for i in range(N_TICKS + 1)
    ]
    has_outlines = any(lane["outlines"] for lane in lanes)
    return {"lanes": lanes, "ticks": ticks, "from_ns": first, "to_ns": end_ns, "has_outlines": has_outlines}


def _span(at: int, end: int, words: str, first: int, scale: float) -> View:
    width = max(LEAST_WIDTH, (end - at) * scale)
    x = min((at - first) * scale, 100 - width)
    label = words if width >= LABEL_FROM and len(words) * 0.55 <= width else ""
    title = f"{words}, {amounts.duration(end - at)}" if end > at else words
    return {**piece(x, round(width, 2), room=0), "label": label, "title": title}


def _outline(at: int, end: int, first: int, scale: float, start_ns: int) -> View:
    x = round(min((at - first) * scale, 100.0), 2)
    width = round(min(max(LEAST_WIDTH, (end - at) * scale), 100 - x), 2)
    words = f"{amounts.duration(end - at)}, over at {amounts.since_start(end, start_ns)}"
    return {"x": x, "width": width, "after": round(x + width, 2), "words": words}
