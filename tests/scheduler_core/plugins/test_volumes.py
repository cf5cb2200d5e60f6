"""VolumeBinding reserves volumes and waits until they are bound; what counts against the limits of a node."""

from typing import Any

import pytest

from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone
from tests.scheduler_core.plugins.storage_clusters import (
    HOSTNAME,
    StorageCluster,
    attachment_manifest,
    claim_manifest,
    class_manifest,
    csi_node_manifest,
    mount,
    node_manifest,
    pod_manifest,
    volume_manifest,
)
from tests.tables import table


def local_volume(name: str, size: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1"]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    return volume_manifest(name, size=size, local={"path": "/d"}, nodeAffinity=affinity)


@pytest.fixture
def cluster() -> StorageCluster:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1"), node_manifest("n2"), class_manifest("wait", "csi.x"))
    cluster.put(local_volume("big", "5Gi"), local_volume("small", "2Gi"))
    cluster.put(claim_manifest("c0"), claim_manifest("c1"))
    return cluster


@pytest.fixture
def plugin(cluster: StorageCluster) -> VolumeBinding:
    return VolumeBinding(None, cluster.handle)


def reserved(cluster: StorageCluster, plugin: VolumeBinding, claim: str, node: str) -> Pod:
    """A pod with a node chosen for it that waits in PreBind."""
    pod = cluster.pod(mount(claim), name=f"of-{claim}")
    assert plugin.reserve(pod, node).is_success
    assert plugin.pre_bind(pod, node).code is Code.Wait
    return pod


def test_reserve_keeps_the_smallest_volume_and_the_next_pod_gets_another(
    cluster: StorageCluster, plugin: VolumeBinding
) -> None:
    (written,) = plugin.take_writes(reserved(cluster, plugin, "c0", "n1"))
    assert written["metadata"]["name"] == "small"
    assert written["spec"]["claimRef"]["name"] == "c0"
    assert written["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    second = plugin.take_writes(reserved(cluster, plugin, "c1", "n1"))
    assert [item["metadata"]["name"] for item in second] == ["big"]


def test_unreserve_gives_the_volume_back(cluster: StorageCluster, plugin: VolumeBinding) -> None:
    first = cluster.pod(mount("c0"))
    plugin.reserve(first, "n1")
    plugin.unreserve(first, "n1")
    plugin.unreserve(first, "n1")
    second = plugin.take_writes(reserved(cluster, plugin, "c1", "n1"))
    assert [item["metadata"]["name"] for item in second] == ["small"]


def test_a_claim_without_a_volume_is_provisioned_for_the_node(
    cluster: StorageCluster, plugin: VolumeBinding
) -> None:
    (written,) = plugin.take_writes(reserved(cluster, plugin, "c0", "n2"))
    assert written["kind"] == "PersistentVolumeClaim"
    assert written["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n2"}
    other, snapshot = cluster.pod(mount("c0"), name="other"), cluster.handle.snapshot
    state = plugin.pre_filter(other, snapshot).state
    codes = plugin.filter(state, other, snapshot.nodes, snapshot.rows).codes.tolist()
    assert codes == [Code.UnschedulableAndUnresolvable, Code.Success]


def test_binding_ends_when_the_claim_is_bound_also_after_a_restart(
    cluster: StorageCluster, plugin: VolumeBinding
) -> None:
    pod = reserved(cluster, plugin, "c0", "n1")
    again = VolumeBinding(None, cluster.handle)
    again.restore(plugin.checkpoint())
    assert again.checkpoint() == plugin.checkpoint() != {}
    cluster.put(*map(dict, again.take_writes(pod)))
    for one in (plugin, again):
        assert one.pre_bind(pod, "n1").code is Code.Wait
    # What the volume controller does: the claim is bound to the volume kept for it.
    cluster.put(claim_manifest("c0", bound_to="small"))
    for one in (plugin, again):
        assert one.pre_bind(pod, "n1").is_success
        assert one.checkpoint() == {}


TOO_LATE = 600 * 10**9


@pytest.mark.parametrize(
    ("node", "now_ns", "written", "said"),
    [
        ("n1", TOO_LATE, [], "context deadline exceeded"),
        ("n1", 0, [local_volume("small", "2Gi")], 'ClaimRef got reset for pv "small"'),
        ("n2", 0, [claim_manifest("c0", annotations={"x": "y"})], 'provisioning failed for PVC "c0"'),
    ],
    ids=["its time is over", "the volume is taken away", "the provisioner gives the node back"],
)
def test_binding_fails_when(
    cluster: StorageCluster, plugin: VolumeBinding, node: str, now_ns: int, written: list[Any], said: str
) -> None:
    pod = reserved(cluster, plugin, "c0", node)
    cluster.clock.move_to(now_ns)
    cluster.put(*written)
    assert plugin.pre_bind(pod, node) == Status(Code.Error, (f"binding volumes: {said}",))


@pytest.mark.parametrize("kind", [VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone])
def test_a_pod_without_volumes_is_skipped(cluster: StorageCluster, kind: type[Any]) -> None:
    answer = kind(None, cluster.handle).pre_filter(cluster.pod(), cluster.handle.snapshot)
    assert answer.status.is_skip


@pytest.mark.parametrize(
    ("attached", "mounted", "limit", "fits"),
    table(__file__, "attached_volumes_count_once_whether_a_pod_uses_them_or_not"),
)
def test_attached_volumes_count_once_whether_a_pod_uses_them_or_not(
    attached: list[str], mounted: list[str], limit: int, fits: bool
) -> None:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1"), csi_node_manifest("n1", {"csi.x": limit}))
    for name in ("pv0", "pv1", "pv2", "pv3"):
        source = {"driver": "csi.x", "volumeHandle": name}
        cluster.put(volume_manifest(name, csi=source), claim_manifest(f"of-{name}", bound_to=name))
    for name in attached:
        cluster.put(attachment_manifest(f"a-{name}", "csi.x", "n1", name))
    cluster.put(attachment_manifest("foreign", "csi.x", "n2", "pv2"))
    cluster.put(pod_manifest("there", [mount(f"of-{name}") for name in mounted], node="n1"))
    plugin, pod = NodeVolumeLimits(None, cluster.handle), cluster.pod(mount("of-pv3"))
    snapshot = cluster.handle.snapshot
    state: Any = plugin.pre_filter(pod, snapshot).state
    codes = plugin.filter(state, pod, snapshot.nodes, snapshot.rows).codes.tolist()
    assert codes == [Code.Success if fits else Code.Unschedulable]
