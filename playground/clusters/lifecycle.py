"""Clusters come and go: create, rename, clone, reset, delete, export."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from django.db import transaction

from playground.accounts import audit
from playground.clusters import kinds, wake
from playground.clusters.clock import wall_now_ns
from playground.clusters.custom_kinds import table_of
from playground.clusters.drive.config import checked_config, checked_release
from playground.clusters.errors import InvalidInput
from playground.clusters.extenders.mock import mock_rules_of, serve_mock_extenders
from playground.clusters.kinds import Kind, KindTable
from playground.clusters.log.changes import opening
from playground.clusters.log.quotas import check_clusters, lock_person
from playground.clusters.log.rows import rows_of
from playground.clusters.log.writer import check_not_followed, locked, writing
from playground.clusters.models import Cluster, LogEntry, MockExtender, Question
from playground.clusters.objects.queries import entry_before
from playground.clusters.objects.updates import object_uid, without_server_fields
from playground.engine.batch import merged_changes
from scheduler_core.incident.as_scenario import OWNERS, selecting
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.reading import DocumentWriter
from scheduler_core.sim.admission import SYSTEM_PREFIX, system_priority_classes

MAX_NAME = 100
EXPORT_PART: Final = 200
"""Objects an export holds at once."""
SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_OF_ENGINE: Final = (
    *("cursor_seq", "engine_seq", "entries_since_checkpoint", "next_cycle", "next_deadline_ns"),
    *("next_deadline_what", "clock_mode", "wall_anchor", "virtual_anchor_ns"),
)
"""Columns of a cluster's row that a running engine moves; `now_ns` begins at its start."""
_CLONED: Final = ("seed", "config", "kubernetes_release", "feature_gates", "assumed_expiry_ns")


def create_cluster(
    *,
    name: str,
    owner: Any = None,
    team: Any = None,
    seed: int | None = None,
    config: Mapping[str, Any] | None = None,
    kubernetes_release: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    start_ns: int | None = None,
    live: bool = False,
    **origin: Any,
) -> Cluster:
    """A new cluster, paused, with only what every cluster has (four namespaces, two PriorityClasses).

    Parameters
    ----------
    name
        What people call it; 1 to 100 characters, need not be unique.
    owner
        A user, or None for the local one; for their quotas it counts, also if a team has it.
    team
        A team instead of an owner.
    seed
        Of the named random streams; drawn when None.
    config
        KubeSchedulerConfiguration document; None = the default one.
    kubernetes_release
        The release of Kubernetes it follows; None = the newest whose recorded decisions are agreed with.
    feature_gates
        Gates of the release that are switched.
    start_ns
        Virtual time it starts at; None = the wall clock.
    live
        It mirrors a live cluster (foreign/following.py), and is empty until a follower tells of that.
    **origin
        Columns that say what it is made of.

    Raises
    ------
    InvalidInput
        A bad name, seed, configuration, release or gate.
    QuotaExceeded
        The owner has as much as one person may have.
    """
    start = wall_now_ns() if start_ns is None else start_ns
    cluster = Cluster(
        name=_checked_name(name),
        owner=None if team else owner,
        team=team,
        creator=owner,
        start_ns=start,
        now_ns=start,
        clock_mode=Cluster.ClockMode.LIVE if live else Cluster.ClockMode.PAUSED,
        **origin,
    )
    if seed is not None:
        if isinstance(seed, bool) or not 0 <= seed < 2**63:
            raise InvalidInput("the seed must be a whole number from 0 to 2^63-1", field="seed", value=seed)
        cluster.seed = seed
    release = checked_release(kubernetes_release, feature_gates)
    cluster.kubernetes_release, cluster.feature_gates = release["name"], release["switched"]
    cluster.config = checked_config(config, release)
    with transaction.atomic():
        lock_person(owner)
        check_clusters(owner)
        cluster.save(force_insert=True)
        with opening(), writing(cluster) as writer:
            # A live cluster has its own.
            for manifest in () if cluster.is_followed else _system_objects(cluster):
                kind = kinds.named(manifest["kind"])
                writer.write(LogEntry.Source.API, kind, manifest, created=True)
    return cluster


def rename_cluster(*, cluster: Cluster, name: str) -> Cluster:
    """Give it another name."""
    checked = _checked_name(name)
    with writing(cluster) as writer:
        if writer.cluster.name == checked:
            return cluster
        writer.words = f'rename the cluster to "{checked}"'
        writer.cluster.name = checked
    return cluster


def clone_cluster(*, cluster: Cluster, name: str, owner: Any = None) -> Cluster:
    """A new cluster with the objects of this one as they are now, bound pods included.

    The clone has a log of its own that begins with these objects; the queue starts afresh, cycles and Events
    stay behind. Seed, configuration, release and the virtual time are the same; mock extenders become the clone's own.
    """
    clone = Cluster(
        name=_checked_name(name),
        owner=owner,
        creator=owner,
        start_ns=cluster.now_ns,
        now_ns=cluster.now_ns,
        parent=cluster,
        parent_cycle=cluster.next_cycle - 1,
        **{column: getattr(cluster, column) for column in _CLONED},
    )
    with transaction.atomic():
        lock_person(owner)
        check_clusters(owner)
        source = locked(cluster.pk)
        clone.parent_seq = source.last_input_seq
        clone.save(force_insert=True)
        serve_mock_extenders(cluster=clone, rules=mock_rules_of(source, clone.config))
        begin(clone, _cloned(source))
    return clone


def _cloned(source: Cluster) -> Iterator[tuple[Kind, Mapping[str, Any]]]:
    """All objects in the order of their kinds; of a live cluster's workloads, which were not read, what they select."""
    for kind in _in_order(source):
        for manifest in _manifests(source, kind):
            if source.is_followed and kind.row_kind in OWNERS:
                yield kinds.named("Service"), selecting(manifest)
            else:
                yield kind, manifest


def reset_cluster(*, cluster: Cluster) -> Cluster:
    """Back to the start of its clock: the objects people wrote stay, everything the engine did is forgotten.

    Pods are unbound again (unless they were created with a node), controllers' pods are gone, the log begins
    anew with the written objects in their order (`as_written`). Sequence numbers go on, so that no reader sees one
    twice.
    """
    with transaction.atomic():
        row = locked(cluster.pk)
        check_not_followed(row)
        table = table_of(row)
        kept = written_objects(row, table)
        # An intended bind call would be work for ever, and an old answer would be shown with a new cycle.
        for relation in Cluster._meta.related_objects:
            model = relation.related_model
            if model._meta.app_label == "clusters" and model not in (Cluster, MockExtender, Question):
                model._default_manager.filter(cluster=row).delete()
        _forget_engine(row)
        row.stored_bytes, row.measured_seq = 0, row.next_seq
        row.compacting_seq = row.compacted_seq = 0
        row.save()
        objects = ((table.by_row_kind(row_kind), manifest) for (row_kind, _, _), manifest in kept.items())
        begin(row, ((kind, manifest) for kind, manifest in objects if kind is not None), may_exceed=True)
    cluster.refresh_from_db()
    return cluster


def begin(
    cluster: Cluster, objects: Iterable[tuple[Kind, Mapping[str, Any]]], *, may_exceed: bool = False
) -> None:
    """Write what a cluster begins with, in this order: what comes from here on are edits.

    Parameters
    ----------
    may_exceed
        Quotas do not count.
    """
    with opening(), writing(cluster) as writer:
        writer.may_exceed = may_exceed
        if cluster.assumed_expiry_ns:
            writer.append(LogEntry.Source.API, LogEntry.Kind.EXPIRY, {"afterNs": cluster.assumed_expiry_ns})
        for kind, manifest in objects:
            writer.write(LogEntry.Source.API, kind, manifest, created=True)
    note_opening(cluster)
    wake.cluster_on_commit(cluster)


def note_opening(cluster: Cluster) -> None:
    """What is in the log now is how the cluster begins: what comes from here on are edits."""
    cluster.opening_seq = cluster.last_seq
    cluster.save(update_fields=["opening_seq"])


def delete_cluster(*, cluster: Cluster, by: Any = None) -> None:
    """Remove it and everything in it; an engine at work on it cannot commit afterwards."""
    with transaction.atomic():
        row = locked(cluster.pk)
        audit.record("cluster-deleted", by=by, about=row.owner, team=row.team, target=str(row))
        row.delete()


def export_manifests(cluster: Cluster, *, kind_names: Iterable[str] | None = None) -> Iterator[str]:
    """Everything people can apply again, as multi-document YAML; Events and what every cluster has left out.

    Parameters
    ----------
    kind_names
        Only these kinds.

    Returns
    -------
    iterator of str
        The text in parts, read from the database as they are asked for.
    """
    wanted = None if kind_names is None else set(kind_names)
    writer = DocumentWriter()
    for kind in _in_order(cluster):
        if wanted is not None and kind.kind not in wanted:
            continue
        rows = _manifests(cluster, kind)
        while part := list(islice(rows, EXPORT_PART)):
            yield "".join(
                writer.write(without_server_fields(manifest))
                for manifest in part
                if not is_system_object(manifest)
            )


def is_system_object(manifest: Mapping[str, Any]) -> bool:
    """Whether every cluster has this object without anybody writing it."""
    name: str = manifest["metadata"]["name"]
    if manifest["kind"] == "Namespace":
        return name in SYSTEM_NAMESPACES
    return manifest["kind"] == "PriorityClass" and name.startswith(SYSTEM_PREFIX)


def _in_order(cluster: Cluster) -> list[Kind]:
    all_but_events = (kind for kind in table_of(cluster).kinds if kind.row_kind != "Event")
    return sorted(all_but_events, key=lambda kind: kind.apply_rank)


def _manifests(cluster: Cluster, kind: Kind) -> Iterator[dict[str, Any]]:
    rows = rows_of(cluster, kind).order_by("resource_version")
    yield from rows.values_list("manifest", flat=True).iterator(chunk_size=1000)


def _forget_engine(row: Cluster) -> None:
    """Everything about a running engine back to nothing; one at work elsewhere is fenced off."""
    row.fence()
    new = Cluster()
    for name in _OF_ENGINE:
        setattr(row, name, getattr(new, name))
    row.now_ns = row.start_ns


def _checked_name(name: str) -> str:
    cleaned = " ".join(str(name).split())
    if not cleaned:
        raise InvalidInput("a cluster needs a name", field="name", value=name)
    if len(cleaned) > MAX_NAME:
        raise InvalidInput(f"a name has at most {MAX_NAME} characters", field="name", value=cleaned)
    if not cleaned.isprintable():
        raise InvalidInput("a name has only printable characters", field="name", value=cleaned)
    return cleaned


def _system_objects(cluster: Cluster) -> list[dict[str, Any]]:
    stamp = format_seconds(cluster.start_ns)
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "status": {"phase": "Active"},
        }
        for name in SYSTEM_NAMESPACES
    ]
    objects += system_priority_classes()
    for number, manifest in enumerate(objects):
        manifest["metadata"] |= {
            "uid": object_uid(cluster.seed, manifest["kind"], "", manifest["metadata"]["name"], number),
            "creationTimestamp": stamp,
        }
    return objects


# ---- manifests as they were written first

Key = tuple[str, str, str]


def written_objects(cluster: Cluster, table: KindTable) -> dict[Key, dict[str, Any]]:
    """Row kind, namespace and name -> manifest, of every object people wrote and did not delete, in the log's order.

    Of kinds the simulation does not read they are as they are now, and stand first: only clients write them.

    A later write by a person holds the whole object, with what the engine had written into it by then (a pod's node,
    its conditions, a claim's volume). So only what that write changed is taken over. A Binding is a decision and not
    a change of what was written: a pod has the node here that it was created with, if any.
    """
    kept = _kept_objects(cluster, table)
    inputs = LogEntry.objects.filter(
        cluster=cluster,
        source=LogEntry.Source.API,
        kind__in=[LogEntry.Kind.WRITE, LogEntry.Kind.DELETE],
    )
    for entry in inputs.order_by("seq").iterator(2000):
        key = (entry.object_kind, entry.object_namespace, entry.object_name)
        if entry.kind == LogEntry.Kind.DELETE:
            kept.pop(key, None)
        elif entry.created:
            kept[key] = entry.payload["manifest"]
        elif key in kept:
            before, after = before_write(entry), entry.payload["manifest"]
            if not is_binding(before, after):
                kept[key] = merged_changes(before, after, kept[key])
    return kept


def _kept_objects(cluster: Cluster, table: KindTable) -> dict[Key, dict[str, Any]]:
    found: dict[Key, dict[str, Any]] = {}
    for kind in sorted(table.kinds, key=lambda item: item.apply_rank):
        if kind.interpreted or kind.row_kind == "Event":
            continue
        for manifest in (
            rows_of(cluster, kind).order_by("resource_version").values_list("manifest", flat=True)
        ):
            meta = manifest["metadata"]
            found[kind.row_kind, meta.get("namespace", "") if kind.namespaced else "", meta["name"]] = (
                manifest
            )
    return found


def before_write(entry: LogEntry) -> Mapping[str, Any]:
    """The object as this write found it. Compaction keeps the entry that says so (`log/housekeeping.py`)."""
    found = entry_before(entry)
    assert found is not None, f"{entry}: an object is changed that was not written"
    manifest: Mapping[str, Any] = found.payload["manifest"]
    return manifest


def is_binding(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a write put a pod on a node."""
    if after["kind"] != "Pod":
        return False
    return not before["spec"].get("nodeName") and bool(after["spec"].get("nodeName"))
