"""What the recorded hint cases leave open."""

from typing import Any

import pytest

from scheduler_core.framework.cluster_event import events_for
from scheduler_core.objects.kinds import parse
from scheduler_core.plugins import node_ports, node_volume_limits
from tests.scheduler_core.queue.builders import make_pod
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


def test_a_malformed_aws_volume_is_an_error_as_upstream() -> None:
    pod = make_pod("p", volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}])
    attachment = plain("VolumeAttachment", "a", spec={"attacher": "ebs.csi.aws.com"})
    with pytest.raises(ValueError, match="invalid format for AWS volume"):
        node_volume_limits.after_volume_detached(pod, attachment, None)


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
