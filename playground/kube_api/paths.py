"""What a path of the Kubernetes API is about.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass

from playground.clusters import kinds
from playground.clusters.kinds import Kind


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
        ``status``, ``scale``, ``binding``, ``eviction``; empty = the object itself.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(path: str) -> Target | None:
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
        pod = kinds.by_resource("v1", "pods")
        return Target(pod, namespace, "", "binding") if pod else None
    kind = kinds.by_resource(api_version, plural)
    if kind is None or (namespace and not kind.namespaced):
        return None
    if name and kind.namespaced and not namespace:
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return Target(kind, namespace, name, subresource)
