"""Mock extenders on pages: rules with errors at their line, and a decision that changes because of them."""

import pytest
from django.urls import reverse

from playground.clusters import wake
from playground.clusters.models import Cycle, MockExtender
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.markup import html_of
from tests.tables import table

pytestmark = pytest.mark.django_db

RULES = table(__file__, "RULES")


@pytest.fixture
def cluster(db, monkeypatch):
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    return make_cluster(make_node("n1"), make_node("n2"), make_node("n3"), make_pod("web-0"))


def page(cluster, extender=None):
    if extender is None:
        return reverse("web:extender-new", args=[cluster.public_id])
    return reverse("web:extender", args=[cluster.public_id, extender.public_id])


def made(client, cluster):
    assert client.post(page(cluster), {"name": "quota", "text": RULES}).status_code == 302
    return MockExtender.objects.get(cluster=cluster)


@pytest.mark.django_db(transaction=True)
def test_rules_decide_once_the_scheduler_asks_and_no_longer_when_it_does_not(
    client, transactional_db, live_server, settings, cluster
):
    settings.PLAYGROUND_OWN_URL = live_server.url
    extender = made(client, cluster)
    html = html_of(client.get(page(cluster, extender)))
    assert "not in the configuration" in html and 'value="prioritize" id="verb-prioritize" checked' in html
    asked = {"action": "ask", "verbs": ["filter", "prioritize"], "weight": "3", "ignorable": "on"}
    assert client.post(page(cluster, extender), asked).status_code == 302
    cluster.refresh_from_db()
    (entry,) = cluster.config["extenders"]
    assert entry["weight"] == 3 and entry["ignorable"] and "preemptVerb" not in entry
    run(cluster)
    cycle = Cycle.objects.get(cluster=cluster, pod_name="web-0")
    assert (cycle.outcome, cycle.node, cycle.n_feasible) == ("bound", "n3", 2)
    html = html_of(client.get(reverse("web:cycle", args=[cluster.public_id, cycle.number])))
    assert "no quota on n1" in html and extender.public_id in html
    assert "<dd>1</dd>" in html_of(client.get(page(cluster, extender)))
    client.post(page(cluster, extender), {"action": "leave"})
    cluster.refresh_from_db()
    assert "extenders" not in cluster.config


def test_wrong_rules_come_back_with_their_line_and_nothing_changes(client, cluster):
    extender = made(client, cluster)
    wrong = RULES.replace("points: 10", "points: many")
    response = client.post(page(cluster, extender), {"name": "quota", "text": wrong})
    html = html_of(response)
    assert response.status_code == 400 and "line 7" in html and "rules[1].score.points" in html
    assert "points: many" in html
    extender.refresh_from_db()
    assert extender.rules[1]["score"]["points"] == 10
    for text, words in (("rules: [", "line 1"), ("- deny: {}", ""), ("other: 1", "rules:")):
        response = client.post(page(cluster), {"text": text})
        assert response.status_code == 400 and words in html_of(response)
    assert MockExtender.objects.filter(cluster=cluster).count() == 1


def test_saving_changes_rules_and_name(client, cluster):
    extender = made(client, cluster)
    client.post(page(cluster, extender), {"name": "other", "text": "rules:\n- fail: {status: 503}\n"})
    extender.refresh_from_db()
    assert (extender.name, extender.rules) == ("other", [{"fail": {"status": 503}}])


def test_deleting_takes_it_out_of_the_configuration(client, cluster):
    extender = made(client, cluster)
    client.post(page(cluster, extender), {"action": "ask", "verbs": ["filter"]})
    config = html_of(client.get(reverse("web:config", args=[cluster.public_id])))
    assert "quota" in config and page(cluster, extender) in config
    assert client.post(page(cluster, extender), {"action": "delete"}).status_code == 302
    cluster.refresh_from_db()
    assert "extenders" not in cluster.config and not MockExtender.objects.exists()
    assert client.get(page(cluster, extender)).status_code == 404


def test_asking_without_a_verb_is_refused(client, cluster):
    extender = made(client, cluster)
    response = client.post(page(cluster, extender), {"action": "ask"})
    assert response.status_code == 400 and "one verb at least" in html_of(response)
    cluster.refresh_from_db()
    assert cluster.config is None
