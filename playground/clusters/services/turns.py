"""Whose turn it is, where more clusters want cycles than there are workers.

A wake-up names a cluster, but which of the waiting clusters is driven next the rows say, not the order of
messages: the one that has waited longest, where a cluster whose engine this process has in memory counts as
having waited `AT_HOME_S` longer. So clusters stay with the process that knows them, with one worker or many and
any pool and broker, and a cluster whose worker is gone, or has more to do than others, is soon another worker's.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import F

from playground.clusters import wake
from playground.clusters.clock import wall_now
from playground.clusters.models import Cluster
from playground.clusters.services.advance import AdvanceReport, Visit, advance
from playground.clusters.services.lease import free
from playground.clusters.services.memory import ENGINES, EngineMemory
from playground.clusters.waiting import busy
from playground.engine import Budget

AT_HOME_S: Final = 0.5
"""How much longer a cluster waits for the process that has its engine: about what loading costs, and some visits."""
ROUND_S: Final = 1.0
"""Worker seconds in which every busy cluster is visited once: half a second of two workers."""
SHORTEST_VISIT_S: Final = 0.05
DECIDING_SHARE: Final = 0.3
"""Of a visit's time: to read the log and to commit take the rest."""
MOST_LOOKED_AT: Final = 200
NEVER: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)


def take_turn(
    *,
    cluster_id: int,
    seen_token: int | None = None,
    memory: EngineMemory | None = None,
    now: Callable[[], datetime] = wall_now,
) -> AdvanceReport:
    """Answer a wake-up: visit the cluster it names, or the one whose turn it is among those that want cycles.

    Safe to call twice, late, or from two workers at once, as `advance` is. Each cluster with work has one wake-up
    on its way: of several that were sent at one token the first leads to a visit, which sends the next one, and
    the others come late. Without that, every doubled wake-up would go on for as long as a run does.

    Parameters
    ----------
    cluster_id
        Primary key of the cluster the wake-up names.
    seen_token
        Its lease's token when the wake-up was sent, as `wake.send` was told; None = look in any case.
    memory, now
        As `advance` takes them.
    """
    memory = ENGINES if memory is None else memory
    if seen_token is not None and visited_since(cluster_id, seen_token):
        return AdvanceReport("late")
    waiting = list(
        busy().annotate(is_free=free()).order_by(F("waits_since").asc(nulls_first=True))[:MOST_LOOKED_AT]
    )
    visit = fair_visit(len(waiting))
    # One that failed, or whose worker died, comes by its own wake-up only, which may be a delayed one.
    eligible = [cluster for cluster in waiting if cluster.is_free and not cluster.failures]
    named = next((cluster for cluster in eligible if cluster.pk == cluster_id), None)
    turn = cluster_id
    if named is not None:
        turn = next_of(eligible, memory)
        if turn != cluster_id:
            # Before the visit, so that another worker may answer it meanwhile, and it is not lost with this one.
            wake.send(wake.ADVANCE, cluster_id=cluster_id, seen_token=named.lease_token)
    return advance(cluster_id=turn, visit=visit, memory=memory, now=now)


def visited_since(cluster_id: int, seen_token: int) -> bool:
    """Whether a visit has begun and ended since the lease had that token: it saw all there was, and sent on."""
    return Cluster.objects.filter(
        pk=cluster_id, lease_token__gt=seen_token, lease_expires__isnull=True, failures=0
    ).exists()


def next_of(waiting: Sequence[Any], memory: EngineMemory) -> int:
    """Primary key of the cluster whose turn it is for the process with these engines; `waiting` as of `busy`."""

    def since(cluster: Any) -> datetime:
        at_home = timedelta(seconds=AT_HOME_S if memory.holds(cluster) else 0)
        return (cluster.waits_since or NEVER) - at_home

    return int(min(waiting, key=since).pk)


def fair_visit(n_busy: int) -> Visit:
    """A visit so short that each of `n_busy` clusters has its next batch within about two seconds."""
    wall_s = max(SHORTEST_VISIT_S, ROUND_S / max(1, n_busy))
    return Visit(wall_s=wall_s, batch=Budget(wall_s=min(Budget().wall_s, wall_s * DECIDING_SHARE)))
