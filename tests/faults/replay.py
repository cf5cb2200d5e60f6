"""A cluster's log replayed by itself: only its inputs and the calls of its `ran` entries are believed."""

import heapq
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from playground.clusters import kinds
from playground.clusters.log.entries import initial_config, initial_release
from playground.clusters.models import Checkpoint, Cluster, Event, LogEntry
from playground.engine.batch import Engine, checkpoint_document, read
from playground.engine.entries import CycleRecord, Entry
from scheduler_core.sim.changes import EventRecorded, ObjectDeleted, Outcome

Key = tuple[str, str, str]


@dataclass
class Replayed:
    """What the log must have led to."""

    violations: list[str] = field(default_factory=list)
    cycles: dict[int, CycleRecord] = field(default_factory=dict)
    queue: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    clock_ns: int = 0
    next_deadline_ns: int | None = None
    n_events: int = 0
    n_acts: int = 0
    """Lines of what autoscalers and the descheduler did."""
    counted: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Events that are not about pods by what they say: equal ones are one row that counts them, the newest."""
    n_batches: int = 0
    read_seq: int = 0


def replay(cluster: Cluster) -> Replayed:
    """Decide the log again and compare every entry the engine wrote, Events too, with what it should have written."""
    found = Replayed()
    engine = Engine.new(
        config=initial_config(cluster),
        seed=cluster.seed,
        start_ns=cluster.start_ns,
        release=initial_release(cluster),
    )
    simulation, relay = engine.simulation, engine._relay
    simulation.keep_full_traces(True)
    kept = {row.engine_seq: bytes(row.data) for row in Checkpoint.objects.filter(cluster=cluster)}
    world = _World()
    waiting: list[Entry] = []
    for batch in _batches(cluster):
        if batch.ran is None:
            for row in batch.inputs:
                world.fold(row)
            found.read_seq = max(found.read_seq, 0)
            waiting += [_entry(row) for row in batch.inputs]
            if batch.outcomes or batch.answers:
                found.violations.append("outcomes stand behind the last batch's end")
            break
        found.n_batches += 1
        read_seq = batch.ran.payload["read"]
        waiting += [_entry(row) for row in batch.inputs]
        deleted = world.deleted_between(found.read_seq, read_seq, batch.inputs)
        overwritten = _unread(waiting, read_seq)
        for row in batch.inputs:
            world.fold(row)
        relay.replay([row.payload for row in batch.answers])
        read(simulation, [entry for entry in waiting if entry.seq <= read_seq])
        waiting = [entry for entry in waiting if entry.seq > read_seq]
        found.read_seq = read_seq
        for name, argument, max_cycles in batch.ran.payload["calls"]:
            _call(simulation, name, argument, max_cycles)
        relay.end_replay()
        for record in engine._cycles():
            found.cycles[record.number] = record
        simulation.drain_moves()
        found.n_acts += sum(len(run.did) for run in simulation.drain_runs())
        expected = world.expected(simulation.drain_outcomes(), deleted)
        found.n_events += sum(row.kind == "event" for row in batch.outcomes)
        expected, counted = _apart(expected)
        found.counted += counted
        difference = _difference(expected, batch.outcomes)
        if difference:
            found.violations.append(f"batch {batch.ran.seq}: {difference}")
        for row in batch.outcomes:
            key = (row.object_kind, row.object_namespace, row.object_name)
            if row.kind != "event" and key in overwritten:
                found.violations.append(
                    f"entry {row.seq} writes {'/'.join(key)} over input {overwritten[key]}, which was not read"
                )
            world.fold(row)
        if simulation.now_ns != batch.ran.payload["clock_ns"]:
            found.violations.append(f"batch {batch.ran.seq} ends at another time")
        if batch.ran.seq in kept:
            wrong = _checkpoint_differs(kept.pop(batch.ran.seq), simulation.checkpoint(), read_seq)
            if wrong:
                found.violations.append(f"the checkpoint at {batch.ran.seq} is wrong: {wrong}")
        if found.violations:
            return found  # all that follows differs too
    if kept:
        found.violations.append(f"checkpoints stand at {sorted(kept)}, where no batch ends")
    try:
        simulation.validate()
    except AssertionError as error:
        found.violations.append(f"after the last batch {error}")
    found.queue = simulation.queue_view()
    found.clock_ns = simulation.now_ns
    deadline = simulation.next_deadline()
    found.next_deadline_ns = None if deadline is None else deadline.at_ns
    return found


@dataclass
class _Batch:
    inputs: list[LogEntry] = field(default_factory=list)
    outcomes: list[LogEntry] = field(default_factory=list)
    answers: list[LogEntry] = field(default_factory=list)
    ran: LogEntry | None = None


def _batches(cluster: Cluster) -> Iterator[_Batch]:
    """The log by batches; the last one has no `ran` entry."""
    batch = _Batch()
    for row in _rows(cluster):
        if row.kind == "ran":
            batch.ran = row
            yield batch
            batch = _Batch()
        elif row.kind == "extender" and row.cycle is not None:
            batch.answers.append(row)
        elif row.source == "engine":
            batch.outcomes.append(row)
        else:
            batch.inputs.append(row)
    yield batch


def _rows(cluster: Cluster) -> Iterator[LogEntry]:
    """The entries, and each Event as if it were one, in order."""
    entries = LogEntry.objects.filter(cluster=cluster).order_by("seq").iterator(2000)
    events = Event.objects.filter(cluster=cluster, involved_kind="Pod").order_by("resource_version")
    told = (
        LogEntry(
            seq=event.resource_version,
            source="engine",
            kind="event",
            at_ns=event.at_ns,
            object_kind="Event",
            object_namespace=event.namespace,
            object_name=event.name,
            created=True,
            payload={"manifest": event.manifest},
        )
        for event in events.iterator(2000)
    )
    return heapq.merge(entries, told, key=lambda row: row.seq)


class _World:
    """The objects a reader of the log knows, and what the engine's drafts become among them."""

    def __init__(self) -> None:
        self.there: set[Key] = set()
        self._gone: list[tuple[int, Key, str]] = []

    def fold(self, row: LogEntry) -> None:
        if not row.object_kind:
            return
        key = (row.object_kind, row.object_namespace, row.object_name)
        if row.kind == "delete" and row.payload["gone"]:
            self.there.discard(key)
            if row.source == "api":
                uid = row.payload["manifest"]["metadata"].get("uid") or ""
                self._gone.append((row.seq, key, uid))
        else:
            self.there.add(key)

    def deleted_between(self, after: int, to: int, inputs: list[LogEntry]) -> set[tuple[Key, str]]:
        """What was deleted among the inputs of a batch: what the engine wrote of it comes too late."""
        gone = list(self._gone)
        gone += [
            (
                row.seq,
                (row.object_kind, row.object_namespace, row.object_name),
                row.payload["manifest"]["metadata"].get("uid") or "",
            )
            for row in inputs
            if row.kind == "delete" and row.payload["gone"]
        ]
        return {(key, uid) for seq, key, uid in gone if after < seq <= to}

    def expected(self, drafts: Any, deleted: set[tuple[Key, str]]) -> list[tuple[Any, ...]]:
        """The entries that these drafts are to become."""
        there = set(self.there)
        entries: list[tuple[Any, ...]] = []
        for draft in drafts:
            key = _key(draft)
            if isinstance(draft, ObjectDeleted):
                if key in there:
                    there.discard(key)
                    entries.append(("delete", key, draft.at_ns, draft.cycle or None, False, None))
                continue
            manifest = draft.manifest
            is_event = isinstance(draft, EventRecorded)
            if (key, manifest["metadata"].get("uid") or "") in deleted:
                continue
            entries.append(
                (
                    "event" if is_event else "write",
                    key,
                    # An Event's eventTime has microseconds.
                    draft.at_ns // 1000 * 1000 if is_event else draft.at_ns,
                    None if is_event else draft.cycle or None,
                    key not in there,
                    _plain(manifest, key[0]),
                )
            )
            there.add(key)
        return entries


def _apart(expected: list[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], Counter[tuple[str, ...]]]:
    """Entries that are to come in their order, and of events that are counted how many say the same."""
    kept, counted = [], Counter[tuple[str, ...]]()
    for entry in expected:
        event = json.loads(entry[5]) if entry[0] == "event" else None
        if event is None or event["involvedObject"]["kind"] == "Pod":
            kept.append(entry)
        else:
            counted[said(event)] += 1
    return kept, counted


def said(event: dict[str, Any]) -> tuple[str, ...]:
    """What equal events have in common."""
    about = event["involvedObject"]
    return (about["kind"], about["name"], about.get("uid") or "", event["reason"], event["message"])


def _key(draft: Outcome) -> Key:
    where = (
        {"namespace": draft.namespace, "name": draft.name}
        if isinstance(draft, ObjectDeleted)
        else draft.manifest["metadata"]
    )
    name = draft.kind if isinstance(draft, ObjectDeleted) else draft.manifest["kind"]
    kind = kinds.by_kind(name)
    assert kind is not None
    return (name, (where.get("namespace") or "default") if kind.namespaced else "", where["name"])


def _plain(manifest: dict[str, Any], kind: str) -> str:
    """A manifest without what only the database gives."""
    dropped = {"resourceVersion", "uid"} if kind == "Event" else {"resourceVersion"}
    meta = {name: value for name, value in manifest["metadata"].items() if name not in dropped}
    return json.dumps({**manifest, "metadata": meta}, sort_keys=True)


def _difference(expected: list[tuple[Any, ...]], rows: list[LogEntry]) -> str:
    found = [
        (
            row.kind,
            (key := (row.object_kind, row.object_namespace, row.object_name)),
            row.at_ns,
            row.cycle,
            row.created,
            None if row.kind == "delete" else _plain(row.payload["manifest"], key[0]),
        )
        for row in rows
    ]
    for wanted, have in zip(expected, found, strict=False):
        if wanted != have:
            return f"{_shown(have)} instead of {_shown(wanted)}"
    if len(expected) > len(found):
        return f"{len(expected) - len(found)} entries are missing, the first: {_shown(expected[len(found)])}"
    if len(expected) < len(found):
        return f"{len(found) - len(expected)} entries too many, the first: {_shown(found[len(expected)])}"
    return ""


def _shown(entry: tuple[Any, ...]) -> str:
    kind, key, at_ns, cycle, created, manifest = entry
    reason = json.loads(manifest).get("reason", "") if manifest else ""
    return f"{kind} {'/'.join(key)} {reason} of cycle {cycle} at {at_ns}{' (new)' if created else ''}"


def _unread(entries: list[Entry], read: int) -> dict[Key, int]:
    """Objects written by people after what a batch has read: key -> sequence number."""
    found: dict[Key, int] = {}
    for entry in entries:
        if entry.seq <= read or entry.kind not in ("write", "delete"):
            continue
        manifest = entry.payload["manifest"]
        kind = kinds.by_kind(manifest["kind"])
        assert kind is not None
        meta = manifest["metadata"]
        namespace = (meta.get("namespace") or "default") if kind.namespaced else ""
        found[(manifest["kind"], namespace, meta["name"])] = entry.seq
    return found


def _call(simulation: Any, name: str, argument: int, max_cycles: int) -> None:
    if name == "step":
        simulation.step()
    elif name == "idle":
        simulation.run_until_idle(max_cycles=max_cycles, until_ns=argument or None)
    else:
        simulation.advance(argument, max_cycles=max_cycles)


def _checkpoint_differs(data: bytes, wanted: dict[str, Any], read: int) -> str:
    document = checkpoint_document(data)
    if document["readSeq"] != read:
        return f"it has read {document['readSeq']}, the batch {read}"
    have = document["simulation"]
    wanted = json.loads(json.dumps(wanted))
    for name in sorted({*wanted, *have}):
        left, right = wanted.get(name), have.get(name)
        if name == "bindings":  # of whose traces a replay may keep more
            left, right = ([{**item, "trace": ""} for item in side] for side in (left, right))
        if left != right:
            return f"{name} is {json.dumps(right)[:200]} instead of {json.dumps(left)[:200]}"
    return ""


def _entry(row: LogEntry) -> Entry:
    return Entry(row.seq, row.source, row.kind, row.at_ns, row.payload, row.cycle)
