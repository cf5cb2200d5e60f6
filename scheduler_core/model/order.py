"""Order: the pod taken is the first of those that wait."""

from __future__ import annotations

from scheduler_core.model.moment import ACTIVE, BACKOFF, GATED, OTHER, Moment, Waiting
from scheduler_core.model.verdict import FAILS, HOLDS, LEAVES, NOT_COMPUTED, ORDER, PropertyVerdict

_WHY = {BACKOFF: "backoff", GATED: "gated", OTHER: "otherScheduler"}
_WORDS = {
    "backoff": "waits for the end of its backoff",
    "gated": "is gated",
    "otherScheduler": "is another scheduler's",
    "hints": "waits for something that could help it",
}


def check_order(uid: str, moment: Moment, queue_sort: str) -> PropertyVerdict:
    """Check a cycle about the pod of a uid."""
    taken = moment.pod(uid)
    if taken is None:
        return PropertyVerdict(ORDER, FAILS, "The pod taken did not wait for a node.")
    if queue_sort != "PrioritySort":
        return PropertyVerdict(ORDER, NOT_COMPUTED, f"{queue_sort} orders the queue, not PrioritySort.")
    key = taken.pod.key
    if taken.lane == ACTIVE:
        first = min((item for item in moment.waiting if item.lane == ACTIVE), key=_rank)
        if _rank(first) < _rank(taken):
            return PropertyVerdict(
                ORDER,
                FAILS,
                f"{key} (priority {taken.pod.priority}) was taken before {first.pod.key} (priority"
                f" {first.pod.priority}), which was ready and comes first.",
                counterexample={"pod": first.pod.key, "priority": first.pod.priority},
            )
    elif taken.lane != BACKOFF or any(item.lane == ACTIVE for item in moment.waiting):
        return PropertyVerdict(ORDER, FAILS, f"{key} was taken and was not ready ({taken.lane}).")
    above = [item for item in moment.waiting if item.pod.priority > taken.pod.priority]
    if above:
        first = max(above, key=lambda item: item.pod.priority)
        why = _WHY.get(first.lane, "hints")
        return PropertyVerdict(
            ORDER,
            LEAVES,
            f"{key} (priority {taken.pod.priority}) goes first, since {first.pod.key} (priority"
            f" {first.pod.priority}) {_WORDS[why]}.",
            why,
            {"pod": first.pod.key, "priority": first.pod.priority},
        )
    if taken.lane == BACKOFF:
        said = f"{key} was taken out of backoffQ before its time, as activeQ was empty."
        return PropertyVerdict(ORDER, LEAVES, said, "popFromBackoff")
    return PropertyVerdict(ORDER, HOLDS, f"No pod that waits is more important than {key}.")


def _rank(item: Waiting) -> tuple[int, int]:
    return -item.pod.priority, item.timestamp_ns
