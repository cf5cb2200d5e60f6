"""A live cluster that is followed: its objects and judged decisions arrive in batches; nothing here acts on them.

A follower (`playground.remote.follow`) begins a session and numbers its batches. A batch is one transaction, and one
that comes again is not taken again: so neither side loses or doubles anything, whichever is cut off.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, Max, OuterRef, Subquery
from django.utils import timezone

from playground.clusters import kinds, wake
from playground.clusters.choices import Judgement
from playground.clusters.errors import Conflict, InvalidInput, found
from playground.clusters.kinds import Kind
from playground.clusters.log.rows import in_parts, rows_named, rows_of
from playground.clusters.log.writer import LogWriter, ObjectKey, key_of, locked, writing
from playground.clusters.metrics import gauge, labels_text
from playground.clusters.models import Cluster, FollowedCluster, ForeignDecision, LogEntry, Node, Pod
from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.incident.changes import Incident, LoggedChange, is_followed, whole
from scheduler_core.incident.verdicts import UNLIKE
from scheduler_core.incident.watched import ADDED, DELETED, LISTED, MODIFIED, WatchReading
from scheduler_core.objects.fields import format_time_ns, parse_time_ns
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.meta import condition_of
from scheduler_core.scenario.redact import bare
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.judge import Key, Manifest

THERE: Final = "THERE"
"""A line that names all objects of a kind (of the `part` of them whose hash, `of` so many, it is): others are gone."""
BEHIND_MS: Final = 5_000
"""A follower that is later is behind."""
SILENT_S: Final = 20.0
"""A follower says something every few seconds; one that does not is lost."""
MOST_PENDING: Final = 2_000
MOST_NAMED: Final = 500
"""Groups of pending pods whose plugin is looked up."""
_OF_PODS: Final = ("pod_namespace", "pod_name", "plugin")
_AHEAD_NS: Final = 3600 * SECOND_NS
MINUTE_NS: Final = 60 * SECOND_NS


def begin(*, cluster: Cluster, source: str, program: str, redacted: bool) -> FollowedCluster:
    """Begin a session; the one before, should it be alive, may not write any more.

    Raises
    ------
    Conflict
        The cluster was not made to mirror a live one, or mirrors another one.
    """
    with transaction.atomic():
        row = locked(cluster.pk)
        if not row.is_followed:
            raise Conflict(
                f'"{row.name}" was not made to follow a live cluster; create one with "live": true',
                kind="Cluster",
                name=row.public_id,
            )
        followed, _ = FollowedCluster.objects.get_or_create(
            cluster=row, defaults={"source": source, "is_redacted": redacted}
        )
        if (followed.source, followed.is_redacted) != (source, redacted):
            names = "without names" if followed.is_redacted else "with its names"
            raise Conflict(
                f'"{row.name}" follows "{followed.source}" {names}; follow another one into another cluster',
                kind="Cluster",
                name=row.public_id,
            )
        followed.session += 1
        followed.number = 0
        followed.program = program
        followed.is_listed = followed.is_stopped = followed.is_paused = False
        followed.heard = timezone.now()
        followed.save()
    return followed


def stop(*, cluster: Cluster) -> FollowedCluster:
    """End the session; its follower is refused and ends. What was seen stays, and another one may go on."""
    return _set(cluster, "is_stopped", True)


def followed_of(cluster: Cluster) -> FollowedCluster:
    """How far the follower of a cluster is.

    Raises
    ------
    NotFound
        No live cluster was ever followed into it.
    """
    row = found_follower(cluster)
    return found(row, f'a follower of "{cluster.name}"', kind="Cluster", name=cluster.public_id)


def pause(*, cluster: Cluster, paused: bool) -> FollowedCluster:
    """Judge no decisions that are taken from now on, or judge again; objects are followed all the while."""
    return _set(cluster, "is_paused", paused)


def _set(cluster: Cluster, field: str, value: bool) -> FollowedCluster:
    with transaction.atomic():
        locked(cluster.pk)
        followed = followed_of(cluster)
        setattr(followed, field, value)
        followed.save(update_fields=[field])
        Cluster.objects.filter(pk=cluster.pk).update(version=cluster.version + 1)
    return followed


def state_of(followed: FollowedCluster) -> str:
    """``connecting``, ``following``, ``paused``, ``behind``, ``lost`` or ``stopped``."""
    if followed.is_stopped:
        return "stopped"
    if (timezone.now() - followed.heard).total_seconds() > SILENT_S:
        return "lost"
    if not followed.is_listed:
        return "connecting"
    if followed.is_paused:
        return "paused"
    return "behind" if followed.lag_ms > BEHIND_MS else "following"


def found_follower(cluster: Cluster) -> FollowedCluster | None:
    """How far the follower of a cluster is; None where it never had one."""
    return FollowedCluster.objects.filter(cluster=cluster).first()


def objects_of(cluster: Cluster) -> dict[str, int]:
    """How many nodes and pods the live cluster has. One query."""
    n_nodes, n_pods = (
        Subquery(rows.filter(cluster=OuterRef("pk")).order_by().values("cluster").values(n=Count("pk")))
        for rows in (Node.objects, Pod.objects)
    )
    found = Cluster.objects.filter(pk=cluster.pk).values(n_nodes=n_nodes, n_pods=n_pods).get()
    return {"nodes": found["n_nodes"] or 0, "pods": found["n_pods"] or 0}


@dataclass(frozen=True, slots=True)
class Figures:
    """How far a live cluster's schedulers decide as ours does.

    Attributes
    ----------
    counts
        By verdict; every verdict is a key.
    causes
        Of those that differ, by cause; the key of those whose cause is not known is empty.
    n_behind
        Of those that agree or tie: on the state that their cache still had.
    """

    counts: Mapping[str, int]
    causes: Mapping[str, int]
    n_behind: int

    @property
    def n_judged(self) -> int:
        """Those that agree, tie or differ: what cannot be known is apart."""
        return sum(self.counts.values()) - self.counts[Judgement.UNKNOWN]

    @property
    def n_differ(self) -> int:
        """With a cause or without."""
        return self.counts[Judgement.DIFFERENT] + self.counts[Judgement.INFEASIBLE]

    @property
    def n_unexplained(self) -> int:
        """Those that differ and whose cause is not known."""
        return self.causes.get("", 0)

    @property
    def n_explained(self) -> int:
        """Those that differ and whose cause is known."""
        return self.n_differ - self.n_unexplained


def figures_of(cluster: Cluster) -> Figures:
    """Count the decisions that are kept. One query."""
    rows = ForeignDecision.objects.filter(cluster=cluster, kind__in=ForeignDecision.JUDGED)
    grouped = rows.exclude(verdict="").order_by().values_list("verdict", "cause").annotate(n=Count("pk"))
    counts, causes, n_behind = dict.fromkeys(Judgement.values, 0), Counter[str](), 0
    for verdict, cause, n in grouped:
        counts[verdict] += n
        if verdict in UNLIKE:
            causes[cause] += n
        elif cause:
            n_behind += n
    return Figures(counts, causes, n_behind)


def take(
    *,
    cluster: Cluster,
    session: int,
    number: int,
    changes: Sequence[Mapping[str, Any]] = (),
    decisions: Sequence[Mapping[str, Any]] = (),
    not_known: Sequence[Mapping[str, Any]] | None = None,
    is_listed: bool = False,
    lag_ms: int = 0,
) -> FollowedCluster:
    """Take a batch, whole or not at all; one that was taken is passed over.

    Parameters
    ----------
    changes
        Lines of `incident.watched`, and `THERE`.
    decisions
        As `FollowedDecision` of the API has them.
    not_known
        All facts that cannot be read; None where they are as before.

    Raises
    ------
    Conflict
        Another session writes now, the session was stopped, or another batch is expected.
    InvalidInput
        A line is none; nothing of the batch is taken.
    """
    lines = [_read(line, place) for place, line in enumerate(changes)]
    with writing(cluster) as writer:
        writer.words, writer.follows = None, True
        followed = followed_of(cluster)
        if followed.is_stopped:
            raise Conflict(f'following "{followed.source}" was stopped on its page', kind="Cluster")
        if session != followed.session:
            raise Conflict(
                f"session {session} is over: session {followed.session} follows now", kind="Cluster"
            )
        if number <= followed.number:
            return followed
        if number != followed.number + 1:
            raise Conflict(f"batch {number} came where {followed.number + 1} is expected", kind="Cluster")
        n_before = writer.cluster.next_seq
        _Mirror(writer, lines).write()
        _keep(writer.cluster, decisions)
        followed.number = number
        followed.n_changes += writer.cluster.next_seq - n_before - len(decisions)
        followed.lag_ms = lag_ms
        followed.heard = timezone.now()
        followed.is_listed |= is_listed
        if not_known is not None:
            followed.not_known = list(not_known)
        followed.save()
        if writer.cluster.last_input_seq >= n_before:
            wake.cluster_on_commit(writer.cluster)
    return followed


# ---- lines


@dataclass(frozen=True, slots=True)
class _Change:
    at_ns: int
    kind: Kind
    type: str
    key: ObjectKey
    manifest: Mapping[str, Any]
    line: Mapping[str, Any]


def _read(line: Mapping[str, Any], place: int) -> _Change:
    """A line, with what nothing decides by left out: a follower does so before it sends it.

    Raises
    ------
    InvalidInput
    """
    field, what = f"changes[{place}]", str(line.get("type"))
    try:
        at_ns = parse_time_ns(line["at"])
        if what == THERE:
            kind = kinds.named(line["kind"])
            if not is_followed({"kind": kind.kind}):
                raise KeyError(kind.kind)
            return _Change(at_ns, kind, what, (kind.row_kind, "", ""), {}, line)
        if what not in (LISTED, ADDED, MODIFIED, DELETED):
            raise InvalidInput(f'"{what}" is no type of a change', field=f"{field}.type", value=what)
        manifest = line["object"]
        if not is_followed(manifest):
            raise InvalidInput(
                "no scheduler goes by objects of this kind",
                field=f"{field}.object.kind",
                value=str(manifest.get("kind")),
            )
        kind = kinds.named(manifest["kind"])
        known = bare(manifest)
        if what != DELETED and is_read(known):
            parse(known)
        return _Change(at_ns, kind, what, key_of(kind, known), known, line)
    except InvalidObject as error:
        raise InvalidInput(
            str(error.words), field=f"{field}.object.{error.path}", value=str(error.value)
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"is no change of a watch: {error!r}", field=field) from None


class _Mirror:
    """Lines as entries of the log, where they change something."""

    def __init__(self, writer: LogWriter, lines: Sequence[_Change]) -> None:
        self._writer, self._lines = writer, lines
        self._known: dict[ObjectKey, Mapping[str, Any]] = {}
        names: dict[str, tuple[Kind, set[str]]] = {}
        for line in lines:
            names.setdefault(line.kind.row_kind, (line.kind, set()))[1].add(line.key[2])
        for kind, wanted in names.values():
            for place, row in rows_named(writer.cluster, kind, sorted(wanted)).items():
                self._known[(kind.row_kind, *place)] = row.manifest

    def write(self) -> None:
        """Write all, each at its time; the cluster's clock goes there and never back."""
        latest_ns = time.time_ns() + _AHEAD_NS
        cluster = self._writer.cluster
        if cluster.last_input_seq == 0 and self._lines:
            cluster.start_ns = cluster.now_ns = min(self._lines[0].at_ns, latest_ns)
        for line in self._lines:
            cluster.now_ns = max(cluster.now_ns, min(line.at_ns, latest_ns))
            self._writer.at_ns = cluster.now_ns
            if line.type == THERE:
                self._only(line)
            elif line.type == DELETED:
                self._delete(line.kind, line.key)
            else:
                self._write(line)

    def _write(self, line: _Change) -> None:
        known = self._known.get(line.key)
        if known is not None and known["metadata"].get("uid") != line.manifest["metadata"].get("uid"):
            self._delete(line.kind, line.key)
            known = None
        if known is None or _without_version(known) != _without_version(line.manifest):
            self._known[line.key] = self._writer.write(
                LogEntry.Source.API, line.kind, line.manifest, created=known is None
            )

    def _delete(self, kind: Kind, key: ObjectKey) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._writer.delete(LogEntry.Source.API, kind, known)

    def _only(self, line: _Change) -> None:
        """Delete what is not named."""
        names, part, of = set(line.line["names"]), line.line.get("part", 0), line.line.get("of", 1)
        rows = rows_of(self._writer.cluster, line.kind)
        places = rows.values_list("namespace", "name") if line.kind.namespaced else rows.values_list("name")
        gone = []
        for place in places:
            text = "/".join(place)
            if zlib.crc32(text.encode()) % of == part and text not in names:
                gone.append(("", *place)[-2:])
        wanted = {(line.kind.row_kind, *place) for place in gone} - {*self._known}
        stored = rows_named(self._writer.cluster, line.kind, sorted({key[2] for key in wanted}))
        self._known |= {key: stored[key[1], key[2]].manifest for key in wanted if (key[1], key[2]) in stored}
        for place in gone:
            self._delete(line.kind, (line.kind.row_kind, *place))


def _without_version(manifest: Mapping[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
    return {**manifest, "metadata": meta}


def _keep(cluster: Cluster, decisions: Iterable[Mapping[str, Any]]) -> None:
    """Write down judged decisions; each takes a number of the log, which has no entry for it."""
    rows = []
    for one in decisions:
        namespace, _, name = one["pod"].partition("/")
        seq = cluster.next_seq
        cluster.next_seq += 1
        rows.append(
            ForeignDecision(
                cluster=cluster,
                seq=seq,
                judged_seq=seq,
                burst_seq=seq,
                at_ns=parse_time_ns(one["time"]),
                pod_namespace=namespace,
                pod_name=name,
                scheduler=one["by"],
                author=one["by"],
                our_node=one["ours"],
                our_points=one.get("ourPoints"),
                our_victims=one.get("ourVictims", []),
                our_score=one.get("ourScore"),
                n_tied=one.get("nTied", 0),
                n_feasible=one.get("nFeasible", 0),
                cause=(one.get("cause") or {}).get("kind", ""),
                cause_facts={key: item for key, item in one["cause"].items() if key != "kind"}
                if "cause" in one
                else None,
                engine_version=ENGINE_VERSION,
                **{name: one[name] for name in ("kind", "node", "victims", "verdict", "plugin", "reasons")},
                **{name: one[name] for name in ("message", "outcome", "points", "score") if name in one},
            )
        )
    ForeignDecision.objects.bulk_create(rows, batch_size=500)


# ---- what is shown


@dataclass(frozen=True, slots=True)
class Minute:
    """Decisions of a minute; `n_no_node` found no node, `n_unlike` are not as ours."""

    at_ns: int
    n: int
    n_no_node: int
    n_unlike: int


def minutes(cluster: Cluster, from_ns: int, to_ns: int) -> list[Minute]:
    """Decisions by the minute, those without any left out. One query."""
    rows = (
        ForeignDecision.objects.filter(
            cluster=cluster, kind__in=ForeignDecision.JUDGED, at_ns__gte=from_ns, at_ns__lt=to_ns
        )
        .annotate(minute=_minute())
        .values_list("minute", "kind", "verdict")
        .annotate(n=Count("pk"))
        .order_by("minute")
    )
    counts: dict[int, list[int]] = {}
    for minute, kind, verdict, n in rows:
        of = counts.setdefault(minute, [0, 0, 0])
        of[0] += n
        of[1] += n if kind == ForeignDecision.Kind.NO_NODE else 0
        of[2] += n if verdict in UNLIKE else 0
    return [Minute(minute * MINUTE_NS, *of) for minute, of in counts.items()]


def _minute() -> Any:
    return ExpressionWrapper(F("at_ns") / MINUTE_NS, output_field=BigIntegerField())


@dataclass(frozen=True, slots=True)
class Pending:
    """Pending pods of one workload that wait for one reason, as the live scheduler says it.

    Attributes
    ----------
    kind, name
        Of the workload; of pods without one that wait for the same, of the one that waits longest.
    pod
        ``(namespace, name)`` of the one that waits longest.
    reason
        Of its condition PodScheduled: ``Unschedulable``, ``SchedulingGated``, ...; empty where it was not tried yet.
    message
        The live scheduler's own words.
    plugin
        The filter that keeps the pod from the nodes that all others would take, as ours has it; empty where it is
        not known.
    all_since_ns
        When each was created, the one that waits longest first.
    """

    kind: str
    name: str
    pod: tuple[str, str]
    n: int
    reason: str
    message: str
    plugin: str
    all_since_ns: Sequence[int]
    priority: int
    priority_class: str

    @property
    def since_ns(self) -> int:
        """When the one that waits longest was created."""
        return self.all_since_ns[0]


def pending(cluster: Cluster, limit: int = MOST_PENDING) -> list[Pending]:
    """Pending pods by workload and reason, those that wait longest first; of the oldest `limit` pods. Two queries."""
    groups: dict[tuple[str, ...], list[Any]] = {}
    rows = Pod.objects.filter(cluster=cluster).pending().order_by("created_ns", "pk")
    columns = (
        "namespace",
        "name",
        "owner_kind",
        "owner_name",
        "created_ns",
        "labels",
        "manifest",
        "priority",
        "priority_class",
    )
    for row in rows.only(*columns)[:limit]:
        condition = condition_of(row.manifest, "PodScheduled") or {}
        kind, name = row.workload
        said = (str(condition.get("reason") or ""), str(condition.get("message") or ""))
        key = (row.namespace, kind or "Pod", name, *said)
        groups.setdefault(key, []).append(row)
    plugins = _rejecting(cluster, [(rows[0].namespace, rows[0].name) for rows in groups.values()])
    return [
        Pending(
            kind=kind,
            name=name or rows[0].name,
            pod=(rows[0].namespace, rows[0].name),
            n=len(rows),
            reason=reason,
            message=message,
            plugin=plugins.get((rows[0].namespace, rows[0].name), ""),
            all_since_ns=[row.created_ns for row in rows],
            priority=rows[0].priority,
            priority_class=rows[0].priority_class,
        )
        for (_, kind, name, reason, message), rows in groups.items()
    ]


def _rejecting(cluster: Cluster, pods: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """By pod the plugin of the newest decision that found no node for it, where ours found none either."""
    if not pods:
        return {}
    rows = ForeignDecision.objects.filter(
        cluster=cluster, kind=ForeignDecision.Kind.NO_NODE, verdict=Judgement.AGREE
    )
    named = rows.filter(pod_name__in={name for _, name in pods[:MOST_NAMED]}).order_by("seq")
    return {(space, name): plugin for space, name, plugin in named.values_list(*_OF_PODS)}


WAITS_S: Final = (300, 3600)
"""Pods of live clusters that are pending for longer are counted."""
MOST_LIVE: Final = 50


def live_gauges(cluster: Cluster | None = None) -> list[str]:
    """The lines of /metrics about live clusters: pods that wait for long, decisions by verdict, and those that differ.

    Two queries, and two for each cluster; of one, or of at most `MOST_LIVE`.
    """
    clusters = (
        [cluster] if cluster else [*Cluster.objects.filter(clock_mode=Cluster.ClockMode.LIVE)[:MOST_LIVE]]
    )
    waits: Counter[tuple[tuple[str, str], ...]] = Counter()
    for one in clusters:
        for at in pending(one):
            for longer in WAITS_S:
                labels = (
                    ("cluster", one.public_id),
                    ("longer_than_seconds", str(longer)),
                    ("plugin", at.plugin),
                    ("reason", at.reason or "NotTried"),
                )
                waits[labels] += sum(one.now_ns - since > longer * SECOND_NS for since in at.all_since_ns)
    judged, differ = Counter[str](), Counter[str]()
    rows = ForeignDecision.objects.filter(cluster__in=clusters, kind__in=ForeignDecision.JUDGED)
    of = ("cluster__public_id", "verdict", "plugin", "cause")
    for at_id, verdict, plugin, cause, n in rows.order_by().values_list(*of).annotate(n=Count("pk")):
        judged[labels_text((("cluster", at_id), ("verdict", verdict)))] += n
        if verdict in UNLIKE:
            by = (("cause", cause or "unknown"), ("cluster", at_id), ("plugin", plugin))
            differ[labels_text(by)] += n
    return [
        *gauge("playground_pending_longer_pods", ((labels_text(of), n) for of, n in sorted(waits.items()))),
        *gauge("playground_live_decisions", sorted(judged.items())),
        *gauge("playground_live_differences", sorted(differ.items())),
    ]


# ---- a span of it


def begins_ns(cluster: Cluster, followed: FollowedCluster) -> int:
    """From when on the log is whole."""
    return max(followed.kept_from_ns, cluster.start_ns)


def span_of(cluster: Cluster, begins: str, ends: str) -> tuple[int, int] | None:
    """Two times as RFC 3339, in nanoseconds: None without the first, and without the second until now.

    Raises
    ------
    InvalidInput
    """
    if not begins:
        return None
    times = [cluster.now_ns + 1, cluster.now_ns + 1]
    for place, (name, text) in enumerate((("from", begins), ("to", ends))):
        try:
            times[place] = parse_time_ns(text) if text else times[place]
        except ValueError:
            raise InvalidInput("is no time such as 2026-11-20T02:10:00Z", field=name, value=text) from None
    return times[0], times[1]


def incident_of(cluster: Cluster, from_ns: int, to_ns: int) -> Incident:
    """What was there at a moment, and what happened from then on until another.

    Raises
    ------
    InvalidInput
        The log does not go back so far, or nothing lies between the two.
    """
    followed = followed_of(cluster)
    if from_ns < (first := begins_ns(cluster, followed)):
        raise InvalidInput(
            f"what happened is kept from {format_time_ns(first)} on",
            field="from",
            value=format_time_ns(from_ns),
        )
    if to_ns <= from_ns:
        raise InvalidInput("the span ends before it begins", field="to", value=format_time_ns(to_ns))
    log = LogEntry.objects.filter(cluster=cluster, kind__in=(LogEntry.Kind.WRITE, LogEntry.Kind.DELETE))
    before = log.filter(at_ns__lte=from_ns)
    objects = before.values("object_kind", "object_namespace", "object_name").annotate(last=Max("seq"))
    numbers = sorted(objects.values_list("last", flat=True))

    def lines() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for part in in_parts(numbers):
            there = log.filter(seq__in=part, kind=LogEntry.Kind.WRITE).order_by("seq")
            for payload in there.values_list("payload", flat=True):
                yield from_ns, {"type": LISTED, "object": payload["manifest"]}
        later = log.filter(at_ns__gt=from_ns, at_ns__lte=to_ns).order_by("seq")
        for at_ns, kind, payload in later.values_list("at_ns", "kind", "payload").iterator(500):
            type_ = MODIFIED if kind == LogEntry.Kind.WRITE else DELETED
            yield at_ns, {"type": type_, "object": payload["manifest"]}

    def again(incident: Incident, known: dict[Key, Manifest]) -> Iterator[LoggedChange]:
        return WatchReading(incident, known).changes(lines())

    reading = WatchReading(Incident(again), {})
    for _ in reading.changes(lines()):
        pass
    return whole(reading, {})
