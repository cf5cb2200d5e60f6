"""What can happen to the scheduler. `Scheduler.handle` takes one of these and answers with actions."""

from __future__ import annotations

from typing import Any

from scheduler_core.records import record


@record
class ObjectChanged:
    """An object the scheduler watches was added (`old` is None), updated, or deleted (`new` is None).

    Attributes
    ----------
    kind : str
        Kubernetes' kind, as in `objects.kinds`.
    old, new : object or None
        Typed, prepared objects (`objects.kinds.parse`).
    """

    kind: str
    old: Any | None
    new: Any | None


@record
class PermitDecided:
    """An answer for a pod waiting at Permit.

    Attributes
    ----------
    plugin : str or None
        The plugin in whose name the answer is given; None answers for all of them.
    """

    uid: str
    allow: bool
    plugin: str | None = None
    reason: str = ""


@record
class PreBindAnswered:
    """The writes PreBind asked for (`actions.WriteBeforeBind`) were made, or failed."""

    uid: str
    error: str | None = None


@record
class BindAnswered:
    """The API server answered a binding (`actions.BindPod`)."""

    uid: str
    error: str | None = None


@record
class ExtenderBindAnswered:
    """An extender answered its bind call (`actions.BindByExtender`); on success it has bound the pod itself.

    Attributes
    ----------
    answer : object
        The transport's answer (`extender.transport.ExtenderAnswer`).
    """

    uid: str
    answer: Any


@record
class PreemptionAnswered:
    """The evictions beside a cycle (`actions.EvictBeside`) were asked for, or one of them was refused."""

    uid: str
    error: str | None = None


@record
class TimeReached:
    """The clock has moved: due timers fire (backoff, flushes, Permit deadlines, assumed pods)."""


Event = (
    ObjectChanged
    | PermitDecided
    | PreBindAnswered
    | BindAnswered
    | ExtenderBindAnswered
    | PreemptionAnswered
    | TimeReached
)
