"""The pen: appends to a cluster's log and folds every entry into object rows, under the cluster's lock."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import DEFINITION
from playground.clusters.errors import Conflict, NotFound, TooLarge
from playground.clusters.kinds import Kind
from playground.clusters.log import changes
from playground.clusters.log.quotas import check_bytes
from playground.clusters.log.rows import MODELS, in_parts, insert_rows, row_values, rows_of, upsert
from playground.clusters.models import Cluster, LogEntry, Manifest, Node, Pod
from playground.clusters.packed import Packed, pack_text
from playground.engine.columns import profile_names
from playground.engine.compressed import to_json
from scheduler_core.scenario.bounds import is_controlled, pods_asked_for
from scheduler_core.validation.kinds import LAST_APPLIED

DEMANDING: Final = (
    "CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "ReplicaSet", "ReplicationController",
    "StatefulSet",
)  # fmt: skip
"""Kinds whose controllers make pods, or have them made."""


def check_demand(
    cluster: Cluster, rows: Mapping[tuple[str, str, str], tuple[Kind, Mapping[str, Any], int] | None]
) -> None:
    """Refuse what makes all workloads of a cluster together ask for more pods than it may have objects.

    A DaemonSet asks for a pod a node. Pods that workloads own already are what was asked for before.

    Parameters
    ----------
    rows
        (kind, namespace, name) -> kind, manifest and number as it will be, None = gone; of what is written now.

    Raises
    ------
    TooLarge
    """
    limit = settings.PLAYGROUND_MAX_OBJECTS
    nodes = set(Node.objects.filter(cluster=cluster).values_list("name", flat=True))
    manifests: dict[tuple[str, str, str], Any] = {
        (kind, namespace, name): manifest
        for kind, namespace, name, manifest in Manifest.objects.filter(
            cluster=cluster, kind__in=DEMANDING
        ).values_list("kind", "namespace", "name", "manifest")
    }
    n_before = sum(count for count, *_ in _asked(manifests, len(nodes)))
    for key, row in rows.items():
        if key[0] == "Node":
            (nodes.discard if row is None else nodes.add)(key[2])
        elif key[0] in DEMANDING:
            manifests.pop(key, None)
            if row is not None:
                manifests[key] = row[1]
    asked = _asked(manifests, len(nodes))
    n_asked = sum(count for count, *_ in asked)
    if n_asked <= n_before:  # what is over the limit already may shrink
        return
    n_others = (
        Manifest.objects.filter(cluster=cluster).exclude(kind__in=DEMANDING).exclude(kind="Event").count()
    )
    n_others += Pod.objects.filter(cluster=cluster, owner_kind="").count()
    total = n_asked + n_others + len(manifests) + len(nodes)
    if total <= limit:
        return
    count, kind, _, name, path = max(asked)
    others = "" if len(asked) == 1 else f"; all workloads together ask for {n_asked:,}"
    raise TooLarge(
        f'{kind} "{name}" asks for {count:,} pods in {path}{others};'
        f" a cluster has at most {limit:,} objects, pods of controllers included"
    )


def _asked(
    manifests: Mapping[tuple[str, str, str], Any], n_nodes: int
) -> list[tuple[int, str, str, str, str]]:
    """(pods, kind, namespace, name, field) of each workload without an owner among them."""
    return [
        (found[0], *key, found[1])
        for key, manifest in manifests.items()
        if not is_controlled(manifest) and (found := pods_asked_for(manifest, n_nodes)) is not None
    ]


ObjectKey = tuple[str, str, str]
"""``(row kind, namespace, name)``; namespace empty for cluster-scoped kinds."""
_FLEETING: Final = ("Lease",)
"""Kinds whose objects are written again and again, of which the log keeps what clients wrote last."""
MAX_OBJECT_BYTES: Final = 1_572_864
"""As etcd takes requests (its --max-request-bytes)."""


def check_not_followed(cluster: Cluster) -> None:
    """Refuse to change, or to run, what mirrors a live cluster.

    Raises
    ------
    Conflict
    """
    if cluster.is_followed:
        raise Conflict(
            f'"{cluster.name}" follows a live cluster and only mirrors it:'
            " make a copy of it to change or run something",
            kind="Cluster",
            name=cluster.public_id,
        )


class LogWriter:
    """Collects entries and their effect on rows; `flush` writes them.

    Parameters
    ----------
    cluster
        The locked row. Its counters are moved here and saved by `flush`.

    Attributes
    ----------
    may_exceed
        Whether it writes over a quota: what only gets smaller is not refused.
    words
        What is done, as a command, where the entries do not say it well; it can be undone also without an entry. None:
        another scheduler does it, and it is no change.
    follows
        It writes what a follower says of a live cluster: no other writes objects into the cluster that mirrors it.
    lane_of
        Set by the engine's commit: a pod's namespace and name -> its lane and reserved node, written with its row.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.at_ns = virtual_now_ns(cluster)
        self.profiles = profile_names(cluster.config)
        self.columns = _columns_of(cluster)
        self._entries: list[dict[str, Any]] = []
        self._rows: dict[ObjectKey, tuple[Kind, dict[str, Any], int] | None] = {}
        self._gone: dict[ObjectKey, Kind] = {}
        self._renewed: set[ObjectKey] = set()
        self._n_asked = 0
        self._asked: list[dict[str, Any]] = []
        self._texts: dict[int, bytes] = {}
        self.may_exceed = False
        self.words: str | None = ""
        self.follows = False
        self.lane_of: Callable[[str, str], tuple[str, str]] | None = None
        self._asks_for_pods = False
        self._ending: dict[str, bool] = {}
        self.namespace_limits: dict[str, Any] = {}
        """Namespace -> what its LimitRanges and ResourceQuotas allow; of what is created in this transaction."""

    def is_ending(self, namespace: str) -> bool:
        """Whether a namespace was terminating before this transaction."""
        if namespace not in self._ending:
            rows = Manifest.objects.filter(cluster=self.cluster, kind="Namespace", name=namespace)
            manifest = rows.values_list("manifest", flat=True).first()
            self._ending[namespace] = bool(manifest and manifest["metadata"].get("deletionTimestamp"))
        return self._ending[namespace]

    def append(
        self,
        source: str,
        kind: str,
        payload: dict[str, Any],
        *,
        at_ns: int | None = None,
        cycle: int | None = None,
        key: ObjectKey = ("", "", ""),
        created: bool = False,
    ) -> int:
        """Add one entry and return its sequence number; one of a cycle is no input to be read later."""
        seq = self._number()
        if source == LogEntry.Source.API and cycle is None:
            self.cluster.last_input_seq = seq
        self._entries.append(
            {
                "cluster": self.cluster.pk,
                "seq": seq,
                "source": str(source),
                "kind": str(kind),
                "at_ns": self.at_ns if at_ns is None else at_ns,
                "cycle": cycle,
                "object_kind": key[0],
                "object_namespace": key[1],
                "object_name": key[2],
                "created": created,
                "payload": payload,
            }
        )
        return seq

    def _number(self) -> int:
        seq = self.cluster.next_seq
        self.cluster.next_seq += 1
        self.cluster.entries_since_checkpoint += 1
        return seq

    def write(
        self,
        source: str,
        kind: Kind,
        manifest: Mapping[str, Any],
        *,
        created: bool,
        reason: str | None = None,
        at_ns: int | None = None,
        cycle: int | None = None,
        by: str = "",
    ) -> dict[str, Any]:
        """An object is now this; returns it with its new resourceVersion. `by` is the scheduler that decided it.

        An Event takes a number and is a row, no entry: nothing is decided by it, and it is not written twice.
        """
        source = self._source(source, kind)
        if source != LogEntry.Source.ENGINE:
            self._n_asked += created
            self._asks_for_pods |= kind.row_kind in DEMANDING or (created and kind.row_kind == "Node")
        meta = dict(manifest["metadata"])
        whole = dict(manifest) | {"metadata": meta}
        meta["resourceVersion"] = str(self.cluster.next_seq)
        if source != LogEntry.Source.ENGINE:
            self._asked.append(whole)
        key = key_of(kind, whole)
        if kind.row_kind == "Event":
            self._rows[key] = (kind, whole, self._number())
            return whole
        payload: dict[str, Any] = {"manifest": whole}
        if reason is not None:
            payload["reason"] = reason
        if by:
            payload["by"] = by
        seq = self.append(
            source, LogEntry.Kind.WRITE, payload, at_ns=at_ns, cycle=cycle, key=key, created=created
        )
        self._rows[key] = (kind, whole, seq)
        if source == LogEntry.Source.KEPT and not created and kind.row_kind in _FLEETING:
            self._renewed.add(key)
        self._note_kinds(kind, seq)
        return whole

    def _source(self, source: str, kind: Kind) -> str:
        """What the simulation does not read stays out of the log that replays.

        Raises
        ------
        Conflict
            The cluster mirrors a live one.
        """
        if not self.follows:
            check_not_followed(self.cluster)
        kept = source == LogEntry.Source.API and not kind.interpreted
        return LogEntry.Source.KEPT if kept else source

    def _note_kinds(self, kind: Kind, seq: int) -> None:
        if kind.row_kind == DEFINITION:
            self.cluster.kinds_seq = seq

    def delete(
        self,
        source: str,
        kind: Kind,
        manifest: Mapping[str, Any],
        *,
        gone: bool = True,
        grace_s: int | None = None,
        reason: str | None = None,
        at_ns: int | None = None,
        cycle: int | None = None,
        by: str = "",
    ) -> dict[str, Any]:
        """An object is asked to go (`gone` = it has gone); returns its last state."""
        source = self._source(source, kind)
        meta = dict(manifest["metadata"])
        whole = dict(manifest) | {"metadata": meta}
        meta["resourceVersion"] = str(self.cluster.next_seq)
        key = key_of(kind, whole)
        payload: dict[str, Any] = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "namespace": key[1],
            "name": key[2],
            "gone": gone,
            "manifest": whole,
        }
        if source == LogEntry.Source.API:
            payload["gracePeriodSeconds"] = grace_s
        if reason is not None:
            payload["reason"] = reason
        if by:
            payload["by"] = by
        seq = self.append(source, LogEntry.Kind.DELETE, payload, at_ns=at_ns, cycle=cycle, key=key)
        self._rows[key] = None if gone else (kind, whole, seq)
        if gone:
            self._gone[key] = kind
        self._note_kinds(kind, seq)
        return whole

    def told(self) -> list[tuple[str, str]]:
        """Verb and object of what a person does with this, in order."""
        return [told for entry in self._entries if (told := changes.told_of(entry)) is not None]

    def pods(self) -> set[tuple[str, str]]:
        """Namespace and name of the pods that `flush` will write."""
        return {(namespace, name) for kind, namespace, name in self._rows if kind == "Pod"}

    def pending_kinds(self, namespace: str) -> list[str]:
        """Kinds of which `flush` will write objects of a namespace."""
        return sorted({kind for kind, place, _ in self._rows if place == namespace})

    def pending(self, kind_name: str, namespace: str) -> list[tuple[str, dict[str, Any] | None]]:
        """Name and manifest of the objects of a kind that `flush` will write; None for those that go."""
        return [
            (name, None if row is None else row[1])
            for (kind, place, name), row in self._rows.items()
            if (kind, place) == (kind_name, namespace)
        ]

    def removes(self, kind: Kind, namespace: str, name: str) -> bool:
        """Whether `flush` will remove an object."""
        return (kind.row_kind, namespace, name) in self._gone

    def check_room(self) -> None:
        """Refuse what would leave the cluster with more objects than `PLAYGROUND_MAX_OBJECTS`; Events are not counted.

        What the engine writes (pods of controllers) counts, and is never refused itself; what its controllers will
        make counts when it is asked for (demand.py).

        Raises
        ------
        TooLarge
        """
        if self._asks_for_pods and not self.follows:
            check_demand(self.cluster, self._rows)
        limit = settings.PLAYGROUND_MAX_OBJECTS
        # Every object took a number of its own, so most clusters need no counting.
        if not self._n_asked or self.cluster.next_seq <= limit:
            return
        rows = (model for name, model in MODELS.items() if name != "Event")
        stored = sum(model._default_manager.filter(cluster=self.cluster).count() for model in rows)
        wanted = stored + self._n_asked - sum(row is None for row in self._rows.values())
        if wanted > limit:
            raise TooLarge(
                f"the cluster would have {wanted:,} objects; it has {stored:,}, and at most {limit:,} are allowed"
            )

    def _check_sizes(self) -> None:
        """Refuse an object that etcd would not take; the copy that `kubectl apply` makes of it has as much room again.

        Raises
        ------
        TooLarge
        """
        for manifest in self._asked:
            if (size := len(self._text(manifest))) <= MAX_OBJECT_BYTES:
                continue
            if copied := (manifest["metadata"].get("annotations") or {}).get(LAST_APPLIED):
                size = max(size - len(to_json(copied)), len(copied.encode()))
            if size > MAX_OBJECT_BYTES:
                name = manifest["metadata"]["name"]
                raise TooLarge(
                    f'{manifest["kind"]} "{name}" has {size:,} bytes; an object has at most {MAX_OBJECT_BYTES:,}'
                )

    def _charge(self) -> None:
        """Count what a person writes for who made the cluster.

        Raises
        ------
        QuotaExceeded
        """
        if not self._asked or self.cluster.creator_id is None:
            return
        # Once in the log, once as the object; packed, as both are stored.
        asked_bytes = sum(2 * len(pack_text(self._text(manifest))) for manifest in self._asked)
        if not self.may_exceed:
            check_bytes(self.cluster.creator, asked_bytes)
        self.cluster.stored_bytes += asked_bytes

    def _text(self, manifest: dict[str, Any]) -> bytes:
        """JSON of a manifest that goes into the log and into a row: made once."""
        text = self._texts.get(id(manifest))
        if text is None:
            text = self._texts[id(manifest)] = to_json(manifest)
        return text

    def _stored_payload(self, payload: dict[str, Any]) -> dict[str, Any] | Packed:
        if next(iter(payload), None) != "manifest":
            return payload
        rest = {name: value for name, value in payload.items() if name != "manifest"}
        end = b"," + to_json(rest)[1:] if rest else b"}"
        return pack_text(b'{"manifest":' + self._text(payload["manifest"]) + end)

    def _row(self, kind: Kind, manifest: dict[str, Any], seq: int) -> dict[str, Any]:
        values = row_values(self.cluster, kind, manifest, seq, self.profiles)
        return values | {"manifest": pack_text(self._text(manifest))}

    def flush(self) -> None:
        """Write entries, rows and what changed of the cluster's row.

        Raises
        ------
        TooLarge, QuotaExceeded
            See `check_room` and `quotas`.
        """
        self.check_room()
        self._check_sizes()
        self._charge()
        for kind_name, namespace, name in sorted(self._renewed):
            # Watches that have not looked yet see the newest; how a lease was renewed last week is not asked for.
            LogEntry.objects.filter(
                cluster=self.cluster,
                source=LogEntry.Source.KEPT,
                object_kind=kind_name,
                object_namespace=namespace,
                object_name=name,
            ).delete()
        if self._entries:
            entries = [entry | {"payload": self._stored_payload(entry["payload"])} for entry in self._entries]
            insert_rows(LogEntry, entries)
        gone: dict[tuple[Kind, str], list[str]] = {}
        for key, written in self._rows.items():
            if written is None:
                gone.setdefault((self._gone[key], key[1]), []).append(key[2])
        for (kind, namespace), names in gone.items():
            for part in in_parts(names):
                rows = rows_of(self.cluster, kind).filter(name__in=part)
                (rows.filter(namespace=namespace) if kind.namespaced else rows).delete()
        # An object written twice is one row, of its last state.
        values = [(written[0], self._row(*written)) for written in self._rows.values() if written is not None]
        if self.lane_of is not None:
            for kind, row in values:
                if kind.row_kind == "Pod":
                    row["lane"], row["reserved_node"] = self.lane_of(row["namespace"], row["name"])
        upsert(values, update_lanes=self.lane_of is not None)
        self.cluster.version += 1
        columns = _columns_of(self.cluster)
        self.cluster.save(update_fields=[name for name in columns if columns[name] != self.columns[name]])
        self.columns = columns
        self._entries, self._rows, self._asked, self._texts = [], {}, [], {}
        self._gone, self._renewed = {}, set()


def _columns_of(cluster: Cluster) -> dict[str, Any]:
    return {name: value for name, value in vars(cluster).items() if not name.startswith("_")}


def key_of(kind: Kind, manifest: Mapping[str, Any]) -> ObjectKey:
    """Identity of an object within its cluster."""
    meta = manifest["metadata"]
    return (kind.row_kind, (meta.get("namespace") or "default") if kind.namespaced else "", meta["name"])


@contextmanager
def writing(cluster: Cluster, *, rules: bool = False) -> Iterator[LogWriter]:
    """One short transaction that holds the cluster's lock; flushed at its end, nothing kept on an error.

    What a person does with it is noted as a change that can be undone (changes.py); with `rules` it changes mock
    extenders.

    PostgreSQL locks the row; SQLite's transactions begin IMMEDIATE and so hold the one write lock.
    The given instance sees the new counters afterwards.

    Raises
    ------
    NotFound
        The cluster is gone.
    """
    with transaction.atomic():
        writer = LogWriter(locked(cluster.pk))
        before = changes.standing(writer.cluster, writer.at_ns, rules=rules)
        yield writer
        changes.note(writer.cluster, before, writer.told(), writer.words)
        writer.flush()
    vars(cluster).update(writer.columns)


def locked(cluster_id: int) -> Cluster:
    """The cluster's row, locked until the surrounding transaction ends."""
    row = Cluster.objects.select_for_update(of=("self",)).filter(pk=cluster_id).first()
    if row is None:
        raise NotFound("the cluster is gone", kind="Cluster")
    return row
