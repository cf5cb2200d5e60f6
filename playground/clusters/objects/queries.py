"""Objects, runs and log entries as they are asked for: by kind, selector, place and page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from django.db.models import Q, QuerySet

from playground.clusters.clock import virtual_now_ns
from playground.clusters.errors import InvalidInput, found
from playground.clusters.kinds import Kind, as_served
from playground.clusters.log.rows import row_of, rows_after, rows_of
from playground.clusters.models import Cluster, Event, LogEntry, MockExtender, Node, Run
from playground.clusters.objects.admission import with_usage
from playground.engine.columns import is_forgotten
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import (
    label_requirements,
    label_selector_from,
    parse_field_selector_text,
    parse_label_selector_text,
)
from scheduler_core.schema.tables import table_beside


def matcher(selector: Mapping[str, Any] | None) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels match a LabelSelector document; an absent one matches nothing, a broken one too."""
    try:
        parsed = None if selector is None else label_selector_from(selector)
    except (SelectorError, InvalidObject):
        parsed = None
    if parsed is None:
        return lambda labels: False
    return lambda labels: bool(parsed.matches(dict(labels)))


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """`matcher`, asked once."""
    return matcher(selector)(labels)


def label_test(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels match the text of a label selector, as clients send it in a query.

    Raises
    ------
    SelectorError
        In Kubernetes' words.
    """
    parsed = parse_label_selector_text(text)
    return lambda labels: bool(parsed.matches(dict(labels)))


def field_terms(text: str) -> list[tuple[str, bool, str]]:
    """The terms of a field selector: field, whether it is to be equal, value.

    Raises
    ------
    SelectorError
        In Kubernetes' words.
    """
    terms = parse_field_selector_text(text).requirements
    return [(term.field, not term.negated, term.value) for term in terms]


# ---- Label and field selectors of a query, for every surface that lists objects
#
# Source: staging/src/k8s.io/apimachinery/pkg/labels/selector.go, pkg/fields/selector.go, v1.34; the fields of
# each kind: pkg/apis/core/v1/conversion.go and the kinds' registries

Manifest = Mapping[str, Any]

_OPERATORS: Final = {
    "exists": "Exists", "!": "DoesNotExist", "=": "In", "==": "In", "in": "In", "!=": "NotIn", "notin": "NotIn",
}  # fmt: skip
_TABLES: Final = table_beside(__package__, "field_selectors.yaml")
_EVERY: Final = ("metadata.name", "metadata.namespace")
_FALSE: Final = ("spec.unschedulable", "spec.hostNetwork")


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """One part of a field selector."""

    field: str
    equal: bool
    value: str


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """Which objects of a kind a query is about."""

    labels: tuple[Callable[[Mapping[str, str]], bool], ...] = ()
    fields: tuple[FieldCondition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    @property
    def may_change(self) -> bool:
        """Whether one object can come to match, or cease to."""
        return bool(self.labels) or any(part.field not in _EVERY for part in self.fields)

    def matches(self, manifest: Manifest) -> bool:
        """Whether an object is among them."""
        labels = (manifest.get("metadata") or {}).get("labels") or {}
        return all(test(labels) for test in self.labels) and all(
            (_field(manifest, part.field) == part.value) == part.equal for part in self.fields
        )

    def narrowed(self, kind: Kind, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows as far as columns can tell; `matches` still decides."""
        columns = dict(_TABLES["columns"].get(kind.kind, {})) | {"metadata.name": "name"}
        if kind.namespaced:
            columns["metadata.namespace"] = "namespace"
        for part in self.fields:
            column = columns.get(part.field)
            if column is not None:
                equal = Q(**{column: part.value})
                rows = rows.filter(equal if part.equal else ~equal)
        return rows


def selection_of(kind: Kind, label_selector: str, field_selector: str) -> ObjectSelection:
    """Read both selectors of a query.

    Raises
    ------
    InvalidInput
        One cannot be read, or names a field that cannot be selected by.
    """
    try:
        labels = (label_test(label_selector),) if label_selector.strip() else ()
    except SelectorError as error:
        raise InvalidInput(str(error), field="labelSelector") from None
    try:
        terms = field_terms(field_selector)
    except SelectorError as error:
        raise InvalidInput(str(error), field="fieldSelector") from None
    return ObjectSelection(labels, tuple(_condition(kind, *term) for term in terms))


def _condition(kind: Kind, field: str, equal: bool, value: str) -> FieldCondition:
    own = _TABLES["fields"].get(kind.row_kind, ())
    if kind.custom:
        own = tuple(str(item["jsonPath"])[1:] for item in kind.custom.get("selectableFields") or ())
    if field not in _EVERY and field not in own:
        words = f"field label not supported: {field}"
        if kind.row_kind in _TABLES["refusals"]:
            words = _TABLES["refusals"][kind.row_kind].format(field=field)
        elif not own and not kind.custom:
            known = ", ".join(f'"{name}"' for name in _EVERY)
            words = f'"{field}" is not a known field selector: only {known}'
        raise InvalidInput(words, field="fieldSelector")
    return FieldCondition(field, equal, value)


def _field(manifest: Manifest, field: str) -> str:
    if field == "source":
        source = (manifest.get("source") or {}).get("component")
        return str(source or manifest.get("reportingComponent") or "")
    if field == "status.successful":
        field = "status.succeeded"
    value: Any = manifest
    for part in field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        if field in _FALSE:
            return "false"
        return "0" if field in ("status.replicas", "status.succeeded") else ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def label_selector_of(text: str) -> dict[str, Any]:
    """A metav1 LabelSelector of what kubectl takes after ``-l``; empty text selects everything.

    Raises
    ------
    InvalidInput
        A part cannot be read, or means what a LabelSelector cannot say.
    """
    try:
        requirements = label_requirements(text)
    except SelectorError as error:
        raise InvalidInput(
            f"{text.strip()!r} is not a label requirement: {error}; write app=web, tier!=db, env in (a,b),"
            " gpu or !gpu, with commas between",
            field="selector",
            value=text.strip(),
        ) from None
    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    for one in requirements:
        if one.operator in ("=", "==") and one.key not in labels:
            labels[one.key] = one.values[0]
        elif one.operator in _OPERATORS:
            values = {"values": list(one.values)} if one.values else {}
            expressions.append({"key": one.key, "operator": _OPERATORS[one.operator], **values})
        else:
            raise InvalidInput("a selector compares no numbers", field="selector", value=str(one))
    document = {"matchLabels": labels, "matchExpressions": expressions}
    return {key: value for key, value in document.items() if value}


def selector_text(selector: Manifest | None) -> str:
    """A metav1 LabelSelector as kubectl writes it (`metav1.FormatLabelSelector`); `label_selector_of` reads it back."""
    try:
        return str(label_selector_from(selector))
    except (InvalidObject, SelectorError):
        return "<error>"


# ---- Plain look-ups: clusters, runs, objects of any kind, the log

_MANY_NAMES: Final = 500


def get_run(cluster: Cluster, public_id: str) -> Run:
    """One run of a cluster.

    Raises
    ------
    NotFound
    """
    run = Run.objects.filter(cluster=cluster, public_id=public_id).select_related("cluster").first()
    return found(run, f'run "{public_id}"', kind="Run", name=public_id)


def get_mock_extender(cluster: Cluster, public_id: str) -> MockExtender:
    """One mock extender of a cluster.

    Raises
    ------
    NotFound
    """
    row = MockExtender.objects.filter(cluster=cluster, public_id=public_id).first()
    return found(row, f'mock extender "{public_id}"', kind="MockExtender", name=public_id)


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
    if row is not None and is_expired(kind, row.manifest, virtual_now_ns(cluster)):
        row = None
    row = found(row, f'{kind.resource} "{name}"', kind=kind.kind, namespace=namespace, name=name)
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
    pairs = rows.values_list("name", "manifest").iterator(chunk_size=500)
    return {name: (manifest.get("status") or {}).get("addresses") for name, manifest in pairs}


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
