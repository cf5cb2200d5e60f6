"""Objects every cluster has without a client writing them (`built_in.yaml`); none is stored until a client changes it.

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
from typing import Any, Final

from playground.clusters import kinds
from playground.clusters.kinds import Kind
from playground.clusters.log.rows import rows_of
from playground.clusters.objects.queries import ObjectSelection
from playground.clusters.objects.updates import object_uid
from playground.clusters.objects.write import create_object
from playground.clusters.row_types import Cluster
from playground.kube_api.requests import Target
from scheduler_core.objects.fields import format_seconds
from scheduler_core.schema.tables import table_beside

COMPONENTS: Final = ("controller-manager", "etcd-0", "scheduler")
COMPONENTS_WARNING: Final = "v1 ComponentStatus is deprecated in v1.19+"


def is_built_in(kind: Kind, namespace: str, name: str) -> bool:
    """Whether an object is there without anybody writing it."""
    return any(_wanted(kind, namespace, name))


def of_namespaces(kind: Kind, name: str) -> bool:
    """Whether each namespace comes with an object of a kind (and of a name, if one is asked for)."""
    return any(not namespace for namespace, _, _ in _wanted(kind, "", name))


def _wanted(kind: Kind, namespace: str, name: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Namespace (empty = each), name and manifest of the objects of a kind; empty arguments choose all."""
    for each in table_beside(__package__, "built_in.yaml"):
        its_namespace, its_name = each["metadata"].get("namespace", ""), each["metadata"]["name"]
        if (
            each["kind"] == kind.row_kind
            and name in ("", its_name)
            and (not namespace or its_namespace in ("", namespace))
        ):
            yield its_namespace, its_name, each


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
    for namespace_alone, name, manifest in _wanted(target.kind, of_namespace["name"], target.name):
        # What is in one namespace alone came with the cluster; that a namespace is labelled is no news of it.
        meta = first if namespace_alone else of_namespace
        made = deepcopy(dict(manifest))
        made["metadata"] |= {
            "namespace": meta["name"],
            "uid": object_uid(cluster.seed, made["kind"], meta["name"], name, 0),
            "resourceVersion": meta.get("resourceVersion", "1"),
            "creationTimestamp": meta.get("creationTimestamp"),
        }
        if not selection or selection.matches(made):
            yield made


def built_in_object(cluster: Cluster, target: Target) -> dict[str, Any] | None:
    """The object a path names, if every cluster has it and no other was written; else None."""
    if not target.name or not target.namespace:
        return None
    return next(iter(built_in_objects(cluster, target, ObjectSelection())), None)


def built_in_objects(
    cluster: Cluster, target: Target, selection: ObjectSelection
) -> Iterable[dict[str, Any]]:
    """What a target asks for, every cluster has and no client wrote, by namespace and name."""
    wanted = [*_wanted(target.kind, target.namespace, target.name)]
    if not wanted:
        return ()
    namespace_kind = kinds.named("Namespace")
    rows = rows_of(cluster, namespace_kind)
    if target.namespace:
        rows = rows.filter(name=target.namespace)
    elif all(namespace for namespace, _, _ in wanted):
        rows = rows.filter(name__in=[namespace for namespace, _, _ in wanted])
    written = set(
        rows_of(cluster, target.kind)
        .filter(name__in=[name for _, name, _ in wanted])
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
    """Write a built-in object that is about to be changed, so that there is one to change.

    Returns
    -------
    str
        The version it had until then; empty if there was nothing to write.
    """
    found = built_in_object(cluster, target)
    if found is None:
        return ""
    version = str(found["metadata"].pop("resourceVersion"))
    create_object(cluster=cluster, manifest=found, namespace=target.namespace)
    return version


def keep(cluster: Cluster, target: Target, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write a built-in object before a change of it.

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


def recreate(cluster: Cluster, target: Target) -> None:
    """Write a built-in object that was just deleted: it is there again at once, as another object."""
    found = built_in_object(cluster, target)
    if found is not None:
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            del found["metadata"][key]
        create_object(cluster=cluster, manifest=found, namespace=target.namespace)


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
