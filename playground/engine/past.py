"""Cycles of a stretch of log, opened in any order: what lies before one is put in place and not lived through.

The log says which objects there were before each cycle, and the rows of the cycles how many draws were made: for most
cycles that is all it takes (`scheduler_core.sim.past`). The others are lived through again (`Engine.reopened`).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from playground.engine.advise import PastCycle
from playground.engine.compressed import from_json
from playground.engine.core_simulator import record_of
from playground.engine.entries import CycleRecord, Entry
from playground.engine.texts import is_gone, past_document, pod_then
from scheduler_core.objects.kinds import KINDS, parse
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.past import NotPlain, Past
from scheduler_core.whatif.fork import Sandbox

__all__ = ["READ_KINDS", "CycleBefore", "History", "NotPlain", "ObjectEntry"]

READ_KINDS: Final = tuple(KINDS)
"""Kinds of objects that a scheduler reads: what is written of others is no matter here."""

_Object = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class CycleBefore:
    """What is known of a cycle that simply bound its pod, and of those between the checkpoint and it.

    Attributes
    ----------
    n_draws
        Cycles since the checkpoint that drew among equals.
    n_evaluated_before
        Nodes that the cycles since the checkpoint evaluated, all together.
    """

    number: int
    ran_seq: int
    at_ns: int
    namespace: str
    name: str
    attempt: int
    n_draws: int
    n_evaluated_before: int


class ObjectEntry(NamedTuple):
    """A write or deletion of one object, of which hardly one is ever read.

    Attributes
    ----------
    is_outcome
        By source ``engine``, and no input.
    cycle
        Of an outcome: the cycle it came with or after; 0 before the first.
    object_key
        Kind, namespace and name.
    payload
        The entry's as it is stored.
    """

    seq: int
    is_outcome: bool
    is_write: bool
    at_ns: int
    cycle: int
    object_key: _Object
    payload: bytes


@dataclass(slots=True)
class _Batch:
    """Where the outcomes of one batch begin among the changes, and after which cycle each came."""

    begins: int
    cycles: list[int]
    late: bool


class History:
    """The objects of a stretch of log at any moment.

    Parameters
    ----------
    data
        The checkpoint it begins with.
    text_of
        The JSON text of a payload as it is stored.

    Attributes
    ----------
    read_seq
        Newest input the checkpoint knows.
    first_cycle
        The first one after it.
    read_to
        The newest `ran` entry that was read, None before the first.

    Raises
    ------
    NotPlain
        What follows the checkpoint has to be lived through.
    """

    def __init__(self, data: bytes, text_of: Callable[[bytes], bytes]) -> None:
        self.read_seq, simulation = past_document(data)
        self._past = Past(simulation)
        self._text_of = text_of
        self.size = len(data)
        self.first_cycle = self._past.cycle + 1
        self.read_to: int | None = None
        self._now_ns: int = simulation["nowNs"]
        # What changed, one after another, and the payload that says how; None where an object is gone.
        self._changed: list[_Object] = []
        self._payloads: list[bytes | None] = []
        self._places: dict[_Object, list[int]] = {}
        self._batches: dict[int, _Batch] = {}
        # Of the batch whose `ran` entry is still to come, and inputs that it did not know.
        self._inputs: list[ObjectEntry] = []
        self._outcomes: list[ObjectEntry] = []
        self._at = 0
        self._stops = False

    def read(self, entries: Iterable[Entry | ObjectEntry]) -> None:
        """Go on reading the log after `read_to`: inputs, outcomes about kinds that are read, and `ran` entries.

        Raises
        ------
        NotPlain
            It tells of more than objects. What lies before that can still be opened; nothing more is read.
        """
        if self._stops:
            return
        self._stops = True
        for entry in entries:
            if isinstance(entry, ObjectEntry):
                (self._outcomes if entry.is_outcome else self._inputs).append(entry)
            elif entry.kind == "ran":
                self._read_batch(entry)
            elif entry.kind not in ("clock", "undo"):
                raise NotPlain(f"an entry of kind {entry.kind}")
        self._stops = False

    @property
    def is_spoilt(self) -> bool:
        """Whether something went wrong half way: it is of no use any more."""
        return self._past.spoilt

    def _read_batch(self, ran: Entry) -> None:
        read = ran.payload["read"]
        known = [entry for entry in self._inputs if entry.seq <= read]
        self._inputs = [entry for entry in self._inputs if entry.seq > read]
        # At 1x the clock catches up with an input, and cycles may run before it is read.
        late = any(entry.at_ns > self._now_ns for entry in known)
        for entry in known:
            gone = not entry.is_write and is_gone(self._text_of(entry.payload))
            self._add(entry.object_key, None if gone else entry.payload)
        begins = len(self._changed)
        for outcome in self._outcomes:
            self._add(outcome.object_key, outcome.payload if outcome.is_write else None)
        cycles = [outcome.cycle for outcome in self._outcomes]
        self._batches[ran.seq] = _Batch(begins, cycles, late)
        self._outcomes = []
        self.read_to, self._now_ns = ran.seq, ran.payload["clock_ns"]

    def _add(self, key: _Object, payload: bytes | None) -> None:
        if key[0] == "Node" or (payload is None and key[0] != "Pod" and key[0] in KINDS):
            raise NotPlain(f"a {key[0]} changed")
        if key[0] in KINDS:
            self._places.setdefault(key, []).append(len(self._changed))
        self._changed.append(key)
        self._payloads.append(payload)

    def opened(self, cycle: CycleBefore) -> CycleRecord:
        """A cycle with its trace.

        Raises
        ------
        NotPlain
            It has to be lived through.
        """
        self._go_before(cycle)
        trace = self._past.decided(
            (cycle.namespace, cycle.name),
            cycle.number,
            at_ns=cycle.at_ns,
            attempt=cycle.attempt,
            n_draws=cycle.n_draws,
            n_evaluated=cycle.n_evaluated_before,
        )
        return record_of(trace)

    def before(self, cycle: CycleBefore) -> PastCycle:
        """A copy of the scheduler just before a cycle.

        Raises
        ------
        NotPlain
            It has to be lived through.
        """
        self._go_before(cycle)
        scheduler, pod = self._past.before(
            (cycle.namespace, cycle.name),
            cycle.number,
            at_ns=cycle.at_ns,
            n_draws=cycle.n_draws,
            n_evaluated=cycle.n_evaluated_before,
        )
        return PastCycle(Sandbox(scheduler), pod)

    def _go_before(self, cycle: CycleBefore) -> None:
        batch = self._batches.get(cycle.ran_seq)
        if batch is None or batch.late:
            raise NotPlain("the log before it tells of more than objects")
        self._go_to(batch.begins + bisect_left(batch.cycles, cycle.number))

    def close(self) -> None:
        """Give its memory back at once; it is of no use any more."""
        self._past.close()
        self._changed.clear()
        self._payloads.clear()
        self._places.clear()

    def _pod_in(self, payload: bytes) -> Pod:
        pod: Pod = parse(from_json(self._text_of(payload))["manifest"]).typed
        return pod

    def _go_to(self, place: int) -> None:
        """Put the objects in place as they were after so many changes."""
        begin, end = sorted((self._at, place))
        self._past.spoilt = True
        manifests, pods, back = [], [], []
        for key in dict.fromkeys(self._changed[begin:end]):
            places = self._places.get(key)
            if places is None:
                continue
            before = bisect_left(places, place)
            if before == 0:
                back.append(key)
                continue
            payload = self._payloads[places[before - 1]]
            if payload is None:
                self._past.remove_pod(*key[1:])
                continue
            text = self._text_of(payload)
            pod = pod_then(text, *key[1:], partial(self._pod_in, payload)) if key[0] == "Pod" else None
            if pod is None:
                manifests.append(from_json(text)["manifest"])
            else:
                pods.append(pod)
        # All at once, which is faster; no two are of one object.
        self._past.put_back(back)
        self._past.put(manifests, pods)
        self._at, self._past.spoilt = place, False
