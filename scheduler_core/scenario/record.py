"""What is kept of a run: who got which node, who was evicted, and whether what was expected holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from scheduler_core.framework.record import BOUND, PREEMPTING, CycleTrace


class Placed(NamedTuple):
    """A pod got its node."""

    pod: str
    node: str
    cycle: int
    at_ns: int


class Evicted(NamedTuple):
    """A pod was evicted for another."""

    pod: str
    preemptor: str
    cycle: int


@dataclass(slots=True)
class PodFacts:
    """What is known of one pod at some moment.

    Attributes
    ----------
    state : {"bound", "pending", "waiting", "binding", "expired", "gated", "gone"}
    node : str
        Where it is, or holds a place while it waits at Permit or for its Binding; empty otherwise.
    message : str
        The last thing said about why it has no node.
    cycle : int
        Its last scheduling cycle, 0 for none.
    attempts : int
        How many cycles it had.
    """

    key: str
    labels: Mapping[str, str]
    state: str = "pending"
    node: str = ""
    nominated: str = ""
    message: str = ""
    cycle: int = 0
    attempts: int = 0
    victims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether one expectation held, in words.

    Attributes
    ----------
    path : str
        Where it stands: `expect[2]`, `steps[3].expect[0]`.
    cycle : int or None
        The cycle to look at.
    """

    path: str
    holds: bool
    sentence: str
    cycle: int | None = None


def decisions_digest(digests: Iterable[str]) -> str:
    """Hex SHA-256 over cycle digests in order of the cycles."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


class CycleEnd(Protocol):
    """How a cycle ended: a record has it, and so has a stored summary."""

    @property
    def number(self) -> int: ...
    @property
    def pod(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def node(self) -> str | None: ...


class Decided(CycleEnd, Protocol):
    """What a scenario tells of a cycle."""

    @property
    def digest(self) -> str: ...
    @property
    def nominated_node(self) -> str | None: ...
    @property
    def engine(self) -> str: ...


def cycle_line(trace: Decided) -> str:
    """A cycle in one line: 12 digits of its digest, the pod, how it ended and where."""
    where = trace.node if trace.outcome == BOUND or trace.node else trace.nominated_node
    return " ".join(filter(None, (trace.digest[:12], trace.pod, trace.outcome, where)))


def budget_violations(trace: CycleTrace) -> int:
    """How many victims of a cycle's preemption violated a PodDisruptionBudget."""
    preemption = trace.preemption
    if trace.outcome != PREEMPTING or not preemption:
        return 0
    number = preemption.get("numPDBViolations")
    if number is not None:
        return int(number)
    chosen = preemption.get("nominatedNode")
    return sum(
        int(candidate["numPDBViolations"])
        for candidate in preemption.get("candidates") or ()
        if candidate["node"] == chosen
    )
