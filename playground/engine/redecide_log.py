"""Cycles of a stretch of log, opened in any order: what lies before one is put in place and not lived through.

The log says which objects there were before each cycle, and the rows of the cycles how many draws were made: for most
cycles that is all it takes (`scheduler_core.sim.past`). The others are lived through again (`Engine.reopened`).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from playground.engine.advise import PastCycle
from playground.engine.batch import CHECKPOINT_FORMAT, CheckpointError, checkpoint_document
from playground.engine.compressed import decompress, from_json
from playground.engine.entries import CycleRecord, Entry, record_of
from scheduler_core.cluster.pod_table import NO_START_NS
from scheduler_core.fork import Fork
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.kinds import KINDS, parse
from scheduler_core.objects.pod import TERMINAL_PHASES, Pod
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.manifests import TextColumn, Texts
from scheduler_core.sim.past import NotPlain, Past, PodThen, like_of, waiting


class _Objects(msgspec.Struct):
    form: list[int]
    metadata: list[int | None]
    spec: list[int | None]
    status: list[int | None]
    nodeName: list[str | None]
    name: list[str | None]
    uid: list[str | None]
    creationTimestamp: msgspec.Raw
    resourceVersion: msgspec.Raw


class _Manifests(msgspec.Struct):
    forms: list[msgspec.Raw]
    metadata: list[msgspec.Raw]
    specs: list[msgspec.Raw]
    statuses: list[msgspec.Raw]
    objects: _Objects


class _World(msgspec.Struct):
    manifests: _Manifests


class _Simulation(msgspec.Struct):
    """What `Past` reads of one."""

    version: int
    nowNs: int
    config: Any
    options: dict[str, Any]
    randomness: dict[str, Any]
    world: _World
    cycle: int
    startIndex: int
    nodeOrder: list[str]
    podOrder: list[int | str]
    plugins: dict[str, Any]
    release: Any = None
    assumed: Any = None
    awaited: Any = None
    expired: Any = None
    heldPods: Any = None
    nominations: Any = None
    preemptions: Any = None
    waiting: Any = None
    bindings: Any = None
    untold: Any = None


class _Checkpoint(msgspec.Struct):
    format: int
    readSeq: int
    simulation: _Simulation


class _Metadata(msgspec.Struct, gc=False):
    uid: str
    labels: dict[str, str] = {}
    deletionTimestamp: str | None = None


class _ContainerStatus(msgspec.Struct, gc=False):
    name: str = ""
    resources: Any = msgspec.UNSET


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    startTime: str | None = None
    containerStatuses: list[_ContainerStatus] | None = None
    initContainerStatuses: list[_ContainerStatus] | None = None

    @property
    def says_nothing_of_requests(self) -> bool:
        """As `scheduler_core.objects.pod.says_nothing_of_requests`."""
        told = (*(self.containerStatuses or ()), *(self.initContainerStatuses or ()))
        return all(container.resources is msgspec.UNSET for container in told)


class _Spec(msgspec.Struct, gc=False):
    nodeName: str


class _Deletion(msgspec.Struct):
    gone: bool = True


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: msgspec.Raw
    status: _Status = _Status()


class _Write(msgspec.Struct, gc=False):
    manifest: _Pod


_PARTS: Final = ("forms", "metadata", "specs", "statuses")
_CHECKPOINT: Final = msgspec.json.Decoder(_Checkpoint)
_WRITE: Final = msgspec.json.Decoder(_Write)
_SPEC: Final = msgspec.json.Decoder(_Spec)
_DELETION: Final = msgspec.json.Decoder(_Deletion)


def past_document(data: bytes) -> tuple[int, dict[str, Any]]:
    """Of what `Engine.checkpoint` wrote: ``readSeq``, and ``simulation`` with the parts of its objects as texts.

    Raises
    ------
    CheckpointError
        If the format is another one.
    """
    try:
        document = _CHECKPOINT.decode(decompress(data))
    except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair
        whole = checkpoint_document(data)
        return whole["readSeq"], whole["simulation"]
    if document.format != CHECKPOINT_FORMAT:
        raise CheckpointError(f"checkpoint format {document.format!r} is not {CHECKPOINT_FORMAT}")
    simulation = msgspec.structs.asdict(document.simulation)
    packed = document.simulation.world.manifests
    parts = {part: Texts([bytes(text) for text in getattr(packed, part)], from_json) for part in _PARTS}
    objects = {
        name: TextColumn(bytes(column), from_json) if isinstance(column, msgspec.Raw) else column
        for name, column in msgspec.structs.asdict(packed.objects).items()
    }
    simulation["world"] = {"manifests": {**parts, "objects": objects}}
    return document.readSeq, simulation


def is_gone(text: bytes) -> bool:
    """Whether the object of a deletion is gone; a pod that still terminates is not."""
    try:
        return _DELETION.decode(text).gone
    except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair, escaped
        return bool(from_json(text).get("gone", True))


def pod_then(text: bytes, namespace: str, name: str, read: Callable[[], Pod]) -> PodThen | None:
    """The pod a log entry tells of; None where its manifest has to be read for that.

    Parameters
    ----------
    text
        The entry's payload.
    namespace, name
        The pod's.
    read
        Reads the manifest.
    """
    # Of groups more matters than their pods; a nominated pod counts where it does not stand.
    if b'"schedulingGroup"' in text:
        return None
    if b'"nodeName"' not in text:
        return None if b'"nominatedNodeName"' in text else waiting(namespace, name, read)
    try:
        pod = _WRITE.decode(text).manifest
        node_name = _SPEC.decode(pod.spec).nodeName
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    spec, meta, status = bytes(pod.spec), pod.metadata, pod.status
    before, standing, after = spec.partition(b'"nodeName":"%b"' % node_name.encode())
    # A pod that is being resized has its requests from its status.
    if not node_name or not standing or b'"nodeName"' in after or not status.says_nothing_of_requests:
        return None
    return PodThen(
        namespace,
        name,
        meta.uid,
        node_name,
        like_of(namespace, b'%b"nodeName":null%b' % (before, after)),
        tuple(sorted(meta.labels.items())),
        NO_START_NS if status.startTime is None else parse_time_ns(status.startTime),
        meta.deletionTimestamp is not None,
        status.phase in TERMINAL_PHASES,
        read,
    )


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
        _, pod = self._before(cycle)
        return record_of(self._past.decided(pod, cycle.attempt))

    def before(self, cycle: CycleBefore) -> PastCycle:
        """A copy of the scheduler just before a cycle.

        Raises
        ------
        NotPlain
            It has to be lived through.
        """
        scheduler, pod = self._before(cycle)
        return PastCycle(Fork(scheduler), pod)

    def _before(self, cycle: CycleBefore) -> tuple[Scheduler, Pod]:
        batch = self._batches.get(cycle.ran_seq)
        if batch is None or batch.late:
            raise NotPlain("the log before it tells of more than objects")
        self._go_to(batch.begins + bisect_left(batch.cycles, cycle.number))
        return self._past.before(
            (cycle.namespace, cycle.name),
            cycle.number,
            at_ns=cycle.at_ns,
            n_draws=cycle.n_draws,
            n_evaluated=cycle.n_evaluated_before,
        )

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
