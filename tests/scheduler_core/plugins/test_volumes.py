"""The volume plugins: columns equal their twins, in the cluster as it is and in worlds that change."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.interface import FilterPlugin
from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.node_volume_limits import NodeVolumeLimits
from scheduler_core.plugins.volume_binding import VolumeBinding
from scheduler_core.plugins.volume_restrictions import VolumeRestrictions
from scheduler_core.plugins.volume_zone import VolumeZone
from tests.scheduler_core.plugins.oracle_volume_binding import BindingTwin
from tests.scheduler_core.plugins.oracle_volumes import (
    Rejection,
    RestrictionsTwin,
    limits_filter,
    limits_skip,
    zone_filter,
    zone_pre_filter,
)
from tests.scheduler_core.plugins.storage_clusters import (
    HOSTNAME,
    ZONE,
    NodeInfo,
    StorageCluster,
    claim_manifest,
    class_manifest,
    csi_node_manifest,
    expression,
    mount,
    node_manifest,
    pod_manifest,
    random_cluster,
    volume_manifest,
)

SEEDS = st.integers(0, 2**32 - 1)


def verdicts_of(
    plugin: FilterPlugin[Any], state: Any, pod: Pod, nodes: Any, rows: Any
) -> list[Rejection | None]:
    verdicts = plugin.filter(state, pod, nodes, rows)
    found: list[Rejection | None] = []
    for place, row in enumerate(rows.tolist()):
        code = Code(int(verdicts.codes[place]))
        if code is Code.Success:
            found.append(None)
            continue
        detail = 0 if verdicts.details is None else int(verdicts.details[place])
        found.append((code.name, plugin.reasons(state, pod, nodes, row, code, detail)))
    return found


def status_of(status: Status) -> Rejection | str | None:
    if status.is_skip:
        return "Skip"
    return None if status.is_success else (status.code.name, status.reasons)


class Runner:
    """All four plugins over one cluster, kept from pod to pod so that what they remember is tried too."""

    def __init__(self, cluster: StorageCluster) -> None:
        self.cluster = cluster
        self.restrictions = VolumeRestrictions(None, cluster.handle)
        self.limits = NodeVolumeLimits(None, cluster.handle)
        self.binding = VolumeBinding(None, cluster.handle)
        self.zone = VolumeZone(None, cluster.handle)

    def check(self, pod: Pod) -> None:
        cluster = self.cluster
        snapshot, listers, infos = cluster.handle.snapshot, cluster.cache.listers, cluster.infos()
        nodes, rows = snapshot.nodes, cluster.rows()

        twin = RestrictionsTwin(pod, infos, listers)
        answer = self.restrictions.pre_filter(pod, snapshot)
        assert status_of(answer.status) == twin.status
        if twin.status is None:
            assert verdicts_of(self.restrictions, answer.state, pod, nodes, rows) == list(
                map(twin.filter, infos)
            )

        limits = self.limits.pre_filter(pod, snapshot)
        assert limits.status.is_skip == limits_skip(pod)
        if not limits.status.is_skip:
            expected = [limits_filter(pod, info, listers) for info in infos]
            assert verdicts_of(self.limits, limits.state, pod, nodes, rows) == expected

        binding_twin = BindingTwin(pod, listers)
        binding = self.binding.pre_filter(pod, snapshot)
        assert status_of(binding.status) == binding_twin.status
        if binding_twin.status is None:
            expected = [binding_twin.filter(info.node) for info in infos]
            assert verdicts_of(self.binding, binding.state, pod, nodes, rows) == expected

        zones = zone_pre_filter(pod, listers)
        zone = self.zone.pre_filter(pod, snapshot)
        assert status_of(zone.status) == (None if isinstance(zones, list) else zones)
        if isinstance(zones, list):
            expected = [zone_filter(zones, info.node) for info in infos]
            assert verdicts_of(self.zone, zone.state, pod, nodes, rows) == expected


@settings(max_examples=120, deadline=None)
@given(SEEDS)
def test_columns_say_what_the_twins_say_of_one_node_at_a_time(seed: int) -> None:
    cluster, pending = random_cluster(seed)
    runner = Runner(cluster)
    for pod in pending:
        runner.check(pod)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_what_is_remembered_from_cycle_to_cycle_follows_the_cluster(seed: int) -> None:
    cluster, pending = random_cluster(seed)
    runner = Runner(cluster)
    rng = random.Random(seed)
    donor, others = random_cluster(seed + 1)
    names = [info.node.name for info in cluster.infos()]
    for index, pod in enumerate(pending):
        runner.check(pod)
        placed = [other for info in cluster.infos() for other in info.pods]
        match rng.randrange(5):
            case 0 if placed:
                cluster.cache.remove_pod(rng.choice(placed).uid)
            case 1:
                name = rng.choice(names)
                cluster.put(csi_node_manifest(name, {"csi.x": rng.randint(1, 2), "ebs.csi.aws.com": 1}))
            case 2:
                cluster.put(node_manifest(f"new{index}", **{ZONE: "r-a-1"}))
            case 3 if len(names) > 1:
                cluster.cache.remove_node(names.pop())
            case _:
                donated = rng.choice(others)
                volumes = [dict(volume) for volume in donated.volumes]
                cluster.put(pod_manifest(f"late{index}", volumes, node=rng.choice(names)))
        for kind in ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "VolumeAttachment"):
            for item in donor.cache.listers.all(kind)[: rng.randint(0, index)]:
                cluster.put(dict(item.manifest))
        if rng.random() < 0.3:
            cluster.cache.listers.remove("PersistentVolumeClaim", "default", f"c{rng.randrange(8)}")
        runner.check(pod)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_worlds_that_lose_and_regain_pods_in_lock_step_equal_the_twins(seed: int) -> None:
    cluster, pending = random_cluster(seed)
    runner, rng = Runner(cluster), random.Random(seed)
    snapshot, listers, infos = cluster.handle.snapshot, cluster.cache.listers, cluster.infos()
    rows = cluster.rows()
    for pod in pending:
        twin = RestrictionsTwin(pod, infos, listers)
        restrictions = runner.restrictions.pre_filter(pod, snapshot)
        limits = runner.limits.pre_filter(pod, snapshot)
        world = WhatIf(snapshot.nodes, rows)
        plugins: list[tuple[FilterPlugin[Any], Any]] = []
        if restrictions.state is not None:
            plugins.append((runner.restrictions, runner.restrictions.fork(restrictions.state, world)))
        if limits.state is not None:
            plugins.append((runner.limits, runner.limits.fork(limits.state, world)))
        worlds = [NodeInfo(info.row, info.node, list(info.pods)) for info in infos]
        twins = [twin.clone() for _ in infos]
        gone: list[list[Pod]] = [[] for _ in infos]
        for _ in range(4):
            removing = rng.random() < 0.6
            moves = []
            for place, info in enumerate(worlds):
                stock = info.pods if removing else gone[place]
                if stock and rng.random() < 0.7:
                    moves.append((place, rng.choice(stock)))
            if not moves:
                continue
            places = np.array([place for place, _ in moves], np.int64)
            pod_ids = np.array([cluster.cache.pods.id_of[other.uid] for _, other in moves], np.int64)
            (world.remove_pods if removing else world.add_pods)(places, pod_ids)
            for plugin, state in plugins:
                (plugin.remove_pods if removing else plugin.add_pods)(state, pod, world, places, pod_ids)
            for place, other in moves:
                source, target = (
                    (worlds[place].pods, gone[place]) if removing else (gone[place], worlds[place].pods)
                )
                source.remove(other)
                target.append(other)
                if restrictions.state is not None:
                    twins[place].update(other, -1 if removing else 1)
            everyone = np.arange(len(rows), dtype=np.int64)
            for plugin, state in plugins:
                got = verdicts_of(plugin, state, pod, world, everyone)
                if plugin is runner.restrictions:
                    assert got == [one.filter(info) for one, info in zip(twins, worlds, strict=True)]
                else:
                    assert got == [limits_filter(pod, info, listers) for info in worlds]


# ---- reserving and binding


def local_cluster() -> StorageCluster:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1"), node_manifest("n2"), class_manifest("wait", "csi.x"))
    cluster.put(
        volume_manifest(
            "big",
            size="5Gi",
            local={"path": "/d"},
            terms=[{"matchExpressions": [expression(HOSTNAME, "n1")]}],
        ),
        volume_manifest(
            "small",
            size="2Gi",
            local={"path": "/d"},
            terms=[{"matchExpressions": [expression(HOSTNAME, "n1")]}],
        ),
    )
    cluster.put(claim_manifest("c0", size="1Gi"), claim_manifest("c1", size="1Gi"))
    return cluster


def rejections(plugin: VolumeBinding, cluster: StorageCluster, pod: Pod) -> list[Rejection | None]:
    snapshot = cluster.handle.snapshot
    state = plugin.pre_filter(pod, snapshot).state
    return verdicts_of(plugin, state, pod, snapshot.nodes, cluster.rows())


def test_reserve_keeps_the_smallest_volume_and_the_next_pod_gets_another() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    first, second = cluster.pod(mount("c0"), name="first"), cluster.pod(mount("c1"), name="second")
    assert plugin.reserve(first, "n1").is_success
    assert plugin.pre_bind(first, "n1").code is Code.Wait
    (written,) = plugin.take_writes(first)
    assert written["metadata"]["name"] == "small"
    assert written["spec"]["claimRef"]["name"] == "c0"
    assert written["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert plugin.reserve(second, "n1").is_success
    plugin.pre_bind(second, "n1")
    assert [item["metadata"]["name"] for item in plugin.take_writes(second)] == ["big"]


def test_unreserve_gives_the_volume_back() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    first, second = cluster.pod(mount("c0"), name="first"), cluster.pod(mount("c1"), name="second")
    plugin.reserve(first, "n1")
    plugin.unreserve(first, "n1")
    plugin.unreserve(first, "n1")
    plugin.reserve(second, "n1")
    plugin.pre_bind(second, "n1")
    assert [item["metadata"]["name"] for item in plugin.take_writes(second)] == ["small"]


def test_a_claim_without_a_volume_is_provisioned_for_the_node() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    pod = cluster.pod(mount("c0"))
    plugin.reserve(pod, "n2")
    plugin.pre_bind(pod, "n2")
    (written,) = plugin.take_writes(pod)
    assert written["kind"] == "PersistentVolumeClaim"
    assert written["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n2"}
    other = cluster.pod(mount("c0"), name="other")
    expected = ("UnschedulableAndUnresolvable", ("node(s) didn't find available persistent volumes to bind",))
    assert rejections(plugin, cluster, other) == [expected, None]


def bound(cluster: StorageCluster) -> None:
    """What the volume controller does: the claim is bound to the volume kept for it."""
    cluster.put(claim_manifest("c0", bound_to="small"))


def test_binding_ends_when_the_claim_is_bound() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    pod = cluster.pod(mount("c0"))
    plugin.reserve(pod, "n1")
    assert plugin.pre_bind(pod, "n1").code is Code.Wait
    cluster.put(*map(dict, plugin.take_writes(pod)))
    assert plugin.pre_bind(pod, "n1").code is Code.Wait
    bound(cluster)
    assert plugin.pre_bind(pod, "n1").is_success
    assert plugin.checkpoint() == {}


def test_binding_fails_when_its_time_is_over() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    pod = cluster.pod(mount("c0"))
    plugin.reserve(pod, "n1")
    plugin.pre_bind(pod, "n1")
    cluster.clock.move_to(600 * 10**9)
    assert plugin.pre_bind(pod, "n1") == Status(Code.Error, ("binding volumes: context deadline exceeded",))


def test_binding_fails_when_the_volume_is_taken_away() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    pod = cluster.pod(mount("c0"))
    plugin.reserve(pod, "n1")
    plugin.pre_bind(pod, "n1")
    cluster.put(
        volume_manifest(
            "small",
            size="2Gi",
            local={"path": "/d"},
            terms=[{"matchExpressions": [expression(HOSTNAME, "n1")]}],
        )
    )
    assert plugin.pre_bind(pod, "n1").message == 'binding volumes: ClaimRef got reset for pv "small"'


def test_provisioning_fails_when_the_provisioner_gives_the_node_back() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    pod = cluster.pod(mount("c0"))
    plugin.reserve(pod, "n2")
    plugin.pre_bind(pod, "n2")
    cluster.put(claim_manifest("c0", size="1Gi", annotations={"x": "y"}))
    assert plugin.pre_bind(pod, "n2").message == 'binding volumes: provisioning failed for PVC "c0"'


def test_reservations_survive_a_restart() -> None:
    cluster = local_cluster()
    plugin = VolumeBinding(None, cluster.handle)
    pod = cluster.pod(mount("c0"))
    plugin.reserve(pod, "n1")
    plugin.pre_bind(pod, "n1")
    again = VolumeBinding(None, cluster.handle)
    again.restore(plugin.checkpoint())
    assert again.checkpoint() == plugin.checkpoint()
    cluster.put(*map(dict, again.take_writes(pod)))
    bound(cluster)
    assert again.pre_bind(pod, "n1").is_success


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_reserve_takes_what_filter_found(seed: int) -> None:
    cluster, pending = random_cluster(seed)
    for pod in pending:
        twin = BindingTwin(pod, cluster.cache.listers)
        if twin.status is not None or not twin.delayed:
            continue
        for info in cluster.infos():
            if twin.filter(info.node) is not None:
                continue
            plugin = VolumeBinding(None, cluster.handle)
            assert plugin.reserve(pod, info.node.name).is_success
            (document,) = plugin.checkpoint().values()
            _, bindings, provisions = twin.find(info.node)
            got = [(item["claim_name"], item["volume"]["metadata"]["name"]) for item in document["bindings"]]
            assert got == bindings
            assert [item["metadata"]["name"] for item in document["provisions"]] == provisions


@pytest.mark.parametrize("plugin", [VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone])
def test_a_pod_without_volumes_is_skipped(plugin: type[Any]) -> None:
    cluster = StorageCluster()
    cluster.put(node_manifest("n1"))
    answer = plugin(None, cluster.handle).pre_filter(cluster.pod(), cluster.handle.snapshot)
    assert answer.status.is_skip
