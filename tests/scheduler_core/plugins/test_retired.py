"""The retired plugins: columns equal their twins, and only those who ask for them get them."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.clock import Clock
from scheduler_core.cluster.default_selectors import DefaultSelectors
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.interface import FilterPlugin
from scheduler_core.framework.status import Code
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins import REGISTRY, load_configuration
from scheduler_core.plugins.retired import (
    RETIRED,
    AzureDiskLimits,
    CinderLimits,
    EBSLimits,
    GCEPDLimits,
    NodeLabel,
    NodeLabelArgs,
    NodePreferAvoidPods,
    NonCSILimits,
    SelectorSpread,
    ServiceAffinity,
    ServiceAffinityArgs,
)
from scheduler_core.randomness import Randomness
from scheduler_core.scheduler import Scheduler
from tests.scheduler_core.plugins.oracle_retired import (
    AffinityTwin,
    Rejection,
    affinity_normalize,
    avoid_pods_score,
    disk_limits_filter,
    matching_pods,
    node_label_filter,
    node_label_score,
    spread_normalize,
)
from tests.scheduler_core.plugins.storage_clusters import (
    NodeInfo,
    StorageCluster,
    node_manifest,
    random_cluster,
)
from tests.scheduler_core.stored import prepare

SEEDS = st.integers(0, 2**32 - 1)
ZONE = "topology.kubernetes.io/zone"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
LABELS = ("rack", "disk", "retiring", ZONE)


def verdicts_of(
    plugin: FilterPlugin[Any], state: Any, pod: Pod, nodes: Any, rows: Any
) -> list[Rejection | None]:
    verdicts = plugin.filter(state, pod, nodes, rows)
    found: list[Rejection | None] = []
    for place, row in enumerate(rows.tolist()):
        code = Code(int(verdicts.codes[place]))
        detail = 0 if verdicts.details is None else int(verdicts.details[place])
        rejected = code is not Code.Success
        found.append((code.name, plugin.reasons(state, pod, nodes, row, code, detail)) if rejected else None)
    return found


def service_cluster(seed: int) -> tuple[StorageCluster, list[Pod]]:
    """Nodes with racks and zones, services, and pods some of which they select."""
    rng = random.Random(seed)
    cluster = StorageCluster()
    names = [f"n{index}" for index in range(rng.randint(1, 7))]
    for name in names:
        labels = {key: rng.choice("abc") for key in LABELS if rng.random() < 0.6}
        if rng.random() < 0.3:
            labels[ZONE_BETA] = rng.choice("abc")
        if rng.random() < 0.3:
            labels[REGION] = rng.choice("xy")
        manifest = node_manifest(name, **labels)
        if rng.random() < 0.5:
            controller = {"kind": rng.choice(("ReplicaSet", "Job")), "uid": rng.choice(("u1", "u2"))}
            avoid = {"preferAvoidPods": [{"podSignature": {"podController": controller}}]}
            text = json.dumps(avoid) if rng.random() < 0.8 else "{"
            manifest["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/preferAvoidPods": text}
        cluster.put(manifest)
    for index in range(rng.randint(0, 2)):
        cluster.put(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"s{index}", "namespace": rng.choice(("default", "other"))},
                "spec": {"selector": {"app": rng.choice(("web", "db"))}},
            }
        )
    for index in range(rng.randint(0, 12)):
        cluster.put(_pod(rng, f"placed{index}", rng.choice(names)))
    pending = [pod_from(prepare(_pod(rng, f"pending{index}", ""))) for index in range(3)]
    return cluster, pending


def _pod(rng: random.Random, name: str, node: str) -> dict[str, Any]:
    labels = {"app": rng.choice(("web", "db"))} if rng.random() < 0.9 else {}
    meta: dict[str, Any] = {
        "name": name,
        "namespace": rng.choice(("default", "default", "other")),
        "labels": labels,
    }
    if rng.random() < 0.5:
        kind, uid = rng.choice(("ReplicaSet", "StatefulSet")), rng.choice(("u1", "u2"))
        meta["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": uid, "controller": True}
        ]
    if rng.random() < 0.1:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: dict[str, Any] = {"containers": [{"name": "c"}]}
    if rng.random() < 0.3:
        spec["nodeSelector"] = {rng.choice(LABELS): rng.choice("abc")}
    if not node and rng.random() < 0.2:
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ]
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@settings(max_examples=80, deadline=None)
@given(SEEDS)
def test_scores_equal_the_twins(seed: int) -> None:
    cluster, pending = service_cluster(seed)
    rng = random.Random(seed)
    snapshot, infos, rows = cluster.handle.snapshot, cluster.infos(), cluster.rows()
    nodes = [info.node for info in infos]
    label_args = NodeLabelArgs(
        tuple(rng.sample(LABELS, 1)), tuple(rng.sample(LABELS, 1)), tuple(rng.sample(LABELS, 2)), ("rack",)
    )
    affinity_args = ServiceAffinityArgs((), tuple(rng.sample(LABELS, rng.randint(0, 3))))
    labels = NodeLabel(label_args, cluster.handle)
    avoids = NodePreferAvoidPods(None, cluster.handle)
    spread = SelectorSpread(None, cluster.handle)
    affinity = ServiceAffinity(affinity_args, cluster.handle)
    for pod in pending:
        table = snapshot.nodes
        expected = [node_label_filter(label_args, node) for node in nodes]
        assert verdicts_of(labels, None, pod, table, rows) == expected
        assert labels.score(None, pod, table, rows).tolist() == [
            node_label_score(label_args, node) for node in nodes
        ]
        assert avoids.score(None, pod, table, rows).tolist() == [
            avoid_pods_score(pod, node) for node in nodes
        ]

        state = spread.pre_score(pod, snapshot, rows).state
        assert state is not None
        raw = spread.score(state, pod, table, rows)
        normal = spread.normalize(state, pod, table, rows, raw).tolist()
        if pod.topology_spread:
            assert normal == [0] * len(nodes)
        else:
            selector = DefaultSelectors(cluster.cache.listers).of(pod)
            counts = [matching_pods(pod.namespace, selector, info.pods) for info in infos]
            assert raw.tolist() == counts
            assert normal == spread_normalize(nodes, counts)

        raw = affinity.score(None, pod, table, rows)
        services = DefaultSelectors(cluster.cache.listers).services_of(pod)
        counts = [0] * len(nodes)
        if services:
            first = selector_from_labels(services[0].selector_labels)
            counts = [matching_pods(pod.namespace, first, info.pods) for info in infos]
        assert raw.tolist() == counts
        got = affinity.normalize(None, pod, table, rows, raw).tolist()
        assert got == affinity_normalize(affinity_args, nodes, counts)


@settings(max_examples=80, deadline=None)
@given(SEEDS)
def test_service_affinity_equals_its_twin_in_worlds_that_change(seed: int) -> None:
    cluster, pending = service_cluster(seed)
    rng = random.Random(seed)
    snapshot, infos, rows = cluster.handle.snapshot, cluster.infos(), cluster.rows()
    args = ServiceAffinityArgs(tuple(rng.sample(LABELS, rng.randint(0, 2))))
    plugin = ServiceAffinity(args, cluster.handle)
    for pod in pending:
        services = DefaultSelectors(cluster.cache.listers).services_of(pod)
        twin = AffinityTwin(args, pod, infos, bool(services))
        state = plugin.pre_filter(pod, snapshot).state
        assert state is not None
        assert verdicts_of(plugin, state, pod, snapshot.nodes, rows) == list(map(twin.filter, infos))
        world = WhatIf(snapshot.nodes, rows)
        forked = plugin.fork(state, world)
        worlds = [NodeInfo(info.row, info.node, list(info.pods)) for info in infos]
        twins = [twin.clone() for _ in infos]
        gone: list[list[Pod]] = [[] for _ in infos]
        for _ in range(4):
            removing = rng.random() < 0.6
            stocks = [info.pods for info in worlds] if removing else gone
            moves = [(place, rng.choice(stock)) for place, stock in enumerate(stocks) if stock]
            places = np.array([place for place, _ in moves], np.int64)
            pod_ids = np.array([cluster.cache.pods.id_of[other.uid] for _, other in moves], np.int64)
            (world.remove_pods if removing else world.add_pods)(places, pod_ids)
            (plugin.remove_pods if removing else plugin.add_pods)(forked, pod, world, places, pod_ids)
            for place, other in moves:
                source, target = (
                    (worlds[place].pods, gone[place]) if removing else (gone[place], worlds[place].pods)
                )
                source.remove(other)
                target.append(other)
                (twins[place].remove if removing else twins[place].add)(other)
            everyone = np.arange(len(rows), dtype=np.int64)
            expected = [one.filter(info) for one, info in zip(twins, worlds, strict=True)]
            assert verdicts_of(plugin, forked, pod, world, everyone) == expected


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_disk_limits_equal_their_twins_in_worlds_that_change(seed: int) -> None:
    cluster, pending = random_cluster(seed)
    rng = random.Random(seed)
    for info in cluster.infos():
        manifest = {**info.node.manifest}
        if rng.random() < 0.9:
            limits = {
                "attachable-volumes-aws-ebs": rng.randint(0, 3),
                "attachable-volumes-gce-pd": rng.randint(0, 2),
            }
            manifest["status"] = {"allocatable": {key: str(value) for key, value in limits.items()}}
        cluster.put(manifest)
    snapshot, infos, rows = cluster.handle.snapshot, cluster.infos(), cluster.rows()
    plugins: list[NonCSILimits] = [EBSLimits(None, cluster.handle), GCEPDLimits(None, cluster.handle)]
    listers = cluster.cache.listers
    for pod in pending:
        for plugin in plugins:
            expected = [disk_limits_filter(plugin.name, pod, info, listers) for info in infos]
            assert verdicts_of(plugin, None, pod, snapshot.nodes, rows) == expected
            world = WhatIf(snapshot.nodes, rows)
            state = plugin.fork(None, world)
            moves = [(place, rng.choice(info.pods)) for place, info in enumerate(infos) if info.pods]
            places = np.array([place for place, _ in moves], np.int64)
            pod_ids = np.array([cluster.cache.pods.id_of[other.uid] for _, other in moves], np.int64)
            world.remove_pods(places, pod_ids)
            plugin.remove_pods(state, pod, world, places, pod_ids)
            gone = dict(moves)
            left = [
                NodeInfo(info.row, info.node, [other for other in info.pods if other is not gone.get(place)])
                for place, info in enumerate(infos)
            ]
            expected = [disk_limits_filter(plugin.name, pod, info, listers) for info in left]
            everyone = np.arange(len(rows), dtype=np.int64)
            assert verdicts_of(plugin, state, pod, world, everyone) == expected


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
        (verdict,) = verdicts_of(limits, None, pod, cluster.cache.nodes, cluster.rows())
        assert (verdict is None) is fits


def test_retired_plugins_are_registered_only_on_demand() -> None:
    names = {plugin.name for plugin in RETIRED}
    assert not names & set(REGISTRY)
    assert names <= set(REGISTRY.with_retired())


def test_a_policy_file_brings_its_retired_plugins_along() -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [
            {"name": "MaxEBSVolumeCount"},
            {"name": "racks", "argument": {"labelsPresence": {"labels": ["rack"], "presence": True}}},
            {"name": "together", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
        ],
        "priorities": [
            {"name": "EqualPriority", "weight": 1},
            {"name": "SelectorSpreadPriority", "weight": 3},
            {"name": "NodePreferAvoidPodsPriority", "weight": 10000},
        ],
    }
    loaded = load_configuration(policy)
    framework = Scheduler(loaded, Clock(0), Randomness(0)).profiles["default-scheduler"]
    names = [plugin.name for plugin in framework.filter]
    assert {"EBSLimits", "NodeLabel", "ServiceAffinity"} <= set(names)
    assert framework.weights == {"SelectorSpread": 3, "NodePreferAvoidPods": 10000}
    assert framework.plugins["NodeLabel"].args == NodeLabelArgs(present_labels=("rack",))
