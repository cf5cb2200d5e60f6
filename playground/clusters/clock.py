"""The cluster's own clock at 1x: wall anchor, virtual anchor and rate; read without changing it."""

import time
from datetime import datetime
from typing import Final

from django.utils import timezone

from playground.clusters.models import Cluster

REANCHOR_GAP_S: Final = 60.0
"""A deadline missed by more was missed by everybody: the clock then stood still, it does not catch up."""
WENT_BACK_S: Final = 5.0
"""Wall clocks of two machines may differ by less."""


def wall_now() -> datetime:
    """The wall clock; the one place that reads it for pacing."""
    return timezone.now()


def paced_ns(cluster: Cluster, wall: datetime) -> int:
    """Where the anchors put virtual time at a moment, whatever was committed."""
    if cluster.wall_anchor is None or cluster.virtual_anchor_ns is None:
        return cluster.now_ns
    elapsed_s = (wall - cluster.wall_anchor).total_seconds()
    return cluster.virtual_anchor_ns + int(elapsed_s * cluster.rate * 1e9)


def virtual_now_ns(cluster: Cluster, wall: datetime | None = None) -> int:
    """Virtual time now: the committed time while paused, else paced by the wall clock from the anchors.

    A wall clock that goes backwards never moves virtual time: the committed time is the floor.
    """
    if cluster.clock_mode == Cluster.ClockMode.PAUSED:
        return cluster.now_ns
    return max(cluster.now_ns, paced_ns(cluster, wall or wall_now()))


def wall_seconds(cluster: Cluster, virtual_ns: int) -> float:
    """How long a stretch of virtual time takes at the cluster's rate."""
    return virtual_ns / 1e9 / cluster.rate


def new_anchor(cluster: Cluster, wall: datetime) -> tuple[int, str] | None:
    """Where to anchor the clock anew, and the words for people; None while the anchors are right.

    They are not when the wall clock went back (virtual time would stand still until it has caught up), and when
    no process was there to fire the next deadline (virtual time would jump over the gap).
    """
    if cluster.clock_mode != Cluster.ClockMode.REALTIME:
        return None
    paced = paced_ns(cluster, wall)
    back_s = wall_seconds(cluster, cluster.now_ns - paced)
    if back_s > WENT_BACK_S:
        return (
            cluster.now_ns,
            f"The wall clock went back by {back_s:.0f} s; this clock goes on from where it was.",
        )
    if cluster.next_deadline_ns is not None:
        late_s = wall_seconds(cluster, paced - cluster.next_deadline_ns)
        if late_s > REANCHOR_GAP_S:
            at_ns = max(cluster.now_ns, cluster.next_deadline_ns)
            return at_ns, f"The clock stood still for {late_s:.0f} s while no worker was there."
    return None


# ---- Virtual time at the edges: int nanoseconds inside, RFC 3339 outside


def wall_now_ns() -> int:
    """The wall clock, whole seconds: where a new live cluster's virtual clock starts."""
    return time.time_ns() // 1_000_000_000 * 1_000_000_000
