"""A rule is written on a page, tried, kept, explained on a cycle's page, weighed, shared and deleted."""

import re

import pytest
from django.urls import reverse

from playground.clusters import wake
from playground.clusters.models import Cycle, Question
from playground.clusters.services import questions
from playground.clusters.services.advance import advance
from playground.clusters.services.memory import EngineMemory
from playground.clusters.services.runs import request_run
from playground.scenarios.services import share
from playground.scenarios.services.forking import make_text
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def unsent(monkeypatch):
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)


RULE = {
    "name": "fast-disk", "filter": 'node.metadata.labels.?disk.orValue("") == "ssd"', "weight": "3",
    "reason": "node(s) had no fast disk", "score": "free.cpu", "normalize": "Highest",
}  # fmt: skip


def disk_node(name, disk):
    node = make_node(name)
    node["metadata"]["labels"] = {"disk": disk}
    return node


def page_of(cluster):
    return reverse("web:rules", args=[cluster.public_id])


def test_a_rule_is_tried_before_it_is_kept(client):
    cluster = make_cluster(disk_node("n1", "ssd"), disk_node("n2", "hdd"), make_pod("p"))
    asked = client.post(page_of(cluster), RULE | {"deed": "try", "pod": "default/p"})
    assert asked.status_code == 302 and "tried=" in asked.url
    question = Question.objects.get(cluster=cluster)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    html = client.get(asked.url).content.decode()
    assert "It holds for 1 of 2 nodes" in html and "node(s) had no fast disk" in html
    assert 'value="fast-disk"' in html and "free.cpu" in html and "Highest" in html
    cluster.refresh_from_db()
    assert cluster.config is None


def test_what_is_wrong_with_a_rule_is_said_at_its_field_and_nothing_is_asked_or_kept(client):
    cluster = make_cluster(disk_node("n1", "ssd"))
    for deed in ("try", "save"):
        wrong = client.post(
            page_of(cluster), RULE | {"deed": deed, "filter": "true &&\nnod.x", "score": "f(1)"}
        )
        html = wrong.content.decode()
        assert wrong.status_code == 400 and "line 2, column 1: there is no &quot;nod&quot;" in html
        assert "there is no function &quot;f&quot;" in html and "fast-disk" in html
    for changed in (
        {"name": "a b"},
        {"name": ""},
        {"filter": "", "score": ""},
        {"weight": "0"},
        {"normalize": "Up"},
    ):
        assert client.post(page_of(cluster), RULE | {"deed": "save"} | changed).status_code == 400
    cluster.refresh_from_db()
    assert cluster.config is None and not Question.objects.exists()


def test_a_kept_rule_decides_is_explained_weighed_shared_and_deleted(client):
    cluster = make_cluster(
        disk_node("n1", "ssd"), disk_node("n2", "hdd"), disk_node("n3", "ssd"), make_pod("p")
    )
    saved = client.post(page_of(cluster), RULE | {"deed": "save"})
    assert saved.status_code == 302
    cluster.refresh_from_db()
    (profile,) = cluster.config["profiles"]
    assert profile["plugins"] == {
        "filter": {"enabled": [{"name": "Rule/fast-disk"}]},
        "score": {"enabled": [{"name": "Rule/fast-disk", "weight": 3}]},
    }
    html = client.get(page_of(cluster)).content.decode()
    assert "fast-disk" in html and "weight 3, highest gets 100" in html
    assert "Rule/fast-disk" in client.get(reverse("web:config", args=[cluster.public_id])).content.decode()
    request_run(cluster=cluster, until="idle")
    for _ in range(4):
        advance(cluster_id=cluster.pk)
    cycle = Cycle.objects.get(cluster=cluster, pod_name="p")
    assert cycle.node in ("n1", "n3")
    html = client.get(reverse("web:cycle", args=[cluster.public_id, cycle.number])).content.decode()
    for words in ("Rule/fast-disk", "node(s) had no fast disk", "disk hdd"):
        assert words in html.replace("<wbr>", "")
    shared = share(document=make_text(cluster=cluster).text).scenario
    assert b"Rule/fast-disk" in shared.document and shared.digest
    # Its own weight moves by the switches of the configuration page, and off means off.
    switches = client.get(reverse("web:config", args=[cluster.public_id])).content.decode()
    fields = dict.fromkeys(re.findall(r'name="(on:[^"]+)"[^>]* checked', switches), "on")
    del fields["on:score:Rule/fast-disk"]
    client.post(reverse("web:config", args=[cluster.public_id]), {"deed": "points", **fields})
    cluster.refresh_from_db()
    assert {"name": "Rule/fast-disk"} in cluster.config["profiles"][0]["plugins"]["score"]["disabled"]
    client.post(page_of(cluster), {"deed": "delete", "name": "fast-disk"})
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
    assert wrong.status_code in (400, 422) and "there is no" in wrong.content.decode()
