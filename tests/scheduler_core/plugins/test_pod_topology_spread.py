"""PodTopologySpread's columns say what upstream's one-node-at-a-time algorithm says."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.status import Code
from scheduler_core.objects.labels import EVERYTHING
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.policy import selecting_object_from
from scheduler_core.plugins.pod_topology_spread import HardState, PodTopologySpread, normalizing_weight
from tests.scheduler_core.plugins.oracle_pod_topology_spread import FilterTwin, ScoreTwin, constraints_of
from tests.scheduler_core.plugins.shared_domain_clusters import RandomCluster

pytestmark = pytest.mark.usefixtures("every_threshold")

HANDLE: Any = SimpleNamespace()
LIST_DEFAULTING = SimpleNamespace(
    defaulting_type="List",
    default_constraints=(
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"},
    ),
)


def verdicts(
    plugin: PodTopologySpread, state: HardState, pod: Pod, nodes: NodeColumns, rows: Rows
) -> list[tuple[str, str] | None]:
    found = plugin.filter(state, pod, nodes, rows)
    result: list[tuple[str, str] | None] = []
    for row, number in zip(rows.tolist(), found.codes.tolist(), strict=True):
        code = Code(number)
        result.append(None if not code else (code.name, *plugin.reasons(state, pod, nodes, row, code, 0)))
    return result


@given(st.integers(0, 2**32))
@settings(max_examples=150)
def test_filter_agrees_with_its_twin_while_the_cluster_changes(seed: int) -> None:
    cluster = RandomCluster(seed)
    plugin = PodTopologySpread(None, HANDLE)
    pods = [cluster.make_pod(spread=True) for _ in range(3)]
    for _ in range(6):
        for pod in pods:
            snapshot = cluster.cache.snapshot()
            constraints = constraints_of(pod, "DoNotSchedule", snapshot.matching.default_selectors, True)
            result = plugin.pre_filter(pod, snapshot)
            assert result.status.is_skip == (not constraints)
            if result.state is None:
                continue
            infos = cluster.infos()
            twin = FilterTwin(pod, infos, constraints)
            expected = [twin.filter(info.node) for info in infos]
            assert verdicts(plugin, result.state, pod, snapshot.nodes, snapshot.order) == expected
        cluster.change()


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_worlds_in_lock_step_agree_with_one_state_a_node(seed: int) -> None:
    cluster = RandomCluster(seed)
    plugin = PodTopologySpread(None, HANDLE)
    pod = cluster.make_pod(spread=True)
    snapshot = cluster.cache.snapshot()
    base = plugin.pre_filter(pod, snapshot).state
    if base is None:
        return
    infos = cluster.infos()
    constraints = constraints_of(pod, "DoNotSchedule", snapshot.matching.default_selectors, True)
    twins = [FilterTwin(pod, infos, constraints) for _ in infos]
    nodes = WhatIf(snapshot.nodes, snapshot.order)
    state = plugin.fork(base, nodes)
    everyone = np.arange(len(infos))
    nominated = [cluster.cache.pods.add(cluster.make_pod(), findable=False) for _ in range(6)]
    for _ in range(10):
        assert verdicts(plugin, state, pod, nodes, everyone) == [
            twin.filter(info.node) for twin, info in zip(twins, infos, strict=True)
        ]
        moves: list[tuple[int, int]] = []
        change = cluster.random.choice((1, -1))
        for row in everyone.tolist():
            there = nodes.pods_on(row)
            able = [pod_id for pod_id in nominated if pod_id not in there] if change > 0 else there
            if able:
                moves.append((row, cluster.random.choice(able)))
        rows = np.array([row for row, _ in moves], np.int64)
        pod_ids = np.array([pod_id for _, pod_id in moves], np.int64)
        if change > 0:
            nodes.add_pods(rows, pod_ids)
            plugin.add_pods(state, pod, nodes, rows, pod_ids)
        else:
            nodes.remove_pods(rows, pod_ids)
            plugin.remove_pods(state, pod, nodes, rows, pod_ids)
        for row, pod_id in moves:
            twins[row].update(cluster.cache.pods[pod_id], infos[row].node, change)
    # The cluster itself has not been touched.
    fresh = FilterTwin(pod, infos, constraints)
    assert verdicts(plugin, base, pod, snapshot.nodes, snapshot.order) == [
        fresh.filter(info.node) for info in infos
    ]


@given(st.integers(0, 2**32))
@settings(max_examples=100)
def test_scores_agree_with_their_twin(seed: int) -> None:
    cluster = RandomCluster(seed)
    plugin = PodTopologySpread(None, HANDLE)
    pods = [cluster.make_pod(spread=True) for _ in range(3)]
    for _ in range(4):
        for pod in pods:
            snapshot = cluster.cache.snapshot()
            infos = cluster.infos()
            rows = cluster.some_rows(infos)
            if not len(rows):
                continue
            candidates = [info for info in infos if info.row in rows]
            constraints = constraints_of(pod, "ScheduleAnyway", snapshot.matching.default_selectors, True)
            result = plugin.pre_score(pod, snapshot, rows)
            assert result.status.is_skip == (not constraints)
            if result.state is None:
                continue
            twin = ScoreTwin(pod, infos, candidates, constraints, bool(pod.topology_spread))
            raw = plugin.score(result.state, pod, snapshot.nodes, rows)
            assert raw.tolist() == [twin.score(info) for info in candidates]
            normal = plugin.normalize(result.state, pod, snapshot.nodes, rows, raw)
            by_name = {info.node.name: twin.score(info) for info in candidates}
            assert normal.tolist() == list(twin.normalize(by_name).values())
            other = rows[::-1].copy()
            assert plugin.score(result.state, pod, snapshot.nodes, other).tolist() == raw.tolist()[::-1]
        cluster.change()


@pytest.mark.parametrize("size", [*range(40), 4999, 15000])
def test_the_weight_of_a_topology_is_the_logarithm_to_one_unit_in_the_last_place(size: int) -> None:
    assert math.isclose(normalizing_weight(size), math.log(size + 2), rel_tol=3e-16)


def two_zones() -> Cache:
    cache = Cache()
    for name, zone in (("n1", "a"), ("n2", "b")):
        labels = {"topology.kubernetes.io/zone": zone}
        cache.set_node(node_from({"kind": "Node", "metadata": {"name": name, "labels": labels}}))
    return cache


def web_pod(name: str, **spec: Any) -> Pod:
    metadata = {
        "name": name,
        "uid": name,
        "namespace": "default",
        "labels": {"app": "web", "role": "api"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        ],
    }
    return pod_from({"kind": "Pod", "metadata": metadata, "spec": spec})


def test_default_constraints_of_a_list_filter_by_the_selector_of_service_and_owner() -> None:
    cache = two_zones()
    plugin = PodTopologySpread(LIST_DEFAULTING, HANDLE)
    cache.add_pod(web_pod("p1", nodeName="n1"))
    pod = web_pod("p2")
    assert plugin.pre_filter(pod, cache.snapshot()).status.is_skip
    service = {"kind": "Service", "metadata": {"name": "s", "namespace": "default"}}
    cache.listers.set(
        "Service", "default", "s", selecting_object_from({**service, "spec": {"selector": {"app": "web"}}})
    )
    replica_set = {
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"role": "api"}}},
    }
    cache.listers.set("ReplicaSet", "default", "web", selecting_object_from(replica_set))
    snapshot = cache.snapshot()
    assert str(snapshot.matching.default_selectors.of(pod)) == "app=web,role=api"
    state = plugin.pre_filter(pod, snapshot).state
    assert state is not None
    found = verdicts(plugin, state, pod, snapshot.nodes, snapshot.order)
    assert [None if item is None else item[0] for item in found] == ["Unschedulable", None]


def test_without_services_and_owners_there_is_no_default_selector() -> None:
    cache = two_zones()
    assert cache.matching.default_selectors.of(web_pod("p1")) is EVERYTHING
