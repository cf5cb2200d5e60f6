"""A cluster's timeline: its log, queue moves and cycles, read for `scheduler_core.sim.timeline`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from playground.clusters.choices import EntryKind, EntrySource
from playground.clusters.memo import Memo
from playground.clusters.models import Cluster, Cycle, LogEntry, QueueMove
from playground.engine.entries import Lane
from playground.engine.entries import QueueMove as Move
from scheduler_core.sim.timeline import PodSeen, Timeline, pod_seen, timeline_of

MOST_RECORDS: Final = 20_000
"""Of each kind, the newest: what a page can read while its reader waits."""

_TIMELINES: Memo[Timeline] = Memo(8)
_OF_CYCLES: Final = (
    "cluster", "number", "at_ns", "pod_namespace", "pod_name", "profile", "outcome", "node", "nominated_node",
    "n_feasible", "failed_point",
)  # fmt: skip


def cluster_timeline(cluster: Cluster) -> Timeline:
    """Where every pod was and when, as far as the newest records tell. Three queries, none for a known version."""
    key = (cluster.public_id, cluster.generation, cluster.version)
    return _TIMELINES.get(key, lambda: _read(cluster))


def _read(cluster: Cluster) -> Timeline:
    moves = QueueMove.objects.filter(cluster=cluster).order_by("-id")
    told = moves.values_list("at_ns", "pod_namespace", "pod_name", "pod_uid", "source", "target", "event")
    cycles = Cycle.objects.filter(cluster=cluster).only(*_OF_CYCLES).order_by("-number")
    return timeline_of(
        list(_written(cluster))[::-1],
        [
            Move(at_ns, f"{namespace}/{name}", uid, Lane(source), Lane(target), event)
            for at_ns, namespace, name, uid, source, target, event in [*told[:MOST_RECORDS]][::-1]
        ],
        [*cycles[:MOST_RECORDS]][::-1],
        from_ns=cluster.start_ns,
        to_ns=cluster.now_ns,
    )


def _written(cluster: Cluster) -> Iterator[PodSeen]:
    """Pods as they were written, newest first. One that a person made says nothing before something happens to it."""
    entries = LogEntry.objects.filter(cluster=cluster, object_kind="Pod").exclude(
        source=EntrySource.API, created=True
    )
    columns = ("at_ns", "kind", "cycle", "object_namespace", "object_name", "payload")
    for at_ns, kind, cycle, namespace, name, payload in entries.order_by("-seq").values_list(*columns)[
        :MOST_RECORDS
    ]:
        reason = str(payload.get("reason") or "")
        if kind == EntryKind.WRITE or not payload.get("gone", True):
            yield pod_seen(at_ns, payload["manifest"], cycle=cycle or 0, reason=reason)
        else:
            yield PodSeen(at_ns, f"{namespace}/{name}", None, reason=reason)
