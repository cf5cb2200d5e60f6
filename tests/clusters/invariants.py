"""What holds of every cluster between two transactions: of its log, the rows that are its fold, cycles and queue."""

from collections.abc import Iterator
from typing import Any

from playground.clusters.custom_kinds import table_of
from playground.clusters.log.rows import MODELS, row_values
from playground.clusters.models import Cluster, Cycle, Event, LogEntry, Manifest, Pod
from playground.engine.columns import profile_names

MOST_OBJECTS = 500
"""A larger cluster is not looked at: a test of many objects is about their number."""


def validate(cluster: Cluster) -> list[str]:
    """What does not hold of a cluster, a sentence each."""
    if (
        sum(model._default_manager.filter(cluster=cluster).count() for model in MODELS.values())
        > MOST_OBJECTS
    ):
        return []
    return [*log_problems(cluster), *row_problems(cluster), *cycle_problems(cluster)]


def log_problems(cluster: Cluster) -> Iterator[str]:
    """Numbers are below the counter, and the cluster's row points at entries that are there."""
    log = LogEntry.objects.filter(cluster=cluster)
    newest = log.order_by("-seq").first()
    if newest is not None and newest.seq >= cluster.next_seq:
        yield f"entry {newest.seq} is not below the counter {cluster.next_seq}"
    if cluster.engine_seq and not log.filter(seq=cluster.engine_seq, kind=LogEntry.Kind.RAN).exists():
        yield f"the engine's last entry {cluster.engine_seq} is no `ran` entry of the log"
    unread = log.filter(source=LogEntry.Source.API, cycle__isnull=True, seq__gt=cluster.last_input_seq)
    if unread.exists():
        yield f"an input lies behind the last one, {cluster.last_input_seq}"


def row_problems(cluster: Cluster) -> Iterator[str]:
    """A row is the newest entry about its object, and its columns are what its manifest says."""
    newest: dict[tuple[str, str, str], LogEntry] = {}
    for entry in LogEntry.objects.filter(cluster=cluster).exclude(object_kind="").order_by("seq"):
        newest[entry.object_kind, entry.object_namespace, entry.object_name] = entry
    rows = {
        _key(row): row for model in MODELS.values() for row in model._default_manager.filter(cluster=cluster)
    }
    for key, entry in newest.items():
        row = rows.get(key)
        is_gone = entry.kind == LogEntry.Kind.DELETE and entry.payload["gone"]
        if (row is None) != is_gone:
            yield f"{key} is {'there' if row else 'missing'} after entry {entry.seq}"
        elif row is not None and (row.resource_version, row.manifest) != (
            entry.seq,
            entry.payload["manifest"],
        ):
            yield f"the row of {key} is not what entry {entry.seq} says"
    table, profiles = table_of(cluster), profile_names(cluster.config)
    for key, row in rows.items():
        if key not in newest and not isinstance(row, Event):
            yield f"{key} has a row and no entry"
        kind = table.by_row_kind(key[0])
        if kind is None or isinstance(row, Event):
            continue
        columns = row_values(cluster, kind, row.manifest, row.resource_version, profiles)
        wrong = [name for name, value in columns.items() if name != "cluster" and getattr(row, name) != value]
        if wrong:
            yield f"columns {wrong} of {key} are not what its manifest says"


def cycle_problems(cluster: Cluster) -> Iterator[str]:
    """Cycles are numbered without gaps, of batches in the log; a pod on a node waits in no lane."""
    numbers = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("number", flat=True))
    if numbers != list(range(1, cluster.next_cycle)):
        yield f"cycles {numbers[:5]} ... are not 1 to {cluster.next_cycle - 1}"
    ran = LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.RAN).values("seq")
    for number in (
        Cycle.objects.filter(cluster=cluster).exclude(ran_seq__in=ran).values_list("number", flat=True)
    ):
        yield f"cycle {number} is of a batch that the log does not have"
    if cluster.cursor_seq >= cluster.last_input_seq:
        for pod in Pod.objects.filter(cluster=cluster).exclude(node_name="").exclude(lane=""):
            yield f"pod {pod.name} is on {pod.node_name} and waits in {pod.lane}"


def _key(row: Any) -> tuple[str, str, str]:
    kind = row.kind if isinstance(row, Manifest) else type(row).__name__
    return kind, getattr(row, "namespace", ""), row.name
