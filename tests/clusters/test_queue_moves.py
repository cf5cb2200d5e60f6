"""Moves in the scheduling queue are kept for the stories of pods, within bounds.

The queue's lanes: every pod once, and how far runs are.
"""

from typing import Any

import pytest

from playground.clusters.drive import commit
from playground.clusters.drive.advance import Visit, advance
from playground.clusters.drive.commit import keep_moves
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.history.queue import lanes_of, queue_view
from playground.clusters.history.story import pod_traces
from playground.clusters.lifecycle import create_cluster, reset_cluster
from playground.clusters.models import QueueMove as StoredMove
from playground.clusters.models import QueueSnapshot, Run
from playground.clusters.objects.apply import apply_documents
from playground.engine.batch import Budget
from scheduler_core.queue.queued_pod_info import Lane, QueueMove
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.tables import table

pytestmark = pytest.mark.django_db

NODE = table(__file__, "NODE")
POD = table(__file__, "POD")


@pytest.fixture
def cluster(monkeypatch):
    from playground.clusters import wake

    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    return create_cluster(name="moves", seed=1)


def record(name="p", source="", target="activeQ", event="PodAdd"):
    return QueueMove(0, f"default/{name}", name, Lane(source), Lane(target), event)


def test_the_event_and_hint_that_moved_a_pod_are_kept(cluster):
    apply_documents(cluster=cluster, text=NODE % ("small", "1"))
    apply_documents(cluster=cluster, text=POD)
    run(cluster)
    apply_documents(cluster=cluster, text=NODE % ("large", "8"))
    run(cluster)
    told = [
        (m.source, m.target, m.event, m.plugin, m.hint) for m in pod_traces(cluster, "default", "big").moves
    ]
    assert told[0][:2] == ("", "activeQ")
    assert ("inFlight", "unschedulable") in [move[:2] for move in told]
    assert told[-1] == ("unschedulable", "activeQ", "NodeAdd", "NodeResourcesFit", "Queue") or told[-1] == (
        "unschedulable",
        "backoffQ",
        "NodeAdd",
        "NodeResourcesFit",
        "Queue",
    )


def test_a_reset_forgets_them(cluster):
    keep_moves(cluster, [record()])
    reset_cluster(cluster=cluster)
    assert not StoredMove.objects.exists()


def test_a_batch_keeps_what_tells_most(cluster, monkeypatch):
    monkeypatch.setattr(commit, "MOST_OF_A_BATCH", 3)
    moved = [record("m", "unschedulable", "activeQ", "NodeAdd")] * 2
    left = [record("l", "unschedulable", "unschedulable", "NodeAdd")] * 5
    new = [record(f"n{i}") for i in range(5)]
    popped = [record("m", "activeQ", "inFlight", "Pop")]
    keep_moves(cluster, [*new, *left, *popped, *moved])
    kept = [(m.pod_name, m.target) for m in StoredMove.objects.order_by("id")]
    assert kept == [("n0", "activeQ"), ("m", "activeQ"), ("m", "activeQ")]


@pytest.mark.dialect
def test_the_oldest_of_a_cluster_go_first(cluster, monkeypatch):
    monkeypatch.setattr(commit, "MOST_OF_A_CLUSTER", 4)
    monkeypatch.setattr(commit, "TRIM_EVERY", 1)
    for i in range(10):
        keep_moves(cluster, [record(f"p{i}")])
    assert [m.pod_name for m in StoredMove.objects.order_by("id")] == ["p6", "p7", "p8", "p9"]


def test_pods_of_another_scheduler_are_counted_once_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "HEAD_ITEMS", 3)
    strangers = [make_pod(f"other-{i}", schedulerName="volcano") for i in range(8)]
    cluster = make_cluster(make_node(), *strangers, make_pod("ours"))
    # Not read yet: each stands where it will be, once.
    lanes, counts = lanes_of(cluster, full=False)
    assert (counts["foreign"], len(lanes["foreign"]), counts["active"]) == (8, 8, 1)
    run(cluster)
    for full in (False, True):
        lanes, counts = lanes_of(cluster, full=full)
        names = [item.pod for item in lanes["foreign"]]
        assert counts["foreign"] == 8 and counts["active"] == 0
        assert len(names) == len(set(names)) == (8 if full else 3)


def test_a_pod_that_fits_nowhere_is_pending_in_what_a_run_says(client: Any) -> None:
    cluster = make_cluster(make_node(cpu="1"), make_pod("fits"), make_pod("giant", cpu="64"))
    done = run(cluster)
    assert done.state == Run.State.DONE and done.progress == 1.0
    (item,) = queue_view(cluster)["unschedulable"]
    assert item.name == "giant"
    told = client.get(f"/api/v1/clusters/{cluster.public_id}/runs/{done.public_id}/").json()
    assert (told["pendingNow"], told["podsBound"]) == (1, 1)


def test_within_a_run_every_pod_of_a_long_lane_is_still_there_once_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit, "HEAD_ITEMS", 3)
    pods = [make_pod(f"p{i}", cpu="10m") for i in range(8)]
    cluster = make_cluster(make_node(), *pods)
    memory = EngineMemory()
    advance(cluster_id=cluster.pk, memory=memory)  # reads them; the whole queue is written
    apply_documents(cluster=cluster, objects=[make_pod("late", cpu="10m")])
    request_run(cluster=cluster)
    one_cycle = Visit(wall_s=0, batch=Budget(max_cycles=1))
    advance(cluster_id=cluster.pk, memory=memory, visit=one_cycle)
    cluster.refresh_from_db()
    assert QueueSnapshot.objects.get(cluster=cluster).full_seq != cluster.engine_seq
    lanes, counts = lanes_of(cluster, full=True)
    assert [item.name for item in lanes["active"]] == [*(f"p{i}" for i in range(1, 8)), "late"]
    assert [item.position for item in lanes["active"]] == list(range(1, 9))
    assert counts["active"] == 8 and all(item.uid for item in lanes["active"])
