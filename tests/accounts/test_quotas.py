"""What one person may have: refused with the limit's name on every surface that makes something."""

import base64
import hashlib
import threading
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from playground.accounts import teams
from playground.accounts.models import User
from playground.clusters.errors import QuotaExceeded
from playground.clusters.lifecycle import clone_cluster, create_cluster, delete_cluster, reset_cluster
from playground.clusters.log import quotas
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from playground.clusters.packed import pack
from playground.scenarios.models import Scenario
from playground.scenarios.services.comparing import request_comparison
from playground.scenarios.services.forking import fork
from playground.scenarios.services.shares import delete_share, share
from tests.accounts.world import client_of
from tests.clusters.builders import make_node, make_pod
from tests.scenarios.documents import small_text


def test_no_surface_makes_one_cluster_too_many(ada: User, settings: Any) -> None:
    team = teams.create_team(name="platform", owner=ada)
    scenario = share(document=small_text(), owner=ada).scenario
    one = create_cluster(name="one", owner=ada)
    create_cluster(name="of the team", owner=ada, team=team)
    settings.PLAYGROUND_MAX_CLUSTERS = 2
    client = client_of(ada)
    for path, body in (
        ("/api/v1/clusters/", {"name": "x"}),
        ("/api/v1/clusters/", {"name": "x", "team": "platform"}),
        ("/api/v1/clusters/", {"name": "x", "demo": True}),
        (f"/api/v1/clusters/{one.public_id}/clone", {}),
    ):
        refused = client.post(path, body, content_type="application/json")
        assert refused.status_code == 403, path
        said = refused.json()["detail"]
        assert "one person may have 2 (PLAYGROUND_MAX_CLUSTERS)" in said, said
    yaml = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
    for path, form in (
        ("/new/", {"name": "x"}),
        ("/new/import/", {"cluster_name": "x", "text": yaml}),
        (f"/c/{one.public_id}/cluster/clone/", {"name": "x"}),
        (f"/s/{scenario.public_id}/fork/", {}),
        (f"/s/{scenario.public_id}/branch/", {"cycle": "1"}),
    ):
        answer = client.post(path, form, follow=True)
        assert "PLAYGROUND_MAX_CLUSTERS" in answer.content.decode(), path
    assert Cluster.objects.count() == 2
    for make in (
        lambda: fork(scenario=scenario, owner=ada),
        lambda: clone_cluster(cluster=one, name="x", owner=ada),
    ):
        with pytest.raises(QuotaExceeded):
            make()
    # Another's quota is theirs; what is deleted makes room.
    create_cluster(name="x", owner=User.objects.create_user("bob"))
    delete_cluster(cluster=one, by=ada)
    create_cluster(name="x", owner=ada)


def test_shares_are_bounded(ada: User, settings: Any) -> None:
    settings.PLAYGROUND_MAX_SHARES = 1
    first = share(document=small_text(), owner=ada).scenario
    assert share(document=small_text(), owner=ada).scenario == first
    client = client_of(ada)
    refused = client.post("/api/v1/scenarios/", small_text(seed=2), content_type="application/yaml")
    assert refused.status_code == 403
    assert "one person may have 1 (PLAYGROUND_MAX_SHARES)" in refused.json()["detail"]
    page = client.post("/s/new/", {"text": small_text(seed=2)})
    assert (page.status_code, b"PLAYGROUND_MAX_SHARES" in page.content) == (403, True)
    assert Scenario.objects.count() == 1
    delete_share(scenario=first, user=ada)
    share(document=small_text(seed=2), owner=ada)


@pytest.mark.dialect
def test_bytes_are_bounded_on_every_surface_and_deleting_always_works(ada: User, settings: Any) -> None:
    cluster = create_cluster(name="x", owner=ada)
    apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("p1")])
    stored = quotas.bytes_of(ada)
    assert stored > 3000
    settings.PLAYGROUND_MAX_STORED_BYTES = stored + 100
    client = client_of(ada)
    pods = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    kubectl = client.post(pods, make_pod("p2"), content_type="application/json")
    assert (kubectl.status_code, kubectl.json()["reason"]) == (403, "Forbidden")
    assert "(PLAYGROUND_MAX_STORED_MB)" in kubectl.json()["message"]
    here = f"/api/v1/clusters/{cluster.public_id}"
    settings.PLAYGROUND_MAX_STORED_BYTES = stored - 100
    for path, body in (
        (f"{here}/apply", make_pod("p2")),
        (f"{here}/run", {}),
        (f"{here}/clone", {}),
        ("/api/v1/clusters/", {"name": "y"}),
    ):
        refused = client.post(path, body, content_type="application/json")
        assert refused.status_code == 403, (path, refused.content)
        assert "(PLAYGROUND_MAX_STORED_MB)" in refused.json()["detail"]
    running = client.put(f"{here}/clock/", {"mode": "realtime"}, content_type="application/json")
    assert running.status_code == 403
    shared = client.post("/api/v1/scenarios/", small_text(), content_type="application/yaml")
    assert shared.status_code == 403
    side = {"kind": "cluster", "id": cluster.public_id, "cycle": None}
    with pytest.raises(QuotaExceeded):
        request_comparison(a=side, b=side, owner=ada)
    assert not Scenario.objects.exists()
    assert Cluster.objects.count() == 1
    page = client.post(f"/c/{cluster.public_id}/run/", {"until": "idle"}, follow=True)
    assert b"PLAYGROUND_MAX_STORED_MB" in page.content
    # What makes less is never refused.
    assert client.delete(f"{pods}/p1?gracePeriodSeconds=0").status_code == 200
    reset_cluster(cluster=cluster)
    assert client.delete(f"{here}/").status_code == 204
    assert quotas.bytes_of(ada) == 0


def test_the_figure_is_measured_and_grows_in_between(ada: User) -> None:
    cluster = create_cluster(name="x", owner=ada)
    apply_documents(cluster=cluster, objects=[make_node(f"n{n}") for n in range(20)])
    assert quotas.measure_changed() == 1
    assert quotas.measure_changed() == 0
    measured = quotas.bytes_of(ada)
    payload = sum(len(pack(row.payload)) for row in cluster.log.all())
    assert payload < measured < 10 * payload
    # No packing makes these bytes fewer, only the text they are written as.
    noise = b"".join(hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(2400))
    text = base64.b64encode(noise).decode()
    big = make_node("big") | {"metadata": {"name": "big", "annotations": {"x": text}}}
    apply_documents(cluster=cluster, objects=[big])
    # Known at once, in the log and as the object, and about right before it is measured again.
    estimate = quotas.bytes_of(ada)
    assert measured + 2 * len(noise) < estimate
    assert quotas.measure_changed() == 1
    assert quotas.bytes_of(ada) == pytest.approx(estimate, rel=0.2)
    # What packs well is charged as what it is packed to.
    even = make_node("even") | {"metadata": {"name": "even", "annotations": {"x": "x" * 100_000}}}
    before = quotas.bytes_of(ada)
    apply_documents(cluster=cluster, objects=[even])
    assert before < quotas.bytes_of(ada) < before + 20_000
    shared = share(document=small_text(), owner=ada).scenario
    ada.refresh_from_db()
    assert ada.shared_bytes > shared.n_bytes > 0


def test_what_counts_is_on_the_account_page_and_in_the_api(ada: User) -> None:
    create_cluster(name="x", owner=ada)
    client = client_of(ada)
    found = client.get("/api/v1/quota").json()
    assert found["clusters"] == {"used": 1, "limit": 100}
    assert found["storedBytes"]["used"] > 0
    assert b"1 of 100" in client.get("/account/").content


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_two_at_the_limit_are_not_both_let_in(settings: Any) -> None:
    settings.PLAYGROUND_MAX_CLUSTERS = 3
    ada = User.objects.create_user("ada")
    came: list[str] = []

    def make() -> None:
        try:
            create_cluster(name="x", owner=ada)
            came.append("made")
        except QuotaExceeded:
            came.append("refused")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(came) == ["made"] * 3 + ["refused"] * 5


def test_embedded_mode_has_no_quotas(settings: Any) -> None:
    settings.EMBEDDED = True
    settings.PLAYGROUND_MAX_CLUSTERS = settings.PLAYGROUND_MAX_STORED_BYTES = 0
    cluster = create_cluster(name="x")
    apply_documents(cluster=cluster, objects=[make_node("n1")])
    assert Client().get("/api/v1/quota").status_code == 404
