"""Plain look-ups: clusters, runs, objects of any kind, the log."""

from collections.abc import Iterator
from typing import Any, Final

from django.db.models import Q, QuerySet

from playground.accounts.models import Role
from playground.clusters.errors import Forbidden, NotFound
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, LogEntry, MockExtender, Run
from playground.clusters.rows import row_of, rows_of
from playground.clusters.selection import Selection
from playground.clusters.selectors.overview import clusters_of, role_in

_RANK: Final = {Role.VIEWER: 1, Role.EDITOR: 2, Role.OWNER: 3}


def get_cluster(public_id: str, user: Any = None, *, at_least: Role = Role.VIEWER) -> Cluster:
    """The cluster, if a user may do with it what the role may.

    Raises
    ------
    NotFound
        It does not exist, or it is somebody else's: the two look the same.
    Forbidden
        The user may see it and no more.
    """
    cluster = clusters_of(user).filter(public_id=public_id).first()
    if cluster is None:
        raise NotFound(f'cluster "{public_id}" not found', kind="Cluster", name=public_id)
    check_role(cluster, user, at_least)
    return cluster


def check_role(cluster: Cluster, user: Any, at_least: Role) -> None:
    """Refuse what takes a higher role than the user has.

    Raises
    ------
    Forbidden
    """
    if at_least == Role.VIEWER:
        return
    role = role_in(cluster, user)
    if role is None or _RANK[role] < _RANK[at_least]:
        raise Forbidden(
            f'that takes the role "{at_least}" in cluster "{cluster.public_id}", yours is "{role}"',
            kind="Cluster",
            name=cluster.public_id,
        )


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
    if row is None:
        raise NotFound(f'{kind.resource} "{name}" not found', kind=kind.kind, namespace=namespace, name=name)
    manifest: dict[str, Any] = row.manifest
    return manifest


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


def selected_objects(
    cluster: Cluster,
    kind: Kind,
    selection: Selection,
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
    if after is not None:
        later = Q(name__gt=after[1])
        if kind.namespaced:
            later = Q(namespace__gt=after[0]) | (Q(namespace=after[0]) & later)
        rows = rows.filter(later)
    for manifest in rows.values_list("manifest", flat=True).iterator(chunk_size=500):
        if not selection or selection.matches(manifest):
            yield manifest


def log_after(
    cluster: Cluster, seq: int, *, kind: Kind | None = None, namespace: str | None = None, limit: int = 1000
) -> list[LogEntry]:
    """Entries after `seq` in order, of one kind of object if given: what a watch sends.

    A ``write`` (or ``event``) with `created` is ADDED, without it MODIFIED; a ``delete`` whose payload says
    ``gone`` is DELETED, else MODIFIED. The object is ``payload["manifest"]``.
    """
    rows = LogEntry.objects.filter(cluster=cluster, seq__gt=seq)
    if kind is not None:
        rows = rows.filter(object_kind=kind.kind)
    if namespace:
        rows = rows.filter(object_namespace=namespace)
    return list(rows.order_by("seq")[:limit])


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
