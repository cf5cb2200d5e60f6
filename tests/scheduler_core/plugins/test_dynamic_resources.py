"""DynamicResources keeps its place; SchedulingGates keep pods out of the queue."""

from typing import Any

import pytest

from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins.dynamic_resources import DynamicResources
from tests.manifests import make_object
from tests.scheduler_core.plugins.storage_clusters import StorageCluster, node_manifest
from tests.scheduler_core.stored import prepare


def pod_with(claims: list[dict[str, Any]], statuses: list[dict[str, Any]] | None = None) -> Pod:
    status = {} if statuses is None else {"status": {"resourceClaimStatuses": statuses}}
    spec = {"containers": [{"name": "c"}], "resourceClaims": claims}
    return pod_from(prepare(make_object("v1", "Pod", "p", spec=spec, **status)))


def claim(name: str) -> dict[str, Any]:
    return make_object("resource.k8s.io/v1", "ResourceClaim", name, namespace="default")


NAMED = [{"name": "gpu", "resourceClaimName": "c1"}]
DELETED = claim("c1")
DELETED["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
GENERATED = [{"name": "gpu", "resourceClaimTemplateName": "t"}]


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        (pod_with(NAMED), [], 'could not find ResourceClaim "default/c1"'),
        (
            pod_with(NAMED),
            [DELETED],
            'resourceclaim "c1" is being deleted',
        ),
        (pod_with(GENERATED), [], 'pod "default/p": ResourceClaim not created yet'),
        (
            pod_with(GENERATED, [{"name": "gpu", "resourceClaimName": "c9"}]),
            [claim("c9")],
            "ResourceClaim default/c9 was not created for pod default/p (pod is not owner)",
        ),
        (
            pod_with([{"name": "gpu"}]),
            [],
            'pod "default/p", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
    ],
)
def test_a_claim_that_cannot_be_had_holds_the_pod_back(
    pod: Pod, objects: list[dict[str, Any]], reason: str
) -> None:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1"), *objects)
    plugin = DynamicResources(None, cluster.handle)
    expected = Status(Code.UnschedulableAndUnresolvable, (reason,))
    assert plugin.pre_enqueue(pod) == expected
    assert plugin.pre_filter(pod, cluster.handle.snapshot).status == expected
