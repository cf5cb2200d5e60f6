"""Traces that were not kept: decided again from the nearest checkpoint when they are asked for.

Determinism makes them exact. If an engine of another version decides differently, the recorded summary stands
and the cycle says so.
"""

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Final

from django.db import transaction
from django.db.models import BinaryField, Count, ExpressionWrapper, F, Q, QuerySet, Sum

from playground.clusters import wake
from playground.clusters.drive.advance import nearest
from playground.clusters.history.cycles import get_cycle
from playground.clusters.log.entries import recorded, stretch
from playground.clusters.models import Checkpoint, Cluster, Cycle, LogEntry
from playground.clusters.packed import text_of, unpack
from playground.engine.advise import PastCycle
from playground.engine.batch import collector_paused
from playground.engine.entries import CycleRecord, Entry
from playground.engine.redecide_log import READ_KINDS, CycleBefore, History, ObjectEntry
from scheduler_core.sim.past import NotPlain
from scheduler_core.version import ENGINE_VERSION

KEPT_BYTES: Final = 4_000_000
"""Of the checkpoints that what is kept was made of: of a cluster of 60,000 pods that is two."""

_Key = tuple[str, int, int]
_Answer = tuple[CycleRecord, PastCycle | None]
"""The cycle as it is decided again, and what was asked about it."""


class HistoryMemory:
    """As many as `KEPT_BYTES` allow, and one at least; the least recently used leave first.

    Parameters
    ----------
    kept_bytes
        Bound on the sizes of their checkpoints, together.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._histories: OrderedDict[_Key, History | None] = OrderedDict()
        self._leaving: list[History] = []
        self._lock = Lock()

    def opened(self, cluster: Cluster, cycle: Cycle) -> CycleRecord | None:
        """A cycle with its trace; None where it has to be lived through again.

        Nothing but what the row says of it comes back: should the two differ, it is no answer.
        """
        found = self._asked(cluster, cycle, with_moment=False)
        return None if found is None else found[0]

    def before(self, cluster: Cluster, cycle: Cycle) -> PastCycle | None:
        """The moment just before a cycle; None where it has to be lived through.

        Deciding it there gives what the row says.
        """
        found = self._asked(cluster, cycle, with_moment=True)
        return None if found is None else found[1]

    def _asked(self, cluster: Cluster, cycle: Cycle, *, with_moment: bool) -> _Answer | None:
        # Another thread is at it: what it is asked for here would only wait.
        if not self._lock.acquire(blocking=False):
            return None
        try:
            with collector_paused():
                return self._answer(cluster, cycle, with_moment)
        finally:
            self._lock.release()

    def _answer(self, cluster: Cluster, cycle: Cycle, with_moment: bool) -> _Answer | None:
        if cycle.outcome != Cycle.Outcome.BOUND or cycle.n_viable is None:
            return None
        checkpoints = Checkpoint.objects.filter(cluster=cluster, engine_seq__lt=cycle.ran_seq)
        engine_seq = checkpoints.order_by("-engine_seq").values_list("engine_seq", flat=True).first()
        # Of a log that was made shorter, what is left does not tell what was there between.
        if engine_seq is None or engine_seq < cluster.compacting_seq:
            return None
        key = (str(cluster.public_id), cluster.generation, engine_seq)
        try:
            history = self._history(key, checkpoints)
        except NotPlain:
            history = self._histories[key] = None  # it is not tried again
        if history is None:
            return None
        try:
            if history.read_to is None or history.read_to < cycle.ran_seq:
                history.read(_entries(cluster, history, engine_seq, cycle.ran_seq))
            told = _before(cluster, cycle, history.first_cycle)
            found = history.opened(told), history.before(told) if with_moment else None
        except NotPlain:
            found = None
        except Exception:
            self._histories.pop(key, None)
            raise
        if history.is_spoilt or (found is not None and not _is_told(found[0], cycle)):
            self._histories[key] = found = None
        return found

    def _history(self, key: _Key, checkpoints: QuerySet[Checkpoint]) -> History | None:
        if key in self._histories:
            self._histories.move_to_end(key)
            return self._histories[key]
        data = checkpoints.values_list("data", flat=True).get(engine_seq=key[2])
        self._make_room(len(data))
        history = self._histories[key] = History(bytes(data), text_of)
        return history

    def tidy(self) -> None:
        """Give back the memory of those that left: not before the answer for which they had to is written."""
        leaving, self._leaving = self._leaving, []
        for history in leaving:
            history.close()

    def _make_room(self, size: int) -> None:
        self.tidy()
        while self._histories and size + self._size > self._kept_bytes:
            _, history = self._histories.popitem(last=False)
            if history is not None:
                self._leaving.append(history)

    @property
    def _size(self) -> int:
        return sum(1000 if history is None else history.size for history in self._histories.values())

    def clear(self) -> None:
        """Forget all."""
        self._histories.clear()
        self._leaving.clear()


def _entries(
    cluster: Cluster, history: History, engine_seq: int, to_seq: int
) -> Iterator[Entry | ObjectEntry]:
    """What a history reads next of the log, up to a `ran` entry."""
    after = (history.read_seq, engine_seq) if history.read_to is None else (history.read_to, history.read_to)
    log = LogEntry.objects.filter(cluster=cluster, seq__lte=to_seq, seq__gt=min(after))
    told = log.filter(
        Q(source=LogEntry.Source.API, seq__gt=after[0])
        | Q(source=LogEntry.Source.ENGINE, kind=LogEntry.Kind.RAN, seq__gt=after[1])
        | Q(source=LogEntry.Source.ENGINE, object_kind__in=READ_KINDS, seq__gt=after[1])
    )
    # Most payloads are never looked at: they are unpacked where they are.
    raw = ExpressionWrapper(F("payload"), output_field=BinaryField())
    rows = told.order_by("seq").annotate(raw=raw)
    columns = rows.values_list(
        "seq", "source", "kind", "at_ns", "cycle", "object_kind", "object_namespace", "object_name", "raw"
    )
    write, delete, engine = LogEntry.Kind.WRITE, LogEntry.Kind.DELETE, LogEntry.Source.ENGINE
    for seq, source, kind, at_ns, number, object_kind, namespace, name, data in columns.iterator(2000):
        payload = bytes(data)
        if kind in (write, delete):
            key = (object_kind, namespace, name)
            yield ObjectEntry(seq, source == engine, kind == write, at_ns, number or 0, key, payload)
        else:
            yield Entry(seq, source, kind, at_ns, unpack(payload), number)


def _before(cluster: Cluster, cycle: Cycle, first: int) -> CycleBefore:
    """What the rows say of the cycles from `first` on, before one of them.

    Raises
    ------
    NotPlain
        One of them did more than place its pod, or find no place.
    """
    bound, unplaced = Q(outcome=Cycle.Outcome.BOUND), Q(outcome=Cycle.Outcome.UNSCHEDULABLE)
    told = Cycle.objects.filter(cluster=cluster, number__gte=first, number__lt=cycle.number).aggregate(
        n=Count(
            "pk", filter=bound | (unplaced & Q(nominated_node="", failed_point__in=("PreFilter", "Filter")))
        ),
        n_draws=Count("pk", filter=Q(n_viable__gt=1)),
        n_known=Count("n_viable"),
        n_evaluated=Sum("n_evaluated"),
    )
    if not told["n"] == told["n_known"] == cycle.number - first:
        raise NotPlain("cycles before it were not plain")
    return CycleBefore(
        cycle.number,
        cycle.ran_seq,
        cycle.at_ns,
        cycle.pod_namespace,
        cycle.pod_name,
        cycle.attempt,
        told["n_draws"],
        told["n_evaluated"] or 0,
    )


_TOLD: Final = (
    "digest", "pod_uid", "profile", "attempt", "node", "n_nodes", "n_evaluated", "n_feasible", "n_viable", "best_total"
)  # fmt: skip


def _is_told(record: CycleRecord, cycle: Cycle) -> bool:
    return all(getattr(record, name) == getattr(cycle, name) for name in _TOLD)


HISTORIES: Final = HistoryMemory()


def request_trace(*, cluster: Cluster, number: int) -> bool:
    """Ask a worker for the trace of a cycle; False if there is nothing to wait for (kept, or it differs).

    Raises
    ------
    NotFound
    """
    cycle = get_cycle(cluster, number)
    missing = Cycle.objects.filter(pk=cycle.pk, trace__isnull=True).exists()
    if missing and not cycle.trace_note:
        # Asked again at the next look, should it not have been heard.
        wake.send("recompute_trace", cluster_id=cluster.pk, number=number)
        return True
    return False


def recompute_trace(*, cluster_id: int, number: int) -> bool:
    """Replay the log up to a cycle's batch and keep its trace; True if it is kept now.

    Needs no lease: it reads only what is committed and changes nothing but the empty trace.
    """
    cycle = Cycle.objects.filter(cluster_id=cluster_id, number=number, trace__isnull=True).first()
    if cycle is None:
        return Cycle.objects.filter(cluster_id=cluster_id, number=number).exists()
    cluster = Cluster.objects.get(pk=cluster_id)
    with collector_paused():
        record = HISTORIES.opened(cluster, cycle) or _lived_through(cluster, cycle)
        # The collector looks at what was read for it when the trace is there, not before.
        with transaction.atomic():
            empty = Cycle.objects.filter(pk=cycle.pk, trace__isnull=True)
            if record is not None and record.digest == cycle.digest:
                empty.update(trace=record.trace)
            else:
                empty.update(
                    trace_note=f"Engine {ENGINE_VERSION} decides this cycle differently than the recorded"
                    f" {cycle.engine_version}; what was recorded is shown."
                )
            Cluster.objects.filter(pk=cluster_id).update(version=F("version") + 1)
    HISTORIES.tidy()
    return record is not None and record.digest == cycle.digest


def _lived_through(cluster: Cluster, cycle: Cycle) -> CycleRecord | None:
    """The cycle as a replay of the log comes to it."""
    # The batch must be replayed whole, so the checkpoint has to lie before it.
    engine, engine_seq = nearest(cluster, cycle.ran_seq - 1)
    entries = stretch(cluster, engine, engine_seq, cycle.ran_seq)
    return engine.reopened(entries, cycle.number, cycle.ran_seq, recorded=recorded(cluster))
