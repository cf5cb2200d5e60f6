"""Apply: posted manifests become the cluster's objects, all of them or none."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from playground.clusters import kinds, wake
from playground.clusters.clock import virtual_now_ns
from playground.clusters.custom_kinds import DEFINITION, admit_definition, table_of, with_definitions
from playground.clusters.errors import Forbidden, InvalidManifest
from playground.clusters.kinds import BUILT_IN, Kind, KindTable
from playground.clusters.log.rows import row_of, rows_named, rows_of
from playground.clusters.log.writer import LogWriter, ObjectKey, key_of, writing
from playground.clusters.models import Cluster, LogEntry, Manifest, PriorityClass
from playground.clusters.objects import deletion
from playground.clusters.objects.admission import (
    FieldValidation,
    Overtaken,
    Surroundings,
    admitted,
    read_posted,
    settled,
    with_namespace_limits,
)
from playground.clusters.objects.updates import (
    generated_name,
    object_uid,
    same,
    updated,
    with_addresses,
    without_server_fields,
)
from playground.engine import admission
from playground.engine.admission import taken_only_here
from playground.engine.columns import why_it_waits
from playground.engine.rebuilt_owners import rebuilt_owners, without_their_sets
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import format_seconds, parse_time_ns
from scheduler_core.objects.meta import generations, uid_of
from scheduler_core.objects.reading import (
    WRONG,
    Posted,
    check_any_object,
    from_objects,
    problem_of_type,
    type_of,
)
from scheduler_core.records import Documented
from scheduler_core.sim.admission import with_gated_condition


def in_order(known: Iterable[tuple[Kind, Posted]]) -> list[tuple[Kind, Posted]]:
    """By the kinds' ranks, and an owner after what it owns; else as posted.

    The log is read one entry at a time. A Deployment that came before its ReplicaSets, as in a dump of a real cluster,
    would roll out all its pods once more: beside those that are already on its nodes.
    """
    found = list(known)
    heights = generations(item.manifest for _, item in found)

    def place(pair: tuple[Kind, Posted]) -> tuple[int, int]:
        return pair[0].apply_rank, heights.get(uid_of(pair[1].manifest), 0)

    return sorted(found, key=place)


def owners_not_here(
    known: Iterable[tuple[Kind, Posted]], cluster: Cluster | None
) -> Counter[tuple[str, str]]:
    """Pods by (kind, uid) of the controlling owner they name that is neither in the request nor in the cluster."""
    found = list(known)
    here = {uid_of(item.manifest) for _, item in found}
    named: Counter[tuple[str, str]] = Counter()
    for of, item in found:
        references = _mapping(item.manifest.get("metadata")).get("ownerReferences")
        if of.row_kind != "Pod" or not isinstance(references, list):
            continue
        for reference in map(_mapping, references):
            uid = str(reference.get("uid", ""))
            if reference.get("controller") and uid not in here:
                named[str(reference.get("kind", "")), uid] += 1
    if named and cluster is not None:
        kinds = {kind for kind, _ in named}
        rows = Manifest.objects.filter(cluster=cluster, kind__in=kinds)
        for kind, uid in rows.values_list("kind", "uid"):
            named.pop((kind, uid), None)
    return named


def missing_owners(known: Iterable[tuple[Kind, Posted]], cluster: Cluster | None) -> dict[str, int]:
    """Pods by the kind of the owner they name that is not here."""
    counts: Counter[str] = Counter()
    for (kind, _), n in owners_not_here(known, cluster).items():
        counts[kind] += n
    return dict(sorted(counts.items()))


def _mapping(value: Any) -> dict[str, Any]:
    """What was posted may be anything; admission says so later."""
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class AppliedObject(Documented):
    """One object a request touched."""

    api_version: str
    kind: str
    namespace: str
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class IgnoredObject(Documented):
    """One object that plays no part here, and why."""

    api_version: str
    kind: str
    name: str
    reason: str


@dataclass(slots=True)
class ApplyResult:
    """What became of every posted object.

    Attributes
    ----------
    created, configured, unchanged
        In the posted order within each kind's rank. `note` says ``kept, plays no part in scheduling`` of kinds that
        shape no placement, or why a pod will wait for ever.
    ignored
        Objects of kinds that play no part here: Kubernetes' other kinds, and everybody's own.
    changes
        For `configured`: field path -> (old, new), the first 20 of each object, by ``kind namespace/name``.
    warnings
        Fields no kind has, which were dropped; each told once.
    missing_owners
        Pods of the request by the kind of the controlling owner they name, where that is not here.
    rebuilt
        Owners that were not in the request and are made from its pods, if that was asked for: kind -> how many.
    manifests
        Of a dry run, every object as it would be kept.
    """

    created: list[AppliedObject] = field(default_factory=list)
    configured: list[AppliedObject] = field(default_factory=list)
    unchanged: list[AppliedObject] = field(default_factory=list)
    ignored: list[IgnoredObject] = field(default_factory=list)
    changes: dict[str, list[tuple[str, Any, Any]]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    missing_owners: dict[str, int] = field(default_factory=dict)
    rebuilt: dict[str, int] = field(default_factory=dict)
    manifests: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Lists of plain dicts by name."""
        parts: dict[str, Any] = {
            name: [
                {key: value for key, value in item.document().items() if value or name == "ignored"}
                for item in getattr(self, name)
            ]
            for name in ("created", "configured", "unchanged", "ignored")
        }
        return parts | {"warnings": list(self.warnings)}


@dataclass(slots=True)
class _Planned:
    kind: Kind
    posted: Posted
    manifest: dict[str, Any]


def apply_documents(
    *,
    cluster: Cluster | None,
    text: str | bytes | None = None,
    posted: Sequence[Posted] | None = None,
    objects: Iterable[Mapping[str, Any]] | None = None,
    content_type: str = "application/yaml",
    dry_run: bool = False,
    field_validation: str = "Warn",
    rebuild_owners: bool = False,
    also: Callable[[ApplyResult], None] | None = None,
) -> ApplyResult:
    """Create or update every object of a text (or of parsed objects); on any error nothing is kept.

    Parameters
    ----------
    cluster
        Where to. None = one that is still to be made, for a dry run only: nothing is locked then.
    text
        Multi-document YAML or JSON, lists included. Give this, `posted` or `objects`.
    posted
        A text that was read before (`read_posted`).
    objects
        Manifests as data.
    content_type
        Of the text.
    dry_run
        Say what would happen, write nothing (the import page's preview).
    field_validation
        ``Strict`` refuses fields a kind does not have, ``Warn`` tells of them and drops them, ``Ignore`` drops them.
    rebuild_owners
        Make owners that pods name and that are neither here nor in the request, from those pods.
    also
        What is written besides, in the same transaction; if it raises, nothing is kept.

    Raises
    ------
    InvalidManifest
        The first problem, its `causes` the next ones (20 at most).
    TooLarge
        The cluster afterwards.
    NotAllowed
        The definition of an object's kind is on its way out.
    Unsupported
    """
    if text is not None:
        posted = read_posted(text, content_type)
    elif posted is None:
        posted = from_objects(objects or ())
    check_any_object(posted)
    result = ApplyResult()
    table = BUILT_IN if cluster is None else table_of(cluster)
    known = _known(table, posted, result, "" if cluster is None else cluster.kubernetes_release)
    if rebuild_owners:
        known = _with_owners(table, known, cluster, result)
    result.missing_owners = missing_owners(known, cluster)
    fields = FieldValidation(field_validation, result.warnings)
    if cluster is None:
        if not dry_run:
            raise ValueError("without a cluster only a dry run is possible")
        nowhere = Cluster(pk=0, name="still to be made", start_ns=0, now_ns=0)
        _try(LogWriter(nowhere), _admitted(nowhere, known, fields), result)
        return result
    if dry_run:
        planned = _admitted(cluster, known, fields)
        _try(LogWriter(Cluster.objects.get(pk=cluster.pk)), planned, result)
        return result

    def write() -> None:
        names = class_names(cluster)
        planned = _admitted(cluster, known, fields)
        with writing(cluster) as writer:
            if class_names(cluster) != names:
                raise Overtaken
            _fold(writer, planned, result)
            if result.created or result.configured:
                wake.cluster_on_commit(writer.cluster)
            if also is not None:
                also(result)

    settled(write)
    return result


def _known(
    table: KindTable, posted: Sequence[Posted], result: ApplyResult, release: str
) -> list[tuple[Kind, Posted]]:
    """What is held here, in the order of applying; the rest is ignored by name.

    Parameters
    ----------
    table
        The cluster's kinds; those that definitions in the request itself make come to them.

    Raises
    ------
    InvalidManifest
        A kind Kubernetes' own groups do not have: a misspelt Deployment must not vanish among the ignored.
    """
    known: list[tuple[Kind, Posted]] = []
    problems: list[InvalidManifest] = []
    definitions = [item for item in posted if item.kind == DEFINITION]
    table = with_definitions(table, [made for item in definitions if (made := _definition(item)) is not None])
    for item in posted:
        kind = table.by_key(item.api_version, item.kind)
        if kind is not None and kind.row_kind != "Event" and kind.is_stored:
            known.append((kind, item))
            continue
        found = type_of(item.api_version, item.kind, release)
        if found.role == WRONG:
            problems.append(problem_of_type(item, found))
        else:
            result.ignored.append(IgnoredObject(item.api_version, item.kind, item.name, found.words))
    if problems:
        raise InvalidManifest.of(problems)
    return in_order(known)


def _definition(item: Posted) -> dict[str, Any] | None:
    """A definition that can be read; one that cannot is refused where it is admitted."""
    try:
        return admit_definition(item, stamp="")
    except InvalidManifest:
        return None


def _with_owners(
    table: KindTable, known: list[tuple[Kind, Posted]], cluster: Cluster | None, result: ApplyResult
) -> list[tuple[Kind, Posted]]:
    """The same with the owners that can be made from their pods."""
    missing = frozenset(uid for _, uid in owners_not_here(known, cluster))
    if not missing:
        return known
    of_kind: dict[str, list[Mapping[str, Any]]] = {}
    for kind, item in known:
        of_kind.setdefault(kind.row_kind, []).append(item.manifest)
    pods = of_kind.get("Pod", [])
    nodes, strangers = of_kind.get("Node", []), _stored_beside(cluster, "Pod", pods)
    try:
        rolled_out = {
            reference.get("uid")
            for one in of_kind.get("ReplicaSet", ())
            for reference in one["metadata"].get("ownerReferences") or ()
        }
        deployments = [
            one for one in of_kind.get("Deployment", ()) if one["metadata"].get("uid") not in rolled_out
        ]
        made = rebuilt_owners(
            pods,
            missing,
            of_kind.get("PersistentVolumeClaim", ()),
            nodes=[*nodes, *_stored_beside(cluster, "Node", nodes)],
            deployments=deployments,
            strangers=strangers,
        )
        idle = without_their_sets(deployments, pods, missing, made)
    except (AttributeError, KeyError, TypeError, ValueError):
        return known  # a pod that has not the form of one: admission says where
    for place, (kind, item) in enumerate(known):
        if any(item.manifest is one for one in idle):
            paused = {**item.manifest, "spec": {**item.manifest["spec"], "paused": True}}
            known[place] = (kind, replace(item, manifest=paused))
            result.warnings.append(
                f"Deployment {item.name} is paused: the ReplicaSet of its pods is missing, and it would make them anew"
            )
    for item in from_objects(made):
        made_kind = table.by_key(item.api_version, item.kind)
        assert made_kind is not None
        known.append((made_kind, item))
        result.rebuilt[made_kind.kind] = result.rebuilt.get(made_kind.kind, 0) + 1
    return in_order(known)


def _stored_beside(
    cluster: Cluster | None, name: str, posted: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Objects of a kind that a cluster has and a request does not name."""
    if cluster is None:
        return []
    of_kind = kinds.named(name)
    metas = [meta for one in posted if isinstance(meta := one.get("metadata"), Mapping)]
    named = {(str(meta.get("namespace") or "default"), meta.get("name")) for meta in metas}
    rows = rows_of(cluster, of_kind).values_list("manifest", flat=True)
    return [
        one
        for one in rows
        if (str(one["metadata"].get("namespace") or "default"), one["metadata"]["name"]) not in named
    ]


def class_names(cluster: Cluster) -> list[tuple[str, int]]:
    """Names and versions of the PriorityClasses."""
    return list(
        PriorityClass.objects.filter(cluster=cluster).order_by("name").values_list("name", "resource_version")
    )


def _admitted(
    cluster: Cluster, known: Sequence[tuple[Kind, Posted]], fields: FieldValidation
) -> list[_Planned]:
    """Default, admit and check everything against the classes of the cluster and of the request itself.

    Raises
    ------
    InvalidManifest
    """
    stored = PriorityClass.objects.filter(cluster=cluster).values_list("manifest", flat=True)
    before = {manifest["metadata"]["name"]: manifest for manifest in stored}
    by_name = dict(before)
    refused: list[tuple[int, InvalidManifest]] = []
    planned: list[_Planned] = []
    # Objects that are there already keep what admission gave them.
    there = {
        name: rows_named(
            cluster, kinds.named(name), sorted({item.name for kind, item in known if kind.row_kind == name})
        )
        for name in ("Pod", "PodGroup")
    }
    classes = admission.priority_classes(by_name.values())
    stamp = format_seconds(virtual_now_ns(cluster))
    stale = False
    for kind, item in known:
        if stale and kind.apply_rank > 1:
            classes, stale = admission.priority_classes(by_name.values()), False
        old = before.get(item.name) if kind.row_kind == "PriorityClass" else None
        if kind.custom is not None:
            row = row_of(cluster, kind, _place_of(item)[0] if kind.namespaced else "", item.name)
            old = None if row is None else row.manifest
        if kind.row_kind in there and (row := there[kind.row_kind].get(_place_of(item))) is not None:
            old = row.manifest
        try:
            manifest = admitted(
                kind,
                clean_posted(kind, item, planned_for=cluster),
                Surroundings(classes, by_name.values(), stamp, fields),
                old,
            )
        except InvalidManifest as problem:
            refused.append((_place_number(item), problem))
            if len(refused) >= 20:
                break
            continue
        if kind.row_kind == "PriorityClass":
            by_name[manifest["metadata"]["name"]] = manifest
            stale = True
        planned.append(_Planned(kind, item, manifest))
    # In the order of the text: PriorityClasses are looked at before what names them.
    problems = [problem for _, problem in sorted(refused, key=itemgetter(0))] + _twice(planned)
    if problems:
        raise InvalidManifest.of(problems)
    fields.refuse()
    return planned


def _place_of(item: Posted) -> tuple[str, str]:
    meta = item.manifest.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    return (namespace if isinstance(namespace, str) and namespace else "default", item.name)


def metadata_of(item: Posted) -> dict[str, Any]:
    """The metadata of a posted object, empty where it has none.

    Raises
    ------
    InvalidManifest
    """
    meta = item.manifest.get("metadata")
    if meta is not None and not isinstance(meta, dict):
        raise item.invalid(InvalidObject("metadata", meta, "must be an object"))
    return meta or {}


def clean_posted(kind: Kind, item: Posted, *, planned_for: Cluster) -> Posted:
    """The posted object without what only a server sets, its generateName turned into a name.

    Raises
    ------
    InvalidManifest
        metadata is not an object, or a cluster-scoped object names a namespace.
    """
    manifest = without_server_fields(item.manifest | {"metadata": metadata_of(item)})
    cleaned = manifest["metadata"]
    prefix = cleaned.get("generateName")
    if not cleaned.get("name") and isinstance(prefix, str) and prefix:
        cleaned["name"] = generated_name(
            prefix, planned_for.seed, planned_for.next_seq, attempt=_place_number(item)
        )
    if not kind.namespaced:
        cleaned.pop("namespace", None)
    return replace(item, manifest=manifest)


def _place_number(item: Posted) -> int:
    """A number that rises with the objects of one text."""
    place = int("".join(letter for letter in item.prefix if letter.isdigit()) or 0)
    return item.document * 1_000_003 + place


def _twice(planned: Sequence[_Planned]) -> list[InvalidManifest]:
    seen: set[ObjectKey] = set()
    problems = []
    for item in planned:
        key = key_of(item.kind, item.manifest)
        if key in seen:
            name = f"{key[1]}/{key[2]}" if key[1] else key[2]
            problems.append(
                item.posted.problem(
                    f'{item.kind.kind} "{name}" is there twice in this request',
                    path="metadata.name",
                    value=key[2],
                )
            )
        seen.add(key)
    return problems[:20]


def _fold(writer: LogWriter, planned: Sequence[_Planned], result: ApplyResult) -> None:
    stored = _stored(writer.cluster, planned)
    problems: list[InvalidManifest] = []
    for namespace in _missing_namespaces(writer.cluster, planned):
        kind = kinds.named("Namespace")
        manifest = new_object(
            writer,
            kind,
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {"kubernetes.io/metadata.name": namespace}},
                "status": {"phase": "Active"},
            },
        )
        writer.write(LogEntry.Source.API, kind, manifest, created=True)
        result.created.append(
            AppliedObject("v1", "Namespace", "", namespace, "named by an object, not written")
        )
    for item in planned:
        key = key_of(item.kind, item.manifest)
        old = stored.get(key)
        if old is None:
            check_may_come(writer, item.kind, *key[1:])
            manifest = new_object(writer, item.kind, item.manifest)
            writer.write(LogEntry.Source.API, item.kind, manifest, created=True)
            result.created.append(_applied(item, manifest, writer))
            continue
        try:
            manifest = updated(item.kind, item.posted, old, item.manifest, writer.cluster.next_seq)
        except InvalidManifest as problem:
            problems.append(problem)
            continue
        if same(old, manifest):
            result.unchanged.append(_applied(item, manifest, writer))
            continue
        write_over(writer, item.kind, old, manifest)
        applied = _applied(item, manifest, writer)
        result.configured.append(applied)
        where = f"{applied.namespace}/{applied.name}" if applied.namespace else applied.name
        result.changes[f"{applied.kind} {where}"] = differences(old, manifest)
    if problems:
        raise InvalidManifest.of(problems)


def _try(writer: LogWriter, planned: Sequence[_Planned], result: ApplyResult) -> None:
    """Fold without writing."""
    result.manifests = [item.manifest for item in planned]
    _fold(writer, planned, result)
    writer.check_room()


def _applied(item: _Planned, manifest: Mapping[str, Any], writer: LogWriter) -> AppliedObject:
    note = "" if item.kind.interpreted else "kept, plays no part in scheduling"
    if item.kind.row_kind == "Pod":
        note = why_it_waits(manifest, writer.profiles)
    note = "; ".join([*filter(None, [item.posted.note, note]), *taken_only_here(manifest)])
    _, namespace, name = key_of(item.kind, manifest)
    return AppliedObject(item.kind.api_version, item.kind.kind, namespace, name, note)


def _stored(cluster: Cluster, planned: Sequence[_Planned]) -> dict[ObjectKey, dict[str, Any]]:
    names: dict[Kind, set[str]] = {}
    for item in planned:
        names.setdefault(item.kind, set()).add(item.manifest["metadata"]["name"])
    return {
        (kind.row_kind, *place): row.manifest
        for kind, wanted in names.items()
        for place, row in rows_named(cluster, kind, sorted(wanted)).items()
    }


def _missing_namespaces(cluster: Cluster, planned: Sequence[_Planned]) -> list[str]:
    kind = kinds.named("Namespace")
    wanted = {key_of(item.kind, item.manifest)[1] for item in planned if item.kind.namespaced}
    written = {item.manifest["metadata"]["name"] for item in planned if item.kind == kind}
    there = set(rows_of(cluster, kind).values_list("name", flat=True))
    return sorted(wanted - written - there)


def check_may_come(writer: LogWriter, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a new object of a kind, or in a namespace, that is on its way out.

    Raises
    ------
    NotAllowed, Forbidden
    """
    if kind.custom is not None:
        deletion.check_definition_stays(writer.cluster, kind)
    if kind.namespaced and writer.is_ending(namespace):
        raise Forbidden(
            f'{kind.resource} "{name}" is forbidden: unable to create new content in namespace {namespace}'
            " because it is being terminated",
            **kind.named(namespace, name),
        )


def write_over(
    writer: LogWriter, kind: Kind, old: Mapping[str, Any], new: Mapping[str, Any], by: str = ""
) -> dict[str, Any]:
    """Write an object that changed; one that goes and that nothing keeps any more is gone with that.

    Raises
    ------
    InvalidManifest
        Finalizers come while it goes.
    """
    deletion.check_finalizers(writer.cluster, kind, old, new)
    if deletion.is_done(writer.cluster, kind, new):
        return deletion.finish(writer, kind, new)
    return writer.write(LogEntry.Source.API, kind, new, created=False, by=by)


def new_object(writer: LogWriter, kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A created object with its uid, creation time and, where its kind has them, first generation.

    A uid or creation time that was written (a dump of a real cluster) stays, so that owner references hold.
    """
    meta = dict(manifest["metadata"])
    _, namespace, name = key_of(kind, manifest)
    written = meta.get("uid")
    # The engine's own for objects without one; of kinds it does not know, the name alone.
    derived = (name, f"{namespace}/{name}")
    if not isinstance(written, str) or written in derived or not 0 < len(written) <= 64:
        meta["uid"] = object_uid(writer.cluster.seed, kind.row_kind, namespace, name, writer.cluster.next_seq)
    stamp = meta.get("creationTimestamp")
    try:
        kept = isinstance(stamp, str) and parse_time_ns(stamp) <= writer.at_ns
    except ValueError:
        kept = False
    if not kept:
        meta["creationTimestamp"] = format_seconds(writer.at_ns)
    if kind.has_generation:
        meta["generation"] = 1
    result = dict(manifest) | {"metadata": meta}
    if kind.row_kind == "Pod":
        result = with_gated_condition(result, writer.at_ns)
    if kind.row_kind == "Service":
        result = with_addresses(result, writer.cluster.next_seq)
    if meta["uid"] != written:
        # What a dump of a real cluster holds was admitted there.
        result = with_namespace_limits(writer, kind, result)
    if kind.row_kind == "Namespace":
        result.setdefault("status", {"phase": "Active"})
    return result


def differences(old: Any, new: Any, path: str = "", limit: int = 20) -> list[tuple[str, Any, Any]]:
    """Field paths whose values differ, with both values; resourceVersion and generation aside."""
    found: list[tuple[str, Any, Any]] = []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            here = f"{path}.{key}" if path else str(key)
            if here in ("metadata.resourceVersion", "metadata.generation"):
                continue
            found += differences(old.get(key), new.get(key), here, limit - len(found))
            if len(found) >= limit:
                break
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            found += differences(before, after, f"{path}[{index}]", limit - len(found))
            if len(found) >= limit:
                break
        return found
    return [] if old == new else [(path, old, new)]
