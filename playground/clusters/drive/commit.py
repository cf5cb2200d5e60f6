"""One batch of an engine becomes rows: outcomes, cycles, queue, run and checkpoint in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from django.db import transaction

from playground.clusters import kinds
from playground.clusters.clock import REANCHOR_GAP_S, paced_ns, wall_seconds
from playground.clusters.drive import extender_calls
from playground.clusters.drive.lease import Fenced, Lease, renew
from playground.clusters.drive.memory import Driven
from playground.clusters.errors import NotFound
from playground.clusters.log.rows import in_parts, insert_rows, keep_newest, rows_of, upsert_rows
from playground.clusters.log.writer import LogWriter, ObjectKey, key_of, locked
from playground.clusters.models import (
    Checkpoint,
    Cluster,
    ControllerRecord,
    Cycle,
    EarlierCycle,
    Event,
    LogEntry,
    Pod,
    QueueMove,
    QueueSnapshot,
    Run,
)
from playground.clusters.objects.deletion import Gone, collect, delete_dependent
from playground.clusters.objects.updates import object_uid
from playground.engine.batch import DriveResult
from playground.engine.columns import is_forgotten
from playground.engine.compressed import compress, to_json
from playground.engine.entries import HEAD_ITEMS, CycleRecord
from playground.engine.entries import QueueMove as Move
from scheduler_core.scenario.bounds import DAY_NS, MAX_VIRTUAL_NS
from scheduler_core.sim.changes import ControllerRun, EventRecorded, ObjectDeleted, Outcome
from scheduler_core.sim.outlook import effect_of, mentioned
from scheduler_core.version import ENGINE_VERSION

_LOOKED_AT: Final = 200
"""So many of the newest events of the objects of a batch."""

_Sameness = tuple[str, ...]


class EventCounts:
    """What was said already, to be counted.

    Parameters
    ----------
    manifests
        The events of a batch.
    """

    def __init__(self, cluster: Cluster, manifests: Iterable[Mapping[str, Any]]) -> None:
        self._said: dict[_Sameness, Mapping[str, Any]] = {}
        about = [item.get("involvedObject") or {} for item in manifests if _is_counted(item)]
        if not about:
            return
        rows = Event.objects.filter(
            cluster=cluster,
            involved_namespace__in=sorted({str(item.get("namespace") or "") for item in about}),
            involved_name__in=sorted({str(item.get("name") or "") for item in about}),
        ).exclude(involved_kind="Pod")
        newest = rows.order_by("-resource_version").values_list("manifest", flat=True)[:_LOOKED_AT]
        for manifest in reversed(list(newest)):
            self._said[_sameness(manifest)] = manifest

    def counted(self, manifest: Mapping[str, Any], at_ns: int) -> Mapping[str, Any]:
        """The event, or the earlier one of the same words with one more in its count."""
        if not _is_counted(manifest):
            return manifest
        same = _sameness(manifest)
        earlier = self._said.get(same)
        if earlier is not None and not is_forgotten(earlier, at_ns):
            manifest = {
                **manifest,
                "metadata": dict(earlier["metadata"]),
                "firstTimestamp": earlier.get("firstTimestamp"),
                "count": int(earlier.get("count") or 1) + 1,
            }
        self._said[same] = manifest
        return manifest


def _is_counted(manifest: Mapping[str, Any]) -> bool:
    return (manifest.get("involvedObject") or {}).get("kind") != "Pod"


def _sameness(manifest: Mapping[str, Any]) -> _Sameness:
    about, source = manifest.get("involvedObject") or {}, manifest.get("source") or {}
    parts = [about.get(key) for key in ("kind", "namespace", "name", "uid")]
    parts += [manifest.get(key) for key in ("type", "reason", "message")]
    return tuple(str(part or "") for part in (*parts, source.get("component")))


CHECKPOINT_EVERY: Final = 1000
COSTLY_CHECKPOINT_MS: Final = 200
CHECKPOINT_SHARE: Final = 10
"""Within a run so many times as long is driven as the last checkpoint took."""
LARGE_CHECKPOINT_BYTES: Final = 25_000
"""For each of these a checkpoint kept for looking back stands for another thousand entries."""
LONGEST_STRETCH: Final = 10_000
"""Entries between two that are kept, at most: what changed in them is read with each cycle that is opened."""
_RECORDED: Final = tuple(item.name for item in fields(CycleRecord) if item.name != "permit_waits")
_recorded: Final = attrgetter(*_RECORDED)
_LASTING: Final = {"number", "at_ns", "pod_namespace", "pod_name", "pod_uid", "profile", "attempt"}
CYCLE_NEWS: Final = tuple(name for name in (*_RECORDED, "engine_version", "ran_seq") if name not in _LASTING)
"""What a cycle that went on changes in its row."""
CYCLE_COLUMNS: Final = ("cluster", *_RECORDED, "engine_version", "ran_seq", "repeats", "trace_note")
NO_LANE: Final = ("", "")


class Raced(Exception):
    """An object the batch wrote was written by a client since the batch read the log."""


def commit_batch(
    lease: Lease, driven: Driven, result: DriveResult, *, run: Run | None, now: datetime
) -> Cluster:
    """Keep a batch, all of it or nothing; returns the cluster's row as committed.

    Raises
    ------
    Fenced, Raced
        Nothing was kept; the engine in memory is ahead of the rows and must be thrown away.
    """
    data, took_ms = _checkpoint_data(lease, driven, result)
    with transaction.atomic():
        try:
            cluster = locked(lease.cluster_id)
        except NotFound:
            raise Fenced from None
        if cluster.lease_token != lease.token or cluster.generation != driven.generation:
            raise Fenced
        if cluster.engine_seq != driven.engine_seq:  # decided on a state that is no longer the committed one
            raise Fenced
        _refuse_races(cluster, result)
        began_ns = cluster.now_ns
        writer = LogWriter(cluster)
        _fold(writer, result.outcomes, _deleted_meanwhile(cluster, result))
        for answered in result.answered:
            writer.append(
                LogEntry.Source.API,
                LogEntry.Kind.EXTENDER,
                answered.payload,
                at_ns=result.clock_ns,
                cycle=answered.cycle,
            )
        engine_seq = writer.append(
            LogEntry.Source.ENGINE, LogEntry.Kind.RAN, result.ran, at_ns=result.clock_ns
        )
        _keep_earlier(cluster, result.cycles, engine_seq)
        # A cycle whose binding went on (a wait at Permit ended) comes again under its number.
        upsert_rows(
            Cycle,
            CYCLE_COLUMNS,
            [(cluster.pk, *_recorded(record), ENGINE_VERSION, engine_seq, 0, "") for record in result.cycles],
            identity=("cluster", "number"),
            update=CYCLE_NEWS,
        )
        n_new = sum(1 for record in result.cycles if record.number >= cluster.next_cycle)
        cluster.next_cycle += n_new
        _move_clock(cluster, result, now)
        cluster.cursor_seq = result.read_seq
        cluster.engine_seq = engine_seq
        cluster.failures = 0
        cluster.last_error = ""
        if data is not None:
            _keep_checkpoint(cluster, result, data, took_ms)
            cluster.entries_since_checkpoint = 0
        lanes = dict(result.queue.places)
        writer.lane_of = lambda namespace, name: lanes.get(f"{namespace}/{name}", NO_LANE)
        written = writer.pods()
        writer.flush()
        renew(lease)
        extender_calls.intend(cluster, result.calls)
        keep_moves(cluster, result.moves)
        keep_runs(cluster, result.runs)
        _keep_queue(cluster, driven, result, lanes, written)
        if run is not None:
            _move_run(run, result, n_new, began_ns, now)
    driven.lanes = lanes
    driven.engine_seq = engine_seq
    if data is not None:
        driven.unsaved_s = 0.0
    return cluster


def _checkpoint_data(lease: Lease, driven: Driven, result: DriveResult) -> tuple[bytes | None, int]:
    """The engine's state if one is due: every 1,000 entries, and where a run ends.

    A large cluster's is slow to make: within a run it is made where it is a tenth of the work, or where with another
    batch like this one too much would lie behind the newest; at its end where deciding again what came since would take
    longer.
    """
    since = (
        Cluster.objects.filter(pk=lease.cluster_id).values_list("entries_since_checkpoint", flat=True).first()
        or 0
    )
    newest_ms = (
        Checkpoint.objects.filter(cluster_id=lease.cluster_id)
        .order_by("-engine_seq")
        .values_list("took_ms", flat=True)
        .first()
    ) or 0
    decided = bool(result.ran["calls"])
    # What only mirrors never decides, and never ends to read.
    goes_on = decided or driven.engine.simulation.options.mirrors
    worth_ms = newest_ms if result.finished else CHECKPOINT_SHARE * newest_ms
    n_new = len(result.outcomes)
    due = since + n_new >= CHECKPOINT_EVERY and (
        not goes_on or driven.unsaved_s * 1000 >= worth_ms or since + 2 * n_new > LONGEST_STRETCH
    )
    ends = result.finished and decided
    if not due and not (ends and newest_ms < COSTLY_CHECKPOINT_MS):
        return None, 0
    began = time.monotonic()
    data = driven.engine.checkpoint()
    return data, round((time.monotonic() - began) * 1000)


def _refuse_races(cluster: Cluster, result: DriveResult) -> None:
    if cluster.last_input_seq <= result.read_seq:
        return
    newer = LogEntry.objects.filter(
        cluster=cluster, source=LogEntry.Source.API, seq__gt=result.read_seq
    ).exclude(object_kind="")
    theirs = set(newer.values_list("object_kind", "object_namespace", "object_name"))
    if not theirs:
        return
    if any(not isinstance(item, EventRecorded) and _key(item) in theirs for item in result.outcomes):
        raise Raced


def _key(outcome: Outcome) -> ObjectKey:
    if isinstance(outcome, ObjectDeleted):
        kind = kinds.by_kind(outcome.kind)
        namespaced = kind is not None and kind.namespaced
        return (outcome.kind, (outcome.namespace or "default") if namespaced else "", outcome.name)
    kind = kinds.by_kind(outcome.manifest["kind"])
    if kind is None:
        raise ValueError(f"the engine wrote a {outcome.manifest['kind']}, which is no kind of ours")
    return key_of(kind, outcome.manifest)


def _deleted_meanwhile(cluster: Cluster, result: DriveResult) -> set[tuple[ObjectKey, str]]:
    """Objects the API deleted among the inputs of this batch, by key and uid.

    The engine may have written one of them at a time before its deletion; to the API server it is gone already.
    """
    if result.read_seq <= cluster.cursor_seq:
        return set()
    entries = LogEntry.objects.filter(
        cluster=cluster,
        source=LogEntry.Source.API,
        kind=LogEntry.Kind.DELETE,
        seq__gt=cluster.cursor_seq,
        seq__lte=result.read_seq,
    )
    return {
        (
            (entry.object_kind, entry.object_namespace, entry.object_name),
            entry.payload["manifest"]["metadata"].get("uid") or "",
        )
        for entry in entries
        if entry.payload.get("gone")
    }


def _fold(writer: LogWriter, outcomes: Sequence[Outcome], deleted: set[tuple[ObjectKey, str]]) -> None:
    """Outcomes become entries and rows, in order; what is about a deleted object comes too late."""
    keyed = [(outcome, _key(outcome)) for outcome in outcomes]
    there = _stored(writer.cluster, keyed)
    gone: list[Gone] = []
    counts = EventCounts(
        writer.cluster, [outcome.manifest for outcome in outcomes if isinstance(outcome, EventRecorded)]
    )
    for outcome, key in keyed:
        kind = kinds.named(key[0])
        when: dict[str, Any] = {"at_ns": outcome.at_ns, "cycle": outcome.cycle or None}
        if isinstance(outcome, ObjectDeleted):
            last = there.pop(key, None)
            if last is None:
                continue
            writer.delete(LogEntry.Source.ENGINE, kind, last, reason=outcome.reason, **when)
            if kind.row_kind != "Pod":
                gone.append((kind, key[1], str(last["metadata"].get("uid") or "")))
            continue
        manifest = outcome.manifest
        if (key, manifest["metadata"].get("uid") or "") in deleted:
            continue
        reason = ""
        if isinstance(outcome, EventRecorded):
            manifest = counts.counted(manifest, outcome.at_ns)
            if not manifest["metadata"].get("uid"):
                uid = object_uid(writer.cluster.seed, *key, writer.cluster.next_seq)
                manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}
        else:
            reason = outcome.reason
        there[key] = writer.write(
            LogEntry.Source.ENGINE, kind, manifest, created=key not in there, reason=reason, **when
        )
    collect(writer, gone, delete_dependent)


def _stored(cluster: Cluster, keyed: list[tuple[Outcome, ObjectKey]]) -> dict[ObjectKey, dict[str, Any]]:
    """The objects there are of those the batch writes, with the manifests of those it deletes."""
    wanted: dict[tuple[str, str], set[str]] = {}
    deleted = {key for outcome, key in keyed if isinstance(outcome, ObjectDeleted)}
    for _, (kind_name, namespace, name) in keyed:
        wanted.setdefault((kind_name, namespace), set()).add(name)
    stored: dict[ObjectKey, dict[str, Any]] = {}
    for (kind_name, namespace), names in wanted.items():
        kind = kinds.named(kind_name)
        for part in in_parts(sorted(names)):
            rows = rows_of(cluster, kind).filter(name__in=part)
            if kind.namespaced:  # so that the unique index serves
                rows = rows.filter(namespace=namespace)
            stored |= {(kind_name, namespace, name): {} for name in rows.values_list("name", flat=True)}
            going = [name for name in part if (kind_name, namespace, name) in deleted]
            if going:
                for manifest in rows.filter(name__in=going).values_list("manifest", flat=True):
                    stored[key_of(kind, manifest)] = manifest
    return stored


def _keep_earlier(cluster: Cluster, cycles: Sequence[CycleRecord], engine_seq: int) -> None:
    """Earlier forms of the cycles that this batch changes, for an undo."""
    numbers = [record.number for record in cycles if record.number < cluster.next_cycle]
    columns = [name for name in CYCLE_NEWS if name != "trace"]
    for part in in_parts(numbers):
        rows = Cycle.objects.filter(cluster=cluster, number__in=part)
        EarlierCycle.objects.bulk_create(
            EarlierCycle(
                cluster=cluster,
                number=row.number,
                replaced_seq=engine_seq,
                news={name: getattr(row, name) for name in columns},
                trace=row.trace,
            )
            for row in rows
        )


def _move_clock(cluster: Cluster, result: DriveResult, now: datetime) -> None:
    # A follower moves the clock of a live cluster on while the engine reads what came before.
    cluster.now_ns = max(result.clock_ns, cluster.now_ns if cluster.is_followed else 0)
    cluster.next_deadline_ns, cluster.next_deadline_what = (
        (result.next_deadline[0], result.next_deadline[1][:200]) if result.next_deadline else (None, "")
    )
    if cluster.clock_mode != Cluster.ClockMode.REALTIME:
        return
    if result.queue.head.get("active") or not result.finished:
        # At 1x no request asks for cycles: while pods can be tried, the next moment of interest is now.
        cluster.next_deadline_ns, cluster.next_deadline_what = result.clock_ns, "the next cycle"
    behind_s = wall_seconds(cluster, paced_ns(cluster, now) - result.clock_ns)
    if behind_s > REANCHOR_GAP_S:
        cluster.clock_note = f"The clock was set back by {behind_s:.0f} s: the engine was busy for so long."
    if behind_s > REANCHOR_GAP_S or behind_s < 0:  # a run may have jumped ahead of the wall clock
        cluster.wall_anchor, cluster.virtual_anchor_ns = now, result.clock_ns


def _keep_checkpoint(cluster: Cluster, result: DriveResult, data: bytes, took_ms: int) -> None:
    """Keep the newest, and as many for looking back that a thousand entries lie between two; of large ones fewer.

    The newest of before stays where else more would lie between. So does the first of all, and the one after an import.
    """
    stretch = min(LONGEST_STRETCH, CHECKPOINT_EVERY * max(1, len(data) // LARGE_CHECKPOINT_BYTES))
    newest = list(Checkpoint.objects.filter(cluster=cluster).only("engine_seq").order_by("-engine_seq")[:2])
    if len(newest) == 2 and cluster.engine_seq - newest[1].engine_seq <= stretch:
        newest[0].delete()
    Checkpoint.objects.create(
        cluster=cluster,
        engine_seq=cluster.engine_seq,
        cursor_seq=result.read_seq,
        now_ns=result.clock_ns,
        engine_version=ENGINE_VERSION,
        data=data,
        took_ms=took_ms,
    )


def _keep_queue(
    cluster: Cluster,
    driven: Driven,
    result: DriveResult,
    lanes: Mapping[str, tuple[str, str]],
    written: set[tuple[str, str]],
) -> None:
    """The queue as pages read it, and each pending pod's lane on its row: of those that changed, and were not `written`
    with their lane just now."""
    queue = result.queue
    counts = queue.counts()
    snapshot: dict[str, Any] = {
        "engine_seq": cluster.engine_seq,
        "at_ns": result.clock_ns,
        "head": {
            "at_ns": result.clock_ns,
            "lanes": {
                lane: {"count": counts[lane], "items": items[:HEAD_ITEMS]}
                for lane, items in queue.head.items()
            },
            "rejectors": queue.rejectors,
        },
    }
    if queue.whole is not None:
        snapshot |= {"full": compress(to_json(queue.whole)), "full_seq": cluster.engine_seq}
    if not QueueSnapshot.objects.filter(cluster=cluster).update(**snapshot):
        nothing = {"full": compress(b"{}"), "full_seq": 0}
        QueueSnapshot.objects.create(cluster=cluster, **{**nothing, **snapshot})
    before = driven.lanes
    if before is None:
        stored = Pod.objects.filter(cluster=cluster).exclude(lane="")
        before = {
            f"{namespace}/{name}": (lane, node)
            for namespace, name, lane, node in stored.values_list(
                "namespace", "name", "lane", "reserved_node"
            )
        }
    changed: dict[tuple[str, str, str], list[str]] = {}
    for pod in [*lanes, *(pod for pod in before if pod not in lanes)]:
        place = lanes.get(pod, NO_LANE)
        namespace, _, name = pod.partition("/")
        if before.get(pod, NO_LANE) != place and (namespace, name) not in written:
            changed.setdefault((*place, namespace), []).append(name)
    for (lane, node, namespace), names in changed.items():
        for part in in_parts(names):
            pods = Pod.objects.filter(cluster=cluster, namespace=namespace, name__in=part)
            pods.update(lane=lane, reserved_node=node)


def _move_run(run: Run, result: DriveResult, n_new: int, began_ns: int, now: datetime) -> None:
    """How far the run is; a run that was cancelled or failed meanwhile stays so."""
    before = dict(vars(run))
    counts = result.queue.counts()
    to_try = counts["active"] + counts["backoff"]
    if run.started is None:
        run.started = now
        run.start_ns = began_ns
        # A pod that was tried and waits to be tried again is one pod.
        waiting = result.queue.pods("active", "backoff")
        tried = [f"{cycle.pod_namespace}/{cycle.pod_name}" for cycle in result.cycles]
        run.pending_at_start = len({*waiting, *tried})
    run.attempts += 1
    run.cycles_done += n_new
    run.pods_bound += sum(1 for cycle in result.cycles if cycle.outcome == Cycle.Outcome.BOUND)
    run.pending_now = to_try + counts["unschedulable"] + counts["permit"] + counts["binding"]
    run.clock_ns = result.clock_ns
    run.state = Run.State.RUNNING
    if result.finished:
        run.state = Run.State.DONE
        run.finished = now
        run.stop = result.stop
        run.message = result.message
        if run.until == Run.Until.IDLE and result.stop == "time":
            run.message = (
                f"Stopped at its bound of {MAX_VIRTUAL_NS // DAY_NS} days of virtual time, not idle yet."
            )
    elif run.cycles_done >= run.max_cycles:
        run.state = Run.State.DONE
        run.finished = now
        run.stop = "budget"
        run.message = f"Stopped at its bound of {run.max_cycles} cycles."
    columns = {name: value for name, value in vars(run).items() if value != before[name]}
    Run.objects.filter(pk=run.pk, state__in=Run.OPEN).update(**columns)


MOST_OF_A_BATCH: Final = 1000
MOST_OF_A_CLUSTER: Final = 20_000
TRIM_EVERY: Final = 500
_OF_MOVE: Final = {
    field.name: field.max_length
    for field in QueueMove._meta.concrete_fields
    if field.max_length and hasattr(Move, field.name)
}


def keep_moves(cluster: Cluster, moves: Sequence[Move]) -> None:
    """Store the queue moves of pods; a pod's removal for a cycle is in the cycle.

    A batch with too many keeps first those that moved a pod that had been tried, then new pods, then events
    without effect; the oldest of the cluster go when there are too many.
    """
    telling = [move for move in moves if move.target not in ("inFlight", "gone")]
    for is_dispensable in (lambda move: move.source == move.target, lambda move: not move.source):
        if len(telling) > MOST_OF_A_BATCH:
            telling = _thinned(telling, is_dispensable)
    kept = telling[:MOST_OF_A_BATCH]
    insert_rows(
        QueueMove,
        [
            {
                "cluster": cluster.pk,
                "ran_seq": cluster.engine_seq,
                "pod_namespace": move.pod.partition("/")[0],
                "pod_name": move.pod.partition("/")[2],
                "pod_uid": move.uid,
                "at_ns": move.at_ns,
                **{column: str(getattr(move, column))[:most] for column, most in _OF_MOVE.items()},
            }
            for move in kept
        ],
    )
    if kept and cluster.engine_seq % TRIM_EVERY < len(kept):
        keep_newest(QueueMove.objects.filter(cluster=cluster), MOST_OF_A_CLUSTER)


MOST_RUNS_OF_A_CLUSTER: Final = 2_000


def keep_runs(cluster: Cluster, runs: Sequence[ControllerRun]) -> None:
    """Store what controllers decided; the oldest of the cluster go when there are too many."""
    kept = runs[-MOST_RUNS_OF_A_CLUSTER:]
    ControllerRecord.objects.bulk_create(
        ControllerRecord(
            cluster=cluster,
            ran_seq=cluster.engine_seq,
            at_ns=run.at_ns,
            controller=run.controller,
            subject=run.subject,
            effect=effect_of(run),
            did=[[act.what, act.why, act.plugin, act.effect, act.facts] for act in run.did],
            why_not=run.why_not,
            mentions="\n".join(["", *mentioned(run), ""]),
        )
        for run in kept
    )
    if kept and cluster.engine_seq % TRIM_EVERY < len(kept):
        keep_newest(ControllerRecord.objects.filter(cluster=cluster), MOST_RUNS_OF_A_CLUSTER)


def _thinned(moves: list[Move], is_dispensable: Callable[[Move], bool]) -> list[Move]:
    room = MOST_OF_A_BATCH - sum(not is_dispensable(move) for move in moves)
    kept = []
    for move in moves:
        if is_dispensable(move):
            room -= 1
            if room < 0:
                continue
        kept.append(move)
    return kept
