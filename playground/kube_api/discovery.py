"""Discovery: which groups, versions and resources there are, in the old form and the aggregated one; and health.

A playground's cluster is well whenever it answers at all. The health checks are those of an API server that mean
something here: what its start hooks do is not done, so none of them is listed.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery, staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go
(handleRootHealth, adaptCheckToHandler), v1.34
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.http import QueryDict

from playground.clusters.kinds import Kind, KindTable, version_order
from scheduler_core.schema.tables import table_beside

READ_VERBS: Final = ("get", "list", "watch")
_TABLES: Final = table_beside(__package__, "protocol.yaml")
_SUBRESOURCES: Final[dict[str, tuple[str, str, str, list[str]]]] = _TABLES["subresources"]


def version(patch: str) -> dict[str, str]:
    """`GET /version` of a cluster that follows a release (`v1.36.2`); every field is there as clients insist."""
    major, minor = patch.removeprefix("v").split(".")[:2]
    return {"major": major, "minor": minor, "gitVersion": patch, **_TABLES["version"]}


def api_versions() -> dict[str, Any]:
    """`GET /api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _versions(table: KindTable, group: str) -> list[str]:
    """The versions of a group (empty for the core one), the preferred one first."""
    found = {kind.version for kind in table.served if kind.group == group}
    return sorted(found, key=version_order)


def group(table: KindTable, name: str) -> dict[str, Any] | None:
    """`GET /apis/{group}`, or None."""
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in _versions(table, name)
        if name
    ]
    if not versions:
        return None
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def groups(table: KindTable) -> dict[str, Any]:
    """`GET /apis`."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {key: value for key, value in found.items() if key not in ("kind", "apiVersion")}
            for name in table.groups()
            if (found := group(table, name))
        ],
    }


def resources(table: KindTable, api_version: str) -> dict[str, Any] | None:
    """`GET /api/v1` and `/apis/{group}/{version}`, or None."""
    found = [resource for kind in _by_name(table, api_version) for resource in _resources(kind)]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": found,
    }


def _by_name(table: KindTable, api_version: str) -> list[Kind]:
    """The kinds of one apiVersion as an API server lists them; `kubectl get all` prints them in this order."""
    return sorted(table.in_version(api_version), key=lambda kind: kind.plural)


def _resources(kind: Kind) -> Iterator[dict[str, Any]]:
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        **_names(kind),
    }
    for name, group, version, kind_name, verbs in _subresources(kind):
        place = {key: text for key, text in (("group", group), ("version", version)) if text}
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **place,
            "kind": kind_name,
            "verbs": verbs,
        }


def _names(kind: Kind) -> dict[str, list[str]]:
    """The short names and categories, as far as there are any."""
    found = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: names for key, names in found.items() if names}


def _subresources(kind: Kind) -> Iterator[tuple[str, str, str, str, list[str]]]:
    """Name, group and version (empty = those of the kind), kind and verbs of each subresource."""
    for name in kind.subresources:
        yield name, *_SUBRESOURCES.get(name, ("", "", kind.kind, ["get", "patch", "update"]))


def aggregated(table: KindTable, core: bool, version: str) -> dict[str, Any]:
    """The aggregated form of `/api` (`core`) or `/apis`: everything in one answer.

    Parameters
    ----------
    version
        ``v2`` or ``v2beta1``, as the client asked.
    """
    names = ("",) if core else table.groups()
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [
                    {
                        "version": each,
                        "resources": [
                            _discovered(kind) for kind in _by_name(table, f"{name}/{each}" if name else each)
                        ],
                        "freshness": "Current",
                    }
                    for each in _versions(table, name)
                ],
            }
            for name in names
        ],
    }


def _discovered(kind: Kind) -> dict[str, Any]:
    subresources = [
        {
            "subresource": name,
            "responseKind": {
                "group": group if version else kind.group,
                "version": version or kind.version,
                "kind": kind_name,
            },
            "verbs": verbs,
        }
        for name, group, version, kind_name, verbs in _subresources(kind)
    ]
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_names(kind),
        **({"subresources": subresources} if subresources else {}),
    }


CHECKS: Final[Mapping[str, list[str]]] = _TABLES["checks"]
PATHS: Final = tuple(
    f"/{path}" for root, checks in CHECKS.items() for path in (root, *(f"{root}/{name}" for name in checks))
)


def health(path: str, query: QueryDict) -> str | None:
    """What a path says of the health of a cluster, as plain text; None if it is no such path."""
    root, _, check = path.partition("/")
    checks = CHECKS.get(root)
    if checks is None or (check and check not in checks):
        return None
    if check or "verbose" not in query:
        return "ok"
    excluded = set(query.getlist("exclude"))
    lines = [f"[+]{name} {'excluded: ' * (name in excluded)}ok\n" for name in checks]
    if strange := sorted(excluded.difference(checks) - {""}):
        names = ",".join(json.dumps(name) for name in strange)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    return "".join((*lines, f"{root} check passed\n"))
