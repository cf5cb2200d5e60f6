"""Nodes, pods, PriorityClasses and PodDisruptionBudgets one by one: list, create, read, patch, delete."""

from typing import Any

import pytest

from playground.clusters.models import Cluster, LogEntry, MockExtender
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import bind_pod, patch_object
from tests.api.conftest import Api
from tests.clusters.builders import make_node, make_pod
from tests.tables import table

CLASS = table(__file__, "CLASS")
BUDGET = table(__file__, "BUDGET")
KINDS = {
    "nodes": (make_node("fresh"), "fresh", {"spec": {"unschedulable": True}}),
    "pods": (make_pod("fresh"), "default/fresh", {"metadata": {"labels": {"a": "b"}}}),
    "priorityclasses": (CLASS, "gold", {"description": "Orders"}),
    "poddisruptionbudgets": (
        BUDGET,
        "default/web",
        {"spec": {"minAvailable": None, "maxUnavailable": "20%"}},
    ),
}
MERGE = "application/merge-patch+json"


def at(cluster: Cluster, *parts: str) -> str:
    return "/".join([f"/clusters/{cluster.public_id}", *parts, ""])


@pytest.mark.parametrize("plural", KINDS)
def test_an_object_is_made_read_changed_and_deleted_as_over_the_kubernetes_api(
    api: Api, cluster: Cluster, plural: str
) -> None:
    manifest, place, patch = KINDS[plural]
    made = api.post(at(cluster, plural), {key: manifest[key] for key in manifest if key != "kind"})
    assert made.status_code == 201, made.content
    assert made["Location"] == "/api/v1" + at(cluster, plural, place)
    read = api.get(at(cluster, plural, place))
    assert read.json() == made.json()
    assert read["ETag"] == made["ETag"] == f'"{made.json()["metadata"]["resourceVersion"]}"'
    assert api.get(at(cluster, plural, place), if_none_match=read["ETag"]).status_code == 304
    changed = api.send("PATCH", at(cluster, plural, place), patch, media=MERGE, if_match=read["ETag"])
    assert changed.status_code == 200, changed.content
    assert changed.json() == api.get(at(cluster, plural, place)).json() != read.json()
    assert place in [
        "/".join(filter(None, (item["metadata"].get("namespace"), item["metadata"]["name"])))
        for item in api.get(at(cluster, plural)).json()["items"]
    ]
    gone = api.send("DELETE", at(cluster, plural, place))
    assert (gone.status_code, gone.json()["metadata"]["name"]) == (200, manifest["metadata"]["name"])
    missing = api.get(at(cluster, plural, place))
    assert (missing.status_code, missing.json()["reason"]) == (404, "NotFound")
    # The same log every surface writes to.
    last = LogEntry.objects.filter(cluster=cluster).latest("seq")
    assert (last.kind, last.object_name) == (LogEntry.Kind.DELETE, manifest["metadata"]["name"])


@pytest.mark.dialect
def test_lists_come_in_pages_and_are_filtered(api: Api, cluster: Cluster) -> None:
    apply_documents(
        cluster=cluster,
        objects=[
            make_pod(f"web-{i}") | {"metadata": {"name": f"web-{i}", "labels": {"app": "web"}}}
            for i in range(5)
        ],
    )
    path, names = f"{at(cluster, 'pods')}?limit=2&labelSelector=app%3Dweb", []
    while path:
        page = api.get(path.removeprefix("/api/v1")).json()
        assert len(page["items"]) <= 2
        names += [item["metadata"]["name"] for item in page["items"]]
        path = page["next"]
    assert names == [f"web-{i}" for i in range(5)]
    only = api.get(f"{at(cluster, 'pods')}?fieldSelector=metadata.name%3Dp1").json()
    assert [item["metadata"]["name"] for item in only["items"]] == ["p1"]
    assert api.get(f"{at(cluster, 'pods')}?namespace=elsewhere").json() == {"items": [], "next": None}
    for wrong in ("limit=0", "labelSelector=((", "fieldSelector=spec.nonsense%3D1", "after=p1"):
        refused = api.get(f"{at(cluster, 'pods')}?{wrong}")
        assert (refused.status_code, refused.json()["reason"]) == (400, "Invalid"), wrong
        assert refused.json()["field"] == wrong.partition("=")[0]


@pytest.mark.parametrize("n_pods", [3, 60])
@pytest.mark.dialect
def test_a_page_costs_the_same_queries_however_many_objects_there_are(
    api: Api, cluster: Cluster, n_pods: int, django_assert_num_queries: Any
) -> None:
    apply_documents(cluster=cluster, objects=[make_pod(f"x-{i:03}") for i in range(n_pods)])
    api.get(at(cluster, "pods"))
    with django_assert_num_queries(2):
        api.get(at(cluster, "pods"))


def test_who_saw_an_older_version_changes_nothing(api: Api, cluster: Cluster) -> None:
    path = at(cluster, "nodes", "n1")
    seen = api.get(path)
    assert (
        api.send("PATCH", path, {"spec": {"unschedulable": True}}, if_match=seen["ETag"]).status_code == 200
    )
    newest = api.get(path).json()
    for method, body in (("PATCH", {"spec": {"unschedulable": False}}), ("DELETE", None)):
        late = api.send(method, path, body, if_match=seen["ETag"])
        assert (late.status_code, late.json()["reason"]) == (412, "PreconditionFailed")
    named = {
        "metadata": {"resourceVersion": seen.json()["metadata"]["resourceVersion"]},
        "spec": {"taints": []},
    }
    conflict = api.send("PATCH", path, named)
    assert (conflict.status_code, conflict.json()["reason"]) == (409, "Conflict")
    assert "the object has been modified" in conflict.json()["detail"]
    assert api.get(path).json() == newest
    assert api.send("PATCH", path, {"spec": {"unschedulable": None}}, if_match="*").status_code == 200


@pytest.mark.dialect
def test_a_version_that_moves_on_between_look_and_write_is_412_too(
    api: Api, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at(cluster, "nodes", "n1")
    seen = api.get(path)
    inner = patch_object

    def overtaken(**how: Any) -> Any:
        inner(**how | {"patch": {"spec": {"unschedulable": True}}, "resource_version": None})
        return inner(**how)

    monkeypatch.setattr("playground.clusters.objects.write.patch_object", overtaken)
    late = api.send("PATCH", path, {"spec": {"taints": []}}, if_match=seen["ETag"])
    assert (late.status_code, late.json()["reason"]) == (412, "PreconditionFailed")
    # Without If-Match a patch is about the newest version, whatever it is.
    assert api.send("PATCH", path, {"metadata": {"labels": {"a": "b"}}}).status_code == 200
    assert api.get(path).json()["spec"]["unschedulable"] is True


@pytest.mark.parametrize(
    ("plural", "body", "field"),
    table(__file__, "what_is_wrong_is_named_and_nothing_is_kept"),
)
def test_what_is_wrong_is_named_and_nothing_is_kept(
    api: Api, cluster: Cluster, plural: str, body: dict[str, Any], field: str
) -> None:
    seq = cluster.last_seq
    answer = api.post(at(cluster, plural), body)
    assert (answer.status_code, answer.json()["reason"]) == (400, "Invalid"), answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["field"] == field
    cluster.refresh_from_db()
    assert cluster.last_seq == seq


def test_refusals_have_the_one_shape(api: Api, cluster: Cluster) -> None:
    again = api.post(at(cluster, "nodes"), make_node("n1"))
    assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
    renamed = api.send("PATCH", at(cluster, "nodes", "n1"), {"metadata": {"name": "n9"}})
    assert (renamed.status_code, renamed.json()["field"]) == (400, "metadata.name")
    nowhere = api.post(at(cluster, "pods"), make_pod("x", namespace="nowhere"))
    assert (nowhere.status_code, nowhere.json()["kind"]) == (404, "Namespace")
    system = api.send("DELETE", at(cluster, "priorityclasses", "system-node-critical"))
    assert (system.status_code, system.json()["reason"]) == (403, "Forbidden")
    media = api.send("PATCH", at(cluster, "nodes", "n1"), "[]", media="application/json-patch+json")
    assert (media.status_code, media.json()["reason"]) == (415, "UnsupportedMediaType")
    assert api.post(at(cluster, "nodes")).status_code == 400


def test_manifests_may_be_yaml(api: Api, cluster: Cluster) -> None:
    made = api.yaml(at(cluster, "priorityclasses"), "metadata: {name: silver}\nvalue: 5\n")
    assert (made.status_code, made.json()["value"]) == (201, 5)


def test_a_pod_on_a_node_terminates_for_its_grace_period(api: Api, cluster: Cluster) -> None:
    bind_pod(cluster=cluster, namespace="default", name="p1", node="n1")
    path = at(cluster, "pods", "default/p1")
    last = api.send("DELETE", path)
    assert last.json()["metadata"]["deletionGracePeriodSeconds"] == 30
    assert api.get(path).json()["metadata"]["deletionTimestamp"]
    assert api.send("DELETE", f"{path}?gracePeriodSeconds=0").status_code == 200
    assert api.get(path).status_code == 404
    # What happened to it is told still.
    assert api.get(f"{path}story").json()["exists"] is False


# ---- Mock extenders by REST: made, read, given other rules, deleted, and asked by the scheduler


DENY = {"rules": [{"deny": {"nodes": ["n1"], "reason": "no licence"}}], "name": "licences"}


@pytest.fixture
def here(cluster: Cluster) -> str:
    return f"/clusters/{cluster.public_id}/mock-extenders/"


def test_a_mock_extender_lives_and_dies(api: Api, here: str) -> None:
    made = api.post(here, DENY)
    body = made.json()
    assert made.status_code == 201
    assert (body["name"], body["rules"], body["calls"]) == ("licences", DENY["rules"], {})
    assert made["Location"] == body["url"]
    one = body["url"].removeprefix("/api/v1")
    assert api.get(here).json() == {"items": [body]}
    # It answers as extenders do.
    asked = api.client.post(
        body["urlPrefix"].removeprefix("http://127.0.0.1:8000") + "/filter",
        {"pod": {"metadata": {"name": "p"}}, "nodenames": ["n1", "n2"]},
        content_type="application/json",
    )
    assert asked.json()["FailedNodes"] == {"n1": "no licence"}
    assert api.get(one).json()["calls"] == {"filter": 1}
    changed = api.send("PUT", one, {"rules": []})
    assert (changed.status_code, changed.json()["rules"], changed.json()["calls"]) == (200, [], {})
    assert changed.json()["urlPrefix"] == body["urlPrefix"]
    assert api.send("DELETE", one).status_code == 204
    assert api.get(one).status_code == 404
    assert api.get(here).json() == {"items": []}


@pytest.mark.parametrize(
    ("body", "field"),
    table(__file__, "rules_that_mean_nothing_are_refused_with_their_path"),
)
def test_rules_that_mean_nothing_are_refused_with_their_path(
    api: Api, here: str, body: dict[str, Any], field: str
) -> None:
    kept = api.post(here, DENY).json()["url"].removeprefix("/api/v1")
    for answer in (api.post(here, body), api.send("PUT", kept, body)):
        assert (answer.status_code, answer.json()["reason"]) == (400, "Invalid")
        assert answer.json()["field"] == field
    assert MockExtender.objects.count() == 1
    assert api.get(kept).json()["rules"] == DENY["rules"]


def test_a_cluster_has_twenty_at_most(api: Api, here: str) -> None:
    for _ in range(20):
        assert api.post(here, {"rules": []}).status_code == 201
    refused = api.post(here, {"rules": []})
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    assert "at most 20" in refused.json()["detail"]
