"""Log entries as the engine reads and writes them, free of any database."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.words import sentence

HEAD_ITEMS: Final = 200
"""Pods of each lane that a queue's head describes."""
HOLDING: Final = ("permit", "binding")
"""Lanes whose pods take room on a node."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a cluster's log (`clusters.models.LogEntry` lists the payloads)."""

    seq: int
    source: str
    kind: str
    at_ns: int
    payload: dict[str, Any]
    cycle: int | None = None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry the engine asks for; the commit gives it its sequence number."""

    kind: str
    at_ns: int
    payload: dict[str, Any]
    cycle: int | None = None


@dataclass(frozen=True, slots=True)
class ExtenderEntry:
    """An extender's answer within a cycle: an input of the log beside the batch's `ran` entry."""

    cycle: int | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A bind call the engine waits for; its answer comes back as an `extender` entry.

    Attributes
    ----------
    request
        For the transport.
    """

    uid: str
    namespace: str
    name: str
    node: str
    request: Any


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue after a batch. Describing every pod of a long lane takes longer than deciding one.

    Attributes
    ----------
    places
        ``namespace/name`` -> ``(lane, node it takes room on)`` of every pending pod, lane by lane in order.
    head
        The first `HEAD_ITEMS` pods of each lane, described (README.md has the keys).
    rejectors
        How many unschedulable pods each plugin rejected.
    whole
        Every pod of each lane, described; None where that was not asked for.
    """

    places: Mapping[str, tuple[str, str]]
    head: Mapping[str, Sequence[dict[str, Any]]]
    rejectors: Mapping[str, int] = field(default_factory=dict)
    whole: Mapping[str, Sequence[dict[str, Any]]] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, whole: Mapping[str, Sequence[dict[str, Any]]]) -> Self:
        """From lanes that are described whole."""
        return cls(
            places={
                item["pod"]: (lane, item.get("node", "") if lane in HOLDING else "")
                for lane, items in whole.items()
                for item in items
            },
            head={lane: items[:HEAD_ITEMS] for lane, items in whole.items()},
            rejectors=Counter(
                plugin
                for item in whole.get("unschedulable", ())
                for plugin in item.get("plugin", "").split(", ")
                if plugin
            ),
            whole=whole,
        )

    def counts(self) -> Counter[str]:
        """Pods of each lane."""
        return Counter(lane for lane, _ in self.places.values())

    def pods(self, *lanes: str) -> list[str]:
        """``namespace/name`` of the pods of some lanes."""
        return [pod for pod, (lane, _) in self.places.items() if lane in lanes]


@dataclass(frozen=True, slots=True)
class MoveRecord:
    """A pod moved in the queue, or an event left it where it was (`source` = `target`).

    Attributes
    ----------
    source, target
        activeQ, backoffQ, errorBackoffQ, unschedulable, inFlight, gone; empty = not in the queue before.
    event, cause
        What happened; for a pod that came back from an attempt `cause` is the event during it that decided.
    plugin, hint, reason
        Who was asked, the answer (Queue, Skip, error) and why.
    """

    at_ns: int
    pod_namespace: str
    pod_name: str
    pod_uid: str
    source: str
    target: str
    event: str
    cause: str = ""
    plugin: str = ""
    hint: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """The summary of one scheduling cycle, and its trace as bytes where everything was kept.

    Attributes
    ----------
    n_nodes, n_feasible, n_viable
        Nodes that are possible at all; that pass every filter; of these, those none of which scores higher.
    best_total
        None where no scores were needed.
    failed_point, failed_plugin
        Where the cycle ended (`PreFilter`, `Filter`, ..., `Bind`), and by whom, where one plugin alone decided.
    permit_waits
        ``(allowed | rejected, virtual seconds)`` of each wait at Permit that has ended.
    """

    number: int
    at_ns: int
    pod_namespace: str
    pod_name: str
    pod_uid: str
    outcome: str
    digest: str
    node: str = ""
    message: str = ""
    profile: str = ""
    attempt: int = 1
    n_nodes: int = 0
    n_evaluated: int = 0
    n_feasible: int = 0
    n_viable: int = 0
    best_total: int | None = None
    failed_point: str = ""
    failed_plugin: str = ""
    nominated_node: str = ""
    n_victims: int = 0
    permit_waits: tuple[tuple[str, float], ...] = ()
    trace: bytes | None = field(default=None, repr=False)

    dry_run: ClassVar[bool] = False

    @property
    def n_tied(self) -> int:
        """Nodes that shared the best total; 0 where it was not shared."""
        return self.n_viable if self.n_viable > 1 else 0

    @property
    def error(self) -> str | None:
        """What ended an attempt that is neither a success nor a rejection."""
        return self.message if self.outcome == "error" else None

    @property
    def sentence(self) -> str:
        """How it ended, in one sentence."""
        return sentence(self)

    @property
    def pod(self) -> str:
        """``namespace/name``."""
        return f"{self.pod_namespace}/{self.pod_name}"


# ---- Stored traces back into explanations


def explain_trace(data: bytes, *, full: bool = False) -> dict[str, Any]:
    """The explanation of one cycle from its stored bytes.

    Parameters
    ----------
    data
        What `CycleRecord.trace` held.
    full
        With the reason matrix of every filter plugin and the amounts behind it.
    """
    document = CycleTrace.from_bytes(data).explain()
    if not full:
        document.pop("filterByPlugin", None)
        document.pop("amounts", None)
    return document
