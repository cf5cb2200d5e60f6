"""Create, replace, patch, apply, delete, bind, evict, scale."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import RequestFactory

from playground.clusters.drive.runs import request_run
from playground.clusters.kinds import by_key
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.apply import apply_documents
from playground.kube_api.requests import Target
from playground.kube_api.writing import _scaled
from tests.clusters.builders import make_pod
from tests.kube_api.conftest import PODS, TABLE, Kube, Work
from tests.manifests import budget, deployment, make_object
from tests.tables import table

DATA = Path(__file__).parent / "data"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def make_deployment(name: str = "web", replicas: int = 2, image: str = "web:1") -> dict[str, Any]:
    return deployment(name, replicas, containers=[{"name": "main", "image": image}])


def test_a_body_may_leave_out_what_the_path_says(kube: Kube) -> None:
    pod = make_pod("bare")
    del pod["apiVersion"], pod["kind"], pod["metadata"]["namespace"]
    answer = kube.send("POST", PODS, json.dumps(pod), media="application/json")
    assert answer.status_code == 201


def test_yaml_is_taken_too_and_a_name_is_made_from_a_prefix(kube: Kube) -> None:
    text = "metadata: {generateName: job-}\nspec: {containers: [{name: c, image: x}]}\n"
    created = kube.yaml(PODS, text).json()
    assert created["metadata"]["name"].startswith("job-")
    assert len(created["metadata"]["name"]) == 9


@pytest.mark.parametrize(
    ("path", "body", "code", "reason"),
    [
        (PODS, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}, 400, "BadRequest"),
        (PODS, {"metadata": {"name": "x", "namespace": "other"}, "spec": {}}, 400, "BadRequest"),
        (PODS, {"metadata": "x"}, 400, "BadRequest"),
        (PODS, None, 400, "BadRequest"),
        (PODS, "{", 400, "BadRequest"),
        (PODS, "[]", 400, "BadRequest"),
        (PODS, "[" * 99_999, 400, "BadRequest"),
        (PODS, {"metadata": {"name": "X_"}, "spec": {"containers": [{"name": "c"}]}}, 422, "Invalid"),
        (PODS, {"metadata": {"name": "x"}, "spec": {}}, 422, "Invalid"),
        ("/api/v1/namespaces/nope/pods", make_pod("x", namespace="nope"), 404, "NotFound"),
        ("/api/v1/namespaces/default/bindings/x", {"metadata": {"name": "x"}}, 404, "NotFound"),
        (f"{PODS}/p1", make_pod("p1"), 405, "MethodNotAllowed"),
        (f"{PODS}/p1/status", make_pod("p1"), 405, "MethodNotAllowed"),
    ],
)  # fmt: skip
def test_bad_posts_are_refused_with_a_status_and_leave_nothing(
    kube: Kube, path: str, body: Any, code: int, reason: str
) -> None:
    before = LogEntry.objects.count()
    answer = kube.send("POST", path, body, media="application/json")
    assert (answer.status_code, answer.json()["reason"]) == (code, reason), answer.json()
    assert answer.json()["kind"] == "Status"
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "image/png"])
def test_other_media_types_are_refused(kube: Kube, media: str) -> None:
    answer = kube.send("POST", PODS, "{}", media=media)
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")


def test_a_body_without_a_type_is_json_unless_a_web_page_sent_it(kube: Kube) -> None:
    def sent(**extra: str) -> Any:
        return kube.client.generic(
            "POST", kube.prefix + PODS, json.dumps(make_pod("typeless")), content_type="", **extra
        )

    assert sent(HTTP_ORIGIN="http://testserver", HTTP_HOST="testserver").status_code == 415
    assert sent().status_code == 201


def test_a_body_of_50_mb_is_too_large(kube: Kube) -> None:
    answer = kube.send("POST", PODS, b" " * 50_000_000, media="application/json")
    assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")


def test_a_replace_with_an_old_version_is_a_conflict(kube: Kube) -> None:
    pod = kube.get(f"{PODS}/p1").json()
    pod["metadata"]["labels"] = {"a": "1"}
    first = kube.put(f"{PODS}/p1", pod)
    assert first.status_code == 200
    assert int(first.json()["metadata"]["resourceVersion"]) > int(pod["metadata"]["resourceVersion"])
    late = kube.put(f"{PODS}/p1", pod)
    assert (late.status_code, late.json()["reason"]) == (409, "Conflict")
    assert kube.put(f"{PODS}/nope", make_pod("nope")).status_code == 404
    assert kube.put(f"{PODS}/p1", make_pod("other")).status_code == 400


def test_a_status_is_written_apart_from_the_rest(kube: Kube) -> None:
    pod = kube.get(f"{PODS}/p1").json()
    pod["status"] = {"phase": "Running"}
    pod["metadata"]["labels"] = {"not": "taken"}
    written = kube.put(f"{PODS}/p1/status", pod).json()
    assert written["status"]["phase"] == "Running"
    assert "labels" not in written["metadata"]
    patched = kube.patch(f"{PODS}/p1/status", {"status": {"nominatedNodeName": "n2"}}, "merge-patch+json")
    assert patched.json()["status"]["nominatedNodeName"] == "n2"


@pytest.mark.dialect
def test_the_three_patches(kube: Kube) -> None:
    kube.post(DEPLOYMENTS, make_deployment())
    path = f"{DEPLOYMENTS}/web"
    merged = kube.patch(path, {"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 5}}).json()
    assert (merged["spec"]["replicas"], merged["metadata"]["labels"]) == (5, {"a": "1"})
    containers = [{"name": "main", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "s:1"}]
    strategic = kube.patch(
        path,
        {"spec": {"template": {"spec": {"containers": containers}}}},
        "strategic-merge-patch+json",
    ).json()
    found = strategic["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in found] == [("main", "web:1"), ("side", "s:1")]
    operations = [
        {"op": "test", "path": "/spec/replicas", "value": 5},
        {"op": "replace", "path": "/spec/replicas", "value": 1},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]
    assert kube.patch(path, operations, "json-patch+json").json()["spec"]["replicas"] == 1
    failed = kube.patch(path, operations, "json-patch+json")
    assert (failed.status_code, failed.json()["reason"]) == (422, "Invalid")
    # Maps and lists of metadata that became empty are left out, as Go leaves them out.
    emptied = kube.patch(path, {"metadata": {"annotations": {}, "finalizers": []}}).json()["metadata"]
    assert not {"annotations", "finalizers", "labels"} & emptied.keys()
    assert kube.patch(path, {}, "json").status_code == 415
    assert kube.patch(path, [], "merge-patch+json").status_code == 400
    assert kube.patch(f"{DEPLOYMENTS}/nope", {}).status_code == 404
    assert kube.patch(path, {"metadata": {"resourceVersion": "1"}}).status_code == 409
    assert kube.patch(path, {"metadata": {"name": "other"}}).status_code == 400


def test_apply_creates_merges_and_gives_up(kube: Kube) -> None:
    path = f"{DEPLOYMENTS}/web"
    wanted = make_deployment()
    wanted["metadata"]["labels"] = {"kept": "1", "dropped": "1"}
    assert kube.apply(path, wanted).status_code == 201
    kube.patch(path, {"spec": {"replicas": 7}})
    conflict = kube.apply(path, wanted)
    assert (conflict.status_code, conflict.json()["reason"]) == (409, "Conflict")
    assert conflict.json()["details"]["causes"][0]["field"] == ".spec.replicas"
    del wanted["spec"]["replicas"], wanted["metadata"]["labels"]["dropped"]
    again = kube.apply(path, wanted)
    assert again.status_code == 200, again.json()
    assert again.json()["spec"]["replicas"] == 7
    assert again.json()["metadata"]["labels"] == {"kept": "1"}
    managers = {(e["manager"], e["operation"]) for e in again.json()["metadata"]["managedFields"]}
    assert ("tester", "Apply") in managers
    forced = kube.apply(path, make_deployment(replicas=3), "other", "&force=true")
    assert forced.json()["spec"]["replicas"] == 3
    assert kube.apply(path, wanted, "").status_code == 422


def test_a_dry_run_answers_and_keeps_nothing(kube: Kube) -> None:
    before = LogEntry.objects.count()
    made = kube.post(f"{PODS}?dryRun=All", make_pod("dry"))
    assert (made.status_code, made.json()["metadata"].get("resourceVersion")) == (201, None)
    live = kube.get(f"{PODS}/p1").json()["metadata"]["resourceVersion"]
    changed = kube.patch(f"{PODS}/p1?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
    assert changed.json()["metadata"]["labels"] == {"a": "b"}
    # No version is written, so that a diff finds none.
    applied = kube.apply(f"{PODS}/p1", make_pod("p1"), query="&dryRun=All")
    assert changed.json()["metadata"]["resourceVersion"] == live
    assert applied.json()["metadata"]["resourceVersion"] == live
    assert kube.delete(f"{PODS}/p1?dryRun=All").status_code == 200
    assert kube.delete(f"{PODS}/p1", {"dryRun": ["All"]}).status_code == 200
    assert kube.post(f"{PODS}?dryRun=Some", make_pod("dry")).status_code == 422
    assert LogEntry.objects.count() == before


def test_a_pod_on_a_node_terminates_for_its_grace_period(kube: Kube, cluster: Cluster, visit: Work) -> None:
    request_run(cluster=cluster, until="idle")
    visit(cluster)
    going = kube.delete(f"{PODS}/p1", {"gracePeriodSeconds": 20}).json()
    assert going["kind"] == "Pod"
    assert going["metadata"]["deletionGracePeriodSeconds"] == 20
    assert kube.get(PODS, accept=TABLE).json()["rows"][0]["cells"][2] == "Terminating"
    request_run(cluster=cluster, until="30s")
    visit(cluster)
    assert kube.get(f"{PODS}/p1").status_code == 404


def test_everything_else_is_gone_at_once_and_preconditions_hold(kube: Kube) -> None:
    wrong = kube.delete("/api/v1/nodes/n1", {"preconditions": {"uid": "x"}})
    assert (wrong.status_code, wrong.json()["reason"]) == (409, "Conflict")
    done = kube.delete("/api/v1/nodes/n1")
    assert (done.status_code, done.json()["status"]) == (200, "Success")
    assert done.json()["details"]["uid"]
    assert kube.get("/api/v1/nodes/n1").status_code == 404
    assert kube.delete(f"{PODS}/p1", {"gracePeriodSeconds": -1}).status_code == 422


def test_an_event_of_a_client_is_deleted_as_other_objects_are(kube: Kube, cluster: Cluster) -> None:
    events = "/api/v1/namespaces/default/events"
    about = {
        "involvedObject": {"kind": "Node", "name": "n1"},
        "reason": "Odd",
        "message": "x",
        "type": "Normal",
    }
    uid = kube.post(events, {"metadata": {"name": "e"}, **about}).json()["metadata"]["uid"]
    since = kube.get(events).json()["metadata"]["resourceVersion"]
    assert kube.delete(f"{events}/e", {"preconditions": {"uid": "another"}}).status_code == 409
    assert kube.delete(f"{events}/e", {"preconditions": {"uid": uid}}).json()["details"]["uid"] == uid
    assert kube.get(f"{events}/e").status_code == 404
    told = kube.watch(f"{events}?watch=true&resourceVersion={since}")
    assert [(what, one["metadata"]["name"]) for what, one in told] == [("DELETED", "e")]
    kube.post(events, {"metadata": {"name": "f"}, **about})
    assert [item["metadata"]["name"] for item in kube.delete(events).json()["items"]] == ["f"]


@pytest.mark.parametrize("path", [f"{PODS}/p1/binding", "/api/v1/namespaces/default/bindings"])
def test_a_binding_puts_a_pod_on_a_node(kube: Kube, path: str) -> None:
    binding = {"metadata": {"name": "p1"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n2"}}
    bound = kube.post(path, binding)
    assert (bound.status_code, bound.json()["status"]) == (201, "Success")
    assert kube.get(f"{PODS}/p1").json()["spec"]["nodeName"] == "n2"
    assert kube.post(path, binding).status_code == 409
    assert (
        kube.post(path, {"metadata": {"name": "p1"}, "target": {"kind": "Shelf", "name": "n"}}).status_code
        == 400
    )


@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
def test_a_binding_of_another_pod_of_that_name_is_refused(kube: Kube, key: str) -> None:
    meta = kube.get(f"{PODS}/p1").json()["metadata"]
    binding = {"metadata": {"name": "p1", key: "another"}, "target": {"kind": "Node", "name": "n2"}}
    refused = kube.post(f"{PODS}/p1/binding", binding)
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    word = {"uid": "UID", "resourceVersion": "ResourceVersion"}[key]
    assert refused.json()["message"] == (
        'Operation cannot be fulfilled on pods "p1": StorageError: invalid object, Code: 4, Key: '
        f"/registry/pods/default/p1, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {word} in "
        f"precondition: another, {word} in object meta: {meta[key]}"
    )
    assert "nodeName" not in kube.get(f"{PODS}/p1").json()["spec"]
    binding["metadata"][key] = 7
    assert kube.post(f"{PODS}/p1/binding", binding).status_code == 400
    binding["metadata"][key] = meta[key]
    assert kube.post(f"{PODS}/p1/binding", binding).status_code == 201


def test_another_object_of_that_name_is_neither_replaced_nor_evicted(kube: Kube) -> None:
    pod = kube.get(f"{PODS}/p1").json()
    other = {key: value for key, value in pod["metadata"].items() if key != "resourceVersion"} | {"uid": "x"}
    refused = kube.put(f"{PODS}/p1", pod | {"metadata": other}).json()
    assert refused["reason"] == "Conflict" and "UID in precondition: x, UID in" in refused["message"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}
    meant = {"deleteOptions": {"preconditions": {"uid": "x"}}}
    refused = kube.post(f"{PODS}/p1/eviction", eviction | meant).json()
    assert refused["reason"] == "Conflict" and "UID in the precondition (x)" in refused["message"]
    assert kube.post(f"{PODS}/p1/eviction", eviction | {"metadata": {"name": "q"}}).status_code == 400
    assert kube.get(f"{PODS}/p1").json() == pod


def test_what_all_namespaces_have_is_only_read(kube: Kube) -> None:
    assert (
        kube.post("/api/v1/pods", make_pod("p2")).status_code
        == kube.delete("/api/v1/pods").status_code
        == 405
    )
    assert [pod["metadata"]["name"] for pod in kube.get("/api/v1/pods").json()["items"]] == ["p1"]


def test_an_eviction_honours_the_budget(kube: Kube, cluster: Cluster, visit: Work) -> None:
    pods = []
    for name in ("a", "b"):
        pod = make_pod(name)
        pod["metadata"]["labels"] = {"app": "db"}
        pods.append(pod)
    apply_documents(cluster=cluster, objects=[*pods, budget("db", minAvailable=1)])
    request_run(cluster=cluster, until="idle")
    visit(cluster)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert kube.post(f"{PODS}/a/eviction", eviction).status_code == 201
    refused = kube.post(f"{PODS}/b/eviction", eviction | {"metadata": {"name": "b"}})
    assert (refused.status_code, refused.json()["reason"]) == (429, "TooManyRequests")
    assert "disruption budget" in refused.json()["message"]
    assert "Retry-After" not in refused


def test_scale_reads_and_writes_replicas(kube: Kube) -> None:
    kube.post(DEPLOYMENTS, make_deployment())
    path = f"{DEPLOYMENTS}/web/scale"
    scale = kube.get(path).json()
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == (
        "Scale",
        {"replicas": 2},
        "app=web",
    )
    assert kube.patch(path, {"spec": {"replicas": 4}}).json()["spec"]["replicas"] == 4
    [row] = kube.get(path, Accept=TABLE).json()["rows"]
    assert row["cells"][:3] == ["web", 4, 0]
    late = kube.put(path, scale | {"spec": {"replicas": 9}})
    assert late.status_code == 409
    assert kube.put(path, {"spec": {"replicas": 3}}).json()["spec"]["replicas"] == 3
    for wrong, code in (({"replicas": -3}, 422), ([], 400)):
        assert kube.put(path, {"spec": wrong}).status_code == code
    assert kube.put(path, {"metadata": {"name": "x"}, "spec": {"replicas": 5}}).status_code == 400
    assert kube.get(f"{DEPLOYMENTS}/web").json()["spec"]["replicas"] == 3


def test_a_scale_that_names_no_version_is_about_the_newest(kube: Kube, cluster: Cluster) -> None:
    kube.post(DEPLOYMENTS, make_deployment())
    kind, late = by_key("apps/v1", "Deployment"), ["1"]
    assert kind is not None

    def change(scale: dict[str, Any]) -> dict[str, Any]:
        if late:  # another client is faster
            kube.patch(f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"late": late.pop()}}})
        return {"spec": {"replicas": 7}}

    request = RequestFactory().patch("/")
    assert _scaled(request, cluster, Target(kind, "default", "web"), change).code == 200
    found = kube.get(f"{DEPLOYMENTS}/web").json()
    assert (found["spec"]["replicas"], found["metadata"]["labels"]["late"]) == (7, "1")


@pytest.mark.parametrize(("method", "query", "media", "said"), table(__file__, "wrong_options"))
def test_options_that_cannot_be_are_refused(
    kube: Kube, method: str, query: str, media: str, said: str
) -> None:
    pod = kube.get(f"{PODS}/p1").json()
    path = PODS if method == "POST" else f"{PODS}/p1"
    answer = kube.send(method, f"{path}?{query}", {}, media=media).json()
    assert (answer["reason"], answer["message"]) == ("Invalid", said)
    refused = kube.delete(f"{PODS}/p1", {"dryRun": ["Some"]}).json()
    assert refused["details"]["causes"][0]["field"] == "dryRun"
    assert kube.get(f"{PODS}/p1").json() == pod


def test_an_apply_keeps_to_the_version_and_the_uid_that_it_names(kube: Kube) -> None:
    path = "/api/v1/namespaces/default/configmaps/a"
    old = kube.apply(path, {"data": {"x": "1"}}).json()["metadata"]["resourceVersion"]
    assert kube.apply(path, {"metadata": {"resourceVersion": old}, "data": {"x": "2"}}).status_code == 200
    for meta in ({"resourceVersion": old}, {"uid": "another"}):
        assert kube.apply(path, {"metadata": meta, "data": {"x": "3"}}).status_code == 409
    assert kube.get(path).json()["data"] == {"x": "2"}
    # A status alone makes no object.
    assert kube.apply(f"{PODS}/new/status", make_pod("new")).status_code == 404


def test_the_first_write_of_kubectl_has_the_board_offer_1x_until_a_user_answers(
    kube: Kube, cluster: Cluster
) -> None:
    clock = f"/api/v1/clusters/{cluster.public_id}/clock"
    board = f"/c/{cluster.public_id}/"

    def offered() -> bool:
        said: bool = kube.client.get(clock).json()["offered"]
        assert ('id="offer-run"' in kube.client.get(board).content.decode()) is said
        return said

    def by_kubectl(path: str, name: str) -> Any:
        return kube.send("POST", path, make_pod(name), User_Agent="kubectl/v1.33.0 (linux/amd64)")

    kube.post(PODS, make_pod("a"))
    by_kubectl(f"{PODS}?dryRun=All", "b")
    kube.get(PODS, User_Agent="kubectl/v1.33.0")
    assert not offered()
    by_kubectl(PODS, "b")
    assert offered()
    before = LogEntry.objects.count()
    kube.client.post(f"{board}clock/", {"mode": "paused"})
    assert not offered()
    by_kubectl(PODS, "c")
    assert not offered()
    assert LogEntry.objects.count() == before + 1  # the pod; that the clock stays says nothing to the engine


def test_the_offer_is_taken(kube: Kube, cluster: Cluster) -> None:
    kube.send("POST", PODS, make_pod("b"), User_Agent="kubectl/v1.20.2")
    kube.client.post(f"/c/{cluster.public_id}/clock/", {"mode": "realtime"})
    cluster.refresh_from_db()
    assert (cluster.clock_mode, cluster.clock_offer) == ("realtime", "closed")


def test_workloads_get_the_defaults_clients_count_on(kube: Kube, cluster: Cluster) -> None:
    bare = make_deployment()
    del bare["spec"]["replicas"]
    spec = kube.post(DEPLOYMENTS, bare).json()["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    patch = [{"op": "replace", "path": "/spec/replicas", "value": 3}]
    assert kube.patch(f"{DEPLOYMENTS}/web", patch, "json-patch+json").json()["spec"]["replicas"] == 3
    recreated = kube.patch(
        f"{DEPLOYMENTS}/web", {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}
    ).json()
    assert recreated["spec"]["strategy"] == {"type": "Recreate"}
    # The same manifest again changes nothing: both sides have the defaults.
    again = apply_documents(cluster=cluster, objects=[make_deployment("other", replicas=1)])
    assert len(again.created) == 1
    bare["metadata"]["name"] = "other"
    bare["spec"]["selector"] = bare["spec"]["selector"] | {"matchLabels": {"app": "other"}}
    bare["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    assert len(apply_documents(cluster=cluster, objects=[bare]).unchanged) == 1
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
    }
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    job = kube.post(jobs, {"metadata": {"name": "once"}, "spec": {"template": template}}).json()["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (1, 1, 6)
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    assert kube.post("/api/v1/namespaces/default/services", service).json()["spec"]["type"] == "ClusterIP"
    template = {**template, "spec": {"containers": [{"name": "c"}]}}
    daemons = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = kube.post(
        "/apis/apps/v1/namespaces/default/daemonsets", {"metadata": {"name": "d"}, "spec": daemons}
    )
    assert made.json()["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.any_database
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.nightly("playground/kube_api/"))])
def test_every_kind_applied_twice_on_the_server_is_written_once(kube: Kube, step: int) -> None:
    disputed = set()
    for document in [*yaml.safe_load_all((DATA / "every_kind.yaml").read_text())][::step]:
        kind = by_key(document["apiVersion"], document["kind"])
        assert kind
        space = f"/namespaces/{document['metadata']['namespace']}" if kind.namespaced else ""
        root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        path = f"{root}{space}/{kind.plural}/{document['metadata']['name']}"
        first, again, dry = (
            kube.apply(path, document, query=query) for query in ("", "&force=true", "&dryRun=All")
        )
        assert (first.status_code, again.status_code, dry.status_code) == (201, 200, 200), first.content
        assert first.json() == again.json() == dry.json(), kind.kind
        # Another manager, who says something else of it, is no reason to write it again. Lists that are taken as a
        # whole differ by the defaults in them, as on an API server.
        other = document | {"metadata": document["metadata"] | {"annotations": {"a": "b"}}}
        shared = kube.apply(path, other, "aaa")
        if shared.status_code == 409:
            disputed.add(kind.kind)
        else:
            assert kube.apply(path, document).json() == shared.json(), kind.kind
    assert disputed <= {"Pod", "StatefulSet", "ResourceClaim", "ResourceClaimTemplate"}


@pytest.mark.parametrize(
    "path, body, counts",
    [
        ("/api/v1/nodes", {"metadata": {"name": "n9"}, "spec": {}}, False),
        ("/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, False),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "l"}, "spec": {}}, False),
        ("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}, "data": {"a": "b"}}, False),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 5}, True),
        (DEPLOYMENTS, make_deployment(), True),
    ],
)  # fmt: skip
def test_only_kinds_that_count_generations_have_one(
    kube: Kube, path: str, body: dict[str, Any], counts: bool
) -> None:
    created = kube.post(path, body).json()
    assert created["metadata"].get("generation") == (1 if counts else None)
    labelled = {"metadata": {"labels": {"a": "b"}}}
    patched = kube.patch(f"{path}/{body['metadata']['name']}", labelled).json()
    assert patched["metadata"].get("generation") == (1 if counts else None)


# ---- Services get what an API server gives them: addresses, node ports; and keep both


SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    return make_object("v1", "Service", name, spec={"ports": ports} | spec)


def test_addresses_differ_and_are_of_the_usual_range(kube: Kube) -> None:
    made = [kube.post(SERVICES, service(name)).json()["spec"] for name in ("a", "b")]
    addresses = [spec["clusterIP"] for spec in made]
    assert addresses[0] != addresses[1] and all(one.startswith("10.96.") for one in addresses)
    assert [spec["clusterIPs"] for spec in made] == [[one] for one in addresses]
    assert made[0]["ipFamilies"] == ["IPv4"] and "nodePort" not in made[0]["ports"][0]


@pytest.mark.parametrize(
    ("spec", "address", "n_ports"),
    table(__file__, "each_type_gets_what_it_needs"),
)
def test_each_type_gets_what_it_needs(
    kube: Kube, spec: dict[str, Any], address: str | None, n_ports: int
) -> None:
    made = kube.post(SERVICES, service("x", **spec)).json()["spec"]
    assert (made.get("clusterIP"), made.get("clusterIPs")) == (address, address and [address])
    assert len({port["nodePort"] for port in made["ports"] if "nodePort" in port}) == n_ports


def test_what_was_given_stays_over_every_way_to_write(kube: Kube, cluster: Any) -> None:
    first = kube.post(SERVICES, service("x", type="NodePort")).json()["spec"]
    again = service("x", type="NodePort", selector={"app": "web"})
    assert kube.put(f"{SERVICES}/x", again).json()["spec"] == first | {"selector": {"app": "web"}}
    result = apply_documents(cluster=cluster, objects=[again])
    assert [item.name for item in result.unchanged] == ["x"]
    assert kube.put(f"{SERVICES}/x", service("x")).json()["spec"]["clusterIP"] == first["clusterIP"]
    ports = kube.put(f"{SERVICES}/x", service("x", type="NodePort")).json()["spec"]["ports"]
    assert all(30000 <= port["nodePort"] < 32768 for port in ports)
    other = kube.patch(f"{SERVICES}/x", {"spec": {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}})
    assert other.json()["message"] == (
        'Service "x" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set'
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    table(__file__, "a_service_that_cannot_be_is_refused"),
)
def test_a_service_that_cannot_be_is_refused(kube: Kube, spec: dict[str, Any], message: str) -> None:
    assert kube.post(SERVICES, service("x", **spec)).json()["message"] == f'Service "x" is invalid: {message}'


def test_a_service_that_becomes_a_name_and_an_address_again(kube: Kube) -> None:
    kube.post(SERVICES, service("x"))
    named = kube.put(f"{SERVICES}/x", service("x", type="ExternalName", externalName="x.example")).json()[
        "spec"
    ]
    assert "clusterIP" not in named
    assert kube.put(f"{SERVICES}/x", service("x")).json()["spec"]["clusterIP"].startswith("10.96.")
