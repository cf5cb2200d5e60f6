"""Dropping what can be made again, or is over: traces, superseded outcomes, bodies of extender calls, runs."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import QuerySet

from playground.clusters.clock import wall_now
from playground.clusters.models import Checkpoint, Cluster, Cycle, ExtenderCall, Run
from playground.clusters.services.compaction import compact

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
        ExtenderCall.objects.filter(pk__in=chosen[start : start + BATCH]).update(request=None, answer=None)
        for start in range(0, len(chosen), BATCH)
    )


def _delete(rows: QuerySet[Run], limit: int) -> int:
    chosen = list(rows.order_by("pk").values_list("pk", flat=True)[:limit])
    for start in range(0, len(chosen), BATCH):
        Run.objects.filter(pk__in=chosen[start : start + BATCH]).delete()
    return len(chosen)
