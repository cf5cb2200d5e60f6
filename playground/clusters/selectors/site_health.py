"""What tells whether the whole site does its work, as rows say it: for metrics and alerts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Min, Q
from django.utils import timezone

from playground.clusters import lanes
from playground.clusters.models import Cluster, Job, LanePulse
from playground.clusters.waiting import busy

MOST_LOOKED_AT: Final = 1000


@dataclass(frozen=True, slots=True)
class SiteHealth:
    """The figures of one moment.

    Attributes
    ----------
    oldest_wake_up_s
        Lane -> seconds the oldest work in it waits that no worker is at; 0 if there is none.
    workers
        Lane -> workers that gave a sign lately.
    leases, expired_leases
        Clusters a worker is at, and those whose worker did not renew in time.
    """

    oldest_wake_up_s: dict[str, float]
    workers: dict[str, int]
    leases: int
    expired_leases: int


def site_health(now: datetime | None = None) -> SiteHealth:
    """Read them. Four queries."""
    wall = now or timezone.now()
    seen = dict(
        LanePulse.objects.filter(passed_at__gte=wall - timedelta(seconds=lanes.SILENT_S))
        .values_list("lane")
        .annotate(n=Count("worker"))
        .values_list("lane", "n")
    )
    leases = Cluster.objects.exclude(lease_holder="").aggregate(
        held=Count("pk", filter=Q(lease_expires__gte=wall)),
        expired=Count("pk", filter=Q(lease_expires__lt=wall)),
    )
    since = {lanes.DECIDE: _decisions(wall), **{lane: [] for lane in lanes.LANES if lane != lanes.DECIDE}}
    waiting = Job.objects.filter(
        Q(claimed_until__isnull=True) | Q(claimed_until__lt=wall),
        Q(not_before__isnull=True) | Q(not_before__lte=wall),
    )
    for lane, *times in waiting.order_by("created").values_list("lane", "created", "not_before", "turn_at")[
        :MOST_LOOKED_AT
    ]:
        since.setdefault(lane, []).append(max(time for time in times if time is not None))
    return SiteHealth(
        oldest_wake_up_s={lane: _age_s(times, wall) for lane, times in since.items()},
        workers={lane: seen.get(lane, 0) for lane in lanes.LANES},
        leases=leases["held"],
        expired_leases=leases["expired"],
    )


def _decisions(wall: datetime) -> list[datetime]:
    """Since when each cluster that wants cycles and has no worker waits."""
    rows = (
        busy()
        .filter(Q(lease_expires__isnull=True) | Q(lease_expires__lt=wall))
        .annotate(asked=Min("runs__created", filter=Q(runs__state__in=["queued", "running"])))
        .values_list("created", "driven_at", "asked")[:MOST_LOOKED_AT]
    )
    return [
        max((time for time in (driven_at, asked) if time is not None), default=created)
        for created, driven_at, asked in rows
    ]


def _age_s(times: Iterable[datetime], wall: datetime) -> float:
    return max(0.0, *((wall - time).total_seconds() for time in times), 0.0)
