"""What must hold of a cluster when all is quiet, whatever happened to its site."""

import json
from collections import Counter
from typing import Any

from playground.engine.compressed import decompress
from tests.faults.people import CHANGE, REQUEST, Acknowledged

COMPARED = (
    *("number", "at_ns", "pod_namespace", "pod_name", "pod_uid", "outcome", "digest", "node", "message"),
    *("profile", "attempt", "n_nodes", "n_evaluated", "n_feasible", "failed_point", "failed_plugin"),
    *("nominated_node", "n_victims"),
)


def violations(cluster: Any, said: list[Acknowledged]) -> tuple[list[str], dict[str, int]]:
    """Everything that is wrong with a cluster at rest, and what was looked at."""
    from tests.clusters.invariants import validate
    from tests.faults.replay import replay

    try:
        again = replay(cluster)
    except Exception as error:
        return [f"its log cannot be replayed: {type(error).__name__}: {error}"], {}
    found = [*again.violations]
    if not found:
        found += _cycles(cluster, again)
        found += _queue(cluster, again)
        found += _counted(cluster, again)
        if cluster.now_ns != again.clock_ns:
            found.append(f"its clock is at {cluster.now_ns} instead of {again.clock_ns}")
        if cluster.next_deadline_ns != again.next_deadline_ns:
            found.append(f"its next deadline is {cluster.next_deadline_ns} and not {again.next_deadline_ns}")
    found += validate(cluster)
    found += _bound_twice(cluster)
    found += _gaps(cluster)
    resets = sum(one.resets for one in said)
    for one in said:
        found += _inputs(cluster, one, resets)
    seen = {"cycles": len(again.cycles), "events": again.n_events, "acts of programs": again.n_acts}
    return found, {**seen, "batches": again.n_batches}


def _cycles(cluster: Any, again: Any) -> list[str]:
    from playground.clusters.models import Cycle

    rows = {row.number: row for row in Cycle.objects.filter(cluster=cluster)}
    if sorted(rows) != sorted(again.cycles):
        different = sorted(set(rows) ^ set(again.cycles))
        return [f"cycles {different[:5]} are only among the {'rows' if different[0] in rows else 'replayed'}"]
    for number, wanted in again.cycles.items():
        row = rows[number]
        for name in COMPARED:
            if getattr(row, name) != getattr(wanted, name):
                have, other = getattr(row, name), getattr(wanted, name)
                return [f"cycle {number}: {name} is {have!r} instead of {other!r}"]
    return []


def _queue(cluster: Any, again: Any) -> list[str]:
    from playground.clusters.models import Pod, QueueSnapshot

    if not again.n_batches:
        return []
    found = []
    snapshot = QueueSnapshot.objects.get(cluster=cluster)
    kept = json.loads(decompress(bytes(snapshot.full)))
    if kept != json.loads(json.dumps(again.queue)):
        found.append(f"its queue is {_pods(kept)} instead of {_pods(again.queue)}")
    wanted = {item["pod"]: lane for lane, items in again.queue.items() for item in items}
    for namespace, name, lane in Pod.objects.filter(cluster=cluster).values_list("namespace", "name", "lane"):
        if wanted.get(f"{namespace}/{name}", "") != lane:
            found.append(f"pod {name} is in the lane {lane!r} and not {wanted.get(f'{namespace}/{name}')!r}")
    return found


def _counted(cluster: Any, again: Any) -> list[str]:
    """Equal events that are not about pods are one row with their number."""
    from playground.clusters.models import Event
    from tests.faults.replay import said

    told: Counter[tuple[str, ...]] = Counter()
    rows = Event.objects.filter(cluster=cluster).exclude(involved_kind="Pod")
    for manifest in rows.values_list("manifest", flat=True):
        told[said(manifest)] += int(manifest.get("count") or 1)
    differ = sorted(key for key in {*told, *again.counted} if told[key] != again.counted[key])
    return [f"event {key} was said {told[key]} times and not {again.counted[key]}" for key in differ[:3]]


def _pods(queue: dict[str, Any]) -> dict[str, list[str]]:
    return {lane: [item["pod"] for item in items] for lane, items in queue.items() if items}


def _bound_twice(cluster: Any) -> list[str]:
    from playground.clusters.models import Event, LogEntry

    found = []
    nodes: dict[str, str] = {}
    entries = LogEntry.objects.filter(cluster=cluster, kind="write", object_kind="Pod").order_by("seq")
    for payload in entries.values_list("payload", flat=True):
        manifest = payload["manifest"]
        uid, node = manifest["metadata"]["uid"], manifest["spec"].get("nodeName", "")
        before = nodes.get(uid, "")
        if before and node != before:
            name = manifest["metadata"]["name"]
            found.append(f"pod {name} was on {before} and then on {node or 'no node'}")
        nodes[uid] = node
    scheduled: dict[str, int] = {}
    events = Event.objects.filter(cluster=cluster, reason="Scheduled")
    for uid in events.values_list("involved_uid", flat=True):
        scheduled[uid] = scheduled.get(uid, 0) + 1
    return found + [f"pod {uid} was scheduled {n} times" for uid, n in scheduled.items() if n > 1]


def _gaps(cluster: Any) -> list[str]:
    from playground.clusters.models import Event, LogEntry

    seqs = sorted(
        [
            *LogEntry.objects.filter(cluster=cluster).values_list("seq", flat=True),
            *Event.objects.filter(cluster=cluster).values_list("resource_version", flat=True),
        ]
    )
    taken_back: set[int] = set()
    for undone in LogEntry.objects.filter(cluster=cluster, kind="undo").values_list("payload", flat=True):
        taken_back |= set(range(undone["from"], undone["to"] + 1))
    # The row of an event that is said again moves on.
    events = Event.objects.filter(cluster=cluster).values_list("manifest", flat=True)
    n_moved = sum(int(manifest.get("count") or 1) - 1 for manifest in events)
    missing = set(range(seqs[0], seqs[-1] + 1)) - {*seqs, *taken_back} if seqs else set()
    if len(missing) > n_moved:
        return ["sequence numbers have gaps"]
    if len(set(seqs)) != len(seqs):
        return ["sequence numbers repeat"]
    return [] if not seqs or seqs[-1] == cluster.last_seq else ["the newest sequence number has no entry"]


def _told(cluster: Any, name: str) -> str:
    """What the log has of a pod, to see where a label went."""
    from playground.clusters.models import LogEntry

    entries = LogEntry.objects.filter(cluster=cluster, object_kind="Pod", object_name=name).order_by("seq")
    return ", ".join(
        f"{entry.seq} {entry.source} {entry.kind} {entry.payload.get('reason') or ''}"
        f" {(entry.payload['manifest']['metadata'].get('labels') or {}).get(CHANGE)}"
        for entry in entries
    )


def _inputs(cluster: Any, said: Acknowledged, resets: int) -> list[str]:
    """What was acknowledged is there, once; what was asked for together is there together."""
    from playground.clusters.models import LogEntry

    found = [f"a request was refused: {words}" for words in said.refused]
    found += _pods(cluster, said, resets)
    if not resets:
        answered = LogEntry.objects.filter(cluster=cluster, kind="permit").values_list("seq", flat=True)
        lost = {int(seq) for seq in said.permits} - set(answered)
        if lost:
            found.append(f"answers for Permit were acknowledged as {sorted(lost)}, and are not in the log")
    return found + _runs(cluster, said, resets) + _questions(cluster, said, resets)


def _pods(cluster: Any, said: Acknowledged, resets: int) -> list[str]:
    from playground.clusters.models import LogEntry, Pod

    found = []
    created: dict[str, list[int]] = {}
    together: dict[str, dict[str, int]] = {}
    removed: set[str] = set()
    for entry in LogEntry.objects.filter(cluster=cluster, object_kind="Pod").order_by("seq"):
        if entry.kind == "delete":
            removed.add(entry.object_name)
        elif entry.source == "api" and entry.created:
            created.setdefault(entry.object_name, []).append(entry.seq)
            labels = entry.payload["manifest"]["metadata"].get("labels") or {}
            if REQUEST in labels:
                together.setdefault(labels[REQUEST], {})[entry.object_name] = entry.seq
    pods = {pod.name: pod for pod in Pod.objects.filter(cluster=cluster)}
    for name in sorted(said.pods):
        n_times = len(created.get(name, ()))
        if n_times > 1:
            found.append(f"pod {name} was created {n_times} times")
        if n_times == 0 and not (resets and name in said.deleted):
            found.append(f"pod {name} was acknowledged, and is not in the log")
        elif name not in pods and name not in removed and name not in said.deleted:
            found.append(f"pod {name} is lost")
    for request, names in said.together.items() if not resets else ():
        seqs = together.get(request, {})
        if set(seqs) != names:
            found.append(f"of request {request} only {sorted(seqs)} of {sorted(names)} were kept")
        elif sorted(seqs.values()) != list(range(min(seqs.values()), min(seqs.values()) + len(seqs))):
            found.append(f"request {request} was kept in parts")
    for name, value in said.changes.items():
        if name in pods and (pods[name].manifest["metadata"].get("labels") or {}).get(CHANGE) != value:
            found.append(f"pod {name} has lost its label {CHANGE}={value}: {_told(cluster, name)}")
    found += [
        f"the creation of pod {name} was undone, and it is there" for name in sorted(said.undone & set(pods))
    ]
    for name in sorted(said.deleted):
        if name in pods and not pods[name].manifest["metadata"].get("deletionTimestamp"):
            found.append(f"pod {name} was deleted, and is there")
    return found


def _runs(cluster: Any, said: Acknowledged, resets: int) -> list[str]:
    from playground.clusters.models import Run

    found = []
    runs = {str(row.public_id): row for row in Run.objects.filter(cluster=cluster)}
    for name in said.runs:
        run = runs.get(name)
        if run is None:
            found += [] if resets else [f"run {name} is lost"]
        elif run.state not in ("done", "cancelled") and not (
            run.state == "failed" and "the engine failed" in run.message
        ):
            found.append(f"run {name} is {run.state}: {run.message}")
    return found


def _questions(cluster: Any, said: Acknowledged, resets: int) -> list[str]:
    from playground.clusters.models import Question

    rows = list(Question.objects.filter(cluster=cluster))
    found = [
        f"question {row.public_id} is {row.state}"
        for row in rows
        if row.state not in ("done", "failed", "cancelled")
    ]
    there = {row.public_id for row in rows}
    return found + [f"question {one} is lost" for one in said.questions if one not in there and not resets]


def unrest(clusters: list[Any]) -> list[str]:
    """Why it is not quiet yet."""
    from playground.clusters.drive.lease import has_work
    from playground.clusters.models import Cluster, ExtenderCall, Job, Question, Run

    found = []
    for row in Cluster.objects.filter(pk__in=[cluster.pk for cluster in clusters]):
        words = []
        if row.is_parked:
            words.append(f"is parked: {row.parked_reason}")
        if row.last_input_seq > row.cursor_seq:
            words.append(f"has read {row.cursor_seq} of {row.last_input_seq}")
        open_runs = Run.objects.filter(cluster=row, state__in=Run.OPEN).count()
        if open_runs:
            words.append(f"has {open_runs} open runs")
        if ExtenderCall.objects.filter(cluster=row, state=ExtenderCall.State.INTENDED).exists():
            words.append("has bind calls without an answer")
        if row.lease_expires is not None:
            words.append(f"is leased to {row.lease_holder} (token {row.lease_token})")
        if not words and has_work(row):
            words.append("has work")
        n_open = Question.objects.filter(cluster=row, state__in=Question.OPEN).count()
        if n_open:
            words.append(f"has {n_open} questions without an answer")
        found += [f"{row.name} {word}" for word in words]
    waiting = Job.objects.exclude(task__startswith="tidy").exclude(task__endswith="ready_engine").count()
    if waiting:
        found.append(f"{waiting} pieces of work wait")
    return found
