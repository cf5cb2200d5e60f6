"""What one surface refuses the others refuse too: /api/v1, /k8s, the forms and forks share their services."""

from typing import Any

import pytest

from playground.clusters.errors import TooLarge
from playground.clusters.log.writer import MAX_OBJECT_BYTES
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.services.forking import fork
from playground.scenarios.services.shares import share
from tests.clusters.builders import make_node, make_pod
from tests.kube_api.conftest import PODS, Kube
from tests.kube_api.test_writing import DEPLOYMENTS, make_deployment
from tests.manifests import make_object, priority_class
from tests.scenarios.documents import small_text
from tests.tables import table

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PATHS = {"Pod": PODS, "Node": "/api/v1/nodes", "Deployment": DEPLOYMENTS, "PriorityClass": CLASSES}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a quantity": (make_pod("bad", cpu="1x"), "spec.containers[0].resources.requests.cpu"),
    "an operator": (make_pod("bad", tolerations=[{"operator": "Sometimes"}]), "spec.tolerations[0].operator"),
    "no containers": (make_pod("bad", containers=[]), "spec.containers"),
    "a name": (make_pod("Bad"), "metadata.name"),
    "a negative amount": (make_node("n", cpu="-1"), "status.allocatable.cpu"),
    "a negative count": (make_deployment(replicas=-1), "spec.replicas"),
    "a priority beyond 32 bits": (priority_class("gold", -(2**31) - 1), "value"),
    "a policy": (priority_class("gold", 5, preemptionPolicy="Sometimes"), "preemptionPolicy"),
}
NOT_ADMITTED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a class that is not there": (
        make_pod("bad", priorityClassName="nope"),
        "spec.priorityClassName",
        'pods "bad" is forbidden: no PriorityClass with name nope was found',
    ),
    "another priority than the class's": (
        make_pod("bad", priorityClassName="system-node-critical", priority=7),
        "spec.priority",
        'pods "bad" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority '
        "admission controller computed 2000001000 from the given PriorityClass name",
    ),
    "another policy than the default class's": (
        make_pod("bad", preemptionPolicy="Never"),
        "spec.preemptionPolicy",
        'pods "bad" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
        "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
    ),
    "a second default": (
        priority_class("gold", 5, globalDefault=True),
        "globalDefault",
        'priorityclasses.scheduling.k8s.io "gold" is forbidden: PriorityClass usual is already marked as default. '
        "Only one default can exist",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_manifest_is_refused_with_the_same_field_and_reason(
    kube: Kube, cluster: Cluster, case: str
) -> None:
    apply_documents(cluster=cluster, objects=[priority_class("usual", 1, globalDefault=True)])
    manifest, field = BAD[case]
    before = LogEntry.objects.count()
    problem = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/apply", manifest, content_type="application/json"
    ).json()
    status = kube.post(PATHS[manifest["kind"]], manifest).json()
    cause = status["details"]["causes"][0]
    assert (problem["reason"], problem["field"]) == (status["reason"], cause["field"]) == ("Invalid", field)
    # kubectl writes the field before each message itself, which is in an API server's form.
    assert problem["detail"].startswith(f"{field}: ") and not cause["message"].startswith(field)
    assert cause["message"].startswith(
        ("Invalid value: ", "Required value", "Unsupported value: ", "Forbidden: ")
    )
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("case", NOT_ADMITTED)
def test_what_admission_refuses_is_refused_in_its_words_on_both(
    kube: Kube, cluster: Cluster, case: str
) -> None:
    apply_documents(cluster=cluster, objects=[priority_class("usual", 1, globalDefault=True)])
    manifest, field, words = NOT_ADMITTED[case]
    before = LogEntry.objects.count()
    answer = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/apply", manifest, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["field"]) == (403, field)
    assert words.endswith(answer.json()["detail"])
    status = kube.post(PATHS[manifest["kind"]], manifest)
    assert (status.status_code, status.json()["reason"], status.json()["message"]) == (
        403,
        "Forbidden",
        words,
    )
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize(
    ("changed", "field"), [({"value": 6}, "value"), ({"preemptionPolicy": "Never"}, "preemptionPolicy")]
)
def test_value_and_policy_of_a_class_stay(
    kube: Kube, cluster: Cluster, changed: dict[str, Any], field: str
) -> None:
    kube.post(CLASSES, priority_class("gold", 5))
    manifest = priority_class("gold", 5) | changed
    problem = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/apply", manifest, content_type="application/json"
    ).json()
    for status in (kube.put(f"{CLASSES}/gold", manifest), kube.patch(f"{CLASSES}/gold", changed)):
        assert status.status_code == 422
        assert status.json()["details"]["causes"][0]["field"] == problem["field"] == field
    assert kube.patch(f"{CLASSES}/gold", {"description": "gold"}).status_code == 200
    stored = kube.get(f"{CLASSES}/gold").json()
    assert (stored["value"], stored["description"]) == (5, "gold")


def test_the_default_moves_within_one_request_and_the_old_one_first(kube: Kube, cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[priority_class("usual", 1, globalDefault=True)])
    moved = [priority_class("usual", 1, globalDefault=False), priority_class("gold", 5, globalDefault=True)]
    result = apply_documents(cluster=cluster, objects=moved)
    assert len(result.created) == len(result.configured) == 1
    assert kube.post(PODS, make_pod("p")).json()["spec"]["priority"] == 5


def test_the_built_in_classes_are_listed_taken_back_and_stay(kube: Kube, cluster: Cluster) -> None:
    listed = kube.get(CLASSES).json()["items"]
    assert {item["metadata"]["name"]: item["value"] for item in listed} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }
    # A dump of a real cluster holds them.
    assert len(apply_documents(cluster=cluster, objects=listed).unchanged) == 2
    refused = kube.delete(f"{CLASSES}/system-node-critical")
    assert refused.status_code == 403
    assert refused.json()["message"] == (
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden:'
        " this is a system priority class and cannot be deleted"
    )
    assert kube.patch(f"{CLASSES}/system-node-critical", {"globalDefault": True}).status_code == 422
    assert kube.get(CLASSES).json()["items"] == listed
    assert {item["preemptionPolicy"] for item in listed} == {"PreemptLowerPriority"}


def test_a_cluster_takes_so_many_objects_and_no_more(kube: Kube, cluster: Cluster, settings: Any) -> None:
    # Four namespaces, two classes, two nodes and a pod are there.
    settings.PLAYGROUND_MAX_OBJECTS = 10
    assert kube.post(PODS, make_pod("tenth")).status_code == 201
    before = LogEntry.objects.count()
    words = "the cluster would have 11 objects; it has 10, and at most 10 are allowed"
    refused = kube.post(PODS, make_pod("eleventh"))
    assert (refused.status_code, refused.json()["reason"]) == (413, "RequestEntityTooLarge")
    assert refused.json()["message"] == words
    here = f"/api/v1/clusters/{cluster.public_id}"
    for path in (f"{here}/apply", f"{here}/apply?dryRun=true"):
        problem = kube.client.post(path, make_pod("eleventh"), content_type="application/json")
        assert (problem.status_code, problem.json()["detail"]) == (413, words)
    two = [make_pod("eleventh"), make_pod("twelfth")]
    with pytest.raises(TooLarge, match="would have 12 objects"):
        apply_documents(cluster=cluster, objects=two)
    page = kube.client.post(
        f"/c/{cluster.public_id}/import/",
        {"text": "kind: Namespace\napiVersion: v1\nmetadata: {name: a}"},
    )
    assert page.status_code == 413
    assert words in page.content.decode()
    assert LogEntry.objects.count() == before
    # What is there may change and go, and then there is room again.
    assert kube.patch(f"{PODS}/tenth", {"metadata": {"labels": {"a": "b"}}}).status_code == 200
    assert kube.delete(f"{PODS}/tenth").status_code == 200
    assert kube.post(PODS, make_pod("eleventh")).status_code == 201


def test_a_fork_and_a_clone_are_held_to_the_limit(kube: Kube, cluster: Cluster, settings: Any) -> None:
    scenario = share(document=small_text()).scenario
    settings.PLAYGROUND_MAX_OBJECTS = 7
    with pytest.raises(TooLarge, match="at most 7 are allowed"):
        fork(scenario=scenario)
    cloned = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/clone", {}, content_type="application/json"
    )
    assert cloned.status_code == 413
    assert Cluster.objects.count() == 1


def test_a_controller_is_not_asked_for_more_pods_than_fit(kube: Kube, settings: Any) -> None:
    settings.PLAYGROUND_MAX_OBJECTS = 1000
    refused = kube.post(DEPLOYMENTS, make_deployment(replicas=1001))
    assert refused.status_code == 413
    assert refused.json()["message"] == (
        'Deployment "web" asks for 1,001 pods in spec.replicas;'
        " a cluster has at most 1,000 objects, pods of controllers included"
    )
    kube.post(DEPLOYMENTS, make_deployment(replicas=3))
    assert kube.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 1001}}).status_code == 413
    # Several that would each fit, and one that grows by being scaled.
    assert kube.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 600}}).status_code == 200
    second = make_deployment(replicas=600)
    second["metadata"]["name"] = "second"
    refused = kube.post(DEPLOYMENTS, second)
    assert refused.status_code == 413
    assert "all workloads together ask for 1,200" in refused.json()["message"]
    assert kube.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 2}}).status_code == 200
    assert kube.post(DEPLOYMENTS, second).status_code == 201


@pytest.mark.parametrize(
    ("api_version", "kind", "words"),
    table(__file__, "a_misspelt_kind_of_kubernetes_is_an_error_with_a_suggestion"),
)
def test_a_misspelt_kind_of_kubernetes_is_an_error_with_a_suggestion(
    kube: Kube, cluster: Cluster, api_version: str, kind: str, words: str
) -> None:
    text = (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n---\n"
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n"
    )
    before = LogEntry.objects.count()
    answer = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/apply", text, content_type="application/yaml"
    )
    problem = answer.json()
    assert (answer.status_code, problem["detail"]) == (400, words)
    assert (problem["document"], problem["line"]) == (1, 6 if problem["field"] == "kind" else 5)
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize(
    ("api_version", "kind"),
    table(__file__, "undefined_kinds_and_old_versions_are_ignored_by_name"),
)
def test_undefined_kinds_and_old_versions_are_ignored_by_name(
    cluster: Cluster, api_version: str, kind: str
) -> None:
    result = apply_documents(
        cluster=cluster, objects=[{"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}]
    )
    assert [(item.kind, item.name) for item in result.ignored] == [(kind, "x")]
    assert result.ignored[0].reason


def test_an_object_larger_than_etcd_takes_is_refused_and_nothing_of_its_request_is_kept(
    kube: Kube, cluster: Cluster
) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    big: dict[str, Any] = make_object(
        "v1", "ConfigMap", "big", namespace="default", data={"a": "x" * MAX_OBJECT_BYTES}
    )
    refused = kube.post(maps, big)
    assert (refused.status_code, refused.json()["reason"]) == (413, "RequestEntityTooLarge")
    assert 'ConfigMap "big" has 1,5' in refused.json()["message"]
    small = {**big, "metadata": {"name": "small", "namespace": "default"}, "data": {}}
    with pytest.raises(TooLarge, match="an object has at most 1,572,864"):
        apply_documents(cluster=cluster, objects=[small, big])
    assert kube.get(f"{maps}/small").status_code == 404
