"""Discovery, objects, lists, selectors and tables."""

import doctest
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from playground.clusters import kinds
from playground.clusters.drive.runs import request_run
from playground.clusters.kinds import Kind
from playground.clusters.models import Cluster, Node
from playground.clusters.objects.apply import apply_documents
from playground.kube_api import cells, tables
from playground.kube_api.metrics import with_metrics
from scheduler_core.schema.tables import table_of
from tests.clusters.builders import make_node, make_pod
from tests.kube_api.conftest import PODS, SERVED, TABLE, Kube, Work
from tests.tables import table


def names(answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def test_discovery_names_every_kind_of_the_table(kube: Kube) -> None:
    found = {("v1", r["kind"]) for r in kube.get("/api/v1").json()["resources"] if "/" not in r["name"]}
    for group in kube.get("/apis").json()["groups"]:
        assert kube.get(f"/apis/{group['name']}").json()["name"] == group["name"]
        for version in (each["groupVersion"] for each in group["versions"]):
            listed = kube.get(f"/apis/{version}").json()
            found |= {(version, r["kind"]) for r in listed["resources"] if "/" not in r["name"]}
    assert found == {kind.key for kind in with_metrics(SERVED).served}


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_says_the_same_in_one_answer(kube: Kube, version: str) -> None:
    accept = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList,application/json"
    found = set()
    for path in ("/api", "/apis"):
        answer = kube.get(path, accept=accept)
        assert answer["Content-Type"].endswith("as=APIGroupDiscoveryList")
        for group in answer.json()["items"]:
            for listed in group["versions"]:
                found |= {r["responseKind"]["kind"] for r in listed["resources"]}
    assert found == {kind.kind for kind in with_metrics(SERVED).served}


def test_kinds_of_one_version_are_in_the_order_of_their_names(kube: Kube) -> None:
    """`kubectl get all` prints pods before services for it."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    for path in ("/api/v1", "/apis/apps/v1", "/apis/storage.k8s.io/v1"):
        found = [r["name"] for r in kube.get(path).json()["resources"] if "/" not in r["name"]]
        assert found == sorted(found)
    found = [
        r["resource"] for r in kube.get("/api", accept=accept).json()["items"][0]["versions"][0]["resources"]
    ]
    assert found == sorted(found)


def test_pods_have_their_subresources(kube: Kube) -> None:
    resources = {r["name"]: r for r in kube.get("/api/v1").json()["resources"]}
    assert {"pods/binding", "pods/eviction", "pods/status"} <= set(resources)
    assert resources["pods/eviction"]["group"] == "policy"


@pytest.mark.parametrize("path", ["/version", "/version/", "/version?timeout=5s"])
def test_version_is_the_emulated_one(kube: Kube, path: str) -> None:
    version = kube.get(path).json()
    assert version["gitVersion"] == "v1.34.1"
    assert len(version) == 9


@pytest.mark.parametrize("path", ["", "/", "/healthz", "/readyz", "/openapi/v2", "/api/", "/apis/"])
def test_the_edges_answer(kube: Kube, path: str) -> None:
    assert kube.get(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/foos",
        "/api/v2/pods",
        "/apis/example.com/v1/things",
        "/apis/apps/v1beta1/deployments",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/p1",
        f"{PODS}/p1/portal",
        "/nothing",
    ],
)
def test_what_is_not_known_is_answered_as_by_a_server_that_does_not_know_it(kube: Kube, path: str) -> None:
    answer = kube.get(path)
    assert answer.status_code == 404
    status = answer.json()
    assert (status["kind"], status["status"], status["reason"], status["code"]) == (
        "Status",
        "Failure",
        "NotFound",
        404,
    )


def test_an_object_is_its_manifest_with_its_resource_version(kube: Kube, cluster: Cluster) -> None:
    pod = kube.get(f"{PODS}/p1").json()
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert 0 < int(pod["metadata"]["resourceVersion"]) <= cluster.last_seq
    missing = kube.get(f"{PODS}/nope")
    assert missing.json()["message"] == 'pods "nope" not found'
    assert missing.json()["details"] == {"name": "nope", "kind": "pods"}


def test_a_list_has_its_kind_and_version(kube: Kube, cluster: Cluster) -> None:
    listed = kube.get("/api/v1/nodes").json()
    assert (listed["kind"], listed["apiVersion"]) == ("NodeList", "v1")
    assert listed["metadata"]["resourceVersion"] == str(cluster.last_seq)
    assert kube.get("/apis/apps/v1/deployments").json()["items"] == []


@pytest.mark.dialect
def test_a_long_list_comes_in_pages(kube: Kube, cluster: Cluster) -> None:
    apply_documents(
        cluster=cluster,
        objects=[make_pod(f"q{i}", namespace=ns) for i in range(3) for ns in ("default", "other")],
    )
    seen, token = [], ""
    while True:
        page = kube.get(f"/api/v1/pods?limit=2&continue={token}").json()
        assert len(page["items"]) <= 2
        seen += [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in page["items"]]
        assert page["metadata"].get("remainingItemCount") == (7 - len(seen) or None)
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert len(seen) == len(set(seen)) == 7
    assert kube.get("/api/v1/pods?limit=2&continue=xxx").status_code == 400
    for selector in ("labelSelector=!nothing", "fieldSelector=status.phase!=Failed"):
        metadata = kube.get(f"{PODS}?limit=2&{selector}").json()["metadata"]
        assert metadata["continue"] and "remainingItemCount" not in metadata


@pytest.mark.parametrize(
    ("selector", "found"),
    table(__file__, "label_selectors"),
)
@pytest.mark.dialect
def test_label_selectors(kube: Kube, cluster: Cluster, selector: str, found: list[str]) -> None:
    labelled = {
        "a": {"app": "web", "tier": "front", "size": "2"},
        "b": {"app": "web", "size": "10"},
        "c": {"app": "db"},
    }
    for name, labels in labelled.items():
        pod = make_pod(name)
        pod["metadata"]["labels"] = labels
        apply_documents(cluster=cluster, objects=[pod])
    answer = kube.client.get(f"{kube.prefix}{PODS}", {"labelSelector": selector})
    assert names(answer) == found


@pytest.mark.parametrize(
    ("selector", "found"),
    table(__file__, "field_selectors"),
)
@pytest.mark.dialect
def test_field_selectors(kube: Kube, cluster: Cluster, selector: str, found: list[str]) -> None:
    apply_documents(cluster=cluster, objects=[make_pod("here", nodeName="n1")])
    answer = kube.client.get(f"{kube.prefix}/api/v1/pods", {"fieldSelector": selector})
    assert names(answer) == found


@pytest.mark.parametrize(
    ("query", "said"),
    table(__file__, "a_query_that_cannot_be_read_is_a_bad_request"),
)
def test_a_query_that_cannot_be_read_is_a_bad_request(kube: Kube, query: str, said: str) -> None:
    answer = kube.client.get(f"{kube.prefix}{PODS}?{query}")
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
    assert answer.json()["message"] == said or not said


def test_fields_of_other_kinds_are_selected_by(kube: Kube) -> None:
    [service] = kube.get("/api/v1/services?fieldSelector=spec.clusterIP=10.96.0.1").json()["items"]
    assert service["metadata"]["name"] == "kubernetes"
    assert kube.get("/api/v1/services?fieldSelector=spec.type!=ClusterIP").json()["items"] == []
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    assert kube.get(f"{slices}?fieldSelector=spec.nodeName=n1").status_code == 200
    said = kube.get("/apis/apps/v1/deployments?fieldSelector=spec.replicas=1").json()["message"]
    known = '"metadata.name", "metadata.namespace"'
    assert said == f'"spec.replicas" is not a known field selector: only {known}'


def test_tables_have_the_columns_kubectl_prints(kube: Kube, cluster: Cluster, visit: Work) -> None:
    request_run(cluster=cluster, until="idle")
    visit(cluster)
    request_run(cluster=cluster, until="5m")
    visit(cluster)
    table = kube.get(PODS, accept=TABLE).json()
    assert table["kind"] == "Table"
    shown = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert shown == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:5] == ["p1", "1/1", "Running", "0", "5m"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    one = kube.get("/api/v1/nodes/n1", accept=TABLE).json()
    assert one["rows"][0]["cells"][:5] == ["n1", "Ready", "<none>", "5m", "v1.34.1"]


def test_metadata_alone_can_be_asked_for(kube: Kube) -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = kube.get("/api/v1/nodes", accept=accept).json()
    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


def test_a_list_of_nodes_costs_a_fixed_number_of_queries(
    kube: Kube, cluster: Cluster, django_assert_max_num_queries
) -> None:
    apply_documents(cluster=cluster, objects=[make_node(f"m{i}") for i in range(50)])
    with django_assert_max_num_queries(2):
        kube.get("/api/v1/nodes?limit=500", accept=TABLE)


def test_a_node_that_was_only_written_down_is_ready_to_clients_and_stays_as_written(
    kube: Kube, cluster: Cluster
) -> None:
    node = kube.get("/api/v1/nodes/n1").json()
    ready = next(item for item in node["status"]["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", node["metadata"]["creationTimestamp"])
    row = kube.get("/api/v1/nodes/n1", Accept=TABLE).json()["rows"][0]["cells"]
    assert row[1:3] == ["Ready", "<none>"]
    assert "conditions" not in Node.objects.get(cluster=cluster, name="n1").manifest["status"]
    sick = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}
    kube.patch("/api/v1/nodes/n1/status", sick)
    assert kube.get("/api/v1/nodes/n1", Accept=TABLE).json()["rows"][0]["cells"][1] == "NotReady"
    listed = kube.get("/api/v1/nodes").json()["items"]
    assert [item["status"]["conditions"][-1]["status"] for item in listed] == ["False", "True"]


def test_an_old_kubectl_reads_a_budget_it_describes_and_nothing_else_in_the_version_of_then(
    kube: Kube, cluster: Cluster
) -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {}}
    apply_documents(cluster=cluster, objects=[budget])
    path = "/apis/policy/{}/namespaces/default/poddisruptionbudgets"
    then, now = path.format("v1beta1"), kube.get(f"{path.format('v1')}/b").json()
    assert kube.get(f"{then}/b").json() == now | {"apiVersion": "policy/v1beta1"}
    assert kube.get(f"{then}/b", accept=TABLE).json()["kind"] == "Table"
    answers = (
        kube.get(then),
        kube.post(then, budget),
        kube.delete(f"{then}/b"),
        kube.get(f"{then}/b/status"),
    )
    assert {answer.status_code for answer in answers} == {404}


# ---- The tables kubectl prints, of every kind: as recorded, and those of a name alone


DATA = Path(__file__).parent / "data"
OBJECTS = table_of((DATA / "printed_objects.yaml").read_text())
RECORDED = json.loads((DATA / "printed_tables.json").read_text())
NOW_NS = 1_768_000_000_000_000_000
KINDS = {kind.row_kind: kind for kind in kinds.KINDS}


def _kind(name: str) -> Kind:
    found = KINDS.get(name) or kinds.by_resource("v1", "componentstatuses")
    assert found is not None and found.row_kind == name
    return found


def test_every_kind_is_recorded() -> None:
    assert set(RECORDED) == {*KINDS, "ComponentStatus"} >= set(OBJECTS)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_kind_prints_its_recorded_columns(name: str) -> None:
    """The first row is of an object with nothing but a name."""
    kind = _kind(name)
    objects = [{"metadata": {"name": "bare"}}, *OBJECTS.get(name, ())]
    made = tables.table(
        kind, [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in objects], NOW_NS
    )
    columns = [
        " ".join([each["name"], each["type"], each["format"], str(each["priority"])])
        for each in made["columnDefinitions"]
    ]
    assert columns == RECORDED[name]["columns"]
    assert [row["cells"] for row in made["rows"]] == RECORDED[name]["rows"]


def test_ages_are_written_as_kubectl_writes_them() -> None:
    assert doctest.testmod(cells).attempted and not doctest.testmod(cells).failed


# ---- What a list or a watch may ask of versions and pages, in a real API server's words, and how answers are packed


FORBIDDEN = "Forbidden: resourceVersionMatch is forbidden"


@pytest.mark.parametrize(
    ("query", "said"),
    table(__file__, "a_match_of_versions_is_validated_as_upstream"),
)
def test_a_match_of_versions_is_validated_as_upstream(kube: Kube, query: str, said: str) -> None:
    refused = kube.get(f"{PODS}?{query}")
    assert refused.status_code == 422
    body = refused.json()
    assert body["reason"] == "Invalid"
    assert body["message"] == f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {said}'
    assert body["details"]["causes"][0]["field"] == "resourceVersionMatch"


def test_initial_events_are_of_watches_and_several_faults_are_said_together(kube: Kube) -> None:
    said = kube.get(f"{PODS}?sendInitialEvents=true").json()["message"]
    assert said.endswith("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")
    said = kube.get(f"{PODS}?resourceVersionMatch=x").json()["message"]
    assert "is invalid: [resourceVersionMatch: Forbidden" in said and said.endswith('"NotOlderThan", ""]')
    watched = f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    assert kube.get(watched).status_code == 200
    version = kube.get(PODS).json()["metadata"]["resourceVersion"]
    for match in ("Exact", "NotOlderThan"):
        assert kube.get(f"{PODS}?resourceVersionMatch={match}&resourceVersion={version}").status_code == 200


def test_answers_are_packed_for_who_takes_that_and_streams_are_not(client: Client, cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[make_node(f"n{number}") for number in range(30)])
    takes: dict[str, Any] = {"HTTP_ACCEPT_ENCODING": "gzip"}
    for path in (
        f"/k8s/{cluster.public_id}/api/v1/nodes",
        f"/api/v1/clusters/{cluster.public_id}/nodes/",
        f"/c/{cluster.public_id}/",
    ):
        plain, packed = client.get(path), client.get(path, **takes)
        assert "Content-Encoding" not in plain and packed["Content-Encoding"] == "gzip", path
        assert len(packed.content) < len(plain.content) / 2
        assert "Accept-Encoding" in packed["Vary"]
        if path.startswith("/k8s/"):
            assert gzip.decompress(packed.content) == plain.content
        elif "ETag" in packed:
            again = client.get(path, HTTP_IF_NONE_MATCH=packed["ETag"], **takes)
            assert again.status_code == 304
    streamed = client.get(f"/api/v1/clusters/{cluster.public_id}/events", **takes)
    assert streamed.streaming and "Content-Encoding" not in streamed
    here = f"/api/v1/clusters/{cluster.public_id}/"
    tag = client.get(here)["ETag"]
    body = {"name": "renamed"}
    weak = client.patch(
        here, body, content_type="application/json", HTTP_IF_MATCH=f"W/{tag.removeprefix('W/')}"
    )
    assert weak.status_code == 200


def test_a_wrong_word_in_rest_lists_the_right_ones(client: Client, cluster: Cluster) -> None:
    path = f"/api/v1/clusters/{cluster.public_id}/clock/"
    refused = client.put(path, {"mode": "2x"}, content_type="application/json")
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith('mode: "2x" is none of paused, ')
