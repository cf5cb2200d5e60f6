"""What the recorded hint cases leave open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scheduler_core.cli.conformance_queue import default_registrations
from scheduler_core.cluster.default_selectors import DefaultSelectors
from scheduler_core.cluster.listers import Listers
from scheduler_core.framework.cluster_event import (
    NODE,
    ActionType,
    ClusterEvent,
    events_for,
    node_update_events,
    pod_update_events,
)
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.labels import NOTHING
from scheduler_core.objects.pod import pod_from
from scheduler_core.objects.policy import selecting_object_from
from scheduler_core.plugins import (
    node_ports,
    node_volume_limits,
    pod_topology_spread,
    volume_binding,
    volume_restrictions,
)
from scheduler_core.plugins.dynamic_resources import DynamicResources
from scheduler_core.plugins.dynamic_resources import claims as dynamic_resources
from scheduler_core.queue.hints import build_hint_map
from scheduler_core.releases import OLDEST
from tests.scheduler_core.queue.builders import make_node, make_pod
from tests.scheduler_core.stored import prepare


def plain(kind: str, name: str, **fields: Any) -> Any:
    meta = {"name": name, **fields.pop("metadata", {})}
    return parse(prepare({"kind": kind, "metadata": meta, **fields})).typed


def pod_with_port(name: str, ip: str, port: int = 80, **spec: Any) -> Any:
    ports = [{"containerPort": 1, "hostPort": port, "hostIP": ip}]
    return make_pod(name, containers=[{"name": "c", "ports": ports}], **spec)


@pytest.mark.parametrize(
    ("wanted", "used", "queues"),
    [("", "10.0.0.1", True), ("10.0.0.1", "0.0.0.0", True), ("10.0.0.1", "10.0.0.2", False)],
)
def test_a_freed_port_helps_when_the_addresses_overlap(wanted: str, used: str, queues: bool) -> None:
    old = pod_with_port("old", used, node="n1")
    assert node_ports.after_pod_deleted(pod_with_port("p", wanted), old, None).queues is queues


def test_two_readers_of_one_disk_do_not_conflict() -> None:
    disk = {"name": "v", "gcePersistentDisk": {"pdName": "d", "readOnly": True}}
    writer = {"name": "v", "gcePersistentDisk": {"pdName": "d"}}
    pod = make_pod("p", volumes=[disk])
    for volume, queues in ((disk, False), (writer, True)):
        old = make_pod("old", node="n1", volumes=[volume])
        assert volume_restrictions.after_pod_deleted(pod, old, None).queues is queues


def test_a_malformed_aws_volume_is_an_error_as_upstream() -> None:
    pod = make_pod("p", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}])
    attachment = plain("VolumeAttachment", "a", spec={"attacher": "ebs.csi.aws.com"})
    with pytest.raises(ValueError, match="invalid format for AWS volume"):
        node_volume_limits.after_volume_detached(pod, attachment, None)


def test_topologies_that_differ_only_in_emptiness_are_the_same() -> None:
    old = plain("StorageClass", "s", allowedTopologies=[])
    assert not volume_binding.after_storage_class_change(
        make_pod("p"), old, plain("StorageClass", "s")
    ).queues


def test_default_constraints_take_the_selector_of_services_and_owner() -> None:
    listers = Listers()
    service = {"kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}}}
    listers.set("Service", "default", "s", selecting_object_from(prepare(service)))
    default = pod_topology_spread.TopologySpreadConstraint(
        1,
        "zone",
        "DoNotSchedule",
        NOTHING,
        None,
        "Honor",
        "Ignore",
    )
    defaults, selectors = pod_topology_spread.Defaults((default,), False), DefaultSelectors(listers)
    pod = make_pod("p", labels={"app": "a", "tier": "x"})
    (constraint,) = defaults.of(pod, "DoNotSchedule", selectors)
    assert str(constraint.selector) == "app=a"
    assert defaults.of(make_pod("q", labels={"app": "b"}), "DoNotSchedule", selectors) == ()


def claim(name: str, **fields: Any) -> Any:
    return plain("ResourceClaim", name, **fields)


def test_a_generated_claim_must_belong_to_the_pod() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}
    pod = make_pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    listers = Listers()

    def problem() -> str | None:
        try:
            dynamic_resources.claim_objects(pod, listers, OLDEST)
        except dynamic_resources.ClaimProblem as found:
            return str(found)
        return None

    assert problem() == 'pod "default/p": ResourceClaim not created yet'
    pod = pod_from({**pod.manifest, "status": status})
    assert problem() == 'could not find ResourceClaim "default/p-gpu"'
    listers.set("ResourceClaim", "default", "p-gpu", claim("p-gpu"))
    assert "pod is not owner" in (problem() or "")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.uid, "controller": True}
    owned = claim("p-gpu", metadata={"ownerReferences": [owner]})
    listers.set("ResourceClaim", "default", "p-gpu", owned)
    assert problem() is None
    plugin = DynamicResources(None, SimpleNamespace(listers=listers, release=OLDEST))
    assert plugin.after_claim_change(pod, None, owned).queues


def test_cordoning_is_no_event_and_uncordoning_is_a_change_of_taints() -> None:
    open_node, closed = make_node(), make_node(unschedulable=True)
    assert node_update_events(open_node, closed) == []
    assert node_update_events(closed, open_node) == [ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT)]


def test_an_update_without_a_recognised_change_reaches_only_plugins_that_want_any_update() -> None:
    (event,) = pod_update_events(make_pod("p"), make_pod("p"))
    assert event.label == "UnschedulablePodUpdate"
    table = build_hint_map(default_registrations())
    assert table.interested(event) == ()


def test_any_change_of_an_object_has_its_events() -> None:
    old, new = plain("DeviceClass", "d"), plain("DeviceClass", "d")
    labels = [
        event.label
        for before, after in ((None, new), (old, new), (old, None))
        for event in events_for("resource.k8s.io/DeviceClass", before, after)
    ]
    kind = "resource.k8s.io/DeviceClass"
    assert labels == [f"{kind}Add", f"{kind}Update", f"{kind}Delete"]
    assert [event.label for event in events_for("Pod", None, make_pod("p", node="n"))] == ["AssignedPodAdd"]
    assert [event.label for event in events_for("Pod", make_pod("p"), None)] == ["UnschedulablePodDelete"]
