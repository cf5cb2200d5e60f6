"""What may I do here, and who am I: the reviews behind `kubectl auth can-i` and `kubectl auth whoami`.

They are asked by POST and keep nothing, so whoever may look may ask. The role in the cluster decides, for all
namespaces and objects alike; there are no RBAC objects.

Source: staging/src/k8s.io/api/authorization/v1/types.go, staging/src/k8s.io/api/authentication/v1/types.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest

from playground.accounts.models import Role
from playground.clusters import kinds
from playground.kube_api import discovery
from playground.kube_api.requests import document_of
from playground.kube_api.status import Refusal

REVIEWS: Final[dict[str, str]] = {
    "apis/authorization.k8s.io/v1/selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "apis/authorization.k8s.io/v1/selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "apis/authentication.k8s.io/v1/selfsubjectreviews": "SelfSubjectReview",
    "apis/authentication.k8s.io/v1beta1/selfsubjectreviews": "SelfSubjectReview",
}
OPEN_PATHS: Final = (
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi/*",
    "/readyz",
    "/version",
)


def review(request: HttpRequest, path: str, *, person: Any, role: Role) -> dict[str, Any]:
    """Answer one of `REVIEWS`.

    Parameters
    ----------
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
    spec = _part(document, "spec")
    match kind:
        case "SelfSubjectAccessReview":
            status = _access(spec, role)
        case "SelfSubjectRulesReview":
            status = _rules(role)
        case _:
            name = person.get_username() if person is not None else "local"
            status = {
                "userInfo": {"username": name, "groups": ["system:authenticated", f"playground:{role}"]}
            }
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "spec": spec, "status": status}


def _access(spec: Mapping[str, Any], role: Role) -> dict[str, Any]:
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
        for g, name, verbs in _resources()
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


def _rules(role: Role) -> dict[str, Any]:
    allowed = _allowed(role)
    rules = [
        {"verbs": [verb for verb in verbs if verb in allowed], "apiGroups": [group], "resources": [name]}
        for group, name, verbs in _resources()
    ]
    return {
        "resourceRules": [rule for rule in rules if rule["verbs"]],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": list(OPEN_PATHS)}],
        "incomplete": False,
    }


def _allowed(role: Role) -> tuple[str, ...]:
    return discovery.READ_VERBS if role == Role.VIEWER else kinds.ALL_VERBS


def _resources() -> list[tuple[str, str, list[str]]]:
    """Group, name (``pods/binding``) and verbs of everything discovery knows."""
    return [
        (api_version.rpartition("/")[0], found["name"], found["verbs"])
        for api_version in kinds.api_versions()
        for found in (discovery.resources(api_version) or {})["resources"]
    ]


def _part(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key) or {}
    if not isinstance(value, dict):
        raise Refusal("BadRequest", f"{key}: must be an object")
    return value
