"""What is put into a simulated cluster, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from scheduler_core.clock import SECOND_NS
from scheduler_core.extender.transport import ExtenderAnswer
from scheduler_core.records import record
from scheduler_core.releases import Release

Manifest = Mapping[str, Any]


@record
class WriteObject:
    """Create an object or replace it whole; the manifest is admitted and prepared (`objects.defaults.prepare`).

    Attributes
    ----------
    reason : str or None
        Why the cluster writes it, which makes it an outcome; None for a person's write.
    """

    manifest: Manifest
    reason: str | None = None


@record
class DeleteObject:
    """Delete an object; a pod on a node ends gracefully.

    Attributes
    ----------
    grace_period_s : int or None
        None leaves it to the pod; 0 is at once.
    """

    kind: str
    namespace: str
    name: str
    grace_period_s: int | None = None


@record
class PermitDecision:
    """Allow or reject a pod that waits at Permit.

    Attributes
    ----------
    plugin : str or None
        None answers for every plugin that still has to.
    """

    namespace: str
    name: str
    allow: bool
    plugin: str | None = None
    reason: str = ""


@record
class SetConfiguration:
    """Run with another scheduler configuration from now on.

    Attributes
    ----------
    release : Release or None
        And as another release of Kubernetes; None keeps the one there is.
    """

    document: Manifest | None
    release: Release | None = None


@record
class BindCallAnswered:
    """An extender answered a call of `Simulation.bind_calls`.

    Attributes
    ----------
    uid : str
        Of the pod.
    """

    uid: str
    answer: ExtenderAnswer


@record
class SetAssumedPodExpiry:
    """How long a pod is assumed on its node, once its binding has ended, without the watch telling of it.

    Pods whose binding has ended already are assumed for so long from now on.

    Attributes
    ----------
    after_ns : int
        0 is for ever, as kube-scheduler has it (its constant `durationToExpireAssumedPod`).
    """

    after_ns: int


Change = (
    WriteObject | DeleteObject | PermitDecision | SetConfiguration | SetAssumedPodExpiry | BindCallAnswered
)


@record
class ObjectWritten:
    """An object was created or changed by the cluster itself."""

    at_ns: int
    cycle: int
    manifest: Manifest
    reason: str


@record
class ObjectDeleted:
    """An object was removed by the cluster itself."""

    at_ns: int
    cycle: int
    api_version: str
    kind: str
    namespace: str
    name: str
    reason: str


@record
class EventRecorded:
    """A v1 Event."""

    at_ns: int
    cycle: int
    manifest: Manifest


Outcome = ObjectWritten | ObjectDeleted | EventRecorded


class Mention(NamedTuple):
    """An object that is named in what a controller did; its key is `namespace/name`, of a node its name."""

    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@record
class Act:
    """One thing that a controller did.

    Attributes
    ----------
    what : tuple of str or Mention
        Words, and the objects they are about in their places.
    why : str
        Why, where it says so.
    plugin : str
        The part of the controller that did it, empty for all of it.
    effect : {"acts", "takes", "looks"}
        Whether it takes something away, or changes nothing.
    facts : mapping
        What else is known of it, JSON-able: the `group` (or what is scaled) that grows by `delta`, and its options.
    """

    what: tuple[str | Mention, ...]
    why: str = ""
    plugin: str = ""
    effect: str = "acts"
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> tuple[Mention, ...]:
        """The objects."""
        return tuple(part for part in self.what if isinstance(part, Mention))

    def told(self, name: Callable[[Mention], str] = str) -> str:
        """As text, with the objects named by `name`."""
        words = "".join(name(part) if isinstance(part, Mention) else part for part in self.what)
        return f"{self.plugin}{' ' if self.plugin else ''}{words}{': ' if self.why else ''}{self.why}"

    def __str__(self) -> str:
        return self.told()


@record
class ControllerRun:
    """A run of a controller that decided something else than the one before; `sim.outlook` has its words.

    Attributes
    ----------
    subject : str
        The object it is about, `Kind namespace/name`; empty where it is the cluster.
    did : tuple of Act
        What it did, in order.
    why_not : mapping of str to mapping
        Objects for which it did nothing -> why: `reason` or `text`, and the values its words name.
    news : tuple of str
        Those of `why_not` for which it is another reason than in the run before.
    """

    at_ns: int
    controller: str
    subject: str
    did: tuple[Act, ...]
    why_not: Mapping[str, Mapping[str, Any]]
    news: tuple[str, ...] = ()


@record
class Deadline:
    """The next moment at which time alone changes something."""

    at_ns: int
    what: str


@record
class RunReport:
    """What a run did.

    Attributes
    ----------
    stop : {"idle", "cycle", "budget", "time", "call", "acting"}
        `call`: an extender is to bind a pod first (`SimulationOptions.extenders_post_bindings`). `acting`: autoscalers
        and the descheduler have acted so often since the last input (`simulation.MOST_ACTS`) that it may never end.
    """

    cycles: int
    stop: str
    clock_ns: int
    next_deadline: Deadline | None

    @property
    def message(self) -> str:
        """Where it stopped and what comes next, for a person."""
        return self.message_after(self.cycles)

    def message_after(self, cycles: int) -> str:
        """The same for the last of several calls, which ran so many cycles together."""
        rest = "nothing is left to happen"
        if self.next_deadline is not None:
            seconds = (self.next_deadline.at_ns - self.clock_ns) / SECOND_NS
            rest = f"next: {self.next_deadline.what} in {seconds:.1f} s"
        noun = "cycle" if cycles == 1 else "cycles"
        return f"{_STOPPED[self.stop]} after {cycles} {noun}; {rest}"


_STOPPED = {
    "idle": "idle",
    "cycle": "one cycle done",
    "budget": "bound of cycles reached",
    "time": "time reached",
    "call": "an extender is to bind a pod",
    "acting": "not idle, as autoscalers or the descheduler act again and again,",
}
