"""From posted text to an object as it will be stored: reading, unknown fields, admission of its kind and namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final, TypeVar

from django.conf import settings

from playground.clusters import kinds, structural
from playground.clusters.custom_kinds import (
    DEFINITION,
    admit_custom,
    admit_definition,
    schema_of,
    unknown_fields,
)
from playground.clusters.errors import Conflict, InvalidManifest, Unsupported
from playground.clusters.kinds import Kind, as_stored
from playground.clusters.log.writer import LogWriter, key_of
from playground.clusters.models import Cluster, Manifest, Pod
from playground.clusters.structural import OverLimit, at_most
from playground.engine import admission
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import PriorityClasses
from scheduler_core.objects.quantity import QuantityError
from scheduler_core.objects.reading import Posted
from scheduler_core.objects.reading import read_posted as read_objects
from scheduler_core.schema.fields_check import FieldProblem, check_fields, unknown_field
from scheduler_core.sim.admission import (
    LIMITING,
    Amounts,
    check_limit_ranges,
    check_quota,
    matches,
    status_of,
    usage_of,
    used_of,
    with_limit_range_defaults,
)

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
JSON_TYPES = ("application/json",)


def read_posted(text: str | bytes, content_type: str = "application/yaml") -> list[Posted]:
    """Read every object of a posted text, which may be compressed (`playground.bodies` bounds that).

    Raises
    ------
    InvalidManifest, Unsupported
    """
    media_type = checked_media_type(content_type)
    limit = settings.PLAYGROUND_MAX_UNPACKED_BYTES
    return read_objects(text, json_only=media_type in JSON_TYPES, max_bytes=limit)


def checked_media_type(content_type: str) -> str:
    """Without its parameters, if manifests can be of that type.

    Raises
    ------
    Unsupported
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in YAML_TYPES + JSON_TYPES:
        raise Unsupported(f"{media_type or 'no media type'}: send application/yaml or application/json")
    return media_type


# ---- Field validation: one place for every surface that takes manifests
#
# A field that is not known is dropped, as an API server drops it. Whether that is told, and whether it is refused,
# the
# surface says: `Strict`, `Warn` or `Ignore`.
#
# Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go (fieldValidation), v1.34

_MOST: Final = 20
MODES: Final = ("Ignore", "Strict", "Warn")


@dataclass(slots=True)
class FieldValidation:
    """How a request wants to hear of unknown fields, and what was found.

    Attributes
    ----------
    mode
        ``Strict`` refuses, ``Warn`` tells, ``Ignore`` says nothing.
    warnings
        Sentences, each field once.
    """

    mode: str = "Ignore"
    warnings: list[str] = field(default_factory=list)
    _told: list[InvalidManifest] = field(default_factory=list)

    def known(
        self, kind: Kind, posted: Posted, old: Mapping[str, Any] | None = None
    ) -> tuple[Posted, Sequence[FieldProblem]]:
        """The object without unknown fields, and what of the rest is of another type.

        Parameters
        ----------
        old
            What is stored: an unknown field of it was told when it was written.
        """
        if kind.custom is not None:
            schema = schema_of(kind) or {}
            found = [
                unknown_field(path, None, structural.names_at(schema, path))
                for path in unknown_fields(kind, posted.manifest)[:_MOST]
            ]
            self._note(kind, posted, found)
            return posted, ()
        manifest, problems = check_fields(posted.manifest, kind.type)
        unknown = [problem for problem in problems if problem.unknown]
        if unknown and old is not None:
            before = {problem.path for problem in check_fields(old, kind.type)[1]}
            unknown = [problem for problem in unknown if problem.path not in before]
        self._note(kind, posted, unknown)
        return replace(posted, manifest=manifest), [problem for problem in problems if not problem.unknown]

    def _note(self, kind: Kind, posted: Posted, problems: Sequence[FieldProblem]) -> None:
        if self.mode == "Ignore":
            return
        for problem in problems:
            told = posted.problem(problem.reason, path=problem.path, value=problem.value)
            self._told.append(told)
            whose = f'{kind.kind} "{posted.name}": ' if posted.name else ""
            line = f" (line {told.line})" if told.line else ""
            words = f"{whose}{problem.said_of(told.path)}{line}"
            if words not in self.warnings:
                self.warnings.append(words)

    def refuse(self) -> None:
        """Refuse what was found, if the request wants that; to be called when every object was looked at.

        Raises
        ------
        InvalidManifest
            A ``BadRequest``.
        """
        if self.mode == "Strict" and self._told:
            error = InvalidManifest.of(self._told)
            error.reason = "BadRequest"
            raise error


def type_problem(posted: Posted, problems: Sequence[FieldProblem]) -> InvalidManifest:
    """The first value of another type, as a problem of what was posted."""
    problem = problems[0]
    error = InvalidObject(problem.path, problem.value, problem.reason)
    return posted.invalid(error.in_kubernetes_form())


# ---- Admission of one object of any kind: what is known of its fields, its defaults, what an API server refuses

VALIDATION_S: Final = 1.0
"""Of processor time, for one object: whose validation takes longer is refused, and no one waits for it meanwhile."""

MOST_TRIES: Final = 5
T = TypeVar("T")


class Overtaken(Exception):
    """What an object was admitted among is another by the time the lock is taken."""


def settled(write: Callable[[], T]) -> T:
    """Admit and write, again where something came in between: validation holds no lock, however long it takes.

    Raises
    ------
    Conflict
    """
    for _ in range(MOST_TRIES):
        try:
            return write()
        except Overtaken:
            continue
    raise Conflict("what the objects depend on is changed all the time; please try again")


@dataclass(slots=True)
class Surroundings:
    """What an object is admitted among.

    Attributes
    ----------
    classes
        The PriorityClasses, for pods to name.
    others
        Their manifests, for a PriorityClass to stand among.
    stamp
        The cluster's time, RFC 3339.
    fields
        What to do about unknown fields.
    """

    classes: PriorityClasses
    others: Iterable[Mapping[str, Any]] = ()
    stamp: str = ""
    fields: FieldValidation = field(default_factory=FieldValidation)


def admitted(
    kind: Kind, posted: Posted, around: Surroundings, old: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The object as it will be stored, in the version rows have.

    Unknown fields are noted in `around.fields`, whose `refuse` is for the caller to ask.

    Parameters
    ----------
    old
        The object it replaces.

    Raises
    ------
    InvalidManifest
    """
    if kind.custom is None and kind.row_kind != DEFINITION:
        return _admitted(kind, posted, around, old)
    try:
        with at_most(VALIDATION_S):  # a schema may ask for as much as it likes
            return _admitted(kind, posted, around, old)
    except OverLimit as error:
        raise posted.problem(f"its validation {error}") from None


def _admitted(
    kind: Kind, posted: Posted, around: Surroundings, old: Mapping[str, Any] | None
) -> dict[str, Any]:
    posted, wrong = around.fields.known(kind, posted, old)
    if not kind.is_main:
        posted = replace(posted, manifest=as_stored(kind, posted.manifest))
    if kind.custom is not None:
        return admit_custom(kind, posted, old)
    if kind.row_kind == DEFINITION:
        if wrong:  # a schema of another form says nothing about a default
            raise type_problem(posted, wrong)
        return admit_definition(posted, stamp=around.stamp, old=old)
    ready = admission.admit(posted, around.classes, others=around.others, old=old)
    if wrong:
        raise type_problem(posted, wrong)
    return ready


# ---- What a namespace may hold: LimitRanges and ResourceQuotas of its objects

Document = Mapping[str, Any]


class NamespaceLimits:
    """What holds in one namespace.

    Parameters
    ----------
    limit_ranges, quotas
        Its objects of these kinds, by name.
    charged
        Every object of it, with resource and group of its kind; read only where there is a quota.
    """

    def __init__(
        self,
        limit_ranges: Iterable[Document],
        quotas: Iterable[Document],
        charged: Iterable[tuple[Document, str, str]],
    ) -> None:
        self._limit_ranges = list(limit_ranges)
        self._quotas = list(quotas)
        self._used: list[Amounts] = []
        if self._quotas:
            usages = [
                (manifest, usage_of(manifest, resource, group)) for manifest, resource, group in charged
            ]
            self._used = [used_of(quota, usages) for quota in self._quotas]

    def admitted(self, manifest: Document, resource: str, group: str) -> dict[str, Any]:
        """The object with the defaults of the namespace, which counts from now on.

        Raises
        ------
        InvalidManifest
            In an API server's words.
        """
        result = dict(manifest)
        try:
            if self._limit_ranges and manifest.get("kind") == "Pod":
                result = with_limit_range_defaults(result, self._limit_ranges)
            check_limit_ranges(result, self._limit_ranges)
            usage = usage_of(result, resource, group) if self._quotas else {}
            concerned = [place for place, quota in enumerate(self._quotas) if matches(quota, result)]
            for place in concerned:
                check_quota(self._quotas[place], self._used[place], result, usage)
        except InvalidObject as error:
            raise Posted(result).problem(error.reason, path=error.path, reason="Forbidden") from None
        for place in concerned:
            used = self._used[place]
            for key, amount in usage.items():
                if key in used:
                    used[key] = used[key].add(amount)
        return result


def quota_status(quota: Document, charged: Iterable[tuple[Document, str, str]]) -> dict[str, Any]:
    """What a quota's status says, hard and used; empty where it cannot be read."""
    try:
        usages = [(manifest, usage_of(manifest, resource, group)) for manifest, resource, group in charged]
        return status_of(quota, used_of(quota, usages))
    except (QuantityError, InvalidObject):
        return {}


# ---- What a namespace holds, as quotas count it

Charged = tuple[Mapping[str, Any], str, str]
"""Manifest, resource and group of its kind."""


def stored_objects(cluster: Cluster, namespace: str) -> Iterator[tuple[Mapping[str, Any], str, str, str]]:
    """Manifest, resource, group and kind of all that a namespace holds."""
    for manifest in Pod.objects.filter(cluster=cluster, namespace=namespace).values_list(
        "manifest", flat=True
    ):
        yield manifest, "pods", "", "Pod"
    rows = Manifest.objects.filter(cluster=cluster, namespace=namespace)
    for name, manifest in rows.values_list("kind", "manifest"):
        kind = kinds.by_kind(name)
        if kind is not None:
            yield manifest, kind.plural, kind.group, name


def with_usage(cluster: Cluster, quota: Mapping[str, Any]) -> dict[str, Any]:
    """A ResourceQuota with what is used of it at this moment in its status."""
    namespace = quota["metadata"].get("namespace") or "default"
    charged = (
        (manifest, resource, group) for manifest, resource, group, _ in stored_objects(cluster, namespace)
    )
    return dict(quota) | {"status": quota_status(quota, charged)}


# ---- LimitRanges and ResourceQuotas at work: on what is created over any surface


def with_namespace_limits(writer: LogWriter, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
    """An object that is about to be created, as its namespace's LimitRanges complete it.

    Raises
    ------
    InvalidManifest
        They do not allow it, or a quota has no room.
    """
    if not kind.namespaced or kind.row_kind == "Event":
        return manifest
    namespace = key_of(kind, manifest)[1]
    if kind.row_kind in LIMITING:
        # It holds from the next object on.
        writer.namespace_limits.pop(namespace, None)
        return manifest
    if namespace not in writer.namespace_limits:
        writer.namespace_limits[namespace] = _limits_of(writer, namespace)
    limits: NamespaceLimits | None = writer.namespace_limits[namespace]
    if limits is None:
        return manifest
    return limits.admitted(manifest, kind.plural, kind.group)


def _limits_of(writer: LogWriter, namespace: str) -> NamespaceLimits | None:
    stored = Manifest.objects.filter(cluster=writer.cluster, namespace=namespace, kind__in=LIMITING)
    found = {(row.kind, row.name): row.manifest for row in stored.order_by("kind", "name")}
    for name in LIMITING:
        for key, manifest in writer.pending(name, namespace):
            if manifest is None:
                found.pop((name, key), None)
            else:
                found[name, key] = manifest
    if not found:
        return None
    by_kind = {
        name: [manifest for (kind, _), manifest in sorted(found.items(), key=itemgetter(0)) if kind == name]
        for name in LIMITING
    }
    return NamespaceLimits(by_kind["LimitRange"], by_kind["ResourceQuota"], _charged(writer, namespace))


def _charged(writer: LogWriter, namespace: str) -> Iterator[Charged]:
    """Every object of a namespace, those of this transaction as they are now."""
    pending = {
        (kind, name): manifest
        for kind in writer.pending_kinds(namespace)
        for name, manifest in writer.pending(kind, namespace)
    }
    for manifest, resource, group, kind in stored_objects(writer.cluster, namespace):
        if (kind, manifest["metadata"]["name"]) not in pending:
            yield manifest, resource, group
    for (name, _), written in pending.items():
        kind_of = kinds.by_kind(name)
        if written is not None and kind_of is not None:
            yield written, kind_of.plural, kind_of.group
