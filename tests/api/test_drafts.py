"""A dump is looked at, and then made a cluster of or discarded, over REST."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters import drafts
from playground.clusters.log.changes import written_by
from playground.clusters.models import Change, Cluster, Draft
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.real_dump import as_yaml

pytestmark = pytest.mark.django_db(transaction=True)

DUMP = as_yaml([make_node("n1", cpu="2"), make_pod("fits", cpu="1"), make_pod("huge", cpu="99")])


@pytest.fixture
def api(client: Client) -> Api:
    return Api(client)


def previewed(api: Api, text: str, query: str = "") -> Any:
    answer = api.yaml(f"/drafts/{query}", text)
    assert answer.status_code == 202, answer.content
    return answer.json()


@pytest.mark.parametrize("read_at_once", [2**20, 0])
def test_a_dump_is_previewed_and_committed(
    api: Api, work: Any, monkeypatch: pytest.MonkeyPatch, read_at_once: int
) -> None:
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", read_at_once)
    draft = previewed(api, DUMP, "?kubernetesRelease=1.35")
    path = draft["url"].removeprefix("/api/v1")
    assert draft["state"] == "queued" and (draft["preview"] is None) == (read_at_once == 0)
    early = api.post(f"{path}commit", {"name": "prod"})
    assert (early.status_code, early.json()["reason"]) == (409, "Conflict")
    work()
    draft = api.get(path).json()
    assert (draft["state"], draft["action"], draft["kubernetesRelease"]) == ("done", "preview", "1.35")
    kinds = {one["kind"]: one["count"] for one in draft["preview"]["kinds"]}
    assert (kinds["Node"], kinds["Pod"], draft["preview"]["facts"]["pending"]) == (1, 2, 2)
    told = draft["preview"]["decided"]["pods"]
    assert told["default/fits"]["node"] == "n1" and not told["default/huge"]["node"]
    assert told["default/huge"]["causes"] == [{"reason": "Insufficient cpu", "nodes": 1}]
    assert not Cluster.objects.exists()
    assert api.post(f"{path}commit", {"nam": "prod"}).status_code == 400
    committed = api.post(f"{path}commit", {"name": "prod"})
    assert committed.status_code == 202 and committed.json()["action"] == "import"
    assert api.post(f"{path}commit").status_code == 409
    work()
    draft = api.get(path).json()
    cluster = api.get(f"/clusters/{draft['cluster']}/").json()
    assert (cluster["name"], cluster["nodes"], cluster["pods"]) == ("prod", 1, 2)
    assert cluster["kubernetesRelease"] == "1.35" and draft["state"] == "done"
    assert api.post(f"{path}commit").status_code == 409 and Cluster.objects.count() == 1
    assert api.send("DELETE", path).status_code == 204
    assert api.get(f"/clusters/{draft['cluster']}/").status_code == 200


def test_what_nothing_is_to_be_decided_of_is_done_at_once_and_kept(api: Api, work: Any, wakes: Any) -> None:
    draft = previewed(api, as_yaml([make_node("n1")]))
    assert (draft["state"], draft["preview"]["decided"], wakes) == ("done", None, [])
    assert api.post(f"/drafts/{draft['id']}/commit").status_code == 202
    work()
    assert Cluster.objects.get().name == "imported"


def test_a_discarded_draft_makes_nothing(api: Api, work: Any) -> None:
    open_, done = previewed(api, DUMP), previewed(api, as_yaml([make_node("n1")]))
    api.post(f"/drafts/{done['id']}/commit")
    for draft in (open_, done):
        assert api.send("DELETE", f"/drafts/{draft['id']}/").status_code == 204
    work()
    assert not Cluster.objects.exists() and not Draft.objects.exists()
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "commit")):
        answer = api.send(method, f"/drafts/{open_['id']}/{path}")
        assert (answer.status_code, answer.json()["kind"]) == (404, "Draft")


def test_what_cannot_be_imported_is_told_by_place(
    api: Api, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = as_yaml([make_node("n1", cpu="sixty")])
    answer = api.yaml("/drafts/", bad)
    assert answer.status_code == 400 and answer["Content-Type"] == "application/problem+json"
    told = {name: answer.json()[name] for name in ("detail", "line", "field")}
    assert api.yaml("/drafts/?kubernetesRelease=1.2", DUMP).status_code == 400
    assert api.yaml("/drafts/?release=1.36", DUMP).status_code == 400
    assert not Draft.objects.exists()
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 0)
    draft = previewed(api, bad)
    work()
    draft = api.get(f"/drafts/{draft['id']}/").json()
    assert (draft["state"], draft["problem"], draft["preview"]) == ("failed", told["detail"], None)
    assert {name: draft["causes"][0][name] for name in told} == told
    assert api.post(f"/drafts/{draft['id']}/commit").status_code == 409


def test_of_a_preview_of_the_pages_only_the_answer_is_kept(api: Api, work: Any) -> None:
    draft = drafts.start_preview(text=DUMP)
    work()
    assert api.get(f"/drafts/{draft.public_id}/").json()["preview"]["decided"]
    refused = api.post(f"/drafts/{draft.public_id}/commit")
    assert refused.status_code == 409 and "post the text" in refused.json()["detail"]


def test_a_large_body_for_a_cluster_that_is_there_is_read_and_written_by_a_worker(
    api: Api, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster(make_node("n0"))
    path = f"/clusters/{cluster.public_id}/apply"
    told = {"kind": "Widget", "apiVersion": "example.org/v1", "metadata": {"name": "w"}}
    text = as_yaml([make_node("n1"), make_pod("late", cpu="1"), told])
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 100)
    assert api.send("POST", path, text.encode(), media="text/html").status_code == 415

    tried = api.yaml(f"{path}?dryRun=true", text)
    assert tried.status_code == 202 and tried["Location"] == tried.json()["url"]
    work()
    tried = api.get(tried["Location"].removeprefix("/api/v1")).json()
    assert (tried["state"], tried["action"], tried["into"]) == ("done", "preview", cluster.public_id)
    assert tried["preview"]["counts"]["create"] == 2 and cluster.nodes.count() == 1
    assert api.post(f"/drafts/{tried['id']}/commit").status_code == 409

    answer = api.yaml(path, text)
    draft = answer.json()
    assert (answer.status_code, draft["state"], draft["action"]) == (202, "queued", "import")
    assert cluster.nodes.count() == 1
    work()
    drafts.work_on(draft_id=Draft.objects.get(public_id=draft["id"]).pk)
    draft = api.get(f"/drafts/{draft['id']}/").json()
    assert (draft["state"], draft["cluster"], draft["preview"]["counts"]["create"]) == (
        "done",
        cluster.public_id,
        2,
    )
    assert draft["preview"]["ignored"]["changes"][0]["name"] == "Widget w"
    assert sorted(cluster.nodes.values_list("name", flat=True)) == ["n0", "n1"]


def test_a_large_body_that_is_wrong_or_not_wanted_any_more_changes_nothing(
    api: Api, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, gone = make_cluster(make_node("n0")), make_cluster()
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 10)

    def sent_to(of: Cluster, text: str) -> dict[str, Any]:
        answer = api.yaml(f"/clusters/{of.public_id}/apply", text)
        assert answer.status_code == 202, answer.content
        return answer.json()  # type: ignore[no-any-return]  # JSON is what it is

    wrong = sent_to(cluster, as_yaml([make_node("n1"), make_node("n2", cpu="sixty")]))
    unwanted = sent_to(cluster, as_yaml([make_node("n3")]))
    drafts.cancel_draft(public_id=unwanted["id"], owner=None)
    homeless = sent_to(gone, as_yaml([make_node("n4")]))
    gone.delete()
    work()
    found = [api.get(f"/drafts/{one['id']}/").json() for one in (wrong, unwanted, homeless)]
    assert [one["state"] for one in found] == ["failed", "cancelled", "failed"]
    assert "sixty" in found[0]["problem"] and found[0]["causes"][0]["line"]
    assert found[2]["problem"] == "the cluster was deleted meanwhile"
    assert cluster.nodes.count() == 1


def test_cancelled_while_it_is_written_nothing_is_kept(
    api: Api, work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster(make_node("n0"))
    draft = drafts.import_into(cluster=cluster, text=as_yaml([make_node("n1")]))
    read = drafts.read_posted

    def read_and_cancelled(*args: Any) -> Any:
        drafts.cancel_draft(public_id=draft.public_id, owner=None)
        return read(*args)

    monkeypatch.setattr(drafts, "read_posted", read_and_cancelled)
    work()
    draft.refresh_from_db()
    assert draft.state == "cancelled" and cluster.nodes.count() == 1


def test_what_a_worker_writes_is_a_change_of_the_one_who_asked(api: Api, work: Any) -> None:
    cluster = make_cluster(make_node("n0"))
    with written_by("stranger/1"):
        drafts.import_into(cluster=cluster, text=as_yaml([make_node("n1")]))
    work()
    change = Change.objects.filter(cluster=cluster).latest("pk")
    assert (change.program, "n1" in change.words) == ("stranger/1", True)
