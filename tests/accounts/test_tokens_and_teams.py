"""Login, personal tokens and teams (team mode)."""

import datetime
import threading
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from playground.accounts import limits, teams, tokens
from playground.accounts.choices import Role
from playground.accounts.models import AccessToken, Tally, User
from playground.clusters.extenders.mock import create_mock_extender
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.accounts.world import asked, bearer
from tests.api.conftest import Api
from tests.clusters.builders import make_node, make_pod


def person(name: str) -> User:
    return User.objects.create_user(name, password="correct horse battery")


def as_bearer(user: User) -> Api:
    _, text = tokens.create_token(user=user, name="test")
    return Api(Client(headers={"Authorization": f"Bearer {text}"}))


def test_a_token_is_shown_once_and_kept_as_a_digest(client: Client) -> None:
    ada = person("ada")
    made = as_bearer(ada).post("/tokens/", {"name": "laptop", "expiresInDays": 1})
    text = made.json()["token"]
    assert made.status_code == 201
    row = AccessToken.objects.get(name="laptop")
    assert text not in (row.digest, row.hint)
    assert row.digest == tokens.digest_of(text)
    mine = Api(Client(headers={"Authorization": f"Bearer {text}"}))
    listed = mine.get("/tokens/")
    assert text not in listed.content.decode()
    assert mine.send("DELETE", f"/tokens/{row.pk}/").status_code == 204
    assert mine.get("/tokens/").status_code == 401


def test_without_a_login_there_is_401_with_a_way_in(client: Client) -> None:
    for path in ("/api/v1/clusters/", "/k8s/x/api/v1/pods"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")
        assert answer["WWW-Authenticate"].startswith("Bearer")
    assert Client(headers={"Authorization": "Bearer nope"}).get("/api/v1/clusters/").status_code == 401


def test_pages_want_a_login_and_the_login_page_lets_in(client: Client) -> None:
    person("ada")
    sent = client.get("/new/")
    assert (sent.status_code, sent["Location"]) == (302, "/account/login/?next=/new/")
    login = client.get("/account/login/")
    assert login.status_code == 200
    wrong = client.post("/account/login/", {"username": "ada", "password": "x"})
    assert wrong.status_code == 200
    right = client.post(
        "/account/login/?next=/new/",
        {"username": "ada", "password": "correct horse battery", "next": "/new/"},
    )
    assert (right.status_code, right["Location"]) == (302, "/new/")
    assert client.get("/new/").status_code == 200
    made = client.post("/account/", {"name": "laptop", "scope": "read"})
    assert (made.status_code, b"ksp_" in made.content) == (201, True)
    assert AccessToken.objects.get().hint.encode() in client.get("/account/").content
    assert client.post("/account/logout/").status_code == 302
    assert client.get("/new/").status_code == 302


def test_a_session_needs_the_csrf_token_to_write() -> None:
    ada = person("ada")
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.get("/api/v1/clusters/").status_code == 200
    refused = client.post("/api/v1/clusters/", {"name": "x"}, content_type="application/json")
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")


@pytest.mark.dialect
def test_requests_are_counted_over_pages_and_surfaces_alike(settings: Any, wakes: list[Any]) -> None:
    settings.PLAYGROUND_WRITE_RATE = "3/day"
    ada, bob = person("ada"), person("bob")
    speaks = as_bearer(ada)
    cluster = create_cluster(name="hers", owner=ada)
    pods = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    assert speaks.post("/clusters/", {}).status_code == 400
    assert Api(speaks.client, pods).post("", {}).status_code == 400
    page = Client()
    page.force_login(ada)
    assert page.post(f"/c/{cluster.public_id}/clock/", {"mode": "paused"}).status_code == 302
    for refused in (
        speaks.post("/clusters/", {"name": "x"}),
        Api(speaks.client, pods).post("", {}),
        page.post("/new/", {"name": "x"}),
    ):
        assert refused.status_code == 429
        assert 0 < int(refused["Retry-After"]) <= 86_400
    assert Cluster.objects.count() == 1
    assert speaks.get("/clusters/").status_code == 200
    assert as_bearer(bob).post("/clusters/", {}).status_code == 400
    settings.PLAYGROUND_REQUEST_RATE = "1/day"
    assert speaks.get("/clusters/").status_code == 429


@pytest.mark.dialect
def test_counts_begin_anew_when_a_window_is_over_and_are_forgotten() -> None:
    sums = [limits.count("k", period_s=60, now=moment) for moment in (1030.0, 1060.5, 1089.9)]
    assert sums == [(1, 1030), (2, 1030), (3, 1030)]
    assert limits.count("other", period_s=60, now=1060.0) == (1, 1060)
    assert limits.count("k", period_s=60, now=1090.0) == (1, 1090)
    assert limits.forget_counts(now=1060.0 + 86_400) == 1
    assert Tally.objects.get(key="k").number == 1


def test_who_asked_too_often_is_told_how_long_to_wait(settings: Any) -> None:
    settings.PLAYGROUND_WRITE_RATE = "2/min"
    ada = person("ada")
    waits = [limits.allowance(ada, "writes", now=moment).wait_s for moment in (1000, 1010, 1020, 1059, 1060)]
    assert waits == [0, 0, 40, 1, 0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_no_request_of_many_threads_goes_uncounted() -> None:
    def ask() -> None:
        try:
            for _ in range(10):
                limits.count("k", period_s=86_400, now=1.0)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert Tally.objects.get(key="k").number == 40


def test_a_mock_extender_and_metrics_need_no_login(wakes: list[Any]) -> None:
    mock = create_mock_extender(cluster=create_cluster(name="x"), rules=[])
    asked = Client().post(
        f"/mock-extenders/{mock.public_id}/filter", {"nodenames": ["n1"]}, content_type="application/json"
    )
    assert asked.json()["NodeNames"] == ["n1"]
    assert Client().get("/metrics").status_code == 200


@pytest.mark.dialect
def test_a_team_always_keeps_an_owner() -> None:
    ada, bob = person("ada"), person("bob")
    team = teams.create_team(name="platform", owner=ada)
    with pytest.raises(teams.AccountError):
        teams.set_member(team=team, username="ada", role=Role.VIEWER)
    with pytest.raises(teams.AccountError):
        teams.remove_member(team=team, username="ada")
    teams.set_member(team=team, username="bob", role=Role.OWNER)
    teams.remove_member(team=team, username="ada")
    assert [m.user for m in team.memberships.all()] == [bob]


def test_teams_over_rest(wakes: list[Any]) -> None:
    ada, bob, eve = (as_bearer(person(name)) for name in ("ada", "bob", "eve"))
    assert ada.post("/teams/", {"name": "platform"}).status_code == 201
    assert ada.post("/teams/", {"name": "platform"}).status_code == 409
    assert eve.get("/teams/platform/").status_code == 404
    assert ada.send("PUT", "/teams/platform/members/bob/", {"role": "viewer"}).status_code == 200
    assert bob.send("PUT", "/teams/platform/members/eve/", {"role": "viewer"}).status_code == 403
    assert bob.post("/clusters/", {"name": "x", "team": "platform"}).status_code == 403
    assert eve.post("/clusters/", {"name": "x", "team": "platform"}).status_code == 404
    made = ada.post("/clusters/", {"name": "x", "team": "platform"}).json()
    assert bob.get(f"/clusters/{made['id']}/").status_code == 200
    assert bob.send("DELETE", "/teams/platform/members/bob/").status_code == 204
    assert bob.get(f"/clusters/{made['id']}/").status_code == 404


def test_clusters_without_an_owner_are_hidden_in_team_mode(wakes: list[Any]) -> None:
    ownerless = create_cluster(name="local")
    ada = as_bearer(person("ada"))
    assert ada.get("/clusters/").json()["items"] == []
    assert ada.get(f"/clusters/{ownerless.public_id}/").status_code == 404


# ---- What a token may do, where and until when; over all operations: test_token_walk


def cluster_of(owner: User, name: str = "xyzzy") -> Cluster:
    cluster = create_cluster(name=name, owner=owner)
    apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("p1")])
    return cluster


def test_a_token_to_read_is_refused_with_the_reason(ada: User) -> None:
    cluster = cluster_of(ada)
    client = bearer(ada, scope="read")
    for path in ("clusters/", "tokens/", "teams/", "comparisons/", "scenarios/"):
        refused = asked(client, "POST", f"/api/v1/{path}")
        assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
        assert "only read" in refused.json()["detail"]
    pods = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    refused = client.post(pods, make_pod("p2"), content_type="application/json")
    assert (refused.status_code, refused.json()["kind"]) == (403, "Status")


def test_kubectl_is_told_that_a_token_to_read_may_not_create(ada: User) -> None:
    cluster = cluster_of(ada)
    path = f"/k8s/{cluster.public_id}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for scope, wanted in (("read", False), ("write", True)):
        wish = {"verb": "create", "resource": "pods", "namespace": "default"}
        answer = bearer(ada, scope=scope).post(
            path, {"spec": {"resourceAttributes": wish}}, content_type="application/json"
        )
        assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, wanted)


def test_a_token_of_one_cluster_works_in_it_and_lists_it_alone(ada: User) -> None:
    mine, _ = cluster_of(ada, "mine"), cluster_of(ada, "other")
    client = bearer(ada, scope="write", cluster=mine.public_id)
    listed = client.get("/api/v1/clusters/").json()["items"]
    assert [item["name"] for item in listed] == ["mine"]
    assert client.get("/api/v1/clusters").status_code == 200
    assert client.get("/api/v1/version").status_code == 200
    pods = f"/k8s/{mine.public_id}/api/v1/namespaces/default/pods"
    assert client.post(pods, make_pod("p2"), content_type="application/json").status_code == 201
    assert client.get(f"/api/v1/clusters/{mine.public_id}/").status_code == 200


def test_a_token_opens_no_page(ada: User) -> None:
    cluster = cluster_of(ada)
    assert bearer(ada).get(f"/c/{cluster.public_id}/").status_code == 302


def test_tokens_expire_unless_that_is_asked_for_and_none_outlives_its_maker(ada: User) -> None:
    client = bearer(ada, days=10)

    def made(**body: Any) -> Any:
        return client.post("/api/v1/tokens/", {"name": "x"} | body, content_type="application/json")

    assert made(expiresInDays=5).status_code == 201
    for body in ({}, {"expiresInDays": None}, {"expiresInDays": 11}):
        refused = made(**body)
        assert (refused.status_code, "cannot outlive" in refused.json()["detail"]) == (409, True)
    assert made(scope="all", expiresInDays=5).status_code == 400
    assert made(cluster="nothere", expiresInDays=5).status_code == 404
    forever = bearer(ada, days=None)
    answer = forever.post("/api/v1/tokens/", {"name": "y"}, content_type="application/json").json()
    row = AccessToken.objects.get(pk=answer["id"])
    assert row.expires is not None
    assert row.expires - row.created < datetime.timedelta(days=90, minutes=1)
    assert (answer["scope"], answer["cluster"]) == ("write", None)
    page = Client()
    page.force_login(ada)
    shown = page.get("/account/").content.decode()
    assert "no expiry" in shown
    assert page.post("/account/", {"name": "z", "scope": "read", "days": ""}).status_code == 201
    assert AccessToken.objects.get(name="z").expires is None
    assert page.post("/account/", {"name": "z", "scope": "read", "cluster": "nothere"}).status_code == 400
