"""Columns say what one node at a time would say."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import decision_body
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from tests.scheduler_core.plugins import oracle_basic as oracle
from tests.scheduler_core.random_clusters import RandomCluster

pytestmark = pytest.mark.usefixtures("every_threshold")


def _world(random_cluster: RandomCluster) -> tuple[list[Node], dict[str, list[Pod]]]:
    cache = random_cluster.cluster.cache
    nodes = [cache.nodes.node(row) for row in cache.snapshot().rows.tolist()]
    pods = {
        node.name: [cache.pods[pod_id] for pod_id in cache.nodes.pods_on(cache.nodes.row_of[node.name])]
        for node in nodes
    }
    return nodes, pods


@given(st.randoms(use_true_random=False))
def test_filters_of_random_clusters_are_the_one_node_answers(random: Random) -> None:
    random_cluster = RandomCluster(random)
    nodes, pods = _world(random_cluster)
    pod = random_cluster.pod()
    body = decision_body(random_cluster.cluster.schedule(pod))
    for node in nodes:
        others = pods[node.name]
        expected = {
            "NodeUnschedulable": oracle.node_unschedulable(pod, node),
            "TaintToleration": oracle.taint_toleration(pod, node, random_cluster.release),
            "NodeAffinity": oracle.node_affinity(pod, node),
            "NodePorts": oracle.node_ports(pod, others),
            "NodeResourcesFit": oracle.node_resources_fit(pod, node, others),
        }
        for plugin, verdict in expected.items():
            got = body["filterByPlugin"].get(plugin, {}).get("fails", {}).get(node.name)
            said = None if got is None else (got["code"], tuple(got["reasons"]))
            assert said == verdict, (plugin, node.name)


@given(st.randoms(use_true_random=False))
def test_scores_of_random_clusters_are_the_one_node_answers(random: Random) -> None:
    random_cluster = RandomCluster(random)
    nodes, pods = _world(random_cluster)
    pod = random_cluster.pod()
    body = decision_body(random_cluster.cluster.schedule(pod))
    if body["rawScores"] is None:
        return
    by_name = {node.name: node for node in nodes}
    for name in body["feasible"]:
        node, others = by_name[name], pods[name]
        raw = {plugin: scores.get(name) for plugin, scores in body["rawScores"].items()}
        assert raw["NodeResourcesFit"] == oracle.least_allocated(pod, node, others)
        assert raw["TaintToleration"] == oracle.untolerated_preferences(pod, node)
        assert raw["ImageLocality"] == oracle.image_locality(pod, node, nodes)
        if "NodeResourcesBalancedAllocation" in raw:
            expected = oracle.balanced(pod, node, others, random_cluster.release)
            assert raw["NodeResourcesBalancedAllocation"] == expected
        else:
            assert not pod.requests.get("cpu") and not pod.requests.get("memory")


@given(st.randoms(use_true_random=False))
def test_no_feasible_node_outranks_the_chosen_one(random: Random) -> None:
    random_cluster = RandomCluster(random)
    decision = random_cluster.cluster.schedule(random_cluster.pod())
    body = decision_body(decision)
    if decision.node_name is None:
        assert body["feasible"] == []
        return
    assert decision.node_name in body["feasible"]
    if body["total"] is not None:
        assert body["total"][decision.node_name] == max(body["total"].values())


@given(st.randoms(use_true_random=False))
def test_binding_the_chosen_node_never_takes_it_over_its_allocatable(random: Random) -> None:
    random_cluster = RandomCluster(random)
    cache = random_cluster.cluster.cache
    for _ in range(6):
        pod = random_cluster.pod()
        decision = random_cluster.cluster.schedule(pod)
        if decision.node_name is None:
            continue
        cache.assume(pod, decision.node_name)
        row = cache.nodes.row_of[decision.node_name]
        assert cache.nodes.n_pods[row] <= cache.nodes.allowed_pods[row]
        for name in pod.requests:
            resource_id = cache.vocabulary.resources.find(name)
            if pod.requests[name]:
                assert cache.nodes.requested[resource_id, row] <= cache.nodes.allocatable[resource_id, row]
