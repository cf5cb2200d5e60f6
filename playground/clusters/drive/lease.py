"""The lease: at most one engine of a cluster at work, and a stalled one cannot commit.

Every claim and renewal is a conditional UPDATE whose row count is checked. The token goes up with each claim
and is compared under the cluster's lock before anything is committed (fencing). When a lease has run out, the
database's clock says: workers whose own clocks disagree would take each other's.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from playground.clusters.clock import new_anchor, virtual_now_ns, wall_now
from playground.clusters.lanes import holder_name, is_alive, on_this_machine
from playground.clusters.models import Cluster, ExtenderCall, Run

LEASE_S: Final = 30.0
MAX_FAILURES: Final = 3


class Fenced(Exception):
    """The lease was taken over, or the cluster reset or deleted: nothing of the batch may be kept."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to commit to a cluster while its token is the newest."""

    cluster_id: int
    token: int


def free() -> Q:
    """Clusters whose lease is free: given back, run out, or held by a process of this machine that died.

    The last spares people the wait after a kill; should it be wrong (two machines of one name), the token
    still decides who may commit. One that ends later than any is given for was written before the database's
    clock went back, and no worker should wait for that hour again.
    """
    holders = Cluster.objects.filter(lease_expires__gte=Now(), lease_holder__startswith=on_this_machine())
    dead = [
        holder for holder in holders.values_list("lease_holder", flat=True).distinct() if not is_alive(holder)
    ]
    return (
        Q(lease_expires__isnull=True)
        | Q(lease_expires__lt=Now())
        | Q(lease_expires__gt=_from_now(2 * LEASE_S))
        | Q(lease_holder__in=dead)
    )


def _from_now(seconds: float) -> CombinedExpression:
    return Now() + timedelta(seconds=seconds)


def claim(cluster_id: int, *, holder: str | None = None) -> Lease | None:
    """Take the lease if it is free; None if it is not, the cluster is parked, or it is gone.

    Each claim counts as a failure until its first commit takes that back: a worker that is killed in between
    cannot say so itself.
    """
    unheld = Cluster.objects.filter(free(), pk=cluster_id, parked_reason="")
    # One transaction, in which the row stays locked: a token read later could be the next claimant's, should
    # this process stand still for so long, or the clock jump. A cluster that is being written to is not waited for:
    # others have work meanwhile.
    with transaction.atomic():
        held = unheld.select_for_update(skip_locked=True, of=("self",)).values_list("lease_token").first()
        if held is None:
            return None
        taken = unheld.update(
            lease_token=F("lease_token") + 1,
            lease_holder=(holder or holder_name())[:120],
            lease_expires=_from_now(LEASE_S),
            failures=F("failures") + 1,
        )
    return Lease(cluster_id, held[0] + 1) if taken == 1 else None


def renew(lease: Lease) -> bool:
    """Hold it for another 30 s; False if another worker took it."""
    held = Cluster.objects.filter(pk=lease.cluster_id, lease_token=lease.token)
    return held.update(lease_expires=_from_now(LEASE_S)) == 1


def release(lease: Lease, *, failed: str = "") -> bool:
    """Give it back; with `failed` the claim stays counted and the words are kept for people."""
    held = Cluster.objects.filter(pk=lease.cluster_id, lease_token=lease.token)
    given_back: dict[str, object] = {"lease_expires": None, "lease_holder": "", "driven_at": Now()}
    news: dict[str, object] = {"last_error": failed[:4000]} if failed else {"failures": 0}
    return held.update(**given_back, **news) == 1


def abandon(cluster_id: int, *, holder: str) -> bool:
    """Let go of a lease whose token was never learned; the failure stays counted."""
    mine = Cluster.objects.filter(pk=cluster_id, lease_holder=holder[:120])
    return mine.update(lease_expires=None, lease_holder="", lease_token=F("lease_token") + 1) == 1


def park_if_failing(lease: Lease, *, now: datetime | None = None) -> bool:
    """Set the cluster aside if the three claims before this one ended without a commit.

    Its open runs fail with the same words; `unpark_cluster` lets it try again.
    """
    cluster = Cluster.objects.filter(
        pk=lease.cluster_id, lease_token=lease.token, failures__gt=MAX_FAILURES
    ).first()
    if cluster is None:
        return False
    why = cluster.last_error or "its worker died each time, without a word"
    reason = f"the engine failed {MAX_FAILURES} times in a row: {why}"
    parked = Cluster.objects.filter(pk=cluster.pk, lease_token=lease.token).update(
        parked_reason=reason[:4000], lease_expires=None, lease_holder="", version=F("version") + 1
    )
    if parked:
        Run.objects.filter(cluster=cluster, state__in=Run.OPEN).update(
            state=Run.State.FAILED, finished=now or wall_now(), message=reason[:4000]
        )
    return parked == 1


def has_work(cluster: Cluster, *, now: datetime | None = None) -> bool:
    """Whether a worker would find something to do.

    That is: inputs unread, a deadline due at 1x, a run open, or an extender's bind call not answered yet.
    """
    if cluster.last_input_seq > cluster.cursor_seq:
        return True
    if due(cluster, now=now):
        return True
    if Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists():
        return True
    return ExtenderCall.objects.filter(cluster=cluster, state=ExtenderCall.State.INTENDED).exists()


def due(cluster: Cluster, *, now: datetime | None = None) -> bool:
    """Whether a clock at 1x has reached the engine's next deadline, or must be anchored anew."""
    if cluster.clock_mode != Cluster.ClockMode.REALTIME:
        return False
    wall = now or wall_now()
    if new_anchor(cluster, wall) is not None:
        return True
    return cluster.next_deadline_ns is not None and cluster.next_deadline_ns <= virtual_now_ns(cluster, wall)
