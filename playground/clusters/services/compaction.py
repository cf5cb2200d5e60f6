"""What may leave an old log: outcomes that a later entry superseded, and Events. Inputs never do.

The log's inputs and the calls of its `ran` entries are what a replay is made of, so every past cycle, seed, share,
branch and recomputed trace stays exact. What goes is what a replay would give again: the engine's writes before the
newest checkpoint that is older than `PLAYGROUND_KEEP_LOG_DAYS`, except the last one about each object there is, and
the last one before each write of a person: what that write changed is told by the two (`as_written.py`).
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, OuterRef, Q, Subquery, When

from playground.clusters.clock import wall_now
from playground.clusters.errors import Conflict
from playground.clusters.models import Checkpoint, Cluster, Event, LogEntry
from playground.clusters.services.writer import locked

BATCH = 2000
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
    dropped = 0
    while dropped < limit:
        chosen = list(_superseded(cluster_id, seq).values_list("pk", flat=True)[:BATCH])
        if not chosen:
            break
        for start in range(0, len(chosen), 500):
            LogEntry.objects.filter(pk__in=chosen[start : start + 500]).delete()
        dropped += len(chosen)
    else:
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


def check_past_is_there(cluster: Cluster, seq: int) -> None:
    """Refuse to fold a log whose outcomes up to `seq` were dropped.

    Raises
    ------
    Conflict
    """
    if seq <= cluster.compacting_seq:
        raise Conflict(
            f"the engine's writes up to entry {cluster.compacting_seq:,} were dropped from the log"
            f" (PLAYGROUND_KEEP_LOG_DAYS={settings.PLAYGROUND_KEEP_LOG_DAYS:g}): the objects as they were then are no"
            " longer written down; cycles, shares and replays from before are",
            kind="Cluster",
        )
