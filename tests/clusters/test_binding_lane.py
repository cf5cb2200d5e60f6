"""The life of a bind extender's pod: placed, assumed on its node, and pending until its Binding is heard of."""

import re
from typing import Any

import pytest
from django.test import Client

from playground.clusters.board.nodes import node_uses
from playground.clusters.drive.advance import load
from playground.clusters.drive.config import set_config
from playground.clusters.history.queue import queue_view
from playground.clusters.kinds import named
from playground.clusters.lifecycle import clone_cluster, reset_cluster
from playground.clusters.log.entries import entries_of, initial_config
from playground.clusters.models import Cluster, Cycle, ExtenderCall, LogEntry, Pod, Run
from playground.clusters.objects.write import bind_pod, delete_object
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.scenario.make import make_scenario
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.clusters.test_extenders import address, configuration, passing
from tests.engine.extender_server import serving
from tests.markup import html_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster(settings: Any) -> Cluster:
    """One node; a pod whose extender said yes and never bound it, and one that finds no room beside it."""
    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]
    made = make_cluster(make_node("n1"), make_pod("p1", "3"), make_pod("p2", "3"))
    with serving(passing) as server:
        set_config(cluster=made, config=configuration(address(server), "bind"))
        run(made)
    made.refresh_from_db()
    return made


def test_it_waits_in_a_lane_of_its_own_with_its_node(cluster: Cluster, client: Client) -> None:
    lanes = queue_view(cluster)
    assert [(item.pod, item.node) for item in lanes["binding"]] == [("default/p1", "n1")]
    assert lanes["active"] == []
    assert [item.pod for item in lanes["unschedulable"]] == ["default/p2"]
    row = Pod.objects.get(name="p1")
    assert (row.lane, row.reserved_node, row.node_name) == ("binding", "n1", "")
    board = html_of(client.get(f"/c/{cluster.public_id}/"))
    assert "Binding" in board
    assert "Assumed on n1. The bind call is answered; waits for the Binding" in board
    assert "<b>p1</b> is next" not in board
    api = client.get(f"/api/v1/clusters/{cluster.public_id}/queue/").json()
    assert [item["pod"] for item in api["binding"]] == ["default/p1"]


def test_its_room_counts_on_the_nodes_card(cluster: Cluster, client: Client) -> None:
    board = html_of(client.get(f"/c/{cluster.public_id}/", {"node": "n1"}))
    assert 'aria-label="n1: CPU 3 of 4,' in board
    assert re.search(r"priority 0 \([^)]+\), reserved, waiting for its Binding", board)
    assert "waiting at Permit" not in board
    assert "Insufficient cpu" in Cycle.objects.get(pod_name="p2").message


def test_the_call_is_on_its_cycles_and_its_pods_page_with_the_time_it_took(
    cluster: Cluster, client: Client
) -> None:
    call = ExtenderCall.objects.get(verb="bind")
    assert call.took_ms is not None and call.took_ms > 0
    cycle = Cycle.objects.get(pod_name="p1")
    for path in (f"cycles/{cycle.number}/", "pods/default/p1/"):
        page = html_of(client.get(f"/c/{cluster.public_id}/{path}"))
        assert f"took {call.took_ms:.1f} ms" in page, path
        assert "/bind" in page
    told = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{cycle.number}/").json()["extenders"]
    assert [(one["verb"], one["tookMs"]) for one in told if one["verb"] == "bind"] == [("bind", call.took_ms)]
    assert all(one["tookMs"] > 0 for one in told)
    assert "assumed on n1" in page
    assert "its Binding is not heard of yet" in page


def test_the_time_it_waited_for_its_binding_is_drawn_as_such(cluster: Cluster, client: Client) -> None:
    run(cluster, "20s")
    bind_pod(cluster=cluster, namespace="default", name="p1", node="n1")
    run(cluster)
    page = client.get(f"/c/{cluster.public_id}/pods/default/p1/").content.decode()
    assert "<b>Binding</b>" in page
    assert "<b>Permit</b>" not in page
    assert "<title>waited, 20" in page


def outcome(cluster: Cluster) -> str:
    return str(Cycle.objects.get(cluster=cluster, pod_name="p1").outcome)


def check_share_and_replay(cluster: Cluster) -> None:
    """A share of it decides, and ends, as the cluster did; and so does its own log."""
    log = entries_of(LogEntry.objects.filter(cluster=cluster))
    made = make_scenario(log, seed=cluster.seed, start_ns=cluster.start_ns, config=initial_config(cluster))
    ran = run_scenario(load_scenario(dump_scenario(made.scenario)))
    cycles = list(Cycle.objects.filter(cluster=cluster).order_by("number"))
    assert [trace.digest for trace in ran.cycles] == [row.digest for row in cycles]
    assert [trace.outcome for trace in ran.cycles] == [row.outcome for row in cycles]
    nodes = {f"{pod.namespace}/{pod.name}": pod.node_name for pod in Pod.objects.filter(cluster=cluster)}
    assert {key: facts.node for key, facts in ran.pods().items() if facts.state == "bound"} == {
        key: node for key, node in nodes.items() if node
    }
    engine = load(cluster).engine
    assert engine.simulation.queue_view()["binding"] == []


def test_its_outcome_is_binding_until_the_binding_is_heard_of(cluster: Cluster, client: Client) -> None:
    assert outcome(cluster) == "binding"
    cycle = Cycle.objects.get(pod_name="p1")
    path = f"/c/{cluster.public_id}/cycles/{cycle.number}/"
    assert "waits for its Binding to" in client.get(path).content.decode()
    api = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/", {"outcome": "binding"}).json()
    assert [item["pod"] for item in api["items"]] == ["default/p1"]
    told = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{cycle.number}/").json()
    assert (told["outcome"], told["awaited"]["until"]) == ("binding", None)
    assert Run.objects.filter(cluster=cluster).latest("pk").pods_bound == 0
    run(cluster, "2s")
    bind_pod(cluster=cluster, namespace="default", name="p1", node="n1")
    run(cluster)
    told = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{cycle.number}/").json()
    assert (told["outcome"], told["awaited"]["node"], told["digest"]) == ("bound", "n1", cycle.digest)
    row = Pod.objects.get(name="p1")
    assert (row.lane, row.reserved_node, row.node_name) == ("", "", "n1")
    [node] = node_uses(Cluster.objects.get(pk=cluster.pk))
    assert (node.used_cpu_milli, node.n_pods) == (3000, 1)
    assert "waits for its Binding" not in client.get(path).content.decode()
    check_share_and_replay(cluster)


def test_its_outcome_is_an_error_where_it_is_deleted_first(cluster: Cluster) -> None:
    kind = named("Pod")
    delete_object(cluster=cluster, kind=kind, namespace="default", name="p1")
    run(cluster)
    row = Cycle.objects.get(pod_name="p1")
    assert row.outcome == "error"
    assert "the pod was deleted before its Binding to n1 was heard of" in row.sentence


def test_assumed_pods_expire_where_the_cluster_says_so(cluster: Cluster, client: Client) -> None:
    base, api = f"/c/{cluster.public_id}/", f"/api/v1/clusters/{cluster.public_id}"
    assert client.get(f"{api}/assumed-pods/").json() == {
        "durationToExpireAssumedPodSeconds": 0.0,
        "assumed": ["default/p1"],
    }
    for bad in ("-1", "0.5", "nan", "soon", "1e12"):
        client.post(f"{base}config/", {"action": "expiry", "expiry": bad})
        assert Cluster.objects.get(pk=cluster.pk).assumed_expiry_ns == 0, bad
    answer = client.put(
        f"{api}/assumed-pods/",
        {"durationToExpireAssumedPodSeconds": 0.5},
        content_type="application/json",
    )
    assert answer.status_code == 400 and "durationToExpireAssumedPodSeconds" in answer.content.decode()
    answer = client.post(f"{base}config/", {"action": "expiry", "expiry": "30"}, follow=True)
    assert "Assumed pods expire after 30 s without news" in answer.content.decode()
    run(cluster)
    assert outcome(cluster) == "binding"
    board = client.get(base).content.decode()
    assert "is no longer assumed on n1" in board, "the next moment is told"
    assert "left" in board
    run(cluster, "29s")
    assert outcome(cluster) == "binding"
    run(cluster, "2s")
    assert outcome(cluster) == "expired"
    [node] = node_uses(Cluster.objects.get(pk=cluster.pk))
    assert node.used_cpu_milli == 0
    story = client.get(f"{base}pods/default/p1/").content.decode()
    assert "was assumed on n1" in story and "and expired" in story
    assert "its Binding was not heard of in time" in story
    row = Cycle.objects.get(pod_name="p1")
    page = client.get(f"{base}cycles/{row.number}/").content.decode()
    assert "no Binding to n1 was heard of within 30 s" in page
    lanes = queue_view(Cluster.objects.get(pk=cluster.pk))
    assert [item.pod for item in lanes["foreign"]] == ["default/p1"]
    assert "<b>p1</b> is next" not in client.get(base).content.decode()
    check_share_and_replay(cluster)
    clone = clone_cluster(cluster=cluster, name="clone")
    reset_cluster(cluster=cluster)
    for it in (clone, cluster):
        first = LogEntry.objects.filter(cluster=it, kind="expiry").get()
        assert first.payload == {"afterNs": 30 * 10**9} and it.assumed_expiry_ns == 30 * 10**9
