"""A pod as the queue knows it, where it can wait, and the record of a pod that moved (or was left where it was)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

from scheduler_core.objects.pod import Pod


class Lane(StrEnum):
    """The one place a pod of the queue is in.

    The last two are places outside of it, in the scheduler's cache: a pod that counts on its node before its Binding
    is heard of, and one that no longer does, for it came in no time.
    """

    NEW = ""
    ACTIVE = "activeQ"
    BACKOFF = "backoffQ"
    ERROR_BACKOFF = "errorBackoffQ"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "inFlight"
    GONE = "gone"
    ASSUMED = "assumed"
    EXPIRED = "expired"


class QueueMove(NamedTuple):
    """A pod changed its lane, or an event was weighed and left it there.

    Attributes
    ----------
    at_ns : int
        The queue's clock.
    pod, uid : str
        `namespace/name` and uid.
    source, target : Lane
        Equal when the event did not move the pod.
    event : str
        Label of what happened (`NodeAdd`, `BackoffComplete`, `ScheduleAttemptFailure`).
    cause : str
        For a pod that came back from an attempt: the event during the attempt that decided; else as `event`.
    plugin, hint, reason : str
        The plugin asked, its answer (`Queue`, `Skip`, `error`) and why; empty when no plugin was asked.
    """

    at_ns: int
    pod: str
    uid: str
    source: Lane
    target: Lane
    event: str
    cause: str = ""
    plugin: str = ""
    hint: str = ""
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The move in plain words."""
        asked = f": {self.plugin} says {self.hint}" if self.plugin else ""
        why = f" ({self.reason})" if self.reason else ""
        if self.source == self.target:
            return f"{self.event} left {self.pod} {_PLACES[self.source]}{asked}{why}."
        during = f" after {self.cause} during the attempt" if self.cause and self.cause != self.event else ""
        return f"{self.event} moved {self.pod} to {_PLACES[self.target]}{during}{asked}{why}."


_PLACES = {
    Lane.NEW: "outside the queue",
    Lane.ACTIVE: "the active queue",
    Lane.BACKOFF: "the backoff queue",
    Lane.ERROR_BACKOFF: "the error backoff queue",
    Lane.UNSCHEDULABLE: "among the unschedulable pods",
    Lane.IN_FLIGHT: "its scheduling attempt",
    Lane.ASSUMED: "on the node it is assumed on",
    Lane.EXPIRED: "outside the queue: it is no longer assumed on its node",
    Lane.GONE: "nowhere: it was deleted",
}


NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """A pod with its history of attempts. The queue makes it, `pop` hands it out.

    Attributes
    ----------
    timestamp_ns : int
        When the pod entered the queue, or came back from its last attempt.
    attempts : int
        Times it was popped, this one included.
    unschedulable_count : int
        Attempts that ended in a plugin's rejection; sets the backoff.
    consecutive_errors_count : int
        Errors since the last rejection; sets the backoff while above zero.
    unschedulable_plugins, pending_plugins : frozenset of str
        Who rejected the last attempt (or gates the pod): asked for a hint when something happens. Replaced,
        never changed in place.
    gating_plugin, gating_reason : str
        The PreEnqueue plugin that holds the pod back, and its words; empty when it passes.
    backoff_expiration_ns : int or None
        Whole second at which the backoff ends; None until it is first asked for.
    first_entry : int
        Of a member of a group: its number among all that entered the active queue for the first time.
    entered_by, entered_reason : str
        The event that brought the pod where it is, and why.

    Source: pkg/scheduler/framework/types.go QueuedPodInfo, v1.34
    """

    pod: Pod
    key: str
    timestamp_ns: int
    attempts: int = 0
    initial_attempt_timestamp_ns: int | None = None
    first_entry: int = 0
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    gating_plugin: str = ""
    gating_reason: str = ""
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration_ns: int | None = None
    entered_by: str = ""
    entered_reason: str = ""
    lane: Lane = Lane.NEW
    skips: tuple[int, ...] = ()
    """Identities of the lines of the hint table whose refusals the observer was told of; only the queue sets it."""
    place: int = 0
    """Among the unschedulable pods; only the queue sets it."""

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def rejectors(self) -> list[str]:
        """Every plugin to ask for a hint, sorted."""
        return sorted(self.unschedulable_plugins | self.pending_plugins)


def priority_sort_key(info: QueuedPodInfo) -> tuple[int, int]:
    """Higher priority first, then who waits longer.

    Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go, v1.34
    """
    return (-info.pod.priority, info.timestamp_ns)


_KEPT = {
    field.name: field.default
    for field in fields(QueuedPodInfo)
    if field.name not in ("pod", "key", "lane", "skips")
}
"""Field -> its default."""


def info_document(info: QueuedPodInfo, pod: Any) -> dict[str, Any]:
    """The JSON-able form; `pod` identifies the pod. Defaults are left out."""
    document: dict[str, Any] = {"pod": pod}
    for name, default in _KEPT.items():
        value = getattr(info, name)
        if value != default:
            document[name] = sorted(value) if isinstance(value, frozenset) else value
    return document


def info_from_document(document: dict[str, Any], pod: Pod) -> QueuedPodInfo:
    """What `info_document` wrote."""
    kept = {name: value for name, value in document.items() if name != "pod"}
    kept |= {name: frozenset(value) for name, value in kept.items() if isinstance(value, list)}
    return QueuedPodInfo(pod, pod.key, **kept)
