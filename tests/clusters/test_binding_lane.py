"""The life of a bind extender's pod: placed, assumed on its node, and pending until its Binding is heard of."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from playground.clusters import selectors, services
from playground.clusters.models import Cluster, Cycle, ExtenderCall, Pod
from playground.clusters.selectors.board_nodes import node_uses
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.clusters.test_extenders import address, configuration, passing, run
from tests.engine.extender_server import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(settings: Any) -> Cluster:
    """One node; a pod whose extender said yes and never bound it, and one that finds no room beside it."""
    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]
    made = make_cluster(make_node("n1"), make_pod("p1", "3"), make_pod("p2", "3"))
    with serving(passing) as server:
        services.set_config(cluster=made, config=configuration(address(server), "bind"))
        run(made)
    made.refresh_from_db()
    return made


def test_it_waits_in_a_lane_of_its_own_with_its_node(cluster: Cluster, client: Client) -> None:
    lanes = selectors.queue_view(cluster)
    assert [(item.pod, item.node) for item in lanes["binding"]] == [("default/p1", "n1")]
    assert lanes["active"] == []
    assert [item.pod for item in lanes["unschedulable"]] == ["default/p2"]
    row = Pod.objects.get(name="p1")
    assert (row.lane, row.reserved_node, row.node_name) == ("binding", "n1", "")
    board = client.get(f"/c/{cluster.public_id}/").content.decode()
    assert "Binding" in board
    assert "Assumed on n1. The bind call is answered; waits for the Binding" in board
    assert "<b>p1</b> is next" not in board
    api = client.get(f"/api/v1/clusters/{cluster.public_id}/queue/").json()
    assert [item["pod"] for item in api["binding"]] == ["default/p1"]


def test_its_room_counts_on_the_nodes_card(cluster: Cluster, client: Client) -> None:
    board = client.get(f"/c/{cluster.public_id}/", {"node": "n1"}).content.decode()
    assert 'aria-label="cpu 3 of 4  requested"' in board
    assert "0 pods, 1 reserved" in board
    assert "Insufficient cpu" in Cycle.objects.get(pod_name="p2").message


def test_the_call_is_on_its_cycles_and_its_pods_page_with_the_time_it_took(
    cluster: Cluster, client: Client
) -> None:
    call = ExtenderCall.objects.get(verb="bind")
    assert call.took_ms is not None and call.took_ms > 0
    cycle = Cycle.objects.get(pod_name="p1")
    for path in (f"cycles/{cycle.number}/", "pods/default/p1/"):
        page = client.get(f"/c/{cluster.public_id}/{path}").content.decode()
        assert f"took {call.took_ms:.1f} ms" in page, path
        assert "/bind" in page
    assert "assumed on n1" in page
    assert "its Binding is not heard of yet" in page


def test_it_is_bound_when_the_binding_is_heard_of(cluster: Cluster) -> None:
    services.bind_pod(cluster=cluster, namespace="default", name="p1", node="n1")
    run(cluster)
    row = Pod.objects.get(name="p1")
    assert (row.lane, row.reserved_node, row.node_name) == ("", "", "n1")
    [node] = node_uses(Cluster.objects.get(pk=cluster.pk))
    assert (node.used_cpu_milli, node.n_pods) == (3000, 1)
    assert selectors.queue_view(cluster)["binding"] == []
