"""Of random clusters: the node chosen has the best total, and room."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import decision_body
from tests.scheduler_core.random_clusters import RandomCluster

pytestmark = pytest.mark.usefixtures("every_threshold")


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
