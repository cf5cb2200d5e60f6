"""POST a document, get a link; read it from anywhere."""

import json

import pytest
from django.test import Client

from playground.accounts.models import Membership, Team, User
from playground.scenarios.models import Scenario, Verification
from playground.scenarios.services.shares import share
from tests.scenarios.documents import PACKING, small_text
from tests.scenarios.test_clusters import made_by_hand

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/api/v1/scenarios/"


def post(client, text, path=PATH, media="application/x-www-form-urlencoded", **headers):
    return client.generic("POST", path, text.encode(), content_type=media, headers=headers)


def test_curl_with_data_binary_gets_a_link(client, work):
    answer = post(client, small_text())
    assert answer.status_code == 201
    body = answer.json()
    assert body["page"] == f"http://testserver/s/{body['id']}/" == answer["Location"]
    assert body["created"] and body["deleteCode"] and body["cycles"] == 5
    assert body["proof"]["state"] == "queued"
    work()
    read = client.get(f"{PATH}{body['id']}/", headers={"Origin": "https://elsewhere.example"})
    assert read["Access-Control-Allow-Origin"] == "*"
    assert read.json()["proof"]["sentence"] == "Reproduced 5 of 5 decisions"
    again = post(client, small_text())
    assert (
        again.status_code == 200 and again.json()["id"] == body["id"] and again.json()["deleteCode"] is None
    )


def test_ten_lines_are_a_scenario(client, wakes):
    short = "nodes: [{name: n, type: m6i.large}]\npods: [{name: p, cpu: 1}, {name: q, cpu: two}]\n"
    refused = post(client, short).json()
    assert (refused["field"], refused["line"]) == ("pods[1].cpu", 2)
    body = post(client, short.replace("two", "2")).json()
    assert body["cycles"] == 2
    kept = client.get(f"/s/{body['id']}.yaml").content.decode()
    assert post(client, kept).json()["digest"] == body["digest"]


def test_bad_documents_are_problems_with_path_and_line(client, wakes):
    answer = post(client, small_text(steps=[{"runn": "idle"}]), media="application/yaml")
    assert answer.status_code == 400 and answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["field"].startswith("steps[0]") and body["line"] and body["kind"] == "Scenario"
    answer = post(client, small_text(steps=[{"drain": "node-z"}]))
    assert answer.json()["field"] == "steps[0].drain"
    assert "there is no Node node-z" in answer.json()["detail"]
    assert not Scenario.objects.exists()


def test_the_cap_is_in_the_refusal(client, wakes, settings):
    settings.PLAYGROUND_MAX_SCENARIO_BYTES = 500
    answer = post(client, small_text())
    assert answer.status_code == 413 and "at most 500 bytes" in answer.json()["detail"]


def test_deleting(client, wakes):
    body = post(client, small_text()).json()
    assert client.delete(f"{PATH}{body['id']}/").status_code == 204
    assert client.get(f"{PATH}{body['id']}/").status_code == 404


def test_a_new_proof_can_be_asked_for(client, work):
    body = post(client, small_text()).json()
    work()
    assert post(client, "", path=f"{PATH}{body['id']}/verify").status_code == 202
    work()
    assert Verification.objects.filter(state="done").count() == 2


def test_two_scenarios_are_compared(client, work):
    ids = [post(client, text).json()["id"] for text in (small_text(), small_text(scheduler=PACKING))]
    asked = {"a": {"kind": "scenario", "id": ids[0]}, "b": {"kind": "scenario", "id": ids[1]}}
    answer = client.post("/api/v1/comparisons/", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 202 and answer.json()["state"] == "queued"
    work()
    found = client.get(answer["Location"]).json()
    assert found["state"] == "done" and found["result"]["divergence"]["cycle"] >= 1
    asked["b"]["id"] = "nothing"
    answer = client.post("/api/v1/comparisons/", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 404


@pytest.fixture
def served(settings):
    """A served site with two teams."""
    settings.EMBEDDED = False
    people = [User.objects.create_user(name, password=name) for name in ("ada", "bob", "eve")]
    team, other = Team.objects.create(name="sched"), Team.objects.create(name="other")
    for person in people[:2]:
        Membership.objects.create(team=team, user=person)
    Membership.objects.create(team=other, user=people[2])
    return people


def logged_in(person):
    client = Client()
    client.force_login(person)
    return client


def test_public_and_unlisted_shares_are_read_without_an_account(served, client, wakes):
    ada = served[0]
    for visibility in ("public", "unlisted"):
        scenario = share(document=small_text(), owner=ada, visibility=visibility).scenario
        for path in (
            f"/s/{scenario.public_id}/",
            f"/s/{scenario.public_id}.yaml",
            f"{PATH}{scenario.public_id}/",
        ):
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert answer["Access-Control-Allow-Origin"] == "*"
    assert post(client, small_text()).status_code == 401


def test_a_team_share_does_not_exist_for_others(served, client, wakes):
    ada, bob, eve = served
    scenario = share(document=small_text(), owner=ada, visibility="team").scenario
    paths = [
        f"/s/{scenario.public_id}/",
        f"/s/{scenario.public_id}.yaml",
        f"/s/{scenario.public_id}/cycles/1/",
        f"/s/{scenario.public_id}/embed/",
        f"{PATH}{scenario.public_id}/",
    ]
    for path in paths:
        assert client.get(path).status_code == 404, path
        assert logged_in(eve).get(path).status_code == 404, path
        answer = logged_in(bob).get(path)
        assert answer.status_code == 200, path
    assert "Access-Control-Allow-Origin" not in logged_in(bob).get(f"/s/{scenario.public_id}.yaml")


def test_an_expired_share_does_not_exist(client, wakes):
    from datetime import timedelta

    from django.utils import timezone

    scenario = share(document=small_text(), expires=timezone.now() + timedelta(days=1)).scenario
    assert client.get(f"/s/{scenario.public_id}/").status_code == 200
    Scenario.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert client.get(f"/s/{scenario.public_id}/").status_code == 404
    assert client.get(f"/s/{scenario.public_id}.yaml").status_code == 404


def test_ids_never_end_in_what_a_chat_cuts_off(wakes):
    from playground.scenarios.models import new_share_id

    ids = [new_share_id() for _ in range(2000)]
    assert len(set(ids)) == 2000 and all(one.isascii() and one.isalnum() for one in ids)


def test_a_cluster_is_read_and_shared_as_a_scenario(client, work):
    cluster = made_by_hand(work)
    path = f"/api/v1/clusters/{cluster.public_id}/scenario"
    answer = client.get(f"{path}?title=By+hand&cycle=4")
    assert answer.status_code == 200 and answer["Content-Type"].startswith("application/yaml")
    assert b"title: By hand" in answer.content and b"count: 4" in answer.content
    assert b"payments-secret" in answer.content
    assert b"payments-secret" not in client.get(f"{path}?redact=1").content
    body = post(client, "", f"{path}?visibility=public&title=Whole").json()
    assert (
        body["title"] == "Whole"
        and body["visibility"] == "public"
        and body["cycles"] == cluster.next_cycle - 1
    )
    work()
    assert client.get(f"{PATH}{body['id']}/").json()["proof"]["sentence"].startswith("Reproduced")
    assert client.get(f"{path}?cycle=99").status_code == 404
    assert client.get(f"{path}?redact=maybe").json()["field"] == "redact"
    assert client.get("/api/v1/clusters/nothing/scenario").status_code == 404


def test_who_is_in_several_teams_names_one(served, wakes):
    ada = served[0]
    Membership.objects.create(team=Team.objects.create(name="zoo keepers"), user=ada)
    client = logged_in(ada)
    csrf = {"X-CSRFToken": "x"}
    page = client.get("/s/new/").content.decode()
    assert 'value="team/sched"' in page and "team zoo keepers only" in page
    refused = client.post("/s/new/", {"text": small_text(), "visibility": "team"}, headers=csrf)
    assert refused.status_code == 400 and "name one" in refused.content.decode()
    client.post("/s/new/", {"text": small_text(), "visibility": "team/zoo keepers"}, headers=csrf)
    assert Scenario.objects.get().team.name == "zoo keepers"
    by_api = post(client, small_text(), path=f"{PATH}?visibility=team&team=sched", media="application/yaml")
    assert by_api.status_code == 201 and Scenario.objects.filter(team__name="sched").exists()
    foreign = post(client, small_text(), path=f"{PATH}?visibility=team&team=other", media="application/yaml")
    assert foreign.status_code == 404 and Scenario.objects.count() == 2


def test_sharing_a_cluster_reads_its_json_body_and_refuses_what_it_cannot_read(client, work):
    cluster = made_by_hand(work)
    path = f"/api/v1/clusters/{cluster.public_id}/scenario"
    told = {"title": "From the body", "visibility": "private", "days": 2}
    shared = post(client, json.dumps(told), f"{path}?title=From+the+query", media="application/json")
    assert shared.status_code == 201, shared.content
    row = Scenario.objects.get(public_id=shared.json()["id"])
    assert (row.title, row.visibility, row.expires is None) == ("From the body", "private", False)
    n_shares = Scenario.objects.count()
    for body, media, status, field in (
        ('{"titel": "x"}', "application/json", 400, "titel"),
        ('{"cycle": "2"}', "application/json", 400, "cycle"),
        ('{"visibility": "secret"}', "application/json", 400, "visibility"),
        ("[1]", "application/json", 400, None),
        ("title: x", "application/yaml", 415, None),
    ):
        refused = post(client, body, path, media=media)
        assert (refused.status_code, refused.json().get("field")) == (status, field), body
    assert Scenario.objects.count() == n_shares
    # A form without a body changes nothing of what the query says.
    hidden = post(client, "", f"{path}?redact=1").json()
    assert b"payments-secret" not in bytes(Scenario.objects.get(public_id=hidden["id"]).document)
