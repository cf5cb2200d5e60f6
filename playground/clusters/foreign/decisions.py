"""Other schedulers' decisions: written down as they come, in the write that tells them, and judged later by a worker.

A decision's author is the client that posts a Binding, and a scheduler by its User-Agent. Writing down costs one row;
judging reads the log from the nearest checkpoint on, many decisions in one go (`engine.judging`).
"""

import time
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from django.db.models import F, Q

from playground.clusters.choices import DecisionKind
from playground.clusters.log.changes import author
from playground.clusters.log.entries import entries_of, initial_config, initial_release
from playground.clusters.log.rows import keep_newest
from playground.clusters.log.writer import LogWriter
from playground.clusters.models import Checkpoint, Cluster, ForeignDecision, LogEntry, Pod
from playground.engine.batch import start_of
from scheduler_core.objects.fields import format_seconds
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.judge import Asked, Judgement, Start, judged

SAME_MOVE_ENTRIES: Final = 500
"""A nomination and the evictions for it are at most so many entries apart."""
CHUNK: Final = 200
"""Decisions that are judged in one turn, at most, and for so long:"""
CHUNK_S: Final = 5.0
LONGEST_BURST: Final = 64
KEPT: Final = 5000
"""Decisions of a cluster that are kept, the newest."""

_asked: Final = attrgetter(
    "judged_seq", "pk", "burst_seq", "at_ns", "kind", "pod_namespace", "pod_name", "pod_uid", "node"
)
"""Columns of a decision, in the order of `Asked`."""
_SAME: Final = ("verdict", "outcome", "points", "our_points", "n_tied", "plugin", "score", "our_score")
"""What a decision's row calls as a judgement does."""
BURSTS: Final = (DecisionKind.BIND, DecisionKind.NO_NODE)

Report = Callable[[int, int, str], None]


# ---- writing down


def decider(cluster: Cluster) -> str:
    """The author of this request, if it is a scheduler: its name says so, or it has bound pods here. Else empty."""
    name = author()
    if not name:
        return ""
    if "scheduler" in name.partition("/")[0].casefold():
        return name
    bound = ForeignDecision.objects.filter(cluster=cluster, author=name, kind=DecisionKind.BIND)
    return name if bound.exists() else ""


def note_bound(writer: LogWriter, row: Pod, node: str) -> str:
    """A Binding is about to be written: whose decision it is. That of a bind extender of ours tells our own: empty."""
    if row.lane == Pod.Lane.BINDING or not author():
        return ""
    cluster = writer.cluster
    seq, name = cluster.next_seq, author()
    evicted = _evicted(cluster, name, node, seq)
    if evicted:
        # It made room without a nomination.
        _keep(writer, DecisionKind.PREEMPT, row, name, node, victims=evicted)
    _keep(writer, DecisionKind.BIND, row, name, node)
    return name


def note_status(writer: LogWriter, row: Pod, new: Mapping[str, Any]) -> str:
    """A pod's status is about to be written: by which scheduler, if one says that it found no node, or nominates it."""
    name = decider(writer.cluster)
    if not name or row.node_name or row.lane == Pod.Lane.BINDING:
        return name
    before, after = row.manifest.get("status") or {}, new.get("status") or {}
    condition = _unscheduled(after)
    nominated = after.get("nominatedNodeName") or ""
    is_news = nominated and nominated != (before.get("nominatedNodeName") or "")
    if condition is None or (not is_news and condition == _unscheduled(before)):
        return name
    message = str(condition.get("message") or "")
    if is_news:
        evicted = _evicted(writer.cluster, name, nominated, writer.cluster.next_seq)
        _keep(writer, DecisionKind.PREEMPT, row, name, nominated, victims=evicted, message=message)
    else:
        _keep(writer, DecisionKind.NO_NODE, row, name, "", message=message)
    return name


def on_our_clock(row: Pod, new: dict[str, Any], at_ns: int) -> dict[str, Any]:
    """A status as a scheduler writes it, with the cluster's time in conditions that came or changed: not a wall's."""
    before = {item.get("type"): item for item in (row.manifest.get("status") or {}).get("conditions") or ()}
    status = dict(new.get("status") or {})
    conditions = []
    for item in status.get("conditions") or ():
        known = before.get(item.get("type"))
        if known is None or known.get("status") != item.get("status"):
            item = {**item, "lastTransitionTime": format_seconds(at_ns)}
        elif "lastTransitionTime" in known:
            item = {**item, "lastTransitionTime": known["lastTransitionTime"]}
        conditions.append(item)
    return new | {"status": status | ({"conditions": conditions} if conditions else {})}


def note_evicted(writer: LogWriter, row: Pod) -> str:
    """A pod is about to be deleted: by which scheduler, if by one; that is for another pod."""
    name = decider(writer.cluster)
    if not name or not row.node_name or row.terminating:
        return name
    seq = writer.cluster.next_seq
    about = (
        ForeignDecision.objects.filter(
            cluster=writer.cluster,
            author=name,
            kind=DecisionKind.PREEMPT,
            node=row.node_name,
            seq__gt=seq - SAME_MOVE_ENTRIES,
        )
        .order_by("-seq")
        .first()
    )
    if about is None:
        _keep(writer, DecisionKind.EVICT, row, name, row.node_name)
        return name
    about.victims = [*about.victims, f"{row.namespace}/{row.name}"]
    about.verdict = ""
    about.save(update_fields=["victims", "verdict"])
    return name


def _unscheduled(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The condition that says no node was found, without its times."""
    for item in status.get("conditions") or ():
        if item.get("type") == "PodScheduled" and item.get("status") == "False":
            if item.get("reason") != "Unschedulable":
                return None
            return {key: item.get(key) for key in ("reason", "message")}
    return None


def _evicted(cluster: Cluster, name: str, node: str, seq: int) -> list[ForeignDecision]:
    """What this author evicted from a node a moment ago, for no known pod yet; those rows are taken."""
    rows = ForeignDecision.objects.filter(
        cluster=cluster, author=name, kind=DecisionKind.EVICT, node=node, seq__gt=seq - SAME_MOVE_ENTRIES
    )
    found = list(rows.order_by("seq"))
    if found:
        ForeignDecision.objects.filter(pk__in=[row.pk for row in found]).delete()
    return found


def _keep(
    writer: LogWriter,
    kind: DecisionKind,
    row: Pod,
    name: str,
    node: str,
    *,
    victims: list[ForeignDecision] | None = None,
    message: str = "",
) -> None:
    cluster = writer.cluster
    seq = cluster.next_seq
    burst_seq, place = seq, 0
    if kind in BURSTS:
        last = ForeignDecision.objects.filter(cluster=cluster).order_by("-seq", "-pk").first()
        if (
            last is not None
            and last.kind in BURSTS
            and last.author == name
            and last.place + 1 < LONGEST_BURST
        ):
            burst_seq, place = last.burst_seq, last.place + 1
    ForeignDecision.objects.create(
        cluster=cluster,
        seq=seq,
        burst_seq=burst_seq,
        place=place,
        judged_seq=min([seq, *(victim.judged_seq for victim in victims or ())]),
        at_ns=writer.at_ns,
        kind=kind,
        pod_namespace=row.namespace,
        pod_name=row.name,
        pod_uid=row.uid,
        scheduler=row.scheduler_name,
        node=node,
        author=name,
        victims=[victim.pod for victim in victims or ()],
        message=message,
    )


# ---- judging


def unjudged(cluster: Cluster) -> Any:
    """Rows that wait for their verdict, in the order of the log."""
    rows = ForeignDecision.objects.filter(cluster=cluster, verdict="", kind__in=ForeignDecision.JUDGED)
    return rows.order_by("judged_seq", "pk")


def judge_some(cluster: Cluster, report: Report) -> dict[str, Any]:
    """Judge the oldest decisions that wait, for one turn; what is left is asked for again.

    Safe to run twice: a verdict follows from the log alone.
    """
    waiting = list(unjudged(cluster)[:CHUNK])
    if not waiting:
        return {"judged": 0, "left": 0}
    # A burst is judged whole, and anew when it has grown.
    bursts = {row.burst_seq for row in waiting}
    whole = ForeignDecision.objects.filter(
        cluster=cluster, burst_seq__in=bursts, kind__in=ForeignDecision.JUDGED
    )
    rows = list(whole.order_by("judged_seq", "pk"))
    began_s = time.monotonic()
    n_done = 0
    lost = [row for row in rows if row.judged_seq <= cluster.compacting_seq]
    if lost:
        words = "the log of that time is no longer kept"
        ForeignDecision.objects.filter(pk__in=[row.pk for row in lost]).update(
            verdict=ForeignDecision.Verdict.UNKNOWN, reasons=[words]
        )
        rows = [row for row in rows if row.judged_seq > cluster.compacting_seq]
    if rows:
        start = _start(cluster, rows[0].judged_seq)
        asked = [Asked(*(*_asked(row), tuple(row.victims))) for row in rows]
        victims = {row.pk: row.victims for row in rows}

        def goes_on() -> bool:
            return time.monotonic() - began_s < CHUNK_S

        entries = _entries(cluster, start, rows[-1].judged_seq)
        for verdict in judged(start, entries, asked, seed=cluster.seed, goes_on=goes_on):
            _write(verdict, victims[verdict.key])
            n_done += 1
            report(n_done, len(rows), "judging decisions")
        keep_newest(ForeignDecision.objects.filter(cluster=cluster), KEPT)
    # Open pages see the verdicts.
    Cluster.objects.filter(pk=cluster.pk).update(version=F("version") + 1)
    return {"judged": n_done + len(lost), "left": unjudged(cluster).count()}


def _write(verdict: Judgement, victims: list[str]) -> None:
    # A victim that was evicted meanwhile has it judged again.
    ForeignDecision.objects.filter(pk=verdict.key, victims=victims).update(
        **{name: getattr(verdict, name) for name in _SAME},
        our_node=verdict.node,
        n_feasible=0 if verdict.trace is None else verdict.trace.n_feasible,
        reasons=list(verdict.reasons),
        our_victims=list(verdict.victims),
        trace=None if verdict.trace is None else verdict.trace.to_bytes(),
        engine_version=ENGINE_VERSION,
    )


def _start(cluster: Cluster, seq: int) -> Start:
    """The newest readable checkpoint before an entry, or the beginning."""
    checkpoints = Checkpoint.objects.filter(
        cluster=cluster, engine_seq__lt=seq, engine_seq__gte=cluster.compacting_seq
    )
    for checkpoint in checkpoints.order_by("-engine_seq")[:3]:
        try:
            return start_of(bytes(checkpoint.data), checkpoint.engine_seq)
        except ValueError:
            continue  # of a format before
    return Start(config=initial_config(cluster), release=initial_release(cluster))


def _entries(cluster: Cluster, start: Start, to_seq: int) -> Any:
    kinds = (LogEntry.Kind.WRITE, LogEntry.Kind.DELETE, LogEntry.Kind.CONFIG)
    rows = LogEntry.objects.filter(cluster=cluster, seq__lt=to_seq, kind__in=kinds).filter(
        Q(source=LogEntry.Source.API, seq__gt=start.read_seq)
        | Q(source=LogEntry.Source.ENGINE, seq__gt=start.seq)
    )
    return entries_of(rows)
