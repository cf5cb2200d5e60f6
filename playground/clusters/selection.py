"""Label and field selectors of a query, for every surface that lists objects.

Source: staging/src/k8s.io/apimachinery/pkg/labels/selector.go, pkg/fields/selector.go, v1.34; the fields of
each kind: pkg/apis/core/v1/conversion.go and the kinds' registries
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q, QuerySet

from playground.clusters.errors import InvalidInput
from playground.clusters.kinds import Kind
from playground.engine.selectors import SelectorError, field_terms, label_test

Manifest = Mapping[str, Any]

_KEY: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_EXISTS: Final = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_EQUALS: Final = re.compile(rf"\s*({_KEY})\s*(==?|!=)\s*({_VALUE})\s*")
_IN: Final = re.compile(rf"\s*({_KEY})\s+(in|notin)\s+\(([^()]*)\)\s*")

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "ReplicationController": ("status.replicas",),
    "ReplicaSet": ("status.replicas",),
    "Job": ("status.successful",),
    "Service": ("spec.clusterIP", "spec.type"),
    "CertificateSigningRequest": ("spec.signerName",),
    "ResourceSlice": ("spec.driver", "spec.nodeName"),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}
_EVERY: Final = ("metadata.name", "metadata.namespace")
_TOLD_APART: Final[Mapping[str, str]] = {
    "Job": 'field label "{field}" not supported for Job',
    "ResourceSlice": "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}",
}
_FALSE: Final = ("spec.unschedulable", "spec.hostNetwork")
_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "Pod": {"spec.nodeName": "node_name", "status.phase": "phase"},
    "Event": {
        "involvedObject.kind": "involved_kind",
        "involvedObject.namespace": "involved_namespace",
        "involvedObject.name": "involved_name",
        "involvedObject.uid": "involved_uid",
    },
}


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
        columns = dict(_COLUMNS.get(kind.kind, {})) | {"metadata.name": "name"}
        if kind.namespaced:
            columns["metadata.namespace"] = "namespace"
        for part in self.fields:
            column = columns.get(part.field)
            if column is not None:
                found = Q(**{column: part.value})
                rows = rows.filter(found if part.equal else ~found)
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
    own = _FIELDS.get(kind.row_kind, ())
    if kind.custom:
        own = tuple(str(item["jsonPath"])[1:] for item in kind.custom.get("selectableFields") or ())
    if field not in _EVERY and field not in own:
        words = f"field label not supported: {field}"
        if kind.row_kind in _TOLD_APART:
            words = _TOLD_APART[kind.row_kind].format(field=field)
        elif not own and not kind.custom:
            known = ", ".join(f'"{name}"' for name in _EVERY)
            words = f'"{field}" is not a known field selector: only {known}'
        raise InvalidInput(words, field="fieldSelector")
    return FieldCondition(field, equal, value)


def _split(text: str) -> list[str]:
    """At commas outside of parentheses and not escaped."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return [*parts, text[start:]]


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
    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    for part in (part for part in _split(text) if part.strip()):
        if match := _EXISTS.fullmatch(part):
            operator = "DoesNotExist" if match[1] else "Exists"
            expressions.append({"key": match[2], "operator": operator})
        elif (match := _EQUALS.fullmatch(part)) and match[2] != "!=" and match[1] not in labels:
            labels[match[1]] = match[3]
        elif match := _EQUALS.fullmatch(part):
            operator = "NotIn" if match[2] == "!=" else "In"
            expressions.append({"key": match[1], "operator": operator, "values": [match[3]]})
        elif match := _IN.fullmatch(part):
            values = [value.strip() for value in match[3].split(",")]
            operator = "In" if match[2] == "in" else "NotIn"
            expressions.append({"key": match[1], "operator": operator, "values": values})
        else:
            raise InvalidInput(
                f"{part.strip()!r} is not a label requirement: write app=web, tier!=db, env in (a,b),"
                " gpu or !gpu, with commas between",
                field="selector",
                value=part.strip(),
            )
    found = {"matchLabels": labels, "matchExpressions": expressions}
    return {key: value for key, value in found.items() if value}


def selector_text(selector: Manifest | None) -> str:
    """A metav1 LabelSelector as kubectl writes it; `label_selector_of` reads it back."""
    if selector is None:
        return ""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for item in selector.get("matchExpressions") or ():
        key, values = item.get("key"), ",".join(item.get("values") or ())
        words = {
            "Exists": f"{key}",
            "DoesNotExist": f"!{key}",
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
        }
        parts.append(words.get(str(item.get("operator")), f"{key} {item.get('operator')} ({values})"))
    return ",".join(parts)
