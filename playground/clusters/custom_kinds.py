"""Kinds that CustomResourceDefinitions add: their place in the table of kinds, and their objects' schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from playground.clusters import structural
from playground.clusters.kinds import Kind, KindTable, built_in, version_order
from playground.clusters.memo import Memo
from playground.clusters.models import Cluster, Manifest
from playground.engine.admission import check_metadata
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.reading import Posted, early_in

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_PROTECTED: Final = re.compile(r"(^|\.)(k8s\.io|kubernetes\.io)$")
_APPROVED: Final = "api-approved.kubernetes.io"


def admit_definition(posted: Posted, *, stamp: str, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A CustomResourceDefinition with its defaults and its status.

    Parameters
    ----------
    stamp
        The cluster's time, RFC 3339.
    old
        The one it replaces.

    Raises
    ------
    InvalidManifest
    """
    manifest = dict(posted.manifest)
    check_metadata(posted)
    spec = _object(posted, manifest, "spec")
    names = dict(_object(posted, spec, "names", "spec"))
    group = spec.get("group")
    if not isinstance(group, str) or "." not in group:
        raise posted.problem("must be a domain with at least one dot", path="spec.group", value=group)
    if _PROTECTED.search(group) and _APPROVED not in (manifest["metadata"].get("annotations") or {}):
        raise posted.problem(
            "protected groups must have approval annotation"
            f' "{_APPROVED}", see https://github.com/kubernetes/enhancements/pull/1111',
            path=f"metadata.annotations[{_APPROVED}]",
        )
    for key, pattern in (("plural", _LABEL), ("kind", _KIND)):
        value = names.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value) or len(value) > 63:
            raise posted.problem("is required and must be a DNS label", path=f"spec.names.{key}", value=value)
    name = manifest["metadata"]["name"]
    if name != f"{names['plural']}.{group}":
        raise posted.problem('must be spec.names.plural+"."+spec.group', path="metadata.name", value=name)
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    for key in ("shortNames", "categories"):
        if not isinstance(names.get(key, []), list) or not all(
            isinstance(each, str) for each in names.get(key, [])
        ):
            raise posted.problem("must be a list of strings", path=f"spec.names.{key}", value=names.get(key))
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        raise posted.problem(
            'supported values: "Cluster", "Namespaced"', path="spec.scope", value=spec.get("scope")
        )
    conversion = spec.get("conversion") or {"strategy": "None"}
    if not isinstance(conversion, Mapping) or conversion.get("strategy", "None") not in ("None", "Webhook"):
        raise posted.problem('supported values: "None", "Webhook"', path="spec.conversion.strategy")
    versions = _versions(posted, spec)
    was = (old or {}).get("spec") or {}
    for path, now, then in (
        ("spec.group", group, was.get("group")),
        ("spec.scope", spec["scope"], was.get("scope")),
        ("spec.names.kind", names["kind"], (was.get("names") or {}).get("kind")),
        ("spec.names.plural", names["plural"], (was.get("names") or {}).get("plural")),
    ):
        if old is not None and now != then:
            raise posted.problem("field is immutable", path=path, value=now)
    manifest["spec"] = {**spec, "names": names, "versions": versions, "conversion": dict(conversion)}
    manifest["status"] = _status(manifest["spec"], old, stamp)
    return manifest


def _versions(posted: Posted, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        raise posted.problem("must have exactly one version marked as storage version", path="spec.versions")
    found = []
    for number, version in enumerate(versions):
        path = f"spec.versions[{number}]"
        if not isinstance(version, Mapping):
            raise posted.problem("must be an object", path=path, value=version)
        name = version.get("name")
        if not isinstance(name, str) or not _LABEL.fullmatch(name) or len(name) > 63:
            raise posted.problem("must be a DNS label", path=f"{path}.name", value=name)
        schema = version.get("schema")
        inner = schema.get("openAPIV3Schema") if isinstance(schema, Mapping) else None
        if not isinstance(inner, Mapping):
            raise posted.problem("schemas are required", path=f"{path}.schema.openAPIV3Schema")
        if inner.get("type") != "object":
            raise posted.problem(
                "must be object at the root",
                path=f"{path}.schema.openAPIV3Schema.type",
                value=inner.get("type"),
            )
        wrong = structural.schema_problem(inner, f"{path}.schema.openAPIV3Schema")
        if wrong is not None:
            raise posted.invalid(InvalidObject.of(wrong))
        parts = version.get("subresources")
        if not isinstance(parts, Mapping | None) or not set(parts or ()) <= {"status", "scale"}:
            raise posted.problem("may hold status and scale", path=f"{path}.subresources")
        _check_scale(posted, parts or {}, f"{path}.subresources.scale")
        columns = version.get("additionalPrinterColumns") or []
        for place, column in enumerate(columns if isinstance(columns, list) else [columns]):
            known = isinstance(column, Mapping) and all(
                isinstance(column.get(key), str) for key in ("name", "type", "jsonPath")
            )
            if not known:
                raise posted.problem(
                    "needs name, type and jsonPath", path=f"{path}.additionalPrinterColumns[{place}]"
                )
        found.append(dict(version) | {"served": version.get("served", False)})
    if sum(bool(version.get("storage")) for version in found) != 1:
        raise posted.problem("must have exactly one version marked as storage version", path="spec.versions")
    names = [version["name"] for version in found]
    if len({*names}) != len(names):
        raise posted.problem("must contain unique version names", path="spec.versions")
    return found


def _check_scale(posted: Posted, parts: Mapping[str, Any], path: str) -> None:
    if "scale" not in parts:
        return
    scale = parts["scale"]
    for key, begin in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value = scale.get(key) if isinstance(scale, Mapping) else None
        if not isinstance(value, str) or not value.startswith(begin):
            raise posted.problem(
                f"should be a json path under {begin[:-1]}", path=f"{path}.{key}", value=value
            )


def _status(spec: Mapping[str, Any], old: Mapping[str, Any] | None, stamp: str) -> dict[str, Any]:
    before = (old or {}).get("status") or {}
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    stored = list(before.get("storedVersions") or ())
    said = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    conditions = before.get("conditions") or [
        {"type": kind, "status": "True", "reason": reason, "message": words, "lastTransitionTime": stamp}
        for kind, reason, words in said
    ]
    return {
        "acceptedNames": dict(spec["names"]),
        "conditions": conditions,
        "storedVersions": stored if storage in stored else [*stored, storage],
    }


def admit_custom(kind: Kind, posted: Posted, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A custom resource without the fields its schema does not know, with its defaults, checked.

    Parameters
    ----------
    old
        The one it replaces, for rules about what may change.

    Raises
    ------
    InvalidManifest
    """
    manifest = dict(posted.manifest)
    check_metadata(posted)
    schema = schema_of(kind)
    if schema is None:
        return manifest
    result: dict[str, Any] = structural.defaulted(structural.pruned(manifest, schema), schema)
    wrong = structural.problems(result, schema) or structural.broken_rules(result, old, schema)
    if wrong:
        path, reason, value = wrong[0]
        raise posted.problem(reason, path=path, value=value)
    return result


def unknown_fields(kind: Kind, manifest: Mapping[str, Any]) -> list[str]:
    """Paths of the fields a custom resource's schema does not know."""
    found: list[str] = []
    if (schema := schema_of(kind)) is not None:
        structural.pruned(manifest, schema, found)
    return found


def schema_of(kind: Kind) -> Mapping[str, Any] | None:
    """The structural schema of a custom kind's version."""
    if kind.custom is None:
        return None
    found: Mapping[str, Any] = kind.custom["schema"]["openAPIV3Schema"]
    return found


def _object(posted: Posted, document: Mapping[str, Any], key: str, under: str = "") -> Mapping[str, Any]:
    value = document.get(key)
    if not isinstance(value, Mapping):
        raise posted.problem("must be an object", path=f"{under}.{key}" if under else key, value=value)
    return value


# ---- The kinds of one cluster: Kubernetes' own, and those its CustomResourceDefinitions make

DEFINITION: Final = "CustomResourceDefinition"
_APPLY_RANK: Final = 6
_TABLES: Final[Memo[KindTable]] = Memo(64)


def table_of(cluster: Cluster) -> KindTable:
    """The kinds of a cluster. One query the first time after a definition changed, none where there never was one."""
    if not cluster.kinds_seq:
        return built_in_of(cluster.kubernetes_release)
    # Not the number of the row: one that was never committed is given again.
    key = (cluster.public_id, cluster.kinds_seq, cluster.kubernetes_release)
    return _TABLES.get(key, lambda: _read_table(cluster))


def _read_table(cluster: Cluster) -> KindTable:
    rows = Manifest.objects.filter(cluster=cluster, kind=DEFINITION).order_by("name")
    return with_definitions(built_in_of(cluster.kubernetes_release), rows.values_list("manifest", flat=True))


@cache
def built_in_of(release: str) -> KindTable:
    """Kubernetes' own kinds, as a release serves them."""
    return built_in(early_in(release))


def with_definitions(table: KindTable, definitions: Iterable[Mapping[str, Any]]) -> KindTable:
    """A table that has the kinds of some CustomResourceDefinitions, too; one it knows already gives way."""
    more = [kind for definition in definitions for kind in kinds_of(definition)]
    if not more:
        return table
    named = {kind.row_kind for kind in more}
    before = [kind for kind in table.served if kind.custom is None or kind.row_kind not in named]
    taken = {(kind.api_version, kind.plural) for kind in before}
    return KindTable([*before, *(kind for kind in more if (kind.api_version, kind.plural) not in taken)])


def kinds_of(definition: Mapping[str, Any]) -> list[Kind]:
    """The kind a CustomResourceDefinition makes, in each version it serves, the preferred one first."""
    spec = definition["spec"]
    names = spec["names"]
    served = sorted(
        (each for each in spec["versions"] if each.get("served")),
        key=lambda each: version_order(each["name"]),
    )
    if not served:
        return []
    main = next((each for each in served if each.get("storage")), served[0])
    stored = f"{spec['group']}/{main['name']}"
    return [
        Kind(
            f"{spec['group']}/{version['name']}",
            names["kind"],
            names["plural"],
            spec["scope"] == "Namespaced",
            tuple(names.get("shortNames") or ()),
            subresources=tuple(sorted(version.get("subresources") or ())),
            categories=tuple(names.get("categories") or ()),
            apply_rank=_APPLY_RANK,
            stored_version="" if version is main else stored,
            singular_name=names.get("singular") or "",
            list_name=names.get("listKind") or "",
            row_kind=f"{names['kind']}.{spec['group']}",
            custom=version,
            has_generation=True,
        )
        for version in served
    ]
