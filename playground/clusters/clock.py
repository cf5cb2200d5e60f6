"""The cluster's own clock, read without changing it."""

from datetime import datetime

from django.utils import timezone

from playground.clusters.models import Cluster

REANCHOR_GAP_S = 60.0


def virtual_now_ns(cluster: Cluster, wall: datetime | None = None) -> int:
    """Virtual time now: the committed time while paused, else paced by the wall clock from the anchors.

    A wall clock that goes backwards never moves virtual time: the committed time is the floor.
    """
    if cluster.clock_mode == Cluster.ClockMode.PAUSED or cluster.wall_anchor is None:
        return cluster.now_ns
    elapsed_s = ((wall or timezone.now()) - cluster.wall_anchor).total_seconds()
    paced = (cluster.virtual_anchor_ns or cluster.now_ns) + int(max(0.0, elapsed_s) * cluster.rate * 1e9)
    return max(cluster.now_ns, paced)
