"""What may I do here, and who am I: the reviews behind `kubectl auth can-i` and `kubectl auth whoami`, and those a
server with a secure port asks about its callers (TokenReview, SubjectAccessReview).

They are asked by POST and keep nothing, so a viewer may ask. The role in the cluster decides, for all
namespaces and objects alike; there are no RBAC objects.

Source: staging/src/k8s.io/api/authorization/v1/types.go, staging/src/k8s.io/api/authentication/v1/types.go, v1.34
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest

from playground.accounts.choices import Role
from playground.accounts.teams import person_named
from playground.accounts.tokens import token_of
from playground.clusters.access import role_in
from playground.clusters.custom_kinds import table_of
from playground.clusters.kinds import ALL_VERBS, KindTable
from playground.clusters.row_types import Cluster
from playground.kube_api import discovery
from playground.kube_api.requests import document_of
from playground.kube_api.status import Refusal
from scheduler_core.schema.tables import table_beside

REVIEWS: Final[dict[str, str]] = table_beside(__package__, "protocol.yaml")["reviews"]
OPEN_PATHS: Final[list[str]] = table_beside(__package__, "protocol.yaml")["open"]


_IN_NAMESPACE: Final = re.compile(
    r"(apis/authorization\.k8s\.io/v1)/namespaces/[^/]+/(localsubjectaccessreviews)"
)


def review_path(path: str) -> str:
    """The path of `REVIEWS` that is meant; empty if it is none. A local review has a namespace in its path."""
    match = _IN_NAMESPACE.fullmatch(path)
    if match is not None:
        return f"{match[1]}/{match[2]}"
    return path if path in REVIEWS and "/localsubject" not in path else ""


def review(request: HttpRequest, cluster: Cluster, path: str, *, person: Any, role: Role) -> dict[str, Any]:
    """Answer one of `REVIEWS`.

    Parameters
    ----------
    cluster
        Which is asked about.
    path
        Of `REVIEWS`.
    person
        The user who asks; None for the local one.
    role
        His role in the cluster.

    Raises
    ------
    Refusal
        BadRequest.
    """
    kind = REVIEWS[path]
    api_version = path.removeprefix("apis/").rpartition("/")[0]
    document = document_of(request)
    if (document.get("apiVersion", api_version), document.get("kind", kind)) != (api_version, kind):
        raise Refusal("BadRequest", f"a {kind} of {api_version} is expected in the body")
    spec, table = _part(document, "spec"), table_of(cluster)
    match kind:
        case "TokenReview":
            status = _authenticated(cluster, spec)
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            status = _access_of(cluster, table, spec)
        case "SelfSubjectAccessReview":
            status = _access(table, spec, role)
        case "SelfSubjectRulesReview":
            status = _rules(table, role)
        case _:
            status = {"userInfo": _user_info(person, role)}
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "spec": spec, "status": status}


def _user_info(person: Any, role: Role) -> dict[str, Any]:
    name = person.get_username() if person is not None else "local"
    return {"username": name, "groups": ["system:authenticated", f"playground:{role}"]}


def _authenticated(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Whose a token is, if they may look at this cluster; on one's own machine everybody is the one person."""
    text = spec.get("token")
    if not isinstance(text, str) or not text:
        raise Refusal("BadRequest", "spec.token: is required")
    if settings.EMBEDDED:
        return {"authenticated": True, "user": _user_info(None, Role.OWNER)}
    token = token_of(text)
    role = role_in(cluster, token.user) if token is not None else None
    if token is None or role is None:
        return {"authenticated": False, "error": "there is no such token, or it has expired"}
    return {"authenticated": True, "user": _user_info(token.user, role)}


def _access_of(cluster: Cluster, table: KindTable, spec: Mapping[str, Any]) -> dict[str, Any]:
    """What another user may do: their role in the cluster decides, too."""
    name = spec.get("user") or ""
    if not isinstance(name, str) or not (name or spec.get("groups")):
        raise Refusal("BadRequest", "spec: at least one of user or group must be specified")
    if settings.EMBEDDED:
        return _access(table, spec, Role.OWNER)
    user = person_named(name, active=True)
    role = role_in(cluster, user) if user is not None else None
    if role is None:
        return {"allowed": False}
    return _access(table, spec, role)


def _access(table: KindTable, spec: Mapping[str, Any], role: Role) -> dict[str, Any]:
    if spec.get("nonResourceAttributes"):
        asked = _part(spec, "nonResourceAttributes")
        path, verb = str(asked.get("path") or ""), asked.get("verb")
        known = any(
            path == open_ or (open_[-1] == "*" and path.startswith(open_[:-1])) for open_ in OPEN_PATHS
        )
        return _said(known and verb in ("get", "head"), "" if known else f"there is nothing at {path}")
    if not spec.get("resourceAttributes"):
        raise Refusal("BadRequest", "spec: resourceAttributes or nonResourceAttributes is required")
    asked = _part(spec, "resourceAttributes")
    group, resource, part = (str(asked.get(key) or "") for key in ("group", "resource", "subresource"))
    verb = str(asked.get("verb") or "")
    possible = [
        verbs
        for g, name, verbs in _resources(table)
        if group in (g, "*") and _meant(resource, part) in (name, "*")
    ]
    if not possible:
        return _said(False, f"the playground has no {_meant(resource, part)}")
    verbs = set().union(*possible)
    if verb != "*" and verb not in verbs:
        return _said(False, f"{_meant(resource, part)} has no verb {verb}")
    allowed = verbs & set(_allowed(role))
    missing = verbs - allowed if verb == "*" else {verb} - allowed
    return _said(not missing, f'your role in this cluster is "{role}"' if missing else "")


def _said(allowed: bool, reason: str) -> dict[str, Any]:
    return {"allowed": allowed, **({"reason": reason} if reason else {})}


def _meant(resource: str, part: str) -> str:
    return f"{resource}/{part}" if part else resource


def _rules(table: KindTable, role: Role) -> dict[str, Any]:
    allowed = _allowed(role)
    rules = [
        {"verbs": [verb for verb in verbs if verb in allowed], "apiGroups": [group], "resources": [name]}
        for group, name, verbs in _resources(table)
    ]
    return {
        "resourceRules": [rule for rule in rules if rule["verbs"]],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": list(OPEN_PATHS)}],
        "incomplete": False,
    }


def _allowed(role: Role) -> tuple[str, ...]:
    return discovery.READ_VERBS if role == Role.VIEWER else ALL_VERBS


def _resources(table: KindTable) -> list[tuple[str, str, list[str]]]:
    """Group, name (``pods/binding``) and verbs of everything discovery knows."""
    return [
        (api_version.rpartition("/")[0], found["name"], found["verbs"])
        for api_version in table.api_versions()
        for found in (discovery.resources(table, api_version) or {})["resources"]
    ]


def _part(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key) or {}
    if not isinstance(value, dict):
        raise Refusal("BadRequest", f"{key}: must be an object")
    return value
