"""Moves in the scheduling queue are kept for the stories of pods, within bounds, and told once.

The queue's lanes: every pod once, and how far runs are.
"""

from typing import Any

import pytest

from playground.clusters.drive import commit
from playground.clusters.drive.advance import Visit, advance
from playground.clusters.drive.commit import keep_moves
from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.history.queue import lanes_of, queue_view
from playground.clusters.history.story import pod_traces
from playground.clusters.lifecycle import create_cluster, reset_cluster
from playground.clusters.models import Cluster, Event, QueueSnapshot, Run
from playground.clusters.models import QueueMove as StoredMove
from playground.clusters.objects.apply import apply_documents
from playground.engine.batch import Budget
from playground.web.pods.present import story_steps
from scheduler_core.queue.queued_pod_info import Lane, QueueMove
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import priority_class, scheduler_config

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr("playground.clusters.wake.send", lambda *_, **__: True)
    return create_cluster(name="moves", seed=1)


def record(name="p", source="", target="activeQ", event="PodAdd"):
    return QueueMove(0, f"default/{name}", name, Lane(source), Lane(target), event)


def test_the_event_and_hint_that_moved_a_pod_are_kept(cluster):
    apply_documents(cluster=cluster, objects=[make_node("small", "1"), make_pod("big", cpu="2")])
    run(cluster)
    apply_documents(cluster=cluster, objects=[make_node("large", "8")])
    run(cluster)
    told = [
        (m.source, m.target, m.event, m.plugin, m.hint) for m in pod_traces(cluster, "default", "big").moves
    ]
    assert told[0][:2] == ("", "activeQ")
    assert ("inFlight", "unschedulable") in [move[:2] for move in told]
    assert told[-1][1] in ("activeQ", "backoffQ")
    assert (told[-1][0], *told[-1][2:]) == ("unschedulable", "NodeAdd", "NodeResourcesFit", "Queue")


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


# ---- What a cluster says of itself is said once, and is true


PACKING = scheduler_config(
    profiles=[{"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]
)


def queue_words(cluster: Cluster, name: str) -> list[tuple[str, str]]:
    steps = story_steps(pod_traces(cluster, "default", name))
    return [(step.title, step.detail) for step in steps if step.title.startswith("Into ")]


def test_a_pod_that_waits_through_a_change_of_configuration_is_new_once(cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("p1")])
    set_config(cluster=cluster, config=PACKING)
    run(cluster)
    assert queue_words(cluster, "p1") == [("Into activeQ", "it is new")]


def test_a_pod_that_waits_on_is_told_why_it_was_queued_again(cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("big", cpu="64")])
    run(cluster)
    set_config(cluster=cluster, config=PACKING)
    run(cluster)
    words = queue_words(cluster, "big")
    assert words[0] == ("Into activeQ", "it is new")
    assert ("Into activeQ", "the scheduler started anew, with another configuration") in words
    assert [detail for _, detail in words].count("it is new") == 1


def test_a_run_counts_each_pod_once_however_often_it_is_tried(cluster: Cluster) -> None:
    low = [make_pod(f"low-{i}", cpu="2", priorityClassName="low") for i in range(2)]
    classes: list[dict[str, Any]] = [
        priority_class(name, value) for name, value in (("low", 1), ("high", 1000), ("level", 1000))
    ]
    apply_documents(cluster=cluster, objects=[make_node("n1", "4"), *classes, *low])
    run(cluster)
    apply_documents(
        cluster=cluster,
        objects=[make_pod("high", cpu="4", priorityClassName="high"), make_pod("huge", cpu="64")],
    )
    done = run(cluster)
    # The preemptor is tried twice and more, and is one pod of two.
    assert done.cycles_done > 2
    assert done.pending_at_start == 2

    preempted = Event.objects.filter(cluster=cluster, reason="Preempted")
    assert preempted.count() == 2
    for event in preempted:
        related = event.manifest["related"]
        assert (related["kind"], related["namespace"], related["name"]) == ("Pod", "default", "high")
        assert related["uid"] in event.manifest["message"]
        assert event.manifest["involvedObject"]["name"].startswith("low-")
    failed = Event.objects.filter(cluster=cluster, reason="FailedScheduling").first()
    assert failed is not None and "related" not in failed.manifest


def test_the_queue_names_the_class_of_each_pod(cluster: Cluster) -> None:
    classes = [priority_class(name, 7) for name in ("first", "second")]
    big = make_pod("big", cpu="64", priorityClassName="second")
    apply_documents(cluster=cluster, objects=[make_node("n1"), *classes, big])
    run(cluster)
    assert [item.priority_class for item in queue_view(cluster)["unschedulable"]] == ["second"]
