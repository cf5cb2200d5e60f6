"""Whose turn it is, where more clusters want cycles than there are workers.

A worker asks the rows, and no message: of the people whose clusters have work it serves the one who has waited longest,
and of that person's clusters the one that has. So who runs twenty clusters at once slows down those twenty, and no pod
of another person waits for them all. A cluster whose engine this process has in memory counts as having waited
`AT_HOME_S` longer, and so does its person: clusters stay with the process that knows them, with one worker or many, and
one whose worker is gone, or has more to do than others, is soon another worker's.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.core.cache import cache
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from playground.clusters import wake
from playground.clusters.clock import virtual_now_ns, wall_now, wall_seconds
from playground.clusters.drive.advance import AdvanceReport, Visit, advance, engine_of
from playground.clusters.drive.lease import due, free
from playground.clusters.drive.memory import ENGINES, EngineMemory
from playground.clusters.jobs import person_of
from playground.clusters.models import Cluster, ExtenderCall, Run
from playground.engine.batch import Budget

AT_HOME_S: Final = 0.5
"""How much longer a cluster waits for the process that has its engine: about what loading costs, and some visits."""
ROUND_S: Final = 1.0
"""Worker seconds in which every busy cluster is visited once: half a second of two workers."""
SHORTEST_VISIT_S: Final = 0.1
"""To claim, to read the log and to commit take about half of it."""
DECIDING_SHARE: Final = 0.5
MOST_LOOKED_AT: Final = 200
LOOK_EVERY_S: Final = 1.0
"""So soon a worker with nothing to do looks again: what a lost message, or a killed worker, costs."""
CONTENDED_S: Final = 0.1
"""So soon where other workers took all there was."""
FAILED_S: Final = 1.0
"""A cluster whose visit failed, or whose worker died, waits for so long."""
NEVER: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
LATEST: Final = datetime.max.replace(tzinfo=UTC)
_LOOKED_AT: Final = (
    *("clock_mode", "now_ns", "wall_anchor", "virtual_anchor_ns", "rate", "next_deadline_ns"),
    *("generation", "engine_seq", "failures", "driven_at", "lease_expires", "owner_id", "team_id"),
)


def take_turn(*, memory: EngineMemory | None = None, now: Callable[[], datetime] = wall_now) -> AdvanceReport:
    """Visit the cluster whose turn it is; ``idle`` with the time until something may be due if there is none.

    Safe to call from many workers at once, as `advance` is.

    Parameters
    ----------
    memory, now
        As `advance` takes them.
    """
    memory = ENGINES if memory is None else memory
    waiting, due_in_s = _look(now())
    visit = fair_visit(len(waiting))
    for cluster in in_turn(waiting, memory):
        report = advance(cluster_id=cluster.pk, visit=visit, memory=memory, now=now)
        if report.state not in ("held", "idle", "gone", "parked"):  # another worker was faster
            return report if report.batches else AdvanceReport(report.state, pause_s=CONTENDED_S)
    return AdvanceReport("idle", pause_s=CONTENDED_S if waiting else due_in_s)


def _look(wall: datetime) -> tuple[list[Any], float]:
    """The clusters that have work, and the seconds until a clock at 1x comes to the next thing to do.

    Each with `waits_since`, the end of the last visit (None also if that was before the database's clock went back),
    and `may_begin`: no other worker has it, and it did not fail just now.
    """
    open_runs = Run.objects.filter(state__in=Run.OPEN)
    calls = ExtenderCall.objects.filter(state=ExtenderCall.State.INTENDED)
    just_now = Now() - timedelta(seconds=FAILED_S), Now()
    clusters = (
        Cluster.objects.filter(parked_reason="")
        .annotate(
            has_asked=Case(
                When(
                    Q(last_input_seq__gt=F("cursor_seq"))
                    | Q(pk__in=open_runs.values("cluster_id"))
                    | Q(pk__in=calls.values("cluster_id")),
                    then=True,
                ),
                default=False,
            ),
            may_begin=Case(
                When(free() & ~Q(failures__gt=0, driven_at__range=just_now), then=True),
                default=False,
            ),
            waits_since=Case(When(driven_at__lte=Now(), then=F("driven_at"))),
        )
        .filter(Q(has_asked=True) | Q(clock_mode=Cluster.ClockMode.REALTIME))
        .only(*_LOOKED_AT)
        .order_by(F("waits_since").asc(nulls_first=True), "pk")
    )
    waiting, due_in_s = [], LOOK_EVERY_S
    for cluster in clusters:
        if cluster.has_asked or due(cluster, now=wall):
            waiting.append(cluster)
        elif cluster.next_deadline_ns is not None:
            left_s = wall_seconds(cluster, cluster.next_deadline_ns - virtual_now_ns(cluster, wall))
            due_in_s = min(due_in_s, max(CONTENDED_S, left_s))
    return waiting[:MOST_LOOKED_AT], due_in_s


def in_turn(waiting: Sequence[Any], memory: EngineMemory) -> list[Any]:
    """The clusters that may be begun, in the order in which the process with these engines visits them."""
    since: dict[int, datetime] = {}
    served: dict[str, datetime] = {}
    home: dict[str, timedelta] = {}
    for cluster in waiting:
        person = person_of(cluster.owner_id, cluster.team_id)
        at_home = timedelta(seconds=AT_HOME_S if memory.holds(cluster) else 0)
        waits_since = cluster.waits_since or NEVER
        since[cluster.pk] = waits_since - at_home
        # Who has a worker at a cluster is being served now.
        at = waits_since if cluster.lease_expires is None or cluster.may_begin else LATEST
        served[person] = max(served.get(person, NEVER), at)
        home[person] = max(home.get(person, at_home), at_home)

    def turn(cluster: Any) -> tuple[datetime, datetime]:
        person = person_of(cluster.owner_id, cluster.team_id)
        return served[person] - home[person], since[cluster.pk]

    return sorted((cluster for cluster in waiting if cluster.may_begin), key=turn)


def fair_visit(n_busy: int) -> Visit:
    """A visit so short that each of `n_busy` clusters has its next batch within about two seconds."""
    wall_s = max(SHORTEST_VISIT_S, ROUND_S / max(1, n_busy))
    return Visit(wall_s=wall_s, batch=Budget(wall_s=min(Budget().wall_s, wall_s * DECIDING_SHARE)))


# ---- Engines loaded before a question is asked: at 60,000 pods loading takes most of the time of an answer


def expect_questions(*, cluster: Cluster) -> None:
    """A user looks at a pod that waits, and may ask about it: a worker loads the engine meanwhile.

    Asked for once a minute and state at most.
    """
    state = f"engine-ready:{cluster.public_id}:{cluster.generation}:{cluster.engine_seq}"
    if not cluster.is_parked and cache.add(state, 1, 60):
        wake.send("ready_engine", cluster_id=cluster.pk)


def ready_engine(*, cluster_id: int, memory: EngineMemory | None = None) -> bool:
    """Have the cluster's engine in this process's memory; whether it was loaded. Nothing is locked or written."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    memory = ENGINES if memory is None else memory
    if cluster is None or cluster.is_parked or not cluster.engine_seq:
        return False
    is_known = memory.holds(cluster)
    memory.put(cluster.pk, engine_of(cluster, memory))
    return not is_known
