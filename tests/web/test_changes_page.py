"""What was changed and undone on pages, and one action on what was chosen from a list."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters.drive.config import job_duration
from playground.clusters.history.undo import last_change
from playground.clusters.lifecycle import export_manifests
from playground.clusters.models import Cluster, Node, Pod
from playground.clusters.objects import actions
from playground.clusters.objects.actions import act_on_nodes
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import set_cordon
from playground.web.listing import NODE_BUTTONS, POD_BUTTONS
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.tables import table

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(wakes) -> Cluster:
    return make_cluster(make_node("n1"), make_node("n2"), *(make_pod(f"p{number}") for number in range(3)))


def path(name: str, cluster: Cluster) -> str:
    return reverse(f"web:{name}", args=[cluster.public_id])


def told(client: Client, response) -> str:
    page = client.get(response["Location"]).content.decode()
    return page.partition('id="messages"')[2].partition("<main")[0]


def test_the_page_names_the_last_change_and_undoes_it(client, cluster):
    set_cordon(cluster=cluster, node="n1", unschedulable=True)
    page = client.get(path("changes", cluster)).content.decode()
    assert "Last change: <b>cordon Node n1</b>" in page and "create Node n1 and 4 more" in page
    change = last_change(cluster)
    done = client.post(path("undo", cluster), {"change": change.seq})
    assert done.status_code == 302 and "Undone: cordon Node n1." in told(client, done)
    assert not Node.objects.filter(unschedulable=True).exists()
    stale = client.post(path("undo", cluster), {"change": change.seq})
    assert "Something else was done meanwhile" in told(client, stale)
    client.post(path("undo", cluster))
    assert "Nothing to undo" in client.get(path("changes", cluster)).content.decode()


DEPLOYMENT = table(__file__, "DEPLOYMENT")
NODE, POD = "objects/Node/-/n1/", "objects/Pod/default/p1/"
EDITS = {
    "a node's labels and taints": (NODE, {"action": "form", "labels": "disk=ssd", "taints": "gpu=t4:NoSchedule"}),
    "a node's resources": (NODE, {"action": "form", "cpu": "12"}),
    "a node's YAML": (NODE, {"text": ("metadata:", "metadata:\n  labels: {disk: nvme}")}),
    "a node goes": (NODE + "delete/", {"sure": "yes"}),
    "a cordon": ("nodes/n1/cordon/", {"unschedulable": "1"}),
    "a pod's labels": (POD, {"action": "form", "labels": "app=train"}),
    "a pod's YAML": (POD, {"text": ("metadata:", "metadata:\n  annotations: {seen: 'yes'}")}),
    "a pod goes": (POD + "delete/", {"sure": "yes"}),
    "a pod": ("pods/new/", {"action": "yaml", "yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\n"
              "spec: {containers: [{name: c, image: i}]}\n"}),
    "a scale": ("objects/Deployment/shop/web/", {"text": ("replicas: 2", "replicas: 5")}),
    "a pool": ("pools/", {"pool": "more", "count": "3", "cpu": "4", "memory": "8Gi", "pods": "110"}),
    "an import": ("import/", {"action": "import", "text": DEPLOYMENT.replace("name: web,", "name: api,")}),
    "a priority class": ("config/classes/", {"action": "class", "name": "silver", "value": "500", "policy": "Never"}),
    "the configuration": ("config/", {"action": "save", "text": "apiVersion: kubescheduler.config.k8s.io/v1\n"
                          "kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: tight}]\n"}),
    "the release": ("config/release/", {"release": "1.35"}),
    "the name": ("cluster/rename/", {"name": "Another name"}),
    "the clock": ("clock/", {"mode": "realtime"}),
    "how long jobs last": ("cluster/jobs/", {"duration": "5m"}),
}  # fmt: skip
"""Each edit a page has a form for: its address below the cluster's, and what is posted; of a text what is changed."""


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_of_a_page_is_undone_by_its_key(client, cluster, name):
    apply_documents(cluster=cluster, text=DEPLOYMENT)
    address, posted = EDITS[name]
    address = f"/c/{cluster.public_id}/{address}"

    def standing():
        row = Cluster.objects.get(pk=cluster.pk)
        facts = row.name, row.config, row.kubernetes_release, row.clock_mode, row.rate, job_duration(row)
        return facts, "".join(export_manifests(cluster=row))

    before = standing()
    if isinstance(posted.get("text"), tuple):
        posted = posted | {"text": client.get(address).context["text"].replace(*posted["text"])}
    elif posted.get("action") == "form" or "pool" in posted:
        posted = client.get(address).context["form"].initial | posted
    assert client.post(address, posted).status_code in (201, 302)
    assert standing() != before
    page = client.get(path("changes", cluster)).content.decode()
    last = page.partition("Last change:")[2].partition("</h1>")[0]
    assert last and "create Deployment shop/web" not in last, "another change than the one before it"
    done = client.post(path("undo", cluster), {"change": last_change(cluster).seq})
    assert "Undone: " in told(client, done)
    assert standing() == before


@pytest.mark.parametrize(
    ("name", "buttons", "known"),
    [("pods", POD_BUTTONS, actions.POD_ACTIONS), ("nodes", NODE_BUTTONS, actions.NODE_ACTIONS)],
)
def test_every_action_on_many_has_its_button(client, cluster, name, buttons, known):
    assert tuple(button["name"] for button in buttons) == known
    page = client.get(path(name, cluster)).content.decode()
    form = page.partition("data-choosing")[2].partition("<table")[0]
    first = re.search(r'<button type="submit"[^>]*>', form)
    assert first and 'name="action" value=""' in first.group(), (
        "Enter in a box presses nothing that does anything"
    )
    for action in known:
        assert f'value="{action}"' in form
    asked = {button["name"] for button in buttons if "field" in button}
    assert asked == (set(actions.NEEDS_VALUE) if name == "nodes" else set())


def test_chosen_pods_are_deleted_without_a_page_in_between(client, cluster):
    page = client.get(path("pods", cluster)).content.decode()
    assert page.count("data-choice") == 3
    done = client.post(
        path("act", cluster),
        {"action": "delete", "pod": ["default/p0", "default/p2"], "next": path("pods", cluster) + "?q=p"},
    )
    assert done["Location"] == path("pods", cluster) + "?q=p"
    assert "Done: delete 2 Pods." in told(client, done)
    assert list(Pod.objects.values_list("name", flat=True)) == ["p1"]


def test_one_pod_is_deleted_from_its_story_and_its_inspector(client, cluster):
    story = client.get(reverse("web:pod", args=[cluster.public_id, "default", "p1"])).content.decode()
    board = client.get(path("board", cluster), {"pod": "default/p1"}).content.decode()
    for page in (story, board):
        assert f'action="{path("act", cluster)}"' in page
        assert '<input type="hidden" name="pod" value="default/p1">' in page


def test_nodes_are_found_by_label_and_changed_together(client, cluster):
    act_on_nodes(cluster=cluster, action="label", nodes=["n2"], value="disk=ssd")
    page = client.get(path("nodes", cluster), {"q": "disk=ssd n"}).content.decode()
    assert "1 node<" in page and 'value="n2"' in page and 'value="n1"' not in page
    done = client.post(
        path("act", cluster),
        {"action": "taint", "of": "nodes", "node": ["n1", "n2"], "taint": "a=b:NoSchedule", "label": "x=y"},
    )
    assert "Done: taint 2 Nodes a=b:NoSchedule." in told(client, done)
    assert [node.taints for node in Node.objects.order_by("name")] == [
        [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    ] * 2


@pytest.mark.parametrize(
    ("posted", "words"),
    table(__file__, "a_refused_action_says_why_and_does_nothing"),
)
def test_a_refused_action_says_why_and_does_nothing(client, cluster, posted, words):
    before = Cluster.objects.get(pk=cluster.pk).next_seq
    assert words in told(client, client.post(path("act", cluster), posted))
    assert Cluster.objects.get(pk=cluster.pk).next_seq == before


@pytest.mark.parametrize(
    "next_page", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", "/\\evil"]
)
def test_no_user_is_sent_to_another_site(client, cluster, next_page):
    done = client.post(path("act", cluster), {"action": "delete", "pod": ["default/p0"], "next": next_page})
    assert done["Location"] == path("pods", cluster)
