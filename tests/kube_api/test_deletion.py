"""What a deletion leaves: orphans, objects that finalizers keep; collections; and the condition of gated pods."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from playground.clusters.history.queue import lanes_of
from playground.clusters.models import Cluster, LogEntry, Pod
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_pod
from tests.kube_api.conftest import PODS, Kube, Work, idle
from tests.kube_api.test_writing import DEPLOYMENTS, make_deployment
from tests.manifests import priority_class
from tests.tables import table

SETS = "/apis/apps/v1/namespaces/default/replicasets"
MAPS = "/api/v1/namespaces/default/services"


def service(name: str, *finalizers: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "finalizers": list(finalizers)},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "left"),
    table(__file__, "dependents_go_with_their_owner_or_stay_without_one"),
)
@pytest.mark.dialect
def test_dependents_go_with_their_owner_or_stay_without_one(
    kube: Kube, cluster: Cluster, visit: Work, options: dict[str, Any], left: int
) -> None:
    assert kube.post(DEPLOYMENTS, make_deployment()).status_code == 201
    idle(cluster, visit)
    [before] = kube.get(SETS).json()["items"]
    assert before["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    assert kube.delete(f"{DEPLOYMENTS}/web", options or None).status_code == 200
    idle(cluster, visit)
    sets = kube.get(SETS).json()["items"]
    assert [item["metadata"].get("ownerReferences") for item in sets] == [None] * (left > 0)
    assert Pod.objects.filter(cluster=cluster, owner_kind="ReplicaSet").count() == left
    if not left:
        return
    # The set's pods lose their owner in turn; and a set of no Deployment is not adopted.
    name = sets[0]["metadata"]["name"]
    assert kube.delete(f"{SETS}/{name}", {"propagationPolicy": "Orphan"}).status_code == 200
    idle(cluster, visit)
    pods = [row.manifest["metadata"] for row in Pod.objects.filter(cluster=cluster, name__startswith="web-")]
    assert len(pods) == left and not any("ownerReferences" in meta for meta in pods)


@pytest.mark.parametrize(
    "options", [{"propagationPolicy": "Sideways"}, {"propagationPolicy": "Orphan", "orphanDependents": False}]
)
def test_a_policy_that_is_none_is_refused(kube: Kube, options: dict[str, Any]) -> None:
    answer = kube.delete(f"{PODS}/p1", options)
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
    assert "propagationPolicy" in answer.json()["message"]


def test_finalizers_keep_an_object_until_they_are_taken_off(kube: Kube) -> None:
    assert kube.post(MAPS, service("kept", "example.com/clean", "kubernetes.io/own")).status_code == 201
    gone = kube.delete(f"{MAPS}/kept")
    assert gone.status_code == 200 and gone.json()["kind"] == "Service"
    stamp = gone.json()["metadata"]["deletionTimestamp"]
    again = kube.delete(f"{MAPS}/kept").json()
    assert again["metadata"]["deletionTimestamp"] == stamp
    assert again["metadata"]["resourceVersion"] == gone.json()["metadata"]["resourceVersion"]
    added = kube.patch(
        f"{MAPS}/kept", {"metadata": {"finalizers": ["example.com/clean", "example.com/more"]}}
    )
    assert added.status_code == 422
    assert "no new finalizers can be added if the object is being deleted" in added.json()["message"]
    version = gone.json()["metadata"]["resourceVersion"]
    last = kube.patch(f"{MAPS}/kept", {"metadata": {"finalizers": None}})
    assert last.status_code == 200
    assert kube.get(f"{MAPS}/kept").status_code == 404
    events = kube.watch(f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
    assert [kind for kind, _ in events] == ["DELETED"]


def test_kubernetes_own_finalizers_keep_nothing(kube: Kube) -> None:
    kube.post(MAPS, service("own", "service.kubernetes.io/load-balancer-cleanup", "foregroundDeletion"))
    assert kube.delete(f"{MAPS}/own").json()["status"] == "Success"
    assert kube.get(f"{MAPS}/own").status_code == 404


def test_a_gated_pod_says_that_its_gates_hold_it_back(kube: Kube, cluster: Cluster, visit: Work) -> None:
    gated = make_pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    created = kube.post(PODS, gated).json()
    [condition] = created["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "PodScheduled", "False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates",
    )  # fmt: skip
    deployment = make_deployment(replicas=2)
    deployment["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    kube.post(DEPLOYMENTS, deployment)
    idle(cluster, visit)
    pods = Pod.objects.filter(cluster=cluster, name__startswith="web-")
    reasons = [row.manifest["status"]["conditions"][0]["reason"] for row in pods]
    assert reasons == ["SchedulingGated"] * 2
    freed = kube.patch(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
    assert freed.status_code == 200
    idle(cluster, visit)
    bound = kube.get(f"{PODS}/gated").json()
    [scheduled] = [item for item in bound["status"]["conditions"] if item["type"] == "PodScheduled"]
    assert scheduled["status"] == "True" and "reason" not in scheduled


def test_what_a_kind_that_shapes_no_placement_owned_goes_with_it(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    owners = [kube.post(maps, {"metadata": {"name": name}}).json()["metadata"] for name in ("a", "b")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]} for meta in owners
    ]
    deployment = make_deployment()
    deployment["metadata"]["ownerReferences"] = references[:1]
    assert kube.post(DEPLOYMENTS, deployment).status_code == 201
    for name, owned in (("chain", references[:1]), ("both", references), ("others", references[1:])):
        assert kube.post(maps, {"metadata": {"name": name, "ownerReferences": owned}}).status_code == 201
    chain = kube.get(f"{maps}/chain").json()["metadata"]
    last = {"apiVersion": "v1", "kind": "ConfigMap", "name": "chain", "uid": chain["uid"]}
    end = {**service("end"), "metadata": {"name": "end", "ownerReferences": [last]}}
    assert kube.post(MAPS, end).status_code == 201
    idle(cluster, visit)
    assert kube.delete(f"{maps}/a").status_code == 200
    idle(cluster, visit)
    assert kube.get(DEPLOYMENTS).json()["items"] == kube.get(SETS).json()["items"] == []
    assert not Pod.objects.filter(cluster=cluster, owner_kind="ReplicaSet").exists()
    left = {item["metadata"]["name"]: item["metadata"] for item in kube.get(maps).json()["items"]}
    assert [each["name"] for each in left["both"]["ownerReferences"]] == ["b"]
    assert {"b", "both", "others"} <= {*left} and "chain" not in left
    assert kube.get(f"{MAPS}/end").status_code == 404


def test_an_owner_that_is_orphaned_leaves_objects_of_every_kind(kube: Kube) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    meta = kube.post(maps, {"metadata": {"name": "a"}}).json()["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": meta["uid"]}
    kube.post(maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    assert kube.delete(f"{maps}/a", {"propagationPolicy": "Orphan"}).status_code == 200
    assert "ownerReferences" not in kube.get(f"{maps}/owned").json()["metadata"]


def test_finalizers_keep_a_pod_that_has_ended_and_its_room_is_free(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    held = make_pod("held", cpu="3")
    held["metadata"]["finalizers"] = ["example.com/clean"]
    assert kube.post(PODS, held).status_code == 201
    idle(cluster, visit)
    node = kube.get(f"{PODS}/held").json()["spec"]["nodeName"]
    assert kube.delete(f"{PODS}/held").status_code == 200
    idle(cluster, visit)
    ended = kube.get(f"{PODS}/held").json()
    assert ended["status"]["phase"] == "Succeeded"
    assert ended["metadata"]["deletionGracePeriodSeconds"] == 0
    assert kube.post(PODS, make_pod("next", cpu="3")).status_code == 201
    assert kube.post(PODS, make_pod("last", cpu="3")).status_code == 201
    idle(cluster, visit)
    assert {kube.get(f"{PODS}/{name}").json()["spec"].get("nodeName") for name in ("next", "last")} >= {node}
    added = kube.patch(
        f"{PODS}/held", {"metadata": {"finalizers": ["example.com/more", "example.com/clean"]}}
    )
    assert added.status_code == 422
    assert kube.patch(f"{PODS}/held", {"metadata": {"finalizers": None}}).status_code == 200
    assert kube.get(f"{PODS}/held").status_code == 404
    idle(cluster, visit)
    assert kube.get(f"{PODS}/held").status_code == 404


def test_a_pod_that_is_held_and_has_no_node_is_not_scheduled(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    held = make_pod("held", schedulingGates=[{"name": "example.com/wait"}])
    held["metadata"]["finalizers"] = ["example.com/clean"]
    kube.post(PODS, held)
    gone = kube.delete(f"{PODS}/held").json()
    assert gone["metadata"]["deletionTimestamp"]
    assert kube.patch(f"{PODS}/held", {"spec": {"schedulingGates": None}}).status_code == 200
    idle(cluster, visit)
    assert "nodeName" not in kube.get(f"{PODS}/held").json()["spec"]
    lanes, _ = lanes_of(cluster, full=True)
    assert not any(lanes.values())
    assert kube.patch(f"{PODS}/held", {"metadata": {"finalizers": []}}).status_code == 200
    assert kube.get(f"{PODS}/held").status_code == 404


@pytest.mark.dialect
def test_a_namespace_waits_for_what_finalizers_keep_in_it(kube: Kube) -> None:
    spaces, maps = "/api/v1/namespaces", "/api/v1/namespaces/team/configmaps"
    kube.post(spaces, {"metadata": {"name": "team"}})
    kube.post(maps, {"metadata": {"name": "free"}})
    kube.post(maps, {"metadata": {"name": "kept", "finalizers": ["example.com/clean"]}})
    ending = kube.delete(f"{spaces}/team").json()
    assert ending["status"]["phase"] == "Terminating"
    assert [item["message"] for item in ending["status"]["conditions"]] == [
        "Some resources are remaining: configmaps has 1 resource instances",
        "Some content in the namespace has finalizers remaining: example.com/clean in 1 resource instances",
    ]
    assert {item["metadata"]["name"] for item in kube.get(maps).json()["items"]} == {
        "kept",
        "kube-root-ca.crt",
    }
    refused = kube.post(maps, {"metadata": {"name": "late"}})
    assert refused.status_code == 403
    assert refused.json()["message"] == (
        'configmaps "late" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    again = kube.delete(f"{spaces}/team").json()
    assert again["metadata"]["deletionTimestamp"] == ending["metadata"]["deletionTimestamp"]
    assert kube.patch(f"{maps}/kept", {"metadata": {"finalizers": None}}).status_code == 200
    assert kube.get(f"{spaces}/team").status_code == 404


def test_a_namespaces_own_finalizers_keep_it(kube: Kube) -> None:
    spaces = "/api/v1/namespaces"
    kube.post(spaces, {"metadata": {"name": "own", "finalizers": ["example.com/clean"]}})
    assert kube.delete(f"{spaces}/own").json()["status"]["phase"] == "Terminating"
    assert kube.patch(f"{spaces}/own", {"metadata": {"finalizers": []}}).status_code == 200
    assert kube.get(f"{spaces}/own").status_code == 404


# ---- DELETE of a collection is one write: all of it, or nothing


def test_many_pods_go_in_one_write(kube: Kube, cluster: Cluster) -> None:
    """Twenty clusters of 300 pods emptied at once took a minute when each pod was a transaction."""
    names = [f"web-{index:02}" for index in range(60)]
    pods = [make_pod(name) for name in names]
    for index, each in enumerate(pods):
        each["metadata"]["labels"] = {"half": str(index % 2)}
    apply_documents(cluster=cluster, objects=pods)
    with CaptureQueriesContext(connection) as asked:
        answer = kube.delete(f"{PODS}?labelSelector=half%3D1")
    assert answer.status_code == 200
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == names[1::2]
    assert {*Pod.objects.values_list("name", flat=True)} == {"p1", *names[::2]}
    assert len(asked) < 30, "each pod asked the database alone"
    entries = LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.DELETE).order_by("seq")
    assert [entry.payload["name"] for entry in entries] == names[1::2]


def test_one_that_may_not_go_keeps_all(kube: Kube, cluster: Cluster) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert kube.post(classes, priority_class("a-first", 1)).status_code == 201
    assert kube.delete(classes).status_code == 403
    assert kube.get(f"{classes}/a-first").status_code == 200
