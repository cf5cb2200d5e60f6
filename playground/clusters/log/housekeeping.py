"""Dropping what can be made again, or is over: traces, superseded outcomes, bodies of extender calls, runs."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, When

from playground.clusters.clock import wall_now
from playground.clusters.errors import Conflict
from playground.clusters.log.quotas import ROW_BYTES, StoredBytes
from playground.clusters.log.rows import in_parts, keep_newest
from playground.clusters.log.writer import locked
from playground.clusters.models import (
    Checkpoint,
    Cluster,
    Cycle,
    Event,
    ExtenderCall,
    FollowedCluster,
    ForeignDecision,
    LogEntry,
    Run,
)
from scheduler_core.clock import SECOND_NS

ENTRIES_AT_ONCE = 2000
_OUTCOMES = (LogEntry.Kind.WRITE, LogEntry.Kind.DELETE)


def compact(*, now: datetime | None = None, limit: int = 100_000) -> int:
    """Drop what may go of every cluster's log; the number of entries.

    Safe to run at any time and twice. Nothing goes while `PLAYGROUND_KEEP_LOG_DAYS` is 0.

    Parameters
    ----------
    limit
        About so many entries in one go.
    """
    days = settings.PLAYGROUND_KEEP_LOG_DAYS
    if not days:
        return 0
    before = (now or wall_now()) - timedelta(days=days)
    old = Checkpoint.objects.filter(created__lt=before)
    dropped = 0
    for cluster_id in old.values_list("cluster_id", flat=True).distinct().order_by("cluster_id"):
        if dropped >= limit:
            break
        seq = (
            old.filter(cluster_id=cluster_id).order_by("-engine_seq").values_list("engine_seq", flat=True)[0]
        )
        dropped += _compact(cluster_id, seq, limit - dropped)
    return dropped


def _compact(cluster_id: int, seq: int, limit: int) -> int:
    if not Cluster.objects.filter(pk=cluster_id, compacted_seq__lt=seq).exists():
        return 0
    # Said first: a reader meanwhile knows that something may be missing.
    with transaction.atomic():
        cluster = locked(cluster_id)
        cluster.compacting_seq = max(cluster.compacting_seq, seq)
        cluster.version += 1
        cluster.save(update_fields=["compacting_seq", "version"])
    dropped = _drop(_superseded(cluster_id, seq), limit)
    if dropped >= limit:
        return dropped
    Event.objects.filter(cluster_id=cluster_id, resource_version__lte=seq).delete()
    Cluster.objects.filter(pk=cluster_id, compacted_seq__lt=seq).update(compacted_seq=seq)
    return dropped


def _superseded(cluster_id: int, seq: int):  # type: ignore[no-untyped-def]
    same = LogEntry.objects.filter(
        cluster_id=cluster_id,
        object_kind=OuterRef("object_kind"),
        object_namespace=OuterRef("object_namespace"),
        object_name=OuterRef("object_name"),
    )
    is_edit = Q(source=LogEntry.Source.API, kind=LogEntry.Kind.WRITE, created=False)
    later = same.filter(seq__gt=OuterRef("seq")).order_by("seq")
    edited = later.annotate(is_edit=Case(When(is_edit, then=True), default=False)).values("is_edit")
    return LogEntry.objects.annotate(edited_next=Subquery(edited[:1])).filter(
        Q(kind=LogEntry.Kind.DELETE) | Q(edited_next=False),
        cluster_id=cluster_id,
        source=LogEntry.Source.ENGINE,
        kind__in=_OUTCOMES,
        seq__lte=seq,
    )


# ---- What a live cluster did: kept for some days, within a quota


HALVINGS: Final = 12
KEPT_DECISIONS: Final = 100_000
"""Of a live cluster, the newest."""


def shorten_live(*, now: datetime | None = None, limit: int = 100_000) -> int:
    """Drop what clusters that follow a live one keep for too long, or too much; the number of entries.

    Of what was before a moment the newest entry of each object that was there then stays. The moment is so many days
    ago (`PLAYGROUND_FOLLOW_DAYS`), and later where the log takes more than `PLAYGROUND_FOLLOW_MB`: halfway to now,
    again and again. Safe to run at any time and twice.
    """
    dropped = 0
    for cluster in Cluster.objects.filter(clock_mode=Cluster.ClockMode.LIVE).order_by("pk"):
        before = (now or wall_now()) - timedelta(days=settings.PLAYGROUND_FOLLOW_DAYS)
        dropped += _shorten(cluster, int(before.timestamp()) * SECOND_NS, limit - dropped)
        for _ in range(HALVINGS):
            if dropped >= limit or _log_bytes(cluster) <= settings.PLAYGROUND_FOLLOW_MB * 2**20:
                break
            followed = FollowedCluster.objects.filter(cluster=cluster).first()
            kept_from_ns = max(cluster.start_ns, followed.kept_from_ns if followed else 0)
            dropped += _shorten(cluster, (kept_from_ns + cluster.now_ns) // 2, limit - dropped)
        keep_newest(ForeignDecision.objects.filter(cluster=cluster), KEPT_DECISIONS)
    return dropped


def _log_bytes(cluster: Cluster) -> int:
    rows = LogEntry.objects.filter(cluster=cluster)
    found = rows.aggregate(n=Count("pk"), payload=Sum(StoredBytes(F("payload"))))
    return int(found["n"]) * ROW_BYTES + int(found["payload"] or 0)


def _shorten(cluster: Cluster, before_ns: int, limit: int) -> int:
    """Drop what happened before a moment, and the decisions of that time."""
    log = LogEntry.objects.filter(cluster=cluster, at_ns__lt=before_ns)
    seq = log.order_by("-seq").values_list("seq", flat=True).first()
    if seq is None:
        return 0
    with transaction.atomic():
        row = locked(cluster.pk)
        row.compacting_seq = max(row.compacting_seq, seq)
        row.version += 1
        row.save(update_fields=["compacting_seq", "version"])
        FollowedCluster.objects.filter(cluster=cluster, kept_from_ns__lt=before_ns).update(
            kept_from_ns=before_ns
        )
    same = LogEntry.objects.filter(
        cluster=cluster,
        object_kind=OuterRef("object_kind"),
        object_namespace=OuterRef("object_namespace"),
        object_name=OuterRef("object_name"),
    )
    objects = log.filter(seq__lte=seq, kind__in=_OUTCOMES)
    superseded = objects.filter(Exists(same.filter(seq__gt=OuterRef("seq"), seq__lte=seq)))
    # A deletion goes when nothing is before it any more: whatever ends this in between brings no object back.
    gone = objects.filter(kind=LogEntry.Kind.DELETE)
    dropped = 0
    for rows in (superseded, gone, log.filter(kind=LogEntry.Kind.RAN, seq__lt=_newest_ran(cluster))):
        dropped += _drop(rows.order_by("seq"), limit - dropped)
    ForeignDecision.objects.filter(cluster=cluster, at_ns__lt=before_ns).delete()
    FollowedCluster.objects.filter(cluster=cluster).update(n_dropped=F("n_dropped") + dropped)
    return dropped


def _drop(rows: QuerySet[LogEntry], limit: int) -> int:
    """Delete entries, about so many at most; how many."""
    dropped = 0
    while dropped < limit:
        chosen = list(rows.values_list("pk", flat=True)[:ENTRIES_AT_ONCE])
        if not chosen:
            break
        for part in in_parts(chosen):
            LogEntry.objects.filter(pk__in=part).delete()
        dropped += len(chosen)
    return dropped


def _newest_ran(cluster: Cluster) -> int:
    """The entry from which an engine goes on: the newest checkpoint's, or the first of all."""
    newest = Checkpoint.objects.filter(cluster=cluster).order_by("-engine_seq")
    return newest.values_list("engine_seq", flat=True).first() or 0


def check_past_is_there(cluster: Cluster, seq: int) -> None:
    """Refuse to fold a log whose outcomes up to `seq` were dropped.

    Raises
    ------
    Conflict
    """
    if seq <= cluster.compacting_seq:
        raise Conflict(
            f"the engine's writes up to entry {cluster.compacting_seq:,} were dropped from the log"
            f" (PLAYGROUND_KEEP_LOG_DAYS={settings.PLAYGROUND_KEEP_LOG_DAYS:g}): the objects of that time are no"
            " longer stored; earlier cycles, shares and replays are",
            kind="Cluster",
        )


KEPT_CYCLES: Final = 2_000
"""Newest cycles of a cluster whose traces stay, whatever their age."""
BATCH: Final = 500
ALWAYS_KEPT: Final = (Cycle.Outcome.PREEMPTING,)


def tidy(*, now: datetime | None = None, limit: int = 20_000) -> dict[str, int]:
    """Drop old traces, superseded outcomes, bodies of old extender calls and finished runs; how many, by name.

    Safe to run at any time and twice: a dropped trace is decided again when it is asked for, and the log's inputs,
    which everything is made of, are never touched. Preempting cycles keep their traces.

    Parameters
    ----------
    limit
        At most so many rows of each kind in one go.
    """
    before = (now or wall_now()) - timedelta(days=settings.PLAYGROUND_KEEP_TRACES_DAYS)
    return {
        "traces": sum(_drop_traces(cluster, before, limit) for cluster in _with_checkpoints()),
        "logEntries": compact(now=now, limit=limit),
        "liveEntries": shorten_live(now=now, limit=limit),
        "extenderBodies": _drop_bodies(before, limit),
        "runs": _delete(Run.objects.filter(finished__lt=before).exclude(state__in=Run.OPEN), limit),
    }


def _with_checkpoints() -> QuerySet[Cluster]:
    """From a checkpoint a dropped trace is made again; without one it would take the whole log."""
    return Cluster.objects.filter(pk__in=Checkpoint.objects.values("cluster_id")).only("pk", "next_cycle")


def _drop_traces(cluster: Cluster, before: datetime, limit: int) -> int:
    # Cycles carry virtual time only; the checkpoint after them says when they were run.
    done = (
        Checkpoint.objects.filter(cluster=cluster, created__lt=before)
        .order_by("-engine_seq")
        .values_list("engine_seq", flat=True)
        .first()
    )
    if done is None:
        return 0
    old = Cycle.objects.filter(
        cluster=cluster,
        trace__isnull=False,
        ran_seq__lte=done,
        number__lt=cluster.next_cycle - KEPT_CYCLES,
    ).exclude(outcome__in=ALWAYS_KEPT)
    dropped = 0
    while dropped < limit:
        chosen = list(old.order_by("pk").values_list("pk", flat=True)[:BATCH])
        if not chosen:
            break
        dropped += Cycle.objects.filter(pk__in=chosen).update(trace=None)
    return dropped


def _drop_bodies(before: datetime, limit: int) -> int:
    old = ExtenderCall.objects.filter(created__lt=before, request__isnull=False).exclude(
        state=ExtenderCall.State.INTENDED
    )
    chosen = list(old.order_by("pk").values_list("pk", flat=True)[:limit])
    return sum(
        ExtenderCall.objects.filter(pk__in=part).update(request=None, answer=None)
        for part in in_parts(chosen)
    )


def _delete(rows: QuerySet[Run], limit: int) -> int:
    chosen = list(rows.order_by("pk").values_list("pk", flat=True)[:limit])
    for part in in_parts(chosen):
        Run.objects.filter(pk__in=part).delete()
    return len(chosen)
