"""What a cluster says of itself is said once, and is true: queue moves, counts of runs, events, queued classes."""

from typing import Any

import pytest

from playground.clusters.drive.config import set_config
from playground.clusters.history.queue import queue_view
from playground.clusters.history.story import pod_traces
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Event
from playground.clusters.objects.apply import apply_documents
from playground.web.pods.present import story_steps
from tests.clusters.builders import make_node, make_pod, run
from tests.manifests import priority_class, scheduler_config

pytestmark = pytest.mark.django_db
PACKING = scheduler_config(
    profiles=[{"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr("playground.clusters.wake.send", lambda *_, **__: True)
    return create_cluster(name="told", seed=1)


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
    level = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}
    apply_documents(
        cluster=cluster,
        objects=[
            make_node("n1"),
            level | {"metadata": {"name": "first"}},
            level | {"metadata": {"name": "second"}},
            make_pod("big", cpu="64", priorityClassName="second"),
        ],
    )
    run(cluster)
    assert [item.priority_class for item in queue_view(cluster)["unschedulable"]] == ["second"]
