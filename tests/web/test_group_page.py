"""The page of a pod group: asked by being looked at, answered by a worker, and true when one does what it says."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.history.story import pod_traces
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Pod, Question
from playground.clusters.objects.apply import apply_documents
from playground.web.pods.present import story_steps
from tests.clusters.builders import START_NS, make_node, make_pod, run
from tests.manifests import make_object
from tests.markup import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("wakes")]
GATES = {"GenericWorkload": True, "GangScheduling": True}


def gang(gates: dict[str, bool] | None = None) -> Cluster:
    """Three members that fill a node each, two nodes."""
    cluster = create_cluster(
        name="gang", seed=7, start_ns=START_NS, kubernetes_release="1.36", feature_gates=gates or GATES
    )
    group: dict[str, Any] = make_object(
        "scheduling.k8s.io/v1alpha2",
        "PodGroup",
        "train",
        namespace="default",
        spec={"schedulingPolicy": {"gang": {"minCount": 3}}},
    )
    members = [
        make_pod(f"train-{place}", cpu="3", schedulingGroup={"podGroupName": "train"}) for place in range(3)
    ]
    nodes = [make_node(f"n{place}", cpu="4") for place in range(2)]
    apply_documents(cluster=cluster, objects=[*nodes, group, *members])
    run(cluster)
    return cluster


def told(client: Client, cluster: Cluster) -> str:
    """The page as it is once a worker has answered what it asked."""
    page = f"/c/{cluster.public_id}/groups/default/train/"
    client.get(page)
    asked = Question.objects.filter(cluster=cluster, kind="group").latest("pk")
    questions.answer(question_id=asked.pk, memory=EngineMemory())
    return str(html_of(client.get(page)))


def test_it_says_who_fits_what_is_missing_and_what_would_place_the_group(client: Client) -> None:
    cluster = gang()
    page = f"/c/{cluster.public_id}/groups/default/train/"
    assert client.get(f"/c/{cluster.public_id}/groups/default/absent/").status_code == 404
    assert 'id="asking"' in html_of(client.get(page))
    html = told(client, cluster)
    asked = Question.objects.get(kind="group")
    answer = asked.answer
    assert (answer["fit"], answer["needed"], answer["missing"]) == (2, 3, 1)
    assert answer["sentence"] in html
    for fact in ("gang", "3 (minCount)", "fits on n0", "fits on n1", "no node", "pod group is unschedulable"):
        assert fact in html, fact
    assert html.count("of its members") and "Cycle 1" in html

    # Each remedy is a button; a branch made by one holds the whole group.
    assert answer["remedies"]
    for rank in range(1, len(answer["remedies"]) + 1):
        home = client.post(
            f"/c/{cluster.public_id}/questions/{asked.public_id}/branch/", {"rank": rank}
        ).headers["Location"]
        made = Cluster.objects.get(public_id=home.strip("/").split("/")[1])
        assert made.kubernetes_release == "1.36" and made.feature_gates == GATES
        run(made)
        bound = Pod.objects.filter(cluster=made, name__startswith="train-").exclude(node_name="").count()
        assert bound >= (2 if "minCount" in answer["remedies"][rank - 1]["sentence"] else 3)

    # Once there is room, the page is old; asked again it says so.
    apply_documents(cluster=cluster, objects=[make_node("n2", cpu="4")])
    run(cluster)
    assert client.post(page).status_code == 302
    html = told(client, cluster)
    assert html.count("bound on n") == 3 and "Nothing is missing." in html


def test_a_members_story_and_the_board_lead_to_it_and_say_why_the_member_backs_off(client: Client) -> None:
    cluster = gang()
    home = f"/c/{cluster.public_id}/"
    for page in (f"{home}pods/default/train-0/", f"{home}?pod=default/train-0"):
        assert f'href="{home}groups/default/train/"' in html_of(client.get(page)), page
    # A member that fits and waits in vain is rejected by no plugin; the one that fits nowhere is.
    steps = {
        name: [
            step.detail
            for step in story_steps(pod_traces(cluster, "default", name))
            if "backoffQ" in step.title
        ]
        for name in ("train-0", "train-1")
    }
    assert steps["train-0"][0].startswith("no plugin rejected this pod itself")
    assert steps["train-1"][0] == "the attempt failed"


def test_without_the_gate_it_says_which_one_is_off(client: Client) -> None:
    assert "GenericWorkload of 1.36 is off" in told(client, gang({"GenericWorkload": False}))
