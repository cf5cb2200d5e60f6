"""A rule is written on a page, tried, kept, explained on a cycle's page, weighed, shared and deleted."""

import re

import pytest
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cycle, Question
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.moments import branch
from playground.scenarios.services.shares import share
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.markup import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("wakes")]


RULE = {
    "name": "fast-disk", "filter": 'node.metadata.labels.?disk.orValue("") == "ssd"', "weight": "3",
    "reason": "node(s) had no fast disk", "score": "free.cpu", "normalize": "Highest",
}  # fmt: skip


def disk_node(name, disk):
    return make_node(name, labels={"disk": disk})


def page_of(cluster):
    return reverse("web:rules", args=[cluster.public_id])


def test_a_rule_is_tried_before_it_is_kept(client):
    cluster = make_cluster(disk_node("n1", "ssd"), disk_node("n2", "hdd"), make_pod("p"))
    asked = client.post(page_of(cluster), RULE | {"action": "try", "pod": "default/p"})
    assert asked.status_code == 302 and "tried=" in asked.url
    question = Question.objects.get(cluster=cluster)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    html = html_of(client.get(asked.url))
    assert "It holds for 1 of 2 nodes" in html and "node(s) had no fast disk" in html
    assert 'value="fast-disk"' in html and "free.cpu" in html and "Highest" in html
    cluster.refresh_from_db()
    assert cluster.config is None


def test_what_is_wrong_with_a_rule_is_said_at_its_field_and_nothing_is_asked_or_kept(client):
    cluster = make_cluster(disk_node("n1", "ssd"))
    for action in ("try", "save"):
        wrong = client.post(
            page_of(cluster), RULE | {"action": action, "filter": "true &&\nnod.x", "score": "f(1)"}
        )
        html = html_of(wrong)
        assert wrong.status_code == 400 and "line 2, column 1: there is no &quot;nod&quot;" in html
        assert "there is no function &quot;f&quot;" in html and "fast-disk" in html
    for changed in (
        {"name": "a b"},
        {"name": ""},
        {"filter": "", "score": ""},
        {"weight": "0"},
        {"normalize": "Up"},
    ):
        assert client.post(page_of(cluster), RULE | {"action": "save"} | changed).status_code == 400
    cluster.refresh_from_db()
    assert cluster.config is None and not Question.objects.exists()


def test_a_kept_rule_decides_is_explained_weighed_shared_and_deleted(client):
    cluster = make_cluster(
        disk_node("n1", "ssd"), disk_node("n2", "hdd"), disk_node("n3", "ssd"), make_pod("p")
    )
    saved = client.post(page_of(cluster), RULE | {"action": "save"})
    assert saved.status_code == 302
    cluster.refresh_from_db()
    (profile,) = cluster.config["profiles"]
    assert profile["plugins"] == {
        "filter": {"enabled": [{"name": "Rule/fast-disk"}]},
        "score": {"enabled": [{"name": "Rule/fast-disk", "weight": 3}]},
    }
    html = html_of(client.get(page_of(cluster)))
    assert "fast-disk" in html and "weight 3, highest gets 100" in html
    assert "Rule/fast-disk" in html_of(client.get(reverse("web:config", args=[cluster.public_id])))
    run(cluster)
    cycle = Cycle.objects.get(cluster=cluster, pod_name="p")
    assert cycle.node in ("n1", "n3")
    html = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, cycle.number])))
    for words in ("Rule/fast-disk", "had no fast disk", "disk hdd"):
        assert words in html.replace("<wbr>", "")
    shared = share(document=make_text(cluster=cluster).text).scenario
    assert b"Rule/fast-disk" in shared.document and shared.digest
    # Its own weight moves by the switches of the configuration page, and off means off.
    switches = html_of(client.get(reverse("web:config", args=[cluster.public_id])))
    fields = dict.fromkeys(re.findall(r'name="(on:[^"]+)"[^>]* checked', switches), "on")
    del fields["on:score:Rule/fast-disk"]
    client.post(reverse("web:config", args=[cluster.public_id]), {"action": "points", **fields})
    cluster.refresh_from_db()
    assert {"name": "Rule/fast-disk"} in cluster.config["profiles"][0]["plugins"]["score"]["disabled"]
    client.post(page_of(cluster), {"action": "delete", "name": "fast-disk"})
    cluster.refresh_from_db()
    assert "Rule/" not in str(cluster.config)


def test_a_rule_is_tried_by_rest(client):
    cluster = make_cluster(disk_node("n1", "ssd"), disk_node("n2", "hdd"))
    url = f"/api/v1/clusters/{cluster.public_id}/try-rule"
    asked = client.post(url, {"filter": RULE["filter"]}, content_type="application/json")
    assert asked.status_code == 202, asked.content
    questions.answer(question_id=Question.objects.get().pk, memory=EngineMemory())
    answer = client.get(asked.json()["url"]).json()["answer"]
    assert (answer["holds"], answer["rejects"], answer["nNodes"]) == (1, 1, 2)
    wrong = client.post(url, {"filter": "nod"}, content_type="application/json")
    assert wrong.status_code in (400, 422) and "there is no" in html_of(wrong)


def test_rules_over_lists_over_labels_that_lack_and_over_amounts_decide_are_explained_and_travel(client):
    rules = {
        "one-web": (
            "pods.filter(p, p.metadata.labels.?app.orValue('') == 'web').size() < 1"
            " && node.status.conditions.all(c, c.type != 'DiskPressure' || c.status == 'False')",
            "node(s) had a web pod",
        ),
        "zone-said": (
            "node.metadata.labels.?zone.hasValue() && !(node.metadata.labels.?tier.orValue('none') in ['spot'])",
            "node(s) had no zone, or were spot",
        ),
        "room-left": (
            "free.cpu - requests.cpu >= 500 && quantity(node.status.allocatable.memory).isGreaterThan(quantity('1Gi'))",
            "node(s) kept no 500m",
        ),
    }
    cluster = make_cluster(
        make_node("n1", "2", {"zone": "a"}),
        make_node("n2", "2", {"zone": "b", "tier": "spot"}),
        make_node("n3", "2"),
        make_node("n4", "1", {"zone": "c"}),
        *(make_pod(f"web-{number}", cpu="600m", labels={"app": "web"}) for number in range(2)),
    )
    for name, (expression, reason) in rules.items():
        form = {"name": name, "filter": expression, "reason": reason, "weight": "1", "action": "save"}
        assert client.post(page_of(cluster), form).status_code == 302, name
    run(cluster)
    bound, waits = Cycle.objects.filter(cluster=cluster).order_by("number")[:2]
    assert (bound.pod_name, bound.node) == ("web-0", "n1") and waits.outcome == "unschedulable"
    shared = share(document=make_text(cluster=cluster).text).scenario
    for page in (
        reverse("web:cycle", args=[cluster.public_id, waits.number]),
        f"/s/{shared.public_id}/cycles/{waits.number}/",
    ):
        words = " ".join(re.sub(r"<[^>]+>", "", html_of(client.get(page))).split())
        for _, reason in rules.values():
            assert reason in words, (page, reason)
        assert "zone not there" in words and "free cpu 1" in words
    made = branch(cycle=bound.number, cluster=cluster)
    assert made.config == cluster_config(cluster)
    run(made)
    (again,) = Cycle.objects.filter(cluster=made).values_list("outcome", flat=True).distinct()
    assert again == "unschedulable"


def cluster_config(cluster):
    cluster.refresh_from_db()
    return cluster.config
