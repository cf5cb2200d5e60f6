"""Drive an engine through its log: read inputs, run towards a goal, say what came of it.

Nothing here knows a database. Wall time decides only how many calls one batch makes, never what a call does;
the calls are written down (the `ran` entry), so a replay makes exactly the same ones.
"""

import gc
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from playground.engine.compressed import compress, decompress, from_json, to_json
from playground.engine.entries import (
    CycleRecord,
    Entry,
    ExtenderEntry,
    QueueMove,
    QueueState,
    queue_state,
    record_of,
)
from playground.engine.extender_answers import Relay, answer_of
from playground.engine.timing import ExtensionPointTimes, Observe
from scheduler_core.actions import BindByExtender
from scheduler_core.extender.transport import Transport
from scheduler_core.releases import release_from
from scheduler_core.schedule_one import Recorded
from scheduler_core.sim.changes import (
    BindCallAnswered,
    Change,
    ControllerRun,
    Deadline,
    DeleteObject,
    Outcome,
    PermitDecision,
    RunReport,
    SetAssumedPodExpiry,
    SetConfiguration,
    WriteObject,
)
from scheduler_core.sim.checkpoint import manifests_of
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.judge import Start

# ---- Reading inputs, each at its own time; what people wrote meanwhile is put together with what the cluster did
#
# An input may have the cluster act at once (a pod is allowed at Permit, and bound) before the next one is read, and
# at
# 1x an engine reads inputs a moment after they were made, and goes through that moment as if it had been there. So it
# may write an object before a person's write that knew nothing of it, and which holds the whole object as the person
# knew it: a pod that was created and labelled is bound in between. What the person changed holds then, and so does
# what
# the cluster changed; the object that comes of it is an outcome of the batch.

CATCH_UP_CYCLES: Final = 1_000_000
"""Bound on the cycles run while the clock catches up with an input's own time."""
PUT_TOGETHER: Final = "changed by a person meanwhile"
"""Reason of the write."""

Key = tuple[str, str, str]


def read(simulation: Simulation, entries: Iterable[Entry]) -> None:
    """Submit inputs, each at its own time if the clock runs behind it; the world takes them in."""
    entries = list(entries)
    known: dict[Key, Mapping[str, Any] | None] = {}
    """Objects as people know them, whose writes are changes of that."""
    given: dict[Key, Mapping[str, Any] | None] = {}
    """Objects as the cluster was given them last; whichever is another one by now, it has written since."""
    written: set[Key] = set()
    if len(entries) > 1 or any(entry.at_ns > simulation.now_ns for entry in entries):
        known = {key: _manifest(simulation, key) for key in map(_key, entries) if key is not None}
        given = dict(known)
    for entry in entries:
        if entry.at_ns > simulation.now_ns:
            simulation.advance(entry.at_ns - simulation.now_ns, max_cycles=CATCH_UP_CYCLES)
        if entry.kind in ("clock", "undo"):
            continue
        taken: Entry | None = entry
        key = _key(entry)
        if key is not None and known:
            present = _manifest(simulation, key)
            if present is not given[key]:
                written.add(key)
            taken = _together(entry, known[key], present, is_written=key in written)
            known[key] = None if _is_gone(entry) else entry.payload["manifest"]
            if taken is not None:
                given[key] = None if _is_gone(taken) else taken.payload["manifest"]
        if taken is not None:
            simulation.submit(_change(taken))
    if entries:
        simulation.advance(0, max_cycles=0)


def _change(entry: Entry) -> Change:
    """An input entry as the simulation takes it.

    Raises
    ------
    ValueError
        The entry is of no kind that is an input.
    """
    payload = entry.payload
    match entry.kind:
        case "write":
            return WriteObject(payload["manifest"], payload.get("reason"))
        case "delete":
            if not payload.get("gone", True):
                # The row says already when it will be gone; the kubelet here keeps to the same moment.
                return WriteObject(payload["manifest"])
            return DeleteObject(payload["kind"], payload.get("namespace") or "", payload["name"], 0)
        case "permit":
            return PermitDecision(
                payload["namespace"],
                payload["name"],
                payload["decision"] == "allow",
                payload.get("plugin"),
                payload.get("reason") or "",
            )
        case "config":
            release = payload.get("release")
            return SetConfiguration(payload["document"], release and release_from(release))
        case "expiry":
            return SetAssumedPodExpiry(payload["afterNs"])
        case "extender":
            return BindCallAnswered(payload["call"]["pod"]["uid"], answer_of(payload))
    raise ValueError(f"an entry of kind {entry.kind!r} is no input of a simulation")


def _manifest(simulation: Simulation, key: Key) -> Mapping[str, Any] | None:
    """An object as it is now; None when there is none. The namespace is empty for cluster-scoped kinds."""
    stored = simulation.world.get(*key)
    return None if stored is None else stored.manifest


def _key(entry: Entry) -> Key | None:
    if entry.kind not in ("write", "delete"):
        return None
    manifest = entry.payload["manifest"]
    meta = manifest["metadata"]
    return (str(manifest["kind"]), str(meta.get("namespace") or ""), str(meta["name"]))


def _is_gone(entry: Entry) -> bool:
    return entry.kind == "delete" and bool(entry.payload.get("gone", True))


def _together(
    entry: Entry,
    known: Mapping[str, Any] | None,
    present: Mapping[str, Any] | None,
    *,
    is_written: bool,
) -> Entry | None:
    """The input as it holds now; None if it is about what the cluster has removed in the meantime.

    What the cluster wrote of the object on the way here (`is_written`) becomes entries after this one, which knew
    nothing of it: so it is said again, also where the cluster has come back to what the object was.
    """
    if known is None or _is_gone(entry) or present is known:
        return entry
    if present is None or present["metadata"].get("uid") != known["metadata"].get("uid"):
        return None
    theirs = entry.payload["manifest"]
    if theirs["metadata"].get("uid") != known["metadata"].get("uid"):
        return entry
    merged = merged_changes(known, theirs, present)
    node = (present.get("spec") or {}).get("nodeName")
    if merged["kind"] == "Pod" and node:  # a pod stays where it was bound
        merged["spec"] = {**merged["spec"], "nodeName": node}
    merged["metadata"] = {**merged["metadata"], "resourceVersion": theirs["metadata"].get("resourceVersion")}
    if merged == theirs and not is_written:
        return entry
    return replace(entry, kind="write", payload={"manifest": merged, "reason": PUT_TOGETHER})


def merged_changes(known: Any, theirs: Any, present: Any) -> Any:
    """`present`, with what `theirs` changed of `known`; a list is one value."""
    if theirs == known:
        return present
    if not (isinstance(theirs, Mapping) and isinstance(known, Mapping)):
        return theirs
    merged = dict(present) if isinstance(present, Mapping) else {}
    for name in {**known, **theirs}:
        if name not in theirs:
            merged.pop(name, None)
        elif name not in known:
            merged[name] = theirs[name]
        elif theirs[name] != known[name]:
            merged[name] = merged_changes(known[name], theirs[name], merged.get(name))
    return merged


CHECKPOINT_FORMAT: Final = 1
LONGEST_SLICE_NS: Final = 48 * 3600 * 10**9
"""Virtual time one batch advances by at most, so that it ends in time whatever timers there are."""

Call = tuple[str, int, int]
"""``(name, argument, max_cycles)``: one call of the simulation, as the `ran` entry keeps it."""


@dataclass(frozen=True, slots=True)
class Goal:
    """How far to run.

    Attributes
    ----------
    until
        ``read`` = only take in inputs; ``cycle`` = one scheduling cycle; ``idle``; ``time``.
    until_ns
        Virtual time to reach, for ``time``; for ``idle`` it is not gone beyond, which stops with ``time``.
    max_cycles
        Bound on cycles of the whole request.
    cycles_before
        Cycles that batches before this one ran towards it; only told.
    """

    until: Literal["read", "cycle", "idle", "time"]
    until_ns: int | None = None
    max_cycles: int = 100_000
    cycles_before: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one batch: what is committed at once."""

    wall_s: float = 0.4
    max_cycles: int = 4096


@dataclass(frozen=True, slots=True)
class DriveResult:
    """What one batch did.

    Attributes
    ----------
    outcomes
        What the cluster did by itself, in order: entries for the log, before the `ran` entry (see `ran`).
    cycles
        Cycles run, in order.
    ran
        Payload of the `ran` entry.
    stop
        ``idle``, ``cycle``, ``time``, ``budget`` (of the request) or ``batch`` (there is more to do).
    message
        For a person: where it stopped.
    queue
        The queue afterwards, whole where the goal was reached.
    read_seq
        The newest input read.
    answered
        What extenders answered within the batch's cycles; entries for the log, just before the `ran` entry.
    calls
        Bind calls the engine waits for.
    moves
        Of pods in the queue, in order.
    runs
        What controllers decided, in order.
    """

    outcomes: Sequence[Outcome]
    cycles: Sequence[CycleRecord]
    ran: dict[str, Any]
    stop: str
    message: str
    clock_ns: int
    next_deadline: tuple[int, str] | None
    queue: QueueState
    read_seq: int
    n_read: int
    answered: Sequence[ExtenderEntry] = ()
    calls: Sequence[BindByExtender] = ()
    moves: Sequence[QueueMove] = ()
    runs: Sequence[ControllerRun] = ()

    @property
    def finished(self) -> bool:
        """Whether the goal, or the request's own bound, was reached."""
        return self.stop != "batch"


class CheckpointError(ValueError):
    """A checkpoint this engine cannot read (another format)."""


class Engine:
    """One cluster's engine in memory.

    Parameters
    ----------
    simulation
        The running one.
    relay
        The transport it was made with.
    read_seq
        Sequence number of the newest input it has read.

    Attributes
    ----------
    lacking
        Cycles under way of whose traces a replay kept only summaries: one that drives on would record those.
    """

    def __init__(self, simulation: Simulation, relay: Relay, read_seq: int = 0) -> None:
        self.simulation = simulation
        self.read_seq = read_seq
        self.lacking: set[int] = set()
        self._relay = relay
        self._times = ExtensionPointTimes()
        relay.cycle = lambda: self.cycle

    @classmethod
    def new(
        cls,
        *,
        config: Mapping[str, Any] | None,
        seed: int,
        start_ns: int,
        release: Mapping[str, Any] | None = None,
        mirrors: bool = False,
    ) -> Self:
        """The engine of a cluster before its first entry; one that `mirrors` a live cluster decides nothing."""
        relay = Relay()
        simulation = Simulation(
            config,
            seed=seed,
            start_ns=start_ns,
            options=SimulationOptions(
                extenders_post_bindings=True, default_tolerations=True, mirrors=mirrors
            ),
            transport=relay,
            release=release_from(release),
        )
        return cls(simulation, relay)

    @classmethod
    def restore(cls, data: bytes) -> Self:
        """The engine a checkpoint was made of.

        Raises
        ------
        CheckpointError
            If the format is another one.
        """
        with collector_paused():
            document = checkpoint_document(data)
            relay = Relay()
            simulation = Simulation.restore(document["simulation"], transport=relay)
        return cls(simulation, relay, document["readSeq"])

    @property
    def cycle(self) -> int:
        """Number of the cycle that runs, or of the next one."""
        return self.simulation.scheduler.cycle + 1

    def checkpoint(self) -> bytes:
        """Everything needed to go on elsewhere: versioned JSON, compressed."""
        with collector_paused():
            document = {
                "format": CHECKPOINT_FORMAT,
                "readSeq": self.read_seq,
                "simulation": self.simulation.checkpoint(),
            }
            return compress(to_json(document))

    def drive(
        self,
        entries: Iterable[Entry],
        goal: Goal,
        *,
        budget: Budget | None = None,
        transport: Transport | None = None,
        observe: Observe | None = None,
        clock: Callable[[], float] = time.monotonic,
        n_bodies: int | None = None,
    ) -> DriveResult:
        """Read inputs and run one batch towards the goal.

        Parameters
        ----------
        entries
            Inputs after `read_seq`, in order.
        goal
            How far to run.
        budget
            Where to stop although the goal is further on.
        transport
            Carries extender calls; None reaches no extender.
        observe
            Told how long extension points took.
        clock
            Wall seconds; only bounds the batch.
        n_bodies
            Keep all verdicts and scores of so many cycles from here on, and of those that place no pod; the others
            can be decided again. None keeps those of all.
        """
        budget = budget or Budget()
        self._relay.connect(transport)
        self._times.observe = observe
        began = clock()
        if n_bodies is not None:
            self.simulation.keep_full_traces(range(self.cycle, self.cycle + n_bodies), unplaced=True)
        if observe is not None:
            # PreEnqueue runs as pods are read.
            self._times.watch(self.simulation.scheduler)
        n_read = self._read(entries)
        calls: list[Call] = []
        n_cycles = 0
        stop, message, deadline = "read", "", self.simulation.next_deadline()
        chunk = 1
        # Timers cost time too, and may come in thousands without a cycle: a batch goes so far at once, and no further.
        near = _nearer(goal, self.simulation.now_ns + LONGEST_SLICE_NS)
        is_slice = False
        while goal.until != "read":
            left = min(goal.max_cycles, budget.max_cycles) - n_cycles
            if left <= 0:
                stop = "budget" if goal.max_cycles <= n_cycles else "batch"
                break
            if observe is not None:
                self._times.watch(self.simulation.scheduler)
            report = self._call(_next_call(near, self.simulation.now_ns, min(chunk, left)), calls)
            n_cycles += report.cycles
            stop, message, deadline = (
                report.stop,
                report.message_after(goal.cycles_before + n_cycles),
                report.next_deadline,
            )
            if stop == "time" and near is not goal:
                is_slice = True
                break
            if stop == "call":
                # The batch ends here: what is about to be sent is committed before it is sent. The log names the
                # cycles there were, so that a scenario made of it stops there, too.
                stop = "batch"
                name, argument, _ = calls[-1]
                calls[-1] = (name, argument, report.cycles)
                break
            if goal.until == "cycle" or stop != "budget":
                break
            if n_cycles >= goal.max_cycles:
                break
            spent_s = clock() - began
            if spent_s >= budget.wall_s:
                stop = "batch"
                break
            # Not more at once than there seems to be time for.
            in_time = int(n_cycles * (budget.wall_s - spent_s) / spent_s) if spent_s > 0 else 64
            chunk = max(1, min(chunk * 2, 64, in_time))
        cycles = self._cycles()
        if n_bodies is not None:
            self.simulation.keep_full_traces(True)
        clock_ns = self.simulation.now_ns
        stop_of_batch = "batch" if is_slice else stop
        return DriveResult(
            outcomes=self.simulation.drain_outcomes(),
            cycles=cycles,
            ran={
                "read": self.read_seq,
                "calls": [list(call) for call in calls],
                "cycles": len(cycles),
                "clock_ns": clock_ns,
                "stop": stop,
            },
            stop=stop_of_batch,
            message=message,
            clock_ns=clock_ns,
            next_deadline=_plain(deadline),
            queue=queue_state(self.simulation.queue_now(), whole=stop_of_batch != "batch"),
            read_seq=self.read_seq,
            n_read=n_read,
            answered=self._relay.take(),
            calls=self.calls(),
            moves=self.simulation.drain_moves(),
            runs=self.simulation.drain_runs(),
        )

    def calls(self) -> Sequence[BindByExtender]:
        """Bind calls the engine waits for, in order."""
        return self.simulation.bind_calls()

    def _cycles(self, wanted: Container[int] | None = None) -> list[CycleRecord]:
        """Drain the cycles, in order of their numbers; of one that went on only its last word.

        Putting a trace into bytes takes longer than the cycle: it is done for those of the `wanted` numbers alone.
        """
        traces = self.simulation.drain_cycles()
        newest = {trace.number: trace for trace in traces if wanted is None or trace.number in wanted}
        return [record_of(newest[number]) for number in sorted(newest)]

    def reopened(
        self, entries: Iterable[Entry], number: int, ran_seq: int, *, recorded: Recorded | None = None
    ) -> CycleRecord | None:
        """One cycle with its trace from the batch of the `ran` entry `ran_seq`; None if there is none.

        Goes no further than it has to: the engine then stands within a batch, and can be used for nothing else.
        """
        self.simulation.keep_full_traces((number,))
        self.simulation.follow(recorded)
        records = self._replay(entries, (number,), until=(number, ran_seq))
        # One that waited at Permit came once more.
        return records[-1] if records else None

    def replay(
        self,
        entries: Iterable[Entry],
        *,
        wanted: Container[int] = (),
        recorded: Recorded | None = None,
    ) -> list[CycleRecord]:
        """Go through a stretch of the log again: its inputs, and exactly the calls its `ran` entries name.

        Inputs after the last `ran` entry stay unread. Outcomes are dropped: they are in the log. Extenders are
        not called: their answers are in the log too, those within cycles just before the batch's `ran` entry.
        Of a large cluster verdicts and scores take longer than the cycles: they are kept of the wanted ones alone.

        Parameters
        ----------
        wanted
            Numbers of the cycles to return. An engine that is driven on afterwards needs those it still has under
            way (`lacking`).
        recorded
            What is known of the stretch's cycles: those that are not wanted are replayed as it says, where
            that needs no deciding.

        Raises
        ------
        ReplayMismatch
            Another engine decided these entries, and this one asks extenders something else.

        Returns
        -------
        list of CycleRecord
            Those of the stretch that are wanted, with traces.
        """
        began_at = self.cycle
        self.simulation.keep_full_traces(wanted)
        self.simulation.follow(recorded)
        cycles = self._replay(entries, wanted)
        self.simulation.follow(None)
        self.simulation.keep_full_traces(True)
        under_way = self.simulation.cycles_under_way()
        self.lacking |= {number for number in under_way if number >= began_at and number not in wanted}
        return cycles

    def _replay(
        self, entries: Iterable[Entry], wanted: Container[int], *, until: tuple[int, int] | None = None
    ) -> list[CycleRecord]:
        cycles: list[CycleRecord] = []
        for ran, _ in self._batches(entries):
            # A cycle of a batch before, which this one says more about, is told by the whole of it.
            begins = until is not None and until[1] == ran.seq and self.cycle <= until[0]
            for call in ran.payload["calls"]:
                if until is None or not begins:
                    self._call(call, [])
                elif self._call_until(call, until[0]):
                    return [*cycles, *self._cycles(wanted)]
            cycles.extend(self._cycles(wanted))
        return cycles

    def _batches(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, list[Entry]]]:
        """Read the inputs of each batch of a stretch; its `ran` entry, whose calls are to be made, and the answers."""
        waiting: list[Entry] = []
        answers: list[Entry] = []
        for entry in entries:
            if entry.kind == "extender" and entry.cycle is not None:
                answers.append(entry)
            elif entry.source == "api":
                waiting.append(entry)
            elif entry.kind == "ran":
                read = entry.payload["read"]
                self._relay.replay([item.payload for item in answers])
                self._read(item for item in waiting if item.seq <= read)
                waiting = [item for item in waiting if item.seq > read]
                yield entry, answers
                self._relay.end_replay()
                self.simulation.drain_outcomes()
                self.simulation.drain_moves()
                self.simulation.drain_runs()
                answers = []

    def go_before(
        self, entries: Iterable[Entry], number: int, *, recorded: Recorded | None = None
    ) -> list[dict[str, Any]] | None:
        """Go through a stretch up to just before a cycle; None where it does not come there.

        Returns
        -------
        list of dict
            What extenders answered within the cycle.
        """
        self.simulation.keep_full_traces(False)
        self.simulation.follow(recorded)
        for ran, answers in self._batches(entries):
            for name, argument, max_cycles in ran.payload["calls"]:
                left = number - self.cycle
                if left >= (1 if name == "step" else max_cycles):
                    self._call((name, argument, max_cycles), [])
                elif self._call(("idle" if name == "step" else name, argument, left), []).stop == "budget":
                    self._relay.connect(None)
                    self.simulation.follow(None)
                    return [item.payload for item in answers if item.cycle == number]
            self.simulation.drain_cycles()
        return None

    def _read(self, entries: Iterable[Entry]) -> int:
        """Take in the inputs that were not read yet; how many there were."""
        new = [entry for entry in entries if entry.seq > self.read_seq]
        read(self.simulation, new)
        if new:
            self.read_seq = new[-1].seq
        return len(new)

    def _call_until(self, call: Call, number: int) -> bool:
        """Make a call, or its beginning that decides the cycle; whether the cycle is decided.

        A call that its bound on cycles stopped goes on as if it had not been stopped.
        """
        name, argument, max_cycles = call
        ends_ns = self.simulation.now_ns + argument
        n_before = number + 1 - self.cycle
        if name != "step" and 0 < n_before < max_cycles:
            max_cycles -= self._call((name, argument, n_before), []).cycles
            if self._is_decided(number):
                return True
            if name == "advance":
                argument = ends_ns - self.simulation.now_ns
        self._call((name, argument, max_cycles), [])
        return self._is_decided(number)

    def _is_decided(self, number: int) -> bool:
        """Whether the cycle has run and nothing of it is under way."""
        return self.cycle > number and number not in self.simulation.cycles_under_way()

    def _call(self, call: Call, calls: list[Call]) -> RunReport:
        calls.append(call)
        name, argument, max_cycles = call
        match name:
            case "step":
                return self.simulation.step()
            case "idle":
                return self.simulation.run_until_idle(max_cycles=max_cycles, until_ns=argument or None)
            case "advance":
                return self.simulation.advance(argument, max_cycles=max_cycles)
        raise ValueError(f"{name!r} is not a call of a simulation")


def checkpoint_document(data: bytes) -> dict[str, Any]:
    """What `Engine.checkpoint` wrote: ``format``, ``readSeq``, ``simulation``.

    Raises
    ------
    CheckpointError
        If the format is another one.
    """
    document: dict[str, Any] = from_json(decompress(data))
    if document.get("format") != CHECKPOINT_FORMAT:
        raise CheckpointError(f"checkpoint format {document.get('format')!r} is not {CHECKPOINT_FORMAT}")
    return document


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection meanwhile: it would look at millions of new objects again and again, for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _nearer(goal: Goal, until_ns: int) -> Goal:
    """The goal itself, or one of its kind that is not as far away in virtual time."""
    is_far = goal.until == "time" and goal.until_ns is not None and goal.until_ns > until_ns
    return replace(goal, until_ns=until_ns) if is_far else goal


def _next_call(goal: Goal, now_ns: int, max_cycles: int) -> Call:
    if goal.until == "cycle":
        return ("step", 0, 1)
    if goal.until == "idle":
        return ("idle", goal.until_ns or 0, max_cycles)
    return ("advance", max(0, (goal.until_ns or now_ns) - now_ns), max_cycles)


def _plain(deadline: Deadline | None) -> tuple[int, str] | None:
    return None if deadline is None else (deadline.at_ns, deadline.what)


# ---- Judging other schedulers' decisions, from checkpoints and log entries as the site keeps them


def start_of(checkpoint: bytes, seq: int) -> Start:
    """The cluster as a checkpoint that was taken after the entry `seq` has it.

    Raises
    ------
    CheckpointError
    """
    document = checkpoint_document(checkpoint)
    simulation = document["simulation"]
    return Start(
        seq=seq,
        read_seq=document["readSeq"],
        config=simulation["config"],
        release=simulation.get("release"),
        objects=tuple(manifests_of(simulation)),
    )
