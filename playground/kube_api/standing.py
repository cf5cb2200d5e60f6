"""Objects every cluster has without anybody writing them, and of which nothing is kept.

`kube-system/extension-apiserver-authentication` tells a server with a secure port how callers are known. There are no
client certificates and no proxy in front here, so it names none.

Source: pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go, v1.34
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from playground.clusters.rows import row_of
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


def standing_object(cluster: Cluster, target: Target) -> dict[str, Any] | None:
    """The object a path names, if every cluster has it and no other was written; else None."""
    place = (target.kind.row_kind, target.namespace, target.name)
    if place != _PLACE or row_of(cluster, target.kind, target.namespace, target.name) is not None:
        return None
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
