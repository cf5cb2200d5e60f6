"""The retired plugins: what each says of a few nodes, and that only those who ask for them get them."""

from typing import Any

import numpy as np
import pytest

from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.example import scores, verdicts
from scheduler_core.framework.interface import FilterPlugin
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins.retired import (
    AzureDiskLimits,
    CinderLimits,
    EBSLimits,
    GCEPDLimits,
    NodeLabel,
    NodeLabelArgs,
    NodePreferAvoidPods,
    SelectorSpread,
    ServiceAffinity,
    ServiceAffinityArgs,
)
from tests.manifests import make_object
from tests.scheduler_core.plugins.storage_clusters import (
    AWS,
    StorageCluster,
    claim_manifest,
    class_manifest,
    csi_node_manifest,
    mount,
    node_manifest,
    pod_manifest,
    volume_manifest,
)
from tests.scheduler_core.stored import prepare
from tests.tables import table

ZONE = "topology.kubernetes.io/zone"
NO_LABELS = "node(s) didn't have the requested labels"
OTHER_RACK = "node(s) didn't match service affinity"


def words_of(plugin: FilterPlugin[Any], state: Any, pod: Pod, nodes: Any, rows: Any) -> list[str]:
    """What a plugin says of each row: empty where it passes."""
    found = plugin.filter(state, pod, nodes, rows)
    details = np.zeros(len(rows), np.int64) if found.details is None else found.details
    return [
        plugin.reasons(state, pod, nodes, row, Code(code), detail)[0] if code else ""
        for row, code, detail in zip(rows.tolist(), found.codes.tolist(), details.tolist(), strict=True)
    ]


def scored(plugin: Any, manifest: dict[str, Any], *, prepared: bool = False) -> tuple[list[int], list[int]]:
    """(raw, normalized) scores of all nodes."""
    pod, snapshot = pod_from(prepare(manifest)), plugin.handle.snapshot
    state = plugin.pre_score(pod, snapshot, snapshot.rows).state if prepared else None
    raw = plugin.score(state, pod, snapshot.nodes, snapshot.rows)
    return raw.tolist(), plugin.normalize(state, pod, snapshot.nodes, snapshot.rows, raw).tolist()


def test_labels_are_required_forbidden_and_preferred() -> None:
    nodes: dict[str, Any] = {
        "n1": {"labels": {"rack": "a"}},
        "n2": {"labels": {"rack": "a", "retiring": ""}},
        "n3": {"labels": {"disk": "ssd"}},
    }
    args = NodeLabelArgs(("rack",), ("retiring",), ("disk", "rack"), ("retiring",))
    pod = {"containers": []}
    said = {"n1": "passes", "n2": NO_LABELS, "n3": NO_LABELS}
    assert verdicts(NodeLabel, pod, args=args, **nodes) == said
    assert scores(NodeLabel, pod, args=args, **nodes) == {"n1": 66, "n2": 33, "n3": 66}
    assert scores(NodeLabel, pod, args=NodeLabelArgs(("rack",)), **nodes) == {"n1": 0, "n2": 0, "n3": 0}


@pytest.mark.parametrize(
    ("owner", "annotation", "score"),
    table(__file__, "a_node_may_ask_to_be_spared_a_controllers_pods"),
)
def test_a_node_may_ask_to_be_spared_a_controllers_pods(owner: Any, annotation: str, score: int) -> None:
    cluster = StorageCluster()
    text = f'{{"preferAvoidPods": [{{"podSignature": {{"podController": {annotation}}}}}]}}'
    node = node_manifest("n1")
    node["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/preferAvoidPods": text}
    cluster.put(node, node_manifest("n2"))
    pod = pod_manifest("p", [])
    if owner is not None:
        kind, uid = owner
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": kind, "name": "o", "uid": uid, "controller": True}
        ]
    found = NodePreferAvoidPods(None, cluster.handle).score(
        None, pod_from(prepare(pod)), cluster.cache.nodes, cluster.handle.snapshot.rows
    )
    assert found.tolist() == [score, 100]


def labelled(name: str, node: str = "", app: str = "web", namespace: str = "default", **spec: Any) -> Any:
    spec = {"containers": [{"name": "c"}], "nodeName": node, **spec}
    return make_object("v1", "Pod", name, namespace=namespace, labels={"app": app}, spec=spec)


@pytest.fixture
def racks() -> StorageCluster:
    """Two nodes of one rack and zone, one of another, one of none; three pods of a service and two that are not."""
    cluster = StorageCluster()
    for name, rack in (("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "")):
        cluster.put(node_manifest(name, rack=rack, **{ZONE: rack}))
    cluster.put(make_object("v1", "Service", "s", namespace="default", spec={"selector": {"app": "web"}}))
    cluster.put(labelled("p1", "n1"), labelled("p2", "n1"), labelled("p3", "n2"))
    leaving = labelled("leaving", "n3")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.put(labelled("db", "n3", app="db"), labelled("far", "n3", namespace="other"), leaving)
    return cluster


@pytest.mark.parametrize(
    ("pod", "raw", "normal"),
    [
        # By node 0, 50 and 100, a third of it; by zone 0 and 100, two thirds.
        (labelled("p"), [2, 1, 0, 0], [0, 16, 100, 100]),
        (labelled("p", app="db"), [0, 0, 0, 0], [100, 100, 100, 100]),
    ],
)
def test_pods_of_a_service_are_spread_over_nodes_and_zones(
    racks: StorageCluster, pod: Any, raw: list[int], normal: list[int]
) -> None:
    assert scored(SelectorSpread(None, racks.handle), pod, prepared=True) == (raw, normal)


def test_a_pod_that_spreads_itself_is_not_spread(racks: StorageCluster) -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    pod = labelled("p", topologySpreadConstraints=[constraint | {"labelSelector": {}}])
    assert scored(SelectorSpread(None, racks.handle), pod, prepared=True)[1] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("labels", "pod", "said"),
    [
        (("rack",), labelled("p"), ["", "", OTHER_RACK, OTHER_RACK]),
        (("rack",), labelled("p", nodeSelector={"rack": "b"}), [OTHER_RACK, OTHER_RACK, "", OTHER_RACK]),
        (("rack",), labelled("p", app="db"), ["", "", "", ""]),
        (("rack",), labelled("p", namespace="other"), ["", "", "", ""]),
        ((), labelled("p"), ["", "", "", ""]),
    ],
    ids=["where the service runs", "what the pod says", "no service", "no service there", "no labels"],
)
def test_pods_of_a_service_stay_together(
    racks: StorageCluster, labels: tuple[str, ...], pod: Any, said: list[str]
) -> None:
    plugin = ServiceAffinity(ServiceAffinityArgs(labels), racks.handle)
    asked, snapshot = pod_from(prepare(pod)), racks.handle.snapshot
    state = plugin.pre_filter(asked, snapshot).state
    assert words_of(plugin, state, asked, snapshot.nodes, snapshot.rows) == said


def test_the_first_pod_of_a_service_that_is_left_says_where_it_runs(racks: StorageCluster) -> None:
    racks.cache.remove_pod("default/p3")
    plugin = ServiceAffinity(ServiceAffinityArgs(("rack",)), racks.handle)
    pod, snapshot = pod_from(prepare(labelled("p"))), racks.handle.snapshot
    state = plugin.pre_filter(pod, snapshot).state
    assert state is not None
    world = WhatIf(snapshot.nodes, snapshot.rows)
    forked, row = plugin.fork(state, world), np.zeros(1, np.int64)
    said = [words_of(plugin, forked, pod, world, np.arange(4))]
    for name, move in (("p1", "remove_pods"), ("p2", "remove_pods"), ("p2", "add_pods")):
        ids = np.array([racks.cache.pods.id_of[f"default/{name}"]], np.int64)
        getattr(world, move)(row, ids)
        getattr(plugin, move)(forked, pod, world, row, ids)
        said.append(words_of(plugin, forked, pod, world, np.arange(4)))
    # Each row is a world: in the first one's the service runs on its own node, then on n3, where a pod is leaving.
    rest = ["", OTHER_RACK, OTHER_RACK]
    assert said == [["", *rest], ["", *rest], [OTHER_RACK, *rest], [OTHER_RACK, *rest]]


def test_values_under_which_few_pods_of_the_service_run_are_preferred(racks: StorageCluster) -> None:
    args = ServiceAffinityArgs((), ("rack", "kubernetes.io/hostname"))
    # Half of it by rack: 0, 0, 100 and no rack; half by host: 33.3, 66.7, 100 and 100.
    expected = [2, 1, 0, 0], [16, 33, 100, 50]
    assert scored(ServiceAffinity(args, racks.handle), labelled("p")) == expected


@pytest.mark.parametrize(
    ("volumes", "limit", "said"),
    [
        ([{"awsElasticBlockStore": {"volumeID": "new"}}], "4", ""),
        ([{"awsElasticBlockStore": {"volumeID": "new"}}], "3", "node(s) exceed max volume count"),
        ([{"awsElasticBlockStore": {"volumeID": "there"}}], "3", ""),
        ([mount("bound")], "3", ""),
        ([mount("waits")], "3", "node(s) exceed max volume count"),
        ([mount("elsewhere")], "3", ""),
        ([{"gcePersistentDisk": {"pdName": "d"}}], "3", ""),
        ([], "3", ""),
        ([mount("gone")], "3", 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'),
    ],
)
def test_disks_that_are_there_are_counted_once_whoever_uses_them(volumes: Any, limit: str, said: str) -> None:
    cluster = StorageCluster()
    full = node_manifest("n1")
    full["status"]["allocatable"]["attachable-volumes-aws-ebs"] = limit
    cluster.put(full, {**full, "metadata": {"name": "n2"}}, csi_node_manifest("n2", {}, AWS))
    cluster.put(class_manifest("ebs", AWS), class_manifest("csi"))
    cluster.put(volume_manifest("pv", "ebs", awsElasticBlockStore={"volumeID": "v2"}))
    cluster.put(claim_manifest("bound", "ebs", bound_to="pv"), claim_manifest("waits", "ebs"))
    cluster.put(claim_manifest("other", "ebs"), claim_manifest("elsewhere", "csi"))
    there = {"awsElasticBlockStore": {"volumeID": "there"}}
    for node in ("n1", "n2"):
        cluster.put(pod_manifest(f"p1-{node}", [there, mount("bound")], node=node))
        cluster.put(pod_manifest(f"p2-{node}", [there, mount("other"), mount("lost")], node=node))
    plugin, pod = EBSLimits(None, cluster.handle), cluster.pod(*volumes)
    # Of the second node, which leaves such disks to CSI, nothing is said unless the pod itself is at fault.
    expected = [said, said if "looking up" in said else ""]
    assert words_of(plugin, None, pod, cluster.cache.nodes, cluster.handle.snapshot.rows) == expected


@pytest.mark.parametrize(
    ("plugin", "disk", "limit"),
    [
        (EBSLimits, lambda index: {"awsElasticBlockStore": {"volumeID": f"vol-{index}"}}, 25),
        (GCEPDLimits, lambda index: {"gcePersistentDisk": {"pdName": f"d{index}"}}, 16),
        (AzureDiskLimits, lambda index: {"azureDisk": {"diskName": f"d{index}"}}, 16),
        (CinderLimits, lambda index: {"cinder": {"volumeID": f"d{index}"}}, 256),
    ],
)
def test_without_a_stated_limit_the_plugin_has_its_own(plugin: Any, disk: Any, limit: int) -> None:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1", **{"node.kubernetes.io/instance-type": "m5.large"}))
    limits = plugin(None, cluster.handle)
    for count, fits in ((limit, True), (limit + 1, False)):
        pod = cluster.pod(*(disk(index) for index in range(count)))
        (said,) = words_of(limits, None, pod, cluster.cache.nodes, cluster.handle.snapshot.rows)
        assert (not said) is fits
