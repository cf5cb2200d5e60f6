"""Plain look-ups: clusters, runs, objects of any kind, the log."""

from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from django.db.models import QuerySet

from playground.clusters.clock import virtual_now_ns
from playground.clusters.errors import NotFound
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Event, LogEntry, MockExtender, Node, Run
from playground.clusters.namespace_objects import with_usage
from playground.clusters.rows import row_of, rows_after, rows_of
from playground.clusters.selection import ObjectSelection
from playground.clusters.versions import as_served
from playground.engine.columns import is_forgotten

_MANY_NAMES: Final = 500


def get_run(cluster: Cluster, public_id: str) -> Run:
    """One run of a cluster.

    Raises
    ------
    NotFound
    """
    run = Run.objects.filter(cluster=cluster, public_id=public_id).select_related("cluster").first()
    if run is None:
        raise NotFound(f'run "{public_id}" not found', kind="Run", name=public_id)
    return run


def get_mock_extender(cluster: Cluster, public_id: str) -> MockExtender:
    """One mock extender of a cluster.

    Raises
    ------
    NotFound
    """
    found = MockExtender.objects.filter(cluster=cluster, public_id=public_id).first()
    if found is None:
        raise NotFound(f'mock extender "{public_id}" not found', kind="MockExtender", name=public_id)
    return found


def list_mock_extenders(cluster: Cluster) -> list[MockExtender]:
    """A cluster's mock extenders, oldest first. One query."""
    return list(MockExtender.objects.filter(cluster=cluster).order_by("pk"))


def get_object(cluster: Cluster, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
    """The stored manifest of one object; `metadata.resourceVersion` is its newest.

    Raises
    ------
    NotFound
    """
    row = row_of(cluster, kind, namespace, name)
    if row is None or is_expired(kind, row.manifest, virtual_now_ns(cluster)):
        raise NotFound(f'{kind.resource} "{name}" not found', kind=kind.kind, namespace=namespace, name=name)
    return as_served(kind, counted(cluster, kind, row.manifest))


def counted(cluster: Cluster, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """A ResourceQuota says what is used of it now; other objects are as they are stored."""
    return with_usage(cluster, manifest) if kind.row_kind == "ResourceQuota" else manifest


def is_expired(kind: Kind, manifest: Mapping[str, Any], now_ns: int) -> bool:
    """Whether an API server would have forgotten it: an Event an hour after it was last written. Pages remember."""
    return kind.row_kind == "Event" and is_forgotten(manifest, now_ns)


def list_objects(cluster: Cluster, kind: Kind, *, namespace: str | None = None) -> QuerySet[Any]:
    """Rows of one kind by namespace and name; `manifest`, `labels` and the typed columns are on them.

    The List's resourceVersion is ``cluster.last_seq``: read the cluster before the rows, so that a watch from
    there misses nothing.
    """
    rows = rows_of(cluster, kind)
    if not kind.namespaced:
        return rows.order_by("name")
    if namespace:
        rows = rows.filter(namespace=namespace)
    return rows.order_by("namespace", "name")


def n_objects_after(cluster: Cluster, kind: Kind, last: tuple[str, str], *, namespace: str = "") -> int:
    """How many are listed behind (namespace, name). One query."""
    return rows_after(list_objects(cluster, kind, namespace=namespace), kind, last).count()


def node_addresses(cluster: Cluster, names: Collection[str]) -> dict[str, Any]:
    """The ``status.addresses`` of nodes, by name. One query.

    Parameters
    ----------
    names
        Whose; of very many, those of all nodes are read.
    """
    rows = Node.objects.filter(cluster=cluster)
    if len(names) <= _MANY_NAMES:
        rows = rows.filter(name__in=names)
    found = rows.values_list("name", "manifest").iterator(chunk_size=500)
    return {name: (manifest.get("status") or {}).get("addresses") for name, manifest in found}


def selected_objects(
    cluster: Cluster,
    kind: Kind,
    selection: ObjectSelection,
    *,
    namespace: str | None = None,
    name: str = "",
    after: tuple[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Manifests of one kind by namespace and name, read as far as they are wanted.

    Parameters
    ----------
    selection
        Which of them.
    namespace, name
        Only those there, only that one; empty = all.
    after
        (namespace, name) of the last one of the page before.
    """
    rows = selection.narrowed(kind, list_objects(cluster, kind, namespace=namespace))
    if name:
        rows = rows.filter(name=name)
    rows = rows_after(rows, kind, after)
    now_ns = virtual_now_ns(cluster)
    for manifest in rows.values_list("manifest", flat=True).iterator(chunk_size=500):
        if is_expired(kind, manifest, now_ns):
            continue
        if not selection or selection.matches(manifest):
            yield as_served(kind, counted(cluster, kind, manifest))


def log_after(
    cluster: Cluster,
    seq: int,
    *,
    until: int | None = None,
    kind: Kind | None = None,
    namespace: str | None = None,
    limit: int = 1000,
) -> list[LogEntry]:
    """Entries after `seq` (and up to `until`) in order, of one kind of object if given: what a watch sends.

    A ``write`` with `created` is ADDED, without it MODIFIED; a ``delete`` whose payload says ``gone`` is DELETED,
    else MODIFIED. The object is ``payload["manifest"]``. Events, which have no entries, are told as writes, in their
    newest version only.
    """
    rows = LogEntry.objects.filter(cluster=cluster, seq__gt=seq)
    if kind is not None:
        rows = rows.filter(object_kind=kind.row_kind)
    if namespace:
        rows = rows.filter(object_namespace=namespace)
    if until is not None:
        rows = rows.filter(seq__lte=until)
    entries = list(rows.order_by("seq")[:limit])
    if kind is None or kind.row_kind != "Event":
        return entries
    events = Event.objects.filter(cluster=cluster, resource_version__gt=seq)
    if namespace:
        events = events.filter(namespace=namespace)
    if until is not None:
        events = events.filter(resource_version__lte=until)
    entries += [_told(event) for event in events.order_by("resource_version")[:limit]]
    return sorted(entries, key=attrgetter("seq"))[:limit]


def _told(event: Event) -> LogEntry:
    is_new = (event.manifest.get("count") or 1) <= 1 and not event.manifest.get("series")
    return LogEntry(
        cluster_id=event.cluster_id,
        seq=event.resource_version,
        source=LogEntry.Source.ENGINE,
        kind=LogEntry.Kind.WRITE,
        at_ns=event.at_ns,
        object_kind="Event",
        object_namespace=event.namespace,
        object_name=event.name,
        created=is_new,
        payload={"manifest": event.manifest},
    )


def list_runs(cluster: Cluster, *, before: Run | None = None, limit: int = 20) -> list[Run]:
    """Runs, newest first. One query.

    Parameters
    ----------
    before
        Only runs asked for before this one.
    """
    rows = Run.objects.filter(cluster=cluster)
    if before is not None:
        rows = rows.filter(pk__lt=before.pk)
    return list(rows.order_by("-pk")[:limit])


def current_run(cluster: Cluster) -> Run | None:
    """The oldest open run, else the newest of all. One query."""
    newest = list_runs(cluster, limit=25)
    still_open = [run for run in newest if run.is_open]
    return still_open[-1] if still_open else (newest[0] if newest else None)


def first_seq(cluster: Cluster) -> int | None:
    """The oldest entry its log still has. One query."""
    return LogEntry.objects.filter(cluster=cluster).order_by("seq").values_list("seq", flat=True).first()


def entry_before(entry: LogEntry) -> LogEntry | None:
    """The entry about the same object just before. One query."""
    return last_entry(
        entry.cluster_id, entry.object_kind, entry.object_namespace, entry.object_name, before=entry.seq
    )


def last_entry(cluster_id: int, row_kind: str, namespace: str, name: str, *, before: int) -> LogEntry | None:
    """The newest entry about an object before a sequence number. One query."""
    rows = LogEntry.objects.filter(
        cluster=cluster_id,
        object_kind=row_kind,
        object_namespace=namespace,
        object_name=name,
        seq__lt=before,
    )
    return rows.order_by("-seq").first()


def empty_cluster() -> Cluster:
    """A cluster that is in no table: pages can be drawn of it before there is one."""
    return Cluster(pk=0, public_id="none", start_ns=0, now_ns=0)
