"""InterPodAffinity's columns say what upstream's one-node-at-a-time algorithm says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity, RequiredState
from tests.scheduler_core.plugins.oracle_inter_pod_affinity import FilterTwin, ScoreTwin
from tests.scheduler_core.plugins.shared_domain_clusters import RandomCluster

pytestmark = pytest.mark.usefixtures("every_threshold")

HANDLE: Any = SimpleNamespace()


def verdicts(
    plugin: InterPodAffinity, state: RequiredState, pod: Pod, nodes: NodeColumns, rows: Rows
) -> list[tuple[str, str] | None]:
    found = plugin.filter(state, pod, nodes, rows)
    assert found.details is not None
    result: list[tuple[str, str] | None] = []
    for row, number, detail in zip(rows.tolist(), found.codes.tolist(), found.details.tolist(), strict=True):
        code = Code(number)
        result.append(
            None if not code else (code.name, *plugin.reasons(state, pod, nodes, row, code, detail))
        )
    return result


@given(st.integers(0, 2**32))
@settings(max_examples=100)
def test_filter_agrees_with_its_twin_while_the_cluster_changes(seed: int) -> None:
    cluster = RandomCluster(seed)
    plugin = InterPodAffinity(None, HANDLE)
    pods = [cluster.make_pod() for _ in range(4)]
    for _ in range(6):
        for pod in pods:
            snapshot = cluster.cache.snapshot()
            infos = cluster.infos()
            twin = FilterTwin(pod, infos, cluster.cache.listers)
            result = plugin.pre_filter(pod, snapshot)
            assert result.status.is_skip == twin.skips
            if result.state is None:
                continue
            expected = [twin.filter(info.node) for info in infos]
            assert verdicts(plugin, result.state, pod, snapshot.nodes, snapshot.order) == expected
        cluster.change()


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_worlds_in_lock_step_agree_with_one_state_a_node(seed: int) -> None:
    cluster = RandomCluster(seed)
    plugin = InterPodAffinity(None, HANDLE)
    pod = cluster.make_pod()
    snapshot = cluster.cache.snapshot()
    base = plugin.pre_filter(pod, snapshot).state
    if base is None:
        return
    infos = cluster.infos()
    twins = [FilterTwin(pod, infos, cluster.cache.listers) for _ in infos]
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
    fresh = FilterTwin(pod, infos, cluster.cache.listers)
    assert verdicts(plugin, base, pod, snapshot.nodes, snapshot.order) == [
        fresh.filter(info.node) for info in infos
    ]


@given(st.integers(0, 2**32), st.sampled_from((0, 1, 10)), st.booleans())
@settings(max_examples=100)
def test_scores_agree_with_their_twin(seed: int, hard_weight: int, ignores_existing: bool) -> None:
    cluster = RandomCluster(seed)
    args = SimpleNamespace(
        hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignores_existing
    )
    plugin = InterPodAffinity(args, HANDLE)
    pods = [cluster.make_pod() for _ in range(4)]
    for _ in range(4):
        for pod in pods:
            snapshot = cluster.cache.snapshot()
            infos = cluster.infos()
            rows = cluster.some_rows(infos)
            if not len(rows):
                continue
            candidates = [info for info in infos if info.row in rows]
            twin = ScoreTwin(pod, infos, cluster.cache.listers, hard_weight, ignores_existing)
            result = plugin.pre_score(pod, snapshot, rows)
            assert result.status.is_skip == twin.skips
            if result.state is None:
                continue
            raw = plugin.score(result.state, pod, snapshot.nodes, rows)
            by_name = {info.node.name: twin.score(info) for info in candidates}
            assert raw.tolist() == list(by_name.values())
            normal = plugin.normalize(result.state, pod, snapshot.nodes, rows, raw)
            assert normal.tolist() == list(twin.normalize(by_name).values())
        cluster.change()
