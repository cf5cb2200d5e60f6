"""A pod's story: one list in the order of the log, the same for the page, REST and tools."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters.drive.config import set_config
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import decide_permit
from playground.clusters.history.story import pod_story
from playground.clusters.kinds import named
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import patch_object
from tests.clusters.builders import make_node, make_pod, run
from tests.manifests import deployment, scheduler_config

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr("playground.clusters.wake.send", lambda *_, **__: True)
    return create_cluster(name="told", seed=1)


def edit(cluster: Cluster, name: str, patch: dict[str, Any]) -> None:
    patch_object(cluster=cluster, kind=named("Pod"), namespace="default", name=name, patch=patch)


def told(cluster: Cluster, name: str) -> list[str]:
    return [step.title for step in pod_story(cluster, "default", name).steps]


@pytest.mark.dialect
def test_at_one_instant_an_edit_comes_before_the_attempt_it_caused_and_after_those_before_it(
    cluster: Cluster,
) -> None:
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    apply_documents(cluster=cluster, objects=[make_node("n1", taints=[taint]), make_pod("p")])
    run(cluster, "cycle")
    tolerating = {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}
    edit(cluster, "p", tolerating)
    run(cluster, "cycle")
    steps = pod_story(cluster, "default", "p").steps
    titles = [step.title for step in steps]
    first, edited, second = (
        titles.index(title) for title in ("Attempt 1, cycle 1", "Edited", "Attempt 2, cycle 2")
    )
    assert titles[:2] == ["Created", "Into activeQ"]
    assert first < titles.index("Into Unschedulable") < edited < second < titles.index("Bound")
    # So does the move into a queue that the edit caused.
    assert edited < titles.index("Into backoffQ") < second
    at = [step.at_ns for step in steps]
    assert at == sorted(at)


def test_page_and_rest_tell_the_same_steps_queue_moves_included(cluster: Cluster, client: Client) -> None:
    apply_documents(cluster=cluster, objects=[make_node("n1", "2"), make_pod("big", cpu="64")])
    run(cluster)
    edit(cluster, "big", {"metadata": {"labels": {"a": "b"}}})
    run(cluster)
    rest = client.get(f"/api/v1/clusters/{cluster.public_id}/pods/default/big/story").json()["story"]
    assert [step["title"] for step in rest] == told(cluster, "big")
    assert [step["what"] for step in rest][:3] == ["written", "move", "cycle"]
    page = client.get(reverse("web:pod", args=[cluster.public_id, "default", "big"])).content.decode()
    story = page.partition('<ol class="story">')[2].partition("</ol>")[0]
    place = 0
    for step in rest:
        place = story.index(step["title"], place)


def test_what_a_queueing_hint_skips_is_told_once_for_each_event_and_plugin(
    cluster: Cluster, client: Client
) -> None:
    apply_documents(cluster=cluster, objects=[make_node("n1", "2"), make_pod("big", cpu="64")])
    memory = EngineMemory()
    run(cluster, memory=memory)
    for name in ("n2", "n3", "n4"):
        apply_documents(cluster=cluster, objects=[make_node(name, "2")])
        run(cluster, memory=memory)
    rest = client.get(f"/api/v1/clusters/{cluster.public_id}/pods/default/big/story").json()["story"]
    [waits] = [step for step in rest if step["title"] == "Into Unschedulable"]
    skips = [
        (one["event"], one["plugin"], one["hint"], one["reason"])
        for one in waits["withoutEffect"]
        if one["hint"] == "Skip"
    ]
    reason = "even empty the node is too small for the pod"
    assert skips == [("NodeAdd", "NodeResourcesFit", "Skip", reason)]


def test_an_attempt_that_waited_at_permit_stands_where_it_began(cluster: Cluster) -> None:
    profile = {"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}
    set_config(cluster=cluster, config=scheduler_config(profiles=[profile]))
    pod = make_pod("p")
    pod["metadata"]["annotations"] = {"playground.dev/approval": "required"}
    apply_documents(cluster=cluster, objects=[make_node("n1"), pod])
    run(cluster)
    run(cluster, "5s")
    edit(cluster, "p", {"metadata": {"labels": {"a": "b"}}})
    decide_permit(cluster=cluster, namespace="default", name="p", decision="allow")
    run(cluster)
    titles = told(cluster, "p")
    assert titles.index("Attempt 1, cycle 1") < titles.index("Edited") < titles.index("Bound")


def test_a_workload_of_the_same_name_is_no_pod(cluster: Cluster, client: Client) -> None:
    """Its events are not the pod's."""
    apply_documents(cluster=cluster, objects=[make_node("n1"), deployment("web", 1)])
    run(cluster)
    story = client.get(f"/api/v1/clusters/{cluster.public_id}/pods/default/web/story")
    assert story.status_code == 404
