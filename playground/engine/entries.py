"""Log entries as the engine reads and writes them, free of any database."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Self

from scheduler_core.framework.record import ERROR, CycleTrace, headline, sentence
from scheduler_core.queue.queued_pod_info import Lane as Lane
from scheduler_core.queue.queued_pod_info import QueueMove as QueueMove
from scheduler_core.sim.queue_view import QueueView

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
class Cut:
    """Where a log is left off in the middle of a batch.

    Attributes
    ----------
    ran_seq
        The batch's `ran` entry.
    n_cycles
        Cycles of the batch that still belong to it.
    clock_ns
        Virtual time of the last of them.
    """

    ran_seq: int
    n_cycles: int
    clock_ns: int


def until(entries: Iterable[Entry], cut: Cut | None) -> Iterator[Entry]:
    """Log entries up to the cut; a batch that spans it is truncated."""
    if cut is None:
        yield from entries
        return
    held: list[Entry] = []
    for entry in entries:
        if entry.seq > cut.ran_seq:
            return
        if entry.seq < cut.ran_seq:
            held.append(entry)
            if entry.kind == "ran":
                yield from held
                held = []
            continue
        read = entry.payload["read"]
        yield from (
            item for item in held if item.source == "api" and (item.kind == "extender" or item.seq <= read)
        )
        yield replace(entry, payload=_shortened(entry.payload, cut))


def _shortened(payload: Mapping[str, Any], cut: Cut) -> dict[str, Any]:
    calls = payload["calls"]
    if calls and calls[0][0] == "step":
        calls = calls[: cut.n_cycles]
    elif calls:
        calls = [[calls[0][0], calls[0][1], cut.n_cycles]]
    return {**payload, "calls": calls, "stop": "budget", "cycles": cut.n_cycles, "clock_ns": cut.clock_ns}


@dataclass(frozen=True, slots=True)
class ExtenderEntry:
    """An extender's answer within a cycle: an input of the log beside the batch's `ran` entry."""

    cycle: int | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue after a batch. Describing every pod of a long lane takes longer than deciding one.

    Attributes
    ----------
    places
        ``namespace/name`` -> ``(lane, node it takes room on)`` of every pending pod, lane by lane in order.
    head
        The first `HEAD_ITEMS` pods of each lane, described (`QueueView` has the keys).
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


def queue_state(view: QueueView, *, whole: bool) -> QueueState:
    """The queue now, with every pod described or only the first of each lane."""
    if whole:
        return QueueState.of(view.entries())
    places: dict[str, tuple[str, str]] = {}
    for lane, pods in view.keys().items():
        places |= dict.fromkeys(pods, (lane, ""))
    for lane in HOLDING:
        places |= {pod: (lane, node) for pod, node in view.nodes(lane)}
    return QueueState(places, view.entries(HEAD_ITEMS), view.rejectors())


class CycleWords:
    """What the columns of a cycle say, of a record as of a row."""

    __slots__ = ()
    dry_run: ClassVar[bool] = False

    @property
    def engine(self: Any) -> str:
        """The version that decided it."""
        return str(self.engine_version)

    @property
    def n_tied(self: Any) -> int:
        """Nodes that shared the best total; 0 where it was not shared."""
        return self.n_viable if self.n_viable and self.n_viable > 1 else 0

    @property
    def error(self: Any) -> str | None:
        """What ended an attempt that is neither a success nor a rejection."""
        return self.message if self.outcome == ERROR else None

    @property
    def sentence(self: Any) -> str:
        """How it ended, in one sentence."""
        return sentence(self)

    @property
    def headline(self: Any) -> str:
        """The sentence without the scheduler's message."""
        return headline(self)

    @property
    def pod(self: Any) -> str:
        """The pod as ``namespace/name``."""
        return f"{self.pod_namespace}/{self.pod_name}"


@dataclass(frozen=True, slots=True)
class CycleRecord(CycleWords):
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


_OWN_WORDS: Final = ("pod_namespace", "pod_name", "pod_uid", "message", "permit_waits", "trace")
_OF_TRACE: Final = tuple(item.name for item in fields(CycleRecord) if item.name not in _OWN_WORDS)
"""What a trace calls as its record does; None there is the record's default."""


def record_of(trace: CycleTrace) -> CycleRecord:
    """The summary of a cycle, with its trace."""
    namespace, _, name = trace.pod.partition("/")
    same = {name: value for name in _OF_TRACE if (value := getattr(trace, name)) is not None}
    return CycleRecord(
        **same,
        pod_namespace=namespace,
        pod_name=name,
        pod_uid=trace.uid,
        message=trace.message or trace.error or "",
        permit_waits=tuple(
            ("allowed" if item["decision"] == "allow" else "rejected", float(item["afterS"]))
            for item in trace.permit
            if "afterS" in item
        ),
        # What a summary says is in the columns; bytes of it alone would say it twice.
        trace=trace.to_bytes() if trace.is_full or trace.outcome == ERROR or trace.awaited else None,
    )


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
