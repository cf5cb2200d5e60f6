"""Undo: the log goes back to where the last change began, and with it every row that it made.

The README says why it goes back and does not append the reverse. Objects, cycles, clock, configuration, queue and the
scheduler's memory are then as they were, so what is decided next is what would have been decided without the change.
Sequence numbers go on, so that no reader sees one twice, and watches are told to list anew, as after a reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from playground.clusters import wake
from playground.clusters.clock import wall_now
from playground.clusters.custom_kinds import DEFINITION, table_of
from playground.clusters.drive.config import recheck_waiting
from playground.clusters.errors import Conflict
from playground.clusters.kinds import Kind
from playground.clusters.log.changes import ENGINE_COLUMNS, PERSONS_COLUMNS
from playground.clusters.log.rows import MODELS, in_parts, row_values, upsert
from playground.clusters.log.writer import LogWriter, ObjectKey, check_not_followed, locked
from playground.clusters.models import (
    Change,
    Cluster,
    ControllerRecord,
    Cycle,
    EarlierCycle,
    Event,
    ExtenderCall,
    ForeignDecision,
    LogEntry,
    Manifest,
    MockExtender,
    QueueMove,
    Run,
)
from playground.engine.columns import profile_names

_STAYS: Final = "Lease"
"""Leases say that their holders live, and the log keeps none but the newest: no undo touches them."""


@dataclass(frozen=True, slots=True)
class Undone:
    """What was undone.

    Attributes
    ----------
    words
        The change, as a command.
    cycles
        Cycles that were decided since, and are gone with it.
    more
        What who noted the change wanted to have back.
    before_seq, after_seq
        The newest input before the change, and the one that tells of the undo.
    """

    words: str
    cycles: int
    more: Mapping[str, Any] = field(default_factory=dict)
    before_seq: int = 0
    after_seq: int = 0


def last_change(cluster: Cluster) -> Change | None:
    """What an undo would undo. One query."""
    return Change.objects.filter(cluster=cluster).order_by("-id").first()


def undo(*, cluster: Cluster, seq: int | None = None) -> Undone:
    """Undo the last change, with what the scheduler decided since.

    A run that was asked for before the change goes on from there; one asked for later is cancelled.

    Parameters
    ----------
    seq
        The change that is meant (`Change.seq`); None is whichever is the last one.

    Raises
    ------
    Conflict
        There is nothing to undo, something else was done meanwhile, or the log no longer goes back so far.
    """
    with transaction.atomic():
        row = locked(cluster.pk)
        check_not_followed(row)
        change = last_change(row)
        if change is None:
            raise Conflict("there is nothing to undo", kind="Cluster")
        if seq is not None and seq != change.seq:
            raise Conflict(
                f'something else was done meanwhile: "{change.words}" would be undone now', kind="Cluster"
            )
        if row.compacting_seq >= change.seq:
            raise Conflict(
                f'"{change.words}" cannot be undone any more: the log was shortened up to entry'
                f" {row.compacting_seq:,} (PLAYGROUND_KEEP_LOG_DAYS)",
                kind="Cluster",
            )
        undone = _undo(row, change)
        wake.cluster_on_commit(row)
    cluster.refresh_from_db()
    return undone


def _undo(row: Cluster, change: Change) -> Undone:
    before = change.before
    cycles = row.next_cycle - before["next_cycle"]
    touched = _touched(row, change.seq)
    n_bound = _take_back_cycles(row, change)
    _take_back_calls(row, change)
    _take_back_runs(row, before["run"], cycles, n_bound)
    to_seq = row.last_seq
    LogEntry.objects.filter(cluster=row, seq__gte=change.seq).exclude(object_kind=_STAYS).delete()
    Event.objects.filter(cluster=row, resource_version__gte=change.seq).delete()
    ForeignDecision.objects.filter(cluster=row, seq__gte=change.seq).delete()
    QueueMove.objects.filter(cluster=row, id__gt=before["move"]).delete()
    ControllerRecord.objects.filter(cluster=row, ran_seq__gte=change.seq).delete()
    row.checkpoints.filter(engine_seq__gt=before["engine_seq"]).delete()
    _take_back_row(row, change)
    _restore(row, [key for key in touched if key[0] == DEFINITION], change.seq)
    _restore(row, [key for key in touched if key[0] != DEFINITION], change.seq)
    if "config" in before:
        recheck_waiting(row)
    Change.objects.filter(cluster=row, id__gte=change.pk).delete()
    writer = LogWriter(row)
    writer.may_exceed = True
    # The engine reads it, and so writes the queue and the pods' lanes as they are now.
    told = {"words": change.words, "from": change.seq, "to": to_seq, "cycles": cycles}
    after_seq = writer.append(LogEntry.Source.API, LogEntry.Kind.UNDO, told)
    row.save()
    writer.flush()
    return Undone(change.words, cycles, before.get("more") or {}, before["last_input_seq"], after_seq)


def _take_back_row(row: Cluster, change: Change) -> None:
    """Restore the cluster's row; an engine at work on it is fenced off, as by a reset."""
    before = change.before
    for name in (*ENGINE_COLUMNS, *PERSONS_COLUMNS):
        if name in before:
            setattr(row, name, before[name])
    row.clock_note = ""
    if row.clock_mode == Cluster.ClockMode.REALTIME:
        row.wall_anchor, row.virtual_anchor_ns = wall_now(), before["at_ns"]
    else:
        row.wall_anchor = row.virtual_anchor_ns = None
    row.fence()
    newest = row.checkpoints.order_by("-engine_seq").values_list("engine_seq", flat=True).first() or 0
    row.entries_since_checkpoint = max(0, change.seq - 1 - newest)
    _restore_mocks(row, before.get("mocks"))


def _take_back_cycles(row: Cluster, change: Change) -> int:
    """Delete later cycles, restore the ones that changed; return how many deleted cycles had bound a pod."""
    gone = Cycle.objects.filter(cluster=row, number__gte=change.before["next_cycle"])
    n_bound = gone.filter(outcome=Cycle.Outcome.BOUND).count()
    gone.delete()
    earlier = EarlierCycle.objects.filter(cluster=row, replaced_seq__gte=change.seq)
    # Of one that went on twice the first is what it was.
    for then in earlier.order_by("-replaced_seq", "-id"):
        Cycle.objects.filter(cluster=row, number=then.number).update(**then.news, trace=then.trace)
    earlier.delete()
    return n_bound


def _take_back_calls(row: Cluster, change: Change) -> None:
    """Bind calls whose answers are gone are to be made again, unless their pods are bound by then."""
    answers = LogEntry.objects.filter(
        cluster=row, kind=LogEntry.Kind.EXTENDER, cycle__isnull=True, seq__gte=change.seq
    )
    uids = {
        (payload["call"].get("pod") or {}).get("uid") for payload in answers.values_list("payload", flat=True)
    }
    calls = ExtenderCall.objects.filter(cluster=row)
    calls.filter(id__gt=change.before["call"]).delete()
    for uid in sorted(filter(None, uids)):
        last = calls.filter(pod_uid=uid, verb="bind").order_by("-id").first()
        if last is not None:
            calls.filter(pk=last.pk).update(state=ExtenderCall.State.INTENDED, error="", answer=None)


def _take_back_runs(row: Cluster, newest: int, cycles: int, n_bound: int) -> None:
    later = Run.objects.filter(cluster=row, id__gt=newest)
    later.exclude(state__in=Run.OPEN).delete()
    later.update(
        state=Run.State.CANCELLED, cancel_requested=True, finished=timezone.now(), stop="cancelled",
        message="Undone.",
    )  # fmt: skip
    for run in Run.objects.filter(cluster=row, id__lte=newest, state__in=Run.OPEN):
        run.cycles_done = max(0, run.cycles_done - cycles)
        run.pods_bound = max(0, run.pods_bound - n_bound)
        run.save(update_fields=["cycles_done", "pods_bound"])


def _restore_mocks(row: Cluster, mocks: list[dict[str, Any]] | None) -> None:
    if mocks is None:
        return
    rows = MockExtender.objects.filter(cluster=row)
    rows.exclude(public_id__in=[item["public_id"] for item in mocks]).delete()
    for item in mocks:
        values = {name: item[name] for name in ("name", "rules", "calls")}
        MockExtender.objects.update_or_create(cluster=row, public_id=item["public_id"], defaults=values)


# ---- objects


def _touched(row: Cluster, seq: int) -> list[ObjectKey]:
    """Objects that were written or deleted since."""
    entries = LogEntry.objects.filter(cluster=row, seq__gte=seq).exclude(object_kind__in=["", _STAYS])
    keys = entries.order_by().values_list("object_kind", "object_namespace", "object_name").distinct()
    return sorted(keys)


def _restore(row: Cluster, keys: Iterable[ObjectKey], seq: int) -> None:
    """Write objects as the log before `seq` has them; those that it does not have go."""
    table = table_of(row)
    groups: dict[tuple[str, str], list[str]] = {}
    for kind_name, namespace, name in keys:
        groups.setdefault((kind_name, namespace), []).append(name)
    profiles = profile_names(row.config)
    for (kind_name, namespace), names in groups.items():
        kind = table.by_row_kind(kind_name)
        for chunk in in_parts(names):
            found = _before(row, kind_name, namespace, chunk, seq)
            _drop(row, kind_name, namespace, [name for name in chunk if name not in found], kind)
            if kind is not None:
                upsert(
                    (kind, row_values(row, kind, manifest, at, profiles)) for at, manifest in found.values()
                )


def _before(
    row: Cluster, kind_name: str, namespace: str, names: Sequence[str], seq: int
) -> dict[str, tuple[int, dict[str, Any]]]:
    """Name -> number and manifest of the objects as they were just before `seq`."""
    entries = LogEntry.objects.filter(
        cluster=row, object_kind=kind_name, object_namespace=namespace, object_name__in=names, seq__lt=seq
    )
    newest = (
        entries.order_by().values("object_name").annotate(newest=Max("seq")).values_list("newest", flat=True)
    )
    found = {}
    for entry in LogEntry.objects.filter(cluster=row, seq__in=list(newest)):
        if entry.kind == LogEntry.Kind.DELETE and entry.payload.get("gone", True):
            continue
        found[entry.object_name] = (entry.seq, entry.payload["manifest"])
    return found


def _drop(row: Cluster, kind_name: str, namespace: str, names: list[str], kind: Kind | None) -> None:
    if not names:
        return
    model = Manifest if kind is None else MODELS[kind.model]
    rows = model._default_manager.filter(cluster=row, name__in=names)
    if model is Manifest:
        rows = rows.filter(kind=kind_name)
    if namespace:
        rows = rows.filter(namespace=namespace)
    rows.delete()
