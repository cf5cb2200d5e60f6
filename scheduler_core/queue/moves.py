"""Where a pod can wait, and the record of a pod that moved (or was left where it was)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


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
