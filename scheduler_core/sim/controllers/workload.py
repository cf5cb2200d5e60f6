"""What the controllers of workloads read of their objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import (
    Document,
    child,
    integer,
    mapping,
    optional_integer,
    string,
    string_map,
)
from scheduler_core.objects.labels import LabelSelector, SelectorError, label_selector_from
from scheduler_core.objects.meta import Named, ObjectMeta, OwnerReference, object_meta_from
from scheduler_core.sim.pod_index import Owner

_PERCENT = re.compile(r"([0-9]+)%")


@dataclass(frozen=True, slots=True, eq=False)
class Workload(Named):
    """An object that makes pods from a template.

    Attributes
    ----------
    replicas : int
        `spec.replicas`, 1 where it is not given.
    selector : LabelSelector
        Matches nothing where none is given.
    template : mapping
        `spec.template`.
    """

    manifest: Document
    kind: str
    meta: ObjectMeta
    spec: Document
    replicas: int
    selector: LabelSelector
    template: Document

    @property
    def owner(self) -> Owner:
        """As pods name it."""
        return (self.kind, self.meta.namespace, self.meta.uid)

    @property
    def is_deleted(self) -> bool:
        return self.meta.deletion_ns is not None

    @property
    def controller(self) -> OwnerReference | None:
        return self.meta.controller

    def reference(self) -> dict[str, Any]:
        """The owner reference its pods carry."""
        return {
            "apiVersion": str(self.manifest.get("apiVersion", "")),
            "kind": self.kind,
            "name": self.name,
            "uid": self.meta.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def workload_from(manifest: Document) -> Workload:
    """Parse a workload.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    kind = string(manifest, "kind", "")
    spec = mapping(manifest, "spec", "")
    template = mapping(spec, "template", "spec")
    replicas = optional_integer(spec, "replicas", "spec")
    selector = mapping(spec, "selector", "spec")
    if kind == "ReplicationController":
        labels = string_map(spec, "selector", "spec")
        labels = labels or string_map(
            mapping(template, "metadata", "spec.template"), "labels", "spec.template.metadata"
        )
        selector = {"matchLabels": labels}
    try:
        parsed = label_selector_from(selector or None)
    except SelectorError as error:
        raise InvalidObject("spec.selector", None, str(error)) from error
    return Workload(
        manifest,
        kind,
        object_meta_from(manifest),
        spec,
        1 if replicas is None else max(replicas, 0),
        parsed,
        template,
    )


def resolve_amount(
    document: Mapping[str, Any], key: str, path: str, total: int, default: int, *, round_up: bool
) -> int:
    """A whole number or a percentage of `total`.

    Source: apimachinery/pkg/util/intstr/intstr.go GetScaledValueFromIntOrPercent, v1.34
    """
    value = document.get(key)
    if value is None:
        return default
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        if match is None:
            raise InvalidObject(child(path, key), value, "must be a whole number or a percentage")
        product = int(match[1]) * total
        return -(-product // 100) if round_up else product // 100
    return integer(document, key, path)
