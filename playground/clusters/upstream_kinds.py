"""Kinds Kubernetes has and the playground does not hold, and what to say of names that are nobody's kind.

Source: api/discovery/aggregated_v2.json, v1.34, and the groups that were removed since v1.16
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from playground.clusters import kinds

_HELD_GROUPS: Final = tuple(dict.fromkeys(kind.group for kind in kinds.KINDS))
_OTHERS: Final[dict[str, str]] = {
    "": "Binding ComponentStatus Endpoints LimitRange PodTemplate ResourceQuota",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
    " MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    " ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "ControllerRevision",
    "authentication.k8s.io": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview"
    " SubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "batch": "CronJob",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
    "coordination.k8s.io": "LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "DaemonSet Deployment Ingress NetworkPolicy PodSecurityPolicy ReplicaSet",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "Eviction PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io": "DeviceTaintRule ResourcePoolStatusRequest",
    "storage.k8s.io": "VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
OTHER_KINDS: Final = {group: tuple(names.split()) for group, names in _OTHERS.items()}
"""Group -> kinds of Kubernetes' own that play no part here."""
GROUPS: Final = tuple(dict.fromkeys((*_HELD_GROUPS, *OTHER_KINDS)))

_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_CLOSE: Final = 0.75


def why_unknown(api_version: str, kind: str) -> tuple[str, str] | None:
    """What is wrong with the type of an object the playground does not hold.

    Returns
    -------
    (str, str) or None
        Field (``apiVersion``, ``kind`` or ``items``) and a sentence that follows its value; None for a kind of
        Kubernetes that plays no part here, and for everybody's own kinds (custom resources).
    """
    group, _, version = api_version.rpartition("/")
    if group not in GROUPS:
        return _of_no_group(group)
    here = kinds_of(group)
    held = kinds.by_kind(kind)
    if kind in here:
        if held is not None and held.group == group:
            return "apiVersion", f"is not served here: {kind} is {held.api_version}"
        if _VERSION.fullmatch(version):
            return None
        return "apiVersion", "has no version of Kubernetes' form, like v1 or v1beta1"
    if kind.endswith("List") and kind.removesuffix("List") in ("", *here):
        return "items", "is required and must be a list"
    if held is not None:
        return "kind", f"is no kind of {api_version}: {kind} is served as {held.api_version}"
    elsewhere = [name for name in GROUPS if kind in kinds_of(name)]
    if elsewhere:
        return "kind", f"is no kind of {api_version}, but of the group {elsewhere[0] or 'v1'}"
    every = [name for each in (group, *GROUPS) for name in kinds_of(each)]
    close = _closest(kind, here) or _closest(kind, every)
    return "kind", f"is no kind of {api_version}" + (f"; did you mean {close}?" if close else "")


def kinds_of(group: str) -> tuple[str, ...]:
    """Every kind of one of Kubernetes' groups, held here or not."""
    held = (kind.kind for kind in kinds.KINDS if kind.group == group)
    return (*held, *OTHER_KINDS.get(group, ()))


def _of_no_group(group: str) -> tuple[str, str] | None:
    close = _closest(group, [name for name in GROUPS if name])
    # A group of custom resources is a domain: it has a dot.
    if "." in group and not close:
        return None
    return "apiVersion", "is of no API group" + (f"; did you mean {close}?" if close else "")


def _closest(name: str, among: Iterable[str]) -> str:
    by_lower = {each.lower(): each for each in among}
    lower = name.lower()
    if lower.removesuffix("s") in by_lower:
        return by_lower[lower.removesuffix("s")]
    found = difflib.get_close_matches(lower, by_lower, n=1, cutoff=0.9 if "." in lower else _CLOSE)
    return by_lower[found[0]] if found else ""
