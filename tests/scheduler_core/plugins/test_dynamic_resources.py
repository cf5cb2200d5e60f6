"""DynamicResources keeps its place; SchedulingGates keep pods out of the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from tests.scheduler_core.plugins.storage_clusters import StorageCluster, node_manifest
from tests.scheduler_core.stored import prepare


def pod_with(claims: list[dict[str, Any]], statuses: list[dict[str, Any]] | None = None) -> Pod:
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}], "resourceClaims": claims},
    }
    if statuses is not None:
        manifest["status"] = {"resourceClaimStatuses": statuses}
    return pod_from(prepare(manifest))


def claim_manifest(name: str, **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", **meta},
    }


NAMED = [{"name": "gpu", "resourceClaimName": "c1"}]
GENERATED = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "default/p", "controller": True}]}


@dataclass
class Cycle:
    """An attempt of which only one thing is asked."""

    pod: Pod
    ran: list[str] = field(default_factory=list)
    snapshot: Any = None

    def pre_filter_ran(self, plugin: str) -> bool:
        return plugin in self.ran

    def rejected_rows(self, code: Code) -> Any: ...

    def what_if(self, rows: Any) -> Any: ...


@pytest.fixture
def cluster() -> StorageCluster:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1"))
    return cluster


def test_a_pod_without_claims_is_skipped(cluster: StorageCluster) -> None:
    plugin = DynamicResources(None, cluster.handle)
    pod = cluster.pod()
    assert plugin.pre_enqueue(pod).is_success
    assert plugin.pre_filter(pod, cluster.handle.snapshot).status.is_skip
    said = plugin.post_filter(Cycle(pod, ["DynamicResources"])).status
    assert said == Status(Code.Unschedulable, ("no new claims to deallocate",))


def test_post_filter_misses_its_state_when_pre_filter_was_not_reached(cluster: StorageCluster) -> None:
    plugin = DynamicResources(None, cluster.handle)
    assert plugin.post_filter(Cycle(cluster.pod())).status == Status(Code.Error, ("not found",))


@pytest.mark.parametrize(
    ("pod", "objects", "reason"),
    [
        (pod_with(NAMED), [], 'could not find ResourceClaim "default/c1"'),
        (
            pod_with(NAMED),
            [claim_manifest("c1", deletionTimestamp="2026-01-01T00:00:00Z")],
            'resourceclaim "c1" is being deleted',
        ),
        (pod_with(GENERATED), [], 'pod "default/p": ResourceClaim not created yet'),
        (
            pod_with(GENERATED, [{"name": "gpu", "resourceClaimName": "c9"}]),
            [claim_manifest("c9")],
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
    cluster: StorageCluster, pod: Pod, objects: list[dict[str, Any]], reason: str
) -> None:
    cluster.put(*objects)
    plugin = DynamicResources(None, cluster.handle)
    expected = Status(Code.UnschedulableAndUnresolvable, (reason,))
    assert plugin.pre_enqueue(pod) == expected
    assert plugin.pre_filter(pod, cluster.handle.snapshot).status == expected


def test_a_pod_whose_claims_exist_may_be_tried(cluster: StorageCluster) -> None:
    cluster.put(claim_manifest("c9", **OWNED))
    plugin = DynamicResources(None, cluster.handle)
    pod = pod_with(GENERATED, [{"name": "gpu", "resourceClaimName": "c9"}])
    assert plugin.pre_enqueue(pod).is_success
    result = plugin.pre_filter(pod, cluster.handle.snapshot)
    assert result.status.is_success
    assert result.state is not None and [claim.name for claim in result.state.claims] == ["c9"]


def test_a_template_that_needed_no_claim_is_skipped(cluster: StorageCluster) -> None:
    plugin = DynamicResources(None, cluster.handle)
    pod = pod_with(GENERATED, [{"name": "gpu"}])
    assert plugin.pre_filter(pod, cluster.handle.snapshot).status.is_skip


def test_gates_are_named_in_the_order_of_the_pod(cluster: StorageCluster) -> None:
    plugin = SchedulingGates(None, cluster.handle)
    assert plugin.pre_enqueue(cluster.pod()).is_success
    gates = [{"name": "example.com/b"}, {"name": "example.com/a"}]
    pod = pod_from({"metadata": {"name": "p"}, "spec": {"schedulingGates": gates}})
    reason = "waiting for scheduling gates: [example.com/b example.com/a]"
    assert plugin.pre_enqueue(pod) == Status(Code.UnschedulableAndUnresolvable, (reason,))
