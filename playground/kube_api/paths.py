"""What a path of the Kubernetes API is about.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, v1.34
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from playground.clusters.kinds import Kind, KindTable

_EARLIER: Final[Mapping[tuple[str, str], str]] = {
    ("batch/v1beta1", "cronjobs"): "batch/v1",
    ("discovery.k8s.io/v1beta1", "endpointslices"): "discovery.k8s.io/v1",
    ("policy/v1beta1", "poddisruptionbudgets"): "policy/v1",
    ("networking.k8s.io/v1alpha1", "ipaddresses"): "networking.k8s.io/v1",
    ("networking.k8s.io/v1beta1", "ipaddresses"): "networking.k8s.io/v1",
    ("storage.k8s.io/v1beta1", "volumeattributesclasses"): "storage.k8s.io/v1",
    ("networking.k8s.io/v1beta1", "servicecidrs"): "networking.k8s.io/v1",
}
"""Versions upstream serves no more, whose fields are today's: an older `kubectl describe` reads objects in them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A collection, an object, or a part of one.

    Attributes
    ----------
    kind
        Of the object.
    namespace
        Of the path; empty = all namespaces, or a cluster-scoped kind.
    name
        Empty = the collection.
    subresource
        ``status``, ``scale``, ``binding``, ``eviction``, ``resize``; empty = the object itself.
    earlier
        API version of an old client that reads one object; empty = the kind's own.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    earlier: str = ""


def target_of(table: KindTable, path: str) -> Target | None:
    """What a path like ``api/v1/namespaces/default/pods/web/binding`` is about; None if nothing we know.

    ``namespaces/{ns}/bindings`` is the old name of the binding of whichever pod the body names.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        api_version, rest = parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        return None
    namespace = ""
    of_namespace = len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize"))
    if rest[0] == "namespaces" and of_namespace:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    if api_version == "v1" and plural == "bindings" and namespace and not name:
        pod = table.by_resource("v1", "pods")
        return Target(pod, namespace, "", "binding") if pod else None
    now = _EARLIER.get((api_version, plural), "") if name and not subresource else ""
    kind = table.by_resource(now or api_version, plural)
    if kind is None or not kind.is_stored or (namespace and not kind.namespaced):
        return None
    if name and kind.namespaced and not namespace:
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return Target(kind, namespace, name, subresource, api_version if now else "")
