"""LimitRanges and ResourceQuotas at work on what is created, in upstream's words, over every surface."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters.errors import InvalidManifest
from playground.clusters.models import Cluster, Pod
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_pod
from tests.kube_api.conftest import PODS, Kube, Work
from tests.tables import table

RANGES = "/api/v1/namespaces/default/limitranges"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def limit_range(**item: Any) -> dict[str, Any]:
    limits = [{"type": "Container", **item}]
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}, "spec": {"limits": limits}}


def quota(name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def pod(
    name: str, requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **spec: Any
) -> Any:
    made = make_pod(name, **spec)
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    made["spec"]["containers"][0]["resources"] = resources
    return made


def refused(kube: Kube, path: str, body: Any) -> str:
    answer = kube.post(path, body)
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden"), answer.content
    return str(answer.json()["message"])


def test_containers_get_the_defaults_of_their_namespace_and_an_annotation_says_so(kube: Kube) -> None:
    assert kube.post(RANGES, limit_range(default={"cpu": "500m", "memory": "256Mi"},
                                         defaultRequest={"cpu": "200m"})).status_code == 201  # fmt: skip
    bare = kube.post(PODS, pod("bare")).json()
    resources = bare["spec"]["containers"][0]["resources"]
    assert resources == {
        "requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"},
    }  # fmt: skip
    assert bare["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c"
    )
    own = kube.post(PODS, pod("own", {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})).json()
    assert own["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    assert "limit-ranger" not in str(own["metadata"].get("annotations"))


@pytest.mark.parametrize(
    ("item", "requests", "limits", "said"),
    table(__file__, "what_a_limit_range_does_not_allow_is_refused"),
)
def test_what_a_limit_range_does_not_allow_is_refused(
    kube: Kube, item: dict[str, Any], requests: Any, limits: Any, said: str
) -> None:
    assert kube.post(RANGES, limit_range(**item)).status_code == 201
    assert refused(kube, PODS, pod("x", requests, limits)) == f'pods "x" is forbidden: {said}'
    assert kube.get(f"{PODS}/x").status_code == 404


def test_a_claim_is_held_to_its_bounds(kube: Kube) -> None:
    kube.post(
        RANGES, limit_range(type="PersistentVolumeClaim", max={"storage": "10Gi"}, min={"storage": "1Gi"})
    )
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    said = refused(kube, CLAIMS, claim)
    assert said.endswith("maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi")
    spec["resources"]["requests"]["storage"] = "5Gi"
    assert kube.post(CLAIMS, claim).status_code == 201


def test_a_quota_has_room_until_it_is_used_and_again_when_pods_end(kube: Kube) -> None:
    assert (
        kube.post(QUOTAS, quota(hard={"requests.cpu": "3", "pods": "10", "count/pods": "9"})).status_code
        == 201
    )
    assert kube.post(PODS, pod("a", {"cpu": "1500m"})).status_code == 201
    assert refused(kube, PODS, pod("b", {"cpu": "1"})) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2500m,'
        " limited: requests.cpu=3"
    )
    assert refused(kube, PODS, pod("b")) == (
        'pods "b" is forbidden: failed quota: q: must specify requests.cpu for: c'
    )
    status = kube.get(f"{QUOTAS}/q").json()["status"]
    assert status == {
        "hard": {"count/pods": "9", "pods": "10", "requests.cpu": "3"},
        "used": {"count/pods": "2", "pods": "2", "requests.cpu": "2500m"},
    }
    assert kube.delete(f"{PODS}/a").status_code == 200
    assert kube.post(PODS, pod("b", {"cpu": "1"})).status_code == 201
    [listed] = kube.get(QUOTAS).json()["items"]
    assert listed["status"]["used"]["requests.cpu"] == "2"


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ({"scopes": ["BestEffort"]}, pod("in"), pod("out", {"cpu": "1"})),
        ({"scopes": ["NotBestEffort"]}, pod("in", {"cpu": "1"}), pod("out")),
        ({"scopes": ["Terminating"]}, pod("in", activeDeadlineSeconds=9), pod("out")),
        ({"scopes": ["NotTerminating"]}, pod("in"), pod("out", activeDeadlineSeconds=9)),
        ({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]}},
         pod("in", priorityClassName="system-node-critical"), pod("out")),
        ({"scopes": ["CrossNamespacePodAffinity"]},
         pod("in", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
             {"topologyKey": "zone", "namespaces": ["other"], "labelSelector": {}}]}}), pod("out")),
    ],
)  # fmt: skip
def test_a_scope_says_whom_a_quota_counts(kube: Kube, scope: Any, inside: Any, outside: Any) -> None:
    assert kube.post(QUOTAS, quota(hard={"pods": "0"}, **scope)).status_code == 201
    assert "is forbidden: exceeded quota: q, requested: pods=1, used: pods=" in refused(kube, PODS, inside)
    assert kube.post(PODS, outside).status_code == 201


def test_objects_of_other_kinds_are_counted(kube: Kube) -> None:
    kube.post(QUOTAS, quota(hard={"count/deployments.apps": "0", "services.nodeports": "1"}))
    ports = [{"name": "web", "port": 80}, {"name": "admin", "port": 81}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
               "spec": {"type": "NodePort", "ports": ports}}  # fmt: skip
    said = refused(kube, "/api/v1/namespaces/default/services", service)
    assert said.endswith("exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0,"
                         " limited: services.nodeports=1")  # fmt: skip


def test_one_text_is_held_to_what_it_brings_itself_and_nothing_of_it_is_kept(cluster: Cluster) -> None:
    objects = [quota(hard={"pods": "2"}), pod("x"), pod("y")]
    with pytest.raises(
        InvalidManifest, match="exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    ):
        apply_documents(cluster=cluster, objects=objects)
    assert set(Pod.objects.filter(cluster=cluster).values_list("name", flat=True)) == {"p1"}
    apply_documents(cluster=cluster, objects=objects[:2])
    # What a dump of a real cluster holds was admitted there.
    dumped = pod("dumped")
    dumped["metadata"]["uid"] = "0fa1f6f0-1111-2222-3333-444444444444"
    apply_documents(cluster=cluster, objects=[dumped])


def test_rest_and_pages_refuse_in_the_same_words(
    client: Client, cluster: Cluster, kube: Kube, visit: Work
) -> None:
    kube.post(QUOTAS, quota(hard={"pods": "1"}))
    said = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    path = f"/api/v1/clusters/{cluster.public_id}/pods/"
    answer = client.post(path, pod("x"), content_type="application/json")
    assert answer.status_code == 403 and said in answer.content.decode()


def test_a_quota_answers_a_write_and_a_dry_run_with_what_is_used(kube: Kube) -> None:
    path = "/api/v1/namespaces/default/resourcequotas"
    assert kube.post(path, quota(hard={"pods": "3"})).status_code == 201
    used = {"hard": {"pods": "3"}, "used": {"pods": "1"}}
    assert kube.get(f"{path}/q").json()["status"] == used
    for query in ("?dryRun=All", ""):
        answer = kube.patch(f"{path}/q{query}", {"metadata": {"labels": {"a": "b"}}})
        assert answer.json()["status"] == used


@pytest.mark.parametrize(
    ("spec", "message"),
    table(__file__, "a_quota_that_counts_nothing_there_is_is_refused"),
)  # fmt: skip
def test_a_quota_that_counts_nothing_there_is_is_refused(kube: Kube, spec: Any, message: str) -> None:
    answer = kube.post(QUOTAS, quota(**spec))
    assert answer.status_code in (400, 422)
    assert message in answer.json()["message"]
    assert kube.get(QUOTAS).json()["items"] == []


@pytest.mark.parametrize("scope", ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass",
                                   "CrossNamespacePodAffinity"])  # fmt: skip
def test_every_scope_goes_with_pods_and_with_resources_of_a_name_of_ones_own(kube: Kube, scope: str) -> None:
    hard = {"pods": "1", "requests.example.com/gpu": "1", "count/deployments.apps": "3"}
    assert kube.post(QUOTAS, quota(hard=hard, scopes=[scope])).status_code == 201


@pytest.mark.parametrize(
    ("item", "message"),
    table(__file__, "a_limit_range_out_of_order_is_refused"),
)
def test_a_limit_range_out_of_order_is_refused(kube: Kube, item: Any, message: str) -> None:
    answer = kube.post(RANGES, limit_range(**item))
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid"), answer.content
    assert message in answer.json()["message"]
