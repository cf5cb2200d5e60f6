"""The log as an engine reads it: inputs, stretches to replay, and what cycles are known to have decided."""

from collections.abc import Iterator
from typing import Any, Final

from django.db.models import Q, QuerySet

from playground.clusters.models import Cluster, Cycle, LogEntry
from playground.engine.batch import Engine
from playground.engine.entries import Entry
from scheduler_core.schedule_one import Placement, Recorded

RECORDED_AT_ONCE: Final = 2000
"""Cycles whose decisions are read together while a log is replayed."""


def unread(cluster: Cluster, read_seq: int) -> list[Entry]:
    """All inputs after `read_seq`, oldest first; a batch that knew only some would race with the rest.

    Answers of extenders within a cycle are inputs too, but of the batch they were given in.
    """
    rows = LogEntry.objects.filter(
        cluster=cluster, source=LogEntry.Source.API, seq__gt=read_seq, cycle__isnull=True
    )
    return list(entries_of(rows))


def entries_of(rows: QuerySet[LogEntry]) -> Iterator[Entry]:
    """Log rows as the engine reads them, oldest first; no model instances are made of them."""
    columns = rows.order_by("seq").values_list("seq", "source", "kind", "at_ns", "payload", "cycle")
    return (Entry(*row) for row in columns.iterator(2000))


def stretch(cluster: Cluster, engine: Engine, after_seq: int, to_seq: int) -> Iterator[Entry]:
    """Entries that bring an engine from after the `ran` entry `after_seq` to after `to_seq`."""
    rows = LogEntry.objects.filter(cluster=cluster, seq__lte=to_seq).filter(
        Q(source=LogEntry.Source.API, seq__gt=engine.read_seq, cycle__isnull=True)
        | Q(kind=LogEntry.Kind.RAN, seq__gt=after_seq)
        | Q(kind=LogEntry.Kind.EXTENDER, seq__gt=after_seq, cycle__isnull=False)
    )
    return entries_of(rows)


def recorded(cluster: Cluster) -> Recorded:
    """What the cluster's cycles are known to have decided, read as a replay comes to them."""
    known: dict[int, Placement] = {}
    read_to = -1

    def placement(number: int) -> Placement | None:
        nonlocal read_to
        if number > read_to:
            known.clear()
            read_to = number + RECORDED_AT_ONCE
            placed = Cycle.objects.filter(
                cluster=cluster,
                number__gte=number,
                number__lte=read_to,
                outcome=Cycle.Outcome.BOUND,
                n_viable__isnull=False,
            )
            rows = placed.values_list(
                "number", "pod_uid", "node", "n_evaluated", "n_feasible", "n_viable", "best_total"
            )
            known.update(
                (number, Placement(uid, node, n_evaluated, n_feasible, n_viable or 0, best_total))
                for number, uid, node, n_evaluated, n_feasible, n_viable, best_total in rows
            )
        return known.get(number)

    return placement


def initial_config(cluster: Cluster) -> dict[str, object] | None:
    """The configuration the cluster began with: later ones are inputs in the log."""
    config: dict[str, object] | None = _before_the_first(cluster, "before", cluster.config)
    return config


def initial_release(cluster: Cluster) -> dict[str, object]:
    """The release of Kubernetes the cluster began with: later ones are inputs in the log."""
    release: dict[str, object] = _before_the_first(cluster, "releaseBefore", cluster.release)
    return release


def _before_the_first(cluster: Cluster, key: str, now: Any) -> Any:
    """What the first entry that changed it says was there before; `now` where none did."""
    log = LogEntry.objects.filter(cluster=cluster, source=LogEntry.Source.API, kind=LogEntry.Kind.CONFIG)
    payloads = log.order_by("seq").values_list("payload", flat=True)
    return next((payload[key] for payload in payloads if key in payload), now)
