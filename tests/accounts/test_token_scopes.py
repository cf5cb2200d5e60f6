"""What a token may do, where and until when; over all operations: `test_token_walk`."""

import datetime
from typing import Any

from django.test import Client

from playground.accounts.models import AccessToken, User
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Pod
from playground.clusters.objects.apply import apply_documents
from tests.accounts.world import asked, bearer
from tests.clusters.builders import make_node, make_pod


def cluster_of(owner: User, name: str = "xyzzy") -> Cluster:
    cluster = create_cluster(name=name, owner=owner)
    apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("p1")])
    return cluster


def test_a_token_to_read_is_refused_with_the_reason(ada: User) -> None:
    cluster = cluster_of(ada)
    before = Cluster.objects.get(pk=cluster.pk).next_seq
    client = bearer(ada, scope="read")
    for path in ("clusters/", "tokens/", "teams/", "comparisons/", "scenarios/"):
        refused = asked(client, "POST", f"/api/v1/{path}")
        assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
        assert "only read" in refused.json()["detail"]
    pods = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    refused = client.post(pods, make_pod("p2"), content_type="application/json")
    assert (refused.status_code, refused.json()["kind"]) == (403, "Status")
    assert Cluster.objects.get(pk=cluster.pk).next_seq == before
    assert Pod.objects.filter(cluster=cluster).count() == 1


def test_kubectl_is_told_that_a_token_to_read_may_not_create(ada: User) -> None:
    cluster = cluster_of(ada)
    path = f"/k8s/{cluster.public_id}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for scope, wanted in (("read", False), ("write", True)):
        body = {
            "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "default"}}
        }
        answer = bearer(ada, scope=scope).post(path, body, content_type="application/json")
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
