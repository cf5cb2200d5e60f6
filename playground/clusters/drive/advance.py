"""The worker's side: take the lease, load the engine, drive it in batches, commit each batch at once.

Between two commits nothing is kept anywhere but in memory, and a commit is one transaction under the
cluster's lock and the lease's token. So a worker may be killed at any instruction: what it had not committed
never happened, and the next worker decides the same things again.
"""

import logging
import time
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db import DatabaseError, connection, transaction

from playground.clusters.clock import new_anchor, virtual_now_ns, wall_now
from playground.clusters.drive import extender_calls
from playground.clusters.drive import lease as leases
from playground.clusters.drive.commit import CHECKPOINT_EVERY, Raced, commit_batch
from playground.clusters.drive.lease import Fenced, Lease
from playground.clusters.drive.memory import ENGINES, Driven, EngineMemory
from playground.clusters.lanes import holder_name
from playground.clusters.log.entries import initial_config, initial_release, recorded, stretch, unread
from playground.clusters.log.writer import locked
from playground.clusters.metrics import Counts
from playground.clusters.models import Checkpoint, Cluster, Cycle, Node, Run
from playground.engine.batch import Budget, DriveResult, Engine, Goal
from playground.engine.transport import HttpTransport
from scheduler_core.scenario.bounds import MAX_VIRTUAL_NS

logger = logging.getLogger(__name__)

MAX_RACES: Final = 50
BODY_ROWS: Final = 10_000
"""Rows of verdicts that a run keeps at once (cycles times nodes); of its other cycles that simply bound their pod it
keeps the summary, and they are decided again when they are asked for (history/redecide.py)."""
BODY_ROWS_AT_1X: Final = 2_000
"""The same of a batch at 1x, where no run is open."""
PROGRESS_S: Final = 0.8
"""A batch with its commit shall take no longer: what runs is seen to go on every second."""
SHORTEST_BATCH_S: Final = 0.05
MAX_CATCH_UP: Final = 2000
"""Entries replayed on a remembered engine rather than on a newer checkpoint."""


@dataclass(frozen=True, slots=True)
class AdvanceReport:
    """What one visit to a cluster did.

    Attributes
    ----------
    state
        ``driven``, ``idle`` (nothing to do), ``held`` (another worker is at it), ``parked``, ``fenced`` (the
        lease was taken over), ``failed``, ``gone``.
    cycles
        Cycles committed.
    batches
        Commits made.
    more
        Work is left for another visit.
    pause_s
        Seconds before a worker looks again.
    """

    state: str
    cycles: int = 0
    batches: int = 0
    more: bool = False
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Visit:
    """Bounds of one visit of a worker to a cluster, after which the others have their turn.

    Attributes
    ----------
    wall_s
        Begin no batch that would end after this long, the first one excepted.
    batch
        Bounds of each batch.
    """

    wall_s: float = 2.0
    batch: Budget = field(default_factory=Budget)


def advance(
    *,
    cluster_id: int,
    holder: str | None = None,
    visit: Visit | None = None,
    memory: EngineMemory | None = None,
    now: Callable[[], datetime] = wall_now,
) -> AdvanceReport:
    """Visit one cluster: read inputs, run what was asked for, fire timers that are due.

    Safe to call twice, late, or from two workers at once: the rows say what there is to do, and one lease
    decides who does it.

    Parameters
    ----------
    cluster_id
        Primary key.
    holder
        Who we are, for people.
    visit
        How long to stay.
    memory
        Where engines are kept; this process's when None.
    now
        Wall clock of the pacing at 1x.
    """
    memory = ENGINES if memory is None else memory
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return AdvanceReport("gone")
    if cluster.is_parked:
        return AdvanceReport("parked")
    if not leases.has_work(cluster, now=now()):
        return AdvanceReport("idle")
    holder = holder or holder_name()
    try:
        lease = leases.claim(cluster_id, holder=holder)
        if lease is None:
            return AdvanceReport("held")
        if leases.park_if_failing(lease, now=now()):
            logger.error("cluster parked", extra={"cluster": cluster.public_id})
            return AdvanceReport("parked")
    except DatabaseError:
        # Perhaps it was taken before the connection broke, and its token is lost.
        _drop_broken_connection()
        leases.abandon(cluster_id, holder=holder)
        raise
    worker = _Visitor(lease, visit or Visit(), memory, now)
    try:
        worker.drive()
        worker.counts.flush(cluster_id)
    except Fenced:
        logger.warning("lease was taken over", extra={"cluster": cluster.public_id})
        return AdvanceReport("fenced", worker.cycles, worker.batches)
    except Exception as error:
        logger.exception("engine failed", extra={"cluster": cluster.public_id})
        # If it was the connection, a new one gives the lease back; else others would wait for it to run out.
        _drop_broken_connection()
        leases.release(lease, failed=f"{type(error).__name__}: {error}")
        return AdvanceReport("failed", worker.cycles, worker.batches)
    leases.release(lease)
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    more = cluster is not None and leases.has_work(cluster, now=now())
    return AdvanceReport("driven", worker.cycles, worker.batches, more)


def _drop_broken_connection() -> None:
    if not connection.in_atomic_block:  # the caller's transaction, as in tests
        connection.close_if_unusable_or_obsolete()


@dataclass(slots=True)
class _Visitor:
    """One visit with the lease in hand."""

    lease: Lease
    visit: Visit
    memory: EngineMemory
    now: Callable[[], datetime]
    cycles: int = 0
    batches: int = 0
    counts: Counts = field(default_factory=Counts)
    _n_nodes: int | None = None

    def drive(self) -> None:
        """Batches until there is nothing to do or the visit is over."""
        began = time.monotonic()
        cluster = self._anchored(Cluster.objects.get(pk=self.lease.cluster_id))
        driven = engine_of(cluster, self.memory)
        races = 0
        budget = self.visit.batch
        while True:
            # First of all, as the clock stands still for it; its answer is then among the unread entries.
            calls = driven.engine.calls()
            if calls:
                extender_calls.make_bind_calls(self.lease, calls, self._transport(cluster, driven))
                cluster = Cluster.objects.get(pk=self.lease.cluster_id)
            run = self._next_run(cluster)
            goal = self._goal(cluster, run)
            entries = unread(cluster, driven.engine.read_seq)
            reads_first = len(entries) >= CHECKPOINT_EVERY
            if reads_first:
                # Their checkpoint is due: before the first decision, which can then be made again from there.
                run, goal = None, Goal("read")
            if run is None and goal.until == "read" and not entries:
                break
            transport = self._transport(cluster, driven)
            batch_began_s = time.monotonic()
            result = driven.engine.drive(
                entries,
                goal,
                budget=budget,
                transport=transport,
                observe=self.counts.extension_point,
                n_bodies=self._n_bodies(cluster, run),
            )
            took_s = time.monotonic() - batch_began_s
            driven.unsaved_s += took_s
            if not (entries or result.ran["calls"] or run):
                break
            try:
                cluster = commit_batch(self.lease, driven, result, run=run, now=self.now())
            except Raced:
                # A client wrote an object this batch also wrote. As if the worker had died before its commit:
                # forget the batch and decide again with the newer object in view, in a smaller step.
                races += 1
                if races > MAX_RACES:
                    raise
                budget = Budget(wall_s=budget.wall_s, max_cycles=max(1, budget.max_cycles // 8))
                cluster = Cluster.objects.get(pk=self.lease.cluster_id)
                driven = load(cluster)
                continue
            self.cycles += len(result.cycles)
            self.batches += 1
            self.counts.batch(cluster, result, took_s)
            _say(cluster, result, took_s)
            done_s = time.monotonic()
            budget = next_budget(budget, self.visit.batch, done_s - batch_began_s, decided=not reads_first)
            if done_s + (done_s - batch_began_s) - began >= self.visit.wall_s:  # no time for another like it
                break
            if result.calls or not result.finished:
                continue
            if self._next_run(cluster) is None and not unread(cluster, driven.engine.read_seq):
                break
        self.memory.put(cluster.pk, driven)

    def _anchored(self, cluster: Cluster) -> Cluster:
        """The cluster with anchors that are right, anchored anew and saying so where they were not."""
        if new_anchor(cluster, self.now()) is None:
            return cluster
        with transaction.atomic():
            row = locked(cluster.pk)
            if row.lease_token != self.lease.token:
                raise Fenced
            anchor = new_anchor(row, self.now())
            if anchor is not None:
                row.virtual_anchor_ns, row.clock_note = anchor
                row.wall_anchor = self.now()
                row.version += 1
                row.save(update_fields=["virtual_anchor_ns", "wall_anchor", "clock_note", "version"])
        return row

    def _n_bodies(self, cluster: Cluster, run: Run | None) -> int:
        """Of how many cycles the next batch keeps everything."""
        if self._n_nodes is None:
            self._n_nodes = max(1, Node.objects.filter(cluster=cluster).count())
        if run is None:
            return max(1, BODY_ROWS_AT_1X // self._n_nodes)
        return max(0, max(1, BODY_ROWS // self._n_nodes) - run.cycles_done)

    def _transport(self, cluster: Cluster, driven: Driven) -> HttpTransport:
        return extender_calls.transport_for(cluster, self.lease, cycle=lambda: driven.engine.cycle)

    def _next_run(self, cluster: Cluster) -> Run | None:
        """The oldest open run, begun if it was queued; a cancelled one is closed on the way."""
        while True:
            run = Run.objects.filter(cluster=cluster, state__in=Run.OPEN).order_by("id").first()
            if run is None:
                return None
            if run.cancel_requested:
                Run.objects.filter(pk=run.pk, state__in=Run.OPEN).update(
                    state=Run.State.CANCELLED,
                    finished=self.now(),
                    stop="cancelled",
                    message=f"Cancelled after {run.cycles_done} cycles.",
                )
                continue
            return run

    def _goal(self, cluster: Cluster, run: Run | None) -> Goal:
        if run is None:
            if cluster.clock_mode == Cluster.ClockMode.REALTIME:
                return Goal("time", until_ns=virtual_now_ns(cluster, self.now()), max_cycles=1_000_000)
            return Goal("read")
        left = max(0, run.max_cycles - run.cycles_done)
        if run.until == Run.Until.TIME:
            start = cluster.now_ns if run.start_ns is None else run.start_ns
            until_ns = start + (run.duration_ns or 0)
            return Goal("time", until_ns=until_ns, max_cycles=left, cycles_before=run.cycles_done)
        if run.until == Run.Until.CYCLE:
            return Goal("cycle", max_cycles=left, cycles_before=run.cycles_done)
        start = cluster.now_ns if run.start_ns is None else run.start_ns
        return Goal("idle", until_ns=start + MAX_VIRTUAL_NS, max_cycles=left, cycles_before=run.cycles_done)


def next_budget(last: Budget, usual: Budget, took_s: float, *, decided: bool = True) -> Budget:
    """Bounds of the next batch, after one within `last` that took so long with its commit: shorter where that was too
    long, and longer again, up to `usual`, where there is time. A batch that `decided` nothing shows no progress of the
    run: the next one has what is left of `PROGRESS_S`."""
    left = min(2.0, PROGRESS_S / max(took_s, 0.001)) if decided else (PROGRESS_S - took_s) / PROGRESS_S
    return replace(last, wall_s=min(usual.wall_s, max(SHORTEST_BATCH_S, last.wall_s * left)))


def _say(cluster: Cluster, result: DriveResult, took_s: float) -> None:
    """Log every cycle (at debug) and the batch, each with cluster and cycle."""
    if logger.isEnabledFor(logging.DEBUG):
        for cycle in result.cycles:
            facts = {"cluster": cluster.public_id, "cycle": cycle.number, "pod": cycle.pod}
            logger.debug("%s", cycle.sentence, extra={**facts, "outcome": cycle.outcome, "node": cycle.node})
    if result.cycles:
        logger.info(
            "%d cycles in %.0f ms, stopped: %s",
            len(result.cycles),
            took_s * 1000,
            result.stop,
            extra={
                "cluster": cluster.public_id,
                "cycle": result.cycles[-1].number,
                "seq": cluster.engine_seq,
            },
        )


def engine_of(cluster: Cluster, memory: EngineMemory) -> Driven:
    """The engine at the cluster's committed state: the remembered one, or loaded; the memory has none then."""
    driven = memory.take(cluster)
    if driven is None or driven.engine_seq == cluster.engine_seq:
        return driven or load(cluster)
    return _caught_up(cluster, driven) or load(cluster)


def _caught_up(cluster: Cluster, driven: Driven) -> Driven | None:
    """A remembered engine that another worker has gone past, brought to where the cluster is now."""
    if cluster.engine_seq - driven.engine_seq > MAX_CATCH_UP:
        return None
    try:
        _go_on(cluster, driven.engine, driven.engine_seq, _waiting(cluster))
    except Exception:
        logger.exception("a remembered engine cannot go on", extra={"cluster": cluster.public_id})
        return None
    if driven.engine.lacking:
        return None
    return Driven(cluster.generation, cluster.engine_seq, driven.engine)


def load(cluster: Cluster) -> Driven:
    """The engine at the cluster's committed state: newest readable checkpoint, then the log after it."""
    engine, engine_seq = nearest(cluster, cluster.engine_seq)
    if engine_seq < cluster.engine_seq:
        waiting = _waiting(cluster)
        _go_on(cluster, engine, engine_seq, waiting)
        if engine.lacking:
            wanted = waiting | engine.lacking
            engine, engine_seq = nearest(cluster, cluster.engine_seq)
            _go_on(cluster, engine, engine_seq, wanted)
    return Driven(cluster.generation, cluster.engine_seq, engine)


def _go_on(cluster: Cluster, engine: Engine, engine_seq: int, wanted: Container[int]) -> None:
    entries = stretch(cluster, engine, engine_seq, cluster.engine_seq)
    engine.replay(entries, wanted=wanted, recorded=recorded(cluster))


def _waiting(cluster: Cluster) -> set[int]:
    """Cycles that wait at Permit or for their Binding, and go on with their traces: others are hardly ever under way
    between batches.
    """
    under_way = (Cycle.Outcome.WAITING, Cycle.Outcome.BINDING)
    cycles = Cycle.objects.filter(cluster=cluster, outcome__in=under_way)
    return set(cycles.values_list("number", flat=True))


def nearest(cluster: Cluster, engine_seq: int) -> tuple[Engine, int]:
    """The engine of the newest readable checkpoint at or before a `ran` entry, and that checkpoint's own."""
    checkpoints = Checkpoint.objects.filter(cluster=cluster, engine_seq__lte=engine_seq)
    for checkpoint in checkpoints.order_by("-engine_seq")[:3]:
        try:
            return Engine.restore(bytes(checkpoint.data)), checkpoint.engine_seq
        except Exception:
            logger.exception("checkpoint cannot be read", extra={"cluster": cluster.public_id})
    engine = Engine.new(
        config=initial_config(cluster),
        seed=cluster.seed,
        start_ns=cluster.start_ns,
        release=initial_release(cluster),
        mirrors=cluster.is_followed,
    )
    return engine, 0
