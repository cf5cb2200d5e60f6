"""A branch beside its parent on a page and over REST."""

import pytest
from django.urls import reverse

from playground.clusters.drive.advance import Visit, advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Node, Pod
from playground.clusters.objects.actions import act_on_nodes, act_on_pods
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import create_object
from playground.engine.batch import Budget
from playground.scenarios.branch_difference import difference
from playground.scenarios.services.moments import branch
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db


def run(cluster: Cluster) -> None:
    request_run(cluster=cluster)
    visit = Visit(wall_s=60, batch=Budget(wall_s=60, max_cycles=50))
    advance(cluster_id=cluster.pk, memory=EngineMemory(), visit=visit)
    cluster.refresh_from_db()


@pytest.fixture
def parent(wakes) -> Cluster:
    """Three nodes of four cpu; four pods of two on them, one that fits nowhere."""
    nodes = [make_node(f"n{number}") for number in (1, 2, 3)]
    cluster = make_cluster(
        *nodes, *(make_pod(f"p{number}", "2") for number in range(4)), make_pod("big", "64")
    )
    run(cluster)
    return cluster


def on(cluster: Cluster, node: str) -> list[str]:
    rows = Pod.objects.filter(cluster=cluster, node_name=node)
    return sorted(rows.values_list("name", flat=True))


def edited(parent: Cluster) -> Cluster:
    made = branch(cycle=parent.next_cycle - 1, cluster=parent, name="what if")
    return made


def test_the_difference_names_who_moved_who_waits_and_the_plugin_that_decided(parent, client):
    made = edited(parent)
    # One that is alone on its node: the emptiest, where it comes back to unless something is against it.
    node = next(name for name in ("n1", "n2", "n3") if len(on(parent, name)) == 1)
    [alone] = on(parent, node)
    act_on_nodes(cluster=made, action="cordon", nodes=[node])
    for cluster in (made, parent):  # the same pod is made anew on both sides
        act_on_pods(cluster=cluster, action="delete", pods=[f"default/{alone}"])
        run(cluster)
        create_object(cluster=cluster, manifest=make_pod(alone, "2"))
        run(cluster)
    apply_documents(cluster=made, objects=[make_node("large", "128")])
    run(made)
    found = difference(branch=made, parent=parent)
    kinds = {change.name: (change.kind, change.was, change.now) for change in found.changes}
    assert kinds["big"] == ("newly placed", "", "large")
    assert kinds[alone][:2] == ("moved", node) and kinds[alone][2] not in ("", node)
    [first, *_] = [found.parting]
    assert first.pair.pod == f"default/{alone}" and first.place == 1
    assert first.why.startswith(
        f"NodeUnschedulable rejects {node} in the branch (was unschedulable), but not in the parent."
    )

    page = client.get(reverse("web:difference", args=[made.public_id])).content.decode()
    for words in (f"cordon Node {node}", "NodeUnschedulable rejects", "1 newly placed", "Apply 4 edits to test?",
                  "2 changes in the parent since."):  # fmt: skip
        assert words in " ".join(page.split()), words
    second = client.get(reverse("web:difference", args=[made.public_id]), {"n": "2"}).content.decode()
    assert "default/big" in second.partition('id="h-first"')[2].partition("</h2>")[0]
    only = client.get(
        reverse("web:difference", args=[made.public_id]), {"kind": "newly placed"}
    ).content.decode()
    assert only.partition('id="changes"')[2].count('<th scope="row">') == 1


def test_a_branch_without_a_difference_says_so(parent, client):
    made = edited(parent)
    run(made)
    page = client.get(reverse("web:difference", args=[made.public_id])).content.decode()
    assert "No edit yet." in page and "Apply" not in page
    assert "Every pod is in the same place" in page or "Both decide alike" in page


def test_a_pod_that_waited_when_the_branch_was_made_is_not_called_untried(parent, client):
    made = edited(parent)
    apply_documents(cluster=made, objects=[make_node("large", "128")])
    for cluster in (made, parent):
        run(cluster)
    found = difference(branch=made, parent=parent)
    assert found.parting is not None and found.parting.pair.pod == "default/big"
    before, after = found.parting.cycles
    assert before is not None and before.outcome == "unschedulable" and before.number <= made.parent_cycle
    assert after is not None and after.node == "large"
    assert found.parting.why == "large is no candidate in the parent."
    page = client.get(reverse("web:difference", args=[made.public_id])).content.decode()
    assert "chosen" in page and ">no candidate<" not in page
    assert reverse("web:cycle", args=[parent.public_id, before.number]) in page
    assert "not tried" not in page and "no such decision" not in page


def test_a_pod_that_fails_alike_on_both_sides_is_no_difference(parent, client):
    made = edited(parent)
    for pod in (
        "other",
        "another",
    ):  # an event: the pod that fits nowhere is tried once more in the branch alone
        create_object(cluster=made, manifest=make_pod(pod, "64"))
    act_on_pods(cluster=made, action="delete", pods=["default/another"])
    run(made)
    found = difference(branch=made, parent=parent)
    assert found.parting is None or found.parting.pair.pod != "default/big"


def test_edits_are_applied_to_the_parent_or_refused_with_the_reason(parent, client):
    made = edited(parent)
    act_on_nodes(cluster=made, action="label", nodes=["n1"], value="disk=ssd")
    done = client.post(reverse("web:apply-branch", args=[made.public_id]))
    assert done["Location"] == reverse("web:board", args=[parent.public_id])
    assert Node.objects.get(cluster=parent, name="n1").labels["disk"] == "ssd"
    act_on_nodes(cluster=parent, action="label", nodes=["n1"], value="disk=hdd")
    act_on_nodes(cluster=made, action="label", nodes=["n1"], value="disk=nvme")
    refused = client.post(reverse("web:apply-branch", args=[made.public_id]))
    page = client.get(refused["Location"]).content.decode()
    assert "Node n1 has another metadata.labels.disk in the parent" in page


def test_what_is_no_branch_has_no_difference(parent, client):
    assert client.get(reverse("web:difference", args=[parent.public_id])).status_code == 404
    assert client.post(reverse("web:apply-branch", args=[parent.public_id])).status_code == 404


def test_a_decision_that_only_says_another_sentence_is_counted_as_alike_with_another_message(parent, client):
    made = edited(parent)
    apply_documents(cluster=made, objects=[make_node("small", "1")])
    for cluster in (made, parent):
        run(cluster)
    found = difference(branch=made, parent=parent)
    assert found.n_reworded == 1 and found.parting.pair.pod == "default/big"
    page = " ".join(client.get(reverse("web:difference", args=[made.public_id])).content.decode().split())
    words = f"{found.n_same} of the {found.n_decisions} decision"
    assert words in page and ", 1 of them with another message. Decisions are paired by pod." in page
