"""Objects that every cluster has without a client that writes them; nothing of them is kept until a client changes one.

Each namespace has the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. `default` has the Service
`kubernetes`, with its EndpointSlice and Endpoints: how programs in a cluster find its API server. The ComponentStatuses
say that the parts of the control plane are well. `kube-system/extension-apiserver-authentication` tells a server with a
secure port how callers are known. There are no client certificates and no proxy in front here, so it names none; and
as this server has no certificate of its own, the bundle of authorities is empty.

Source: pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go,
pkg/controlplane/controller/kubernetesservice/controller.go, pkg/controlplane/reconcilers,
pkg/controller/serviceaccount/serviceaccounts_controller.go,
pkg/controller/certificates/rootcacertpublisher/publisher.go, pkg/registry/core/componentstatus/rest.go, v1.34
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playground.clusters import kinds, services
from playground.clusters.kinds import Kind
from playground.clusters.rows import rows_of
from playground.clusters.selection import ObjectSelection
from playground.clusters.services.identity import object_uid
from playground.engine.times import format_seconds
from playground.kube_api.paths import Target

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


@dataclass(frozen=True, slots=True)
class _Standing:
    """One object.

    Attributes
    ----------
    kind, name
        Of the object.
    namespace
        Where it is; empty = in each.
    meta
        Labels and annotations.
    parts
        All but its metadata.
    """

    kind: str
    name: str
    namespace: str = ""
    api_version: str = "v1"
    meta: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)


_ADDRESS: Final = "10.96.0.1"
_SERVER: Final = "172.18.0.2"
_ALL: Final = (
    _Standing("ServiceAccount", "default"),
    _Standing(
        "ConfigMap",
        "extension-apiserver-authentication",
        "kube-system",
        parts={
            "data": {
                "requestheader-allowed-names": "[]",
                "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
                "requestheader-group-headers": '["X-Remote-Group"]',
                "requestheader-username-headers": '["X-Remote-User"]',
            }
        },
    ),
    _Standing(
        "ConfigMap",
        "kube-root-ca.crt",
        meta={
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver "
                "when using internal endpoints such as the internal service IP or kubernetes.default.svc. "
                "No other usage is guaranteed across distributions of Kubernetes clusters."
            }
        },
        parts={"data": {"ca.crt": ""}},
    ),
    _Standing(
        "Service",
        "kubernetes",
        "default",
        meta={"labels": {"component": "apiserver", "provider": "kubernetes"}},
        parts={
            "spec": {
                "clusterIP": _ADDRESS,
                "clusterIPs": [_ADDRESS],
                "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
                "sessionAffinity": "None",
                "type": "ClusterIP",
            },
            "status": {"loadBalancer": {}},
        },
    ),
    _Standing(
        "Endpoints",
        "kubernetes",
        "default",
        meta={"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        parts={
            "subsets": [
                {
                    "addresses": [{"ip": _SERVER}],
                    "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
                }
            ]
        },
    ),
    _Standing(
        "EndpointSlice",
        "kubernetes",
        "default",
        "discovery.k8s.io/v1",
        meta={"labels": {"kubernetes.io/service-name": "kubernetes"}},
        parts={
            "addressType": "IPv4",
            "endpoints": [{"addresses": [_SERVER], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        },
    ),
)
COMPONENTS: Final = ("controller-manager", "etcd-0", "scheduler")
COMPONENTS_WARNING: Final = "v1 ComponentStatus is deprecated in v1.19+"


def is_standing(kind: Kind, namespace: str, name: str) -> bool:
    """Whether an object is there without anybody writing it."""
    return any(_wanted(kind, namespace, name))


def of_namespaces(kind: Kind, name: str) -> bool:
    """Whether each namespace comes with an object of a kind (and of a name, if one is asked for)."""
    return any(not each.namespace for each in _wanted(kind, "", name))


def _wanted(kind: Kind, namespace: str, name: str) -> Iterator[_Standing]:
    for each in _ALL:
        if (
            each.kind == kind.row_kind
            and name in ("", each.name)
            and (not namespace or each.namespace in ("", namespace))
        ):
            yield each


def made_in(
    cluster: Cluster, target: Target, selection: ObjectSelection, namespace: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """What a target asks for and a namespace brings with it.

    Parameters
    ----------
    namespace
        Its manifest, or no more than its metadata with its name.
    """
    of_namespace = namespace["metadata"]
    first = {"name": of_namespace["name"], "creationTimestamp": format_seconds(cluster.start_ns)}
    for each in _wanted(target.kind, of_namespace["name"], target.name):
        # What is in one namespace alone came with the cluster; that a namespace is labelled is no news of it.
        meta = first if each.namespace else of_namespace
        made = {
            "apiVersion": each.api_version,
            "kind": each.kind,
            "metadata": {
                **deepcopy(dict(each.meta)),
                "name": each.name,
                "namespace": meta["name"],
                "uid": object_uid(cluster.seed, each.kind, meta["name"], each.name, 0),
                "resourceVersion": meta.get("resourceVersion", "1"),
                "creationTimestamp": meta.get("creationTimestamp"),
            },
            **deepcopy(dict(each.parts)),
        }
        if not selection or selection.matches(made):
            yield made


def standing_object(cluster: Cluster, target: Target) -> dict[str, Any] | None:
    """The object a path names, if every cluster has it and no other was written; else None."""
    if not target.name or not target.namespace:
        return None
    return next(iter(standing_objects(cluster, target, ObjectSelection())), None)


def standing_objects(
    cluster: Cluster, target: Target, selection: ObjectSelection
) -> Iterable[dict[str, Any]]:
    """What a target asks for, every cluster has and no client wrote, by namespace and name."""
    wanted = [*_wanted(target.kind, target.namespace, target.name)]
    if not wanted:
        return ()
    namespace_kind = kinds.by_kind("Namespace")
    assert namespace_kind is not None
    rows = rows_of(cluster, namespace_kind)
    if target.namespace:
        rows = rows.filter(name=target.namespace)
    elif all(each.namespace for each in wanted):
        rows = rows.filter(name__in=[each.namespace for each in wanted])
    written = set(
        rows_of(cluster, target.kind)
        .filter(name__in=[each.name for each in wanted])
        .values_list("namespace", "name")
    )
    found = [
        made
        for namespace in rows.values_list("manifest", flat=True)
        for made in made_in(cluster, target, selection, namespace)
        if (made["metadata"]["namespace"], made["metadata"]["name"]) not in written
    ]
    return sorted(found, key=lambda made: (made["metadata"]["namespace"], made["metadata"]["name"]))


def write_down(cluster: Cluster, target: Target) -> str:
    """Write a standing object that is about to be changed, so that there is one to change.

    Returns
    -------
    str
        The version it had until then; empty if there was nothing to write.
    """
    standing = standing_object(cluster, target)
    if standing is None:
        return ""
    version = str(standing["metadata"].pop("resourceVersion"))
    services.create_object(cluster=cluster, manifest=standing, namespace=target.namespace)
    return version


def keep(cluster: Cluster, target: Target, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write a standing object before a change of it.

    Returns
    -------
    dict
        The manifest of the change, about the version that was written.
    """
    version = write_down(cluster, target)
    meta = manifest["metadata"]
    if not version or meta.get("resourceVersion") != version:
        return manifest
    return manifest | {"metadata": {key: value for key, value in meta.items() if key != "resourceVersion"}}


def make_again(cluster: Cluster, target: Target) -> None:
    """Write a standing object that was just deleted: it is there again at once, as another object."""
    standing = standing_object(cluster, target)
    if standing is not None:
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            del standing["metadata"][key]
        services.create_object(cluster=cluster, manifest=standing, namespace=target.namespace)


def component_statuses() -> list[dict[str, Any]]:
    """What `kubectl get componentstatuses` lists."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ComponentStatus",
            "metadata": {"name": name, "creationTimestamp": None},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        }
        for name in COMPONENTS
    ]
