"""Objects that every cluster has without a client that writes them; nothing of them is kept until a client changes one.

Each namespace has the ServiceAccount `default`. The ComponentStatuses say that the parts of the control plane are well.
`kube-system/extension-apiserver-authentication` tells a server with a secure port how callers are known. There are no
client certificates and no proxy in front here, so it names none.

Source: pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go,
pkg/controller/serviceaccount/serviceaccounts_controller.go, pkg/registry/core/componentstatus/rest.go, v1.34
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from playground.clusters import kinds, services
from playground.clusters.rows import row_of, rows_of
from playground.clusters.selection import ObjectSelection
from playground.clusters.services.identity import object_uid
from playground.engine.times import format_seconds
from playground.kube_api.paths import Target

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

_PLACE: Final = ("ConfigMap", "kube-system", "extension-apiserver-authentication")
_DATA: Final = {
    "requestheader-allowed-names": "[]",
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}


_ACCOUNT: Final = "ServiceAccount"
_DEFAULT: Final = "default"
COMPONENTS: Final = ("controller-manager", "etcd-0", "scheduler")
COMPONENTS_WARNING: Final = "v1 ComponentStatus is deprecated in v1.19+"


def standing_object(cluster: Cluster, target: Target) -> dict[str, Any] | None:
    """The object a path names, if every cluster has it and no other was written; else None."""
    place = (target.kind.row_kind, target.namespace, target.name)
    is_account = target.kind.row_kind == _ACCOUNT and target.name == _DEFAULT
    if not is_account and place != _PLACE:
        return None
    if row_of(cluster, target.kind, target.namespace, target.name) is not None:
        return None
    if is_account:
        return next(standing_objects(cluster, target, ObjectSelection()), None)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": target.name,
            "namespace": target.namespace,
            "uid": object_uid(cluster.seed, *_PLACE, 0),
            "resourceVersion": "1",
            "creationTimestamp": format_seconds(cluster.start_ns),
        },
        "data": dict(_DATA),
    }


def standing_objects(
    cluster: Cluster, target: Target, selection: ObjectSelection
) -> Iterator[dict[str, Any]]:
    """The ServiceAccounts `default` that are not written down, by namespace, if ServiceAccounts are asked for."""
    if target.kind.row_kind != _ACCOUNT or target.name not in ("", _DEFAULT):
        return
    namespace_kind = kinds.by_kind("Namespace")
    assert namespace_kind is not None
    rows = rows_of(cluster, namespace_kind)
    accounts = rows_of(cluster, target.kind).filter(name=_DEFAULT)
    if target.namespace:
        rows, accounts = rows.filter(name=target.namespace), accounts.filter(namespace=target.namespace)
    written = set(accounts.values_list("namespace", flat=True))
    for namespace in rows.order_by("name").values_list("manifest", flat=True):
        meta = namespace["metadata"]
        name = meta["name"]
        if name in written:
            continue
        account = {
            "apiVersion": "v1",
            "kind": _ACCOUNT,
            "metadata": {
                "name": _DEFAULT,
                "namespace": name,
                "uid": object_uid(cluster.seed, _ACCOUNT, name, _DEFAULT, 0),
                "resourceVersion": meta.get("resourceVersion", "1"),
                "creationTimestamp": meta.get("creationTimestamp"),
            },
        }
        if not selection or selection.matches(account):
            yield account


def keep(cluster: Cluster, target: Target, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write a standing object that is about to be changed, so that there is one to change.

    Returns
    -------
    dict
        The manifest of the change, about the version that was written.
    """
    standing = standing_object(cluster, target)
    if standing is None:
        return manifest
    version = standing["metadata"].pop("resourceVersion")
    services.create_object(cluster=cluster, manifest=standing, namespace=target.namespace)
    meta = manifest["metadata"]
    if meta.get("resourceVersion") != version:
        return manifest
    return manifest | {"metadata": {key: value for key, value in meta.items() if key != "resourceVersion"}}


def make_again(cluster: Cluster, target: Target) -> None:
    """Write a ServiceAccount `default` that was just deleted: it is there again at once, as another object."""
    if target.kind.row_kind == _ACCOUNT and target.name == _DEFAULT:
        account = {"apiVersion": "v1", "kind": _ACCOUNT, "metadata": {"name": _DEFAULT}}
        services.create_object(cluster=cluster, manifest=account, namespace=target.namespace)


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
