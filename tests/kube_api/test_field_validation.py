"""A misspelt field is told once, with its path and the nearest name; a misspelt parameter writes nothing."""

from typing import Any

import pytest

from playground.clusters.errors import InvalidManifest
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_pod
from tests.kube_api.conftest import PODS, Kube

WORDS = 'unknown field "spec.nodeSelectr" (did you mean nodeSelector?)'
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"


def misspelt() -> dict[str, Any]:
    pod = make_pod("wrong", nodeSelectr={"disk": "ssd"})
    pod["spec"]["containers"][0]["resources"]["request"] = {"cpu": "1"}
    return pod


def test_strict_refuses_and_names_each_field_once(kube: Kube) -> None:
    before = LogEntry.objects.count()
    answer = kube.post(f"{PODS}?fieldValidation=Strict", misspelt())
    status = answer.json()
    assert (answer.status_code, status["reason"]) == (400, "BadRequest")
    assert status["message"].count("spec.nodeSelectr") == 1
    assert "strict decoding error: unknown field" in status["message"]
    assert WORDS in status["message"]
    assert (
        'unknown field "spec.containers[0].resources.request" (did you mean requests?)' in status["message"]
    )
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
def test_warn_tells_and_drops(kube: Kube, query: str) -> None:
    answer = kube.post(f"{PODS}{query}", misspelt())
    assert answer.status_code == 201
    assert answer["Warning"].count("spec.nodeSelectr") == 1
    assert WORDS.replace('"', '\\"') in answer["Warning"]
    assert "nodeSelectr" not in answer.json()["spec"]
    assert "nodeSelectr" not in kube.get(f"{PODS}/wrong").json()["spec"]


def test_ignore_drops_and_says_nothing(kube: Kube) -> None:
    answer = kube.post(f"{PODS}?fieldValidation=Ignore", misspelt())
    assert (answer.status_code, "nodeSelectr" in str(answer.headers)) == (201, False)
    assert kube.post(f"{PODS}?fieldValidation=Perhaps", make_pod("p9")).status_code == 422


@pytest.mark.parametrize("how", ["put", "merge", "apply"])
def test_every_way_to_write_checks(kube: Kube, how: str) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    wrong = role | {"rules": [{"verbs": ["get"], "apiGroup": [""], "resources": ["pods"]}]}
    assert kube.post(ROLES, role | {"rules": []}).status_code == 201
    path = f"{ROLES}/r?fieldValidation=Strict"
    answer = {
        "put": lambda: kube.put(path, wrong),
        "merge": lambda: kube.patch(path, {"rules": wrong["rules"]}),
        "apply": lambda: kube.apply(f"{ROLES}/r", wrong, query="&force=true&fieldValidation=Strict"),
    }[how]()
    assert answer.status_code == 400
    assert 'unknown field "rules[0].apiGroup" (did you mean apiGroups?)' in answer.json()["message"]


def test_a_value_of_another_type_is_refused_whatever_the_mode(kube: Kube) -> None:
    role = {"metadata": {"name": "r"}, "rules": [{"verbs": "get"}]}
    answer = kube.post(f"{ROLES}?fieldValidation=Ignore", role)
    assert answer.status_code == 422
    assert "rules[0].verbs" in answer.json()["message"]


def test_a_custom_resource_is_checked_by_its_schema(kube: Kube) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": "gadgets", "kind": "Gadget"}
    made = {"group": "x.example", "scope": "Namespaced", "names": names, "versions": [version]}
    assert kube.post(crds, {"metadata": {"name": "gadgets.x.example"}, "spec": made}).status_code == 201
    gadgets = "/apis/x.example/v1/namespaces/default/gadgets"
    wrong = {"metadata": {"name": "g"}, "spec": {"sise": 3}}
    answer = kube.post(f"{gadgets}?fieldValidation=Strict", wrong)
    assert 'unknown field "spec.sise" (did you mean size?)' in answer.json()["message"]
    assert kube.post(gadgets, wrong).json()["spec"] == {}
    answer = kube.post(gadgets, {"metadata": {"name": "h"}, "spec": {"size": "large"}})
    assert (answer.status_code, answer.json()["details"]["causes"][0]["field"]) == (422, "spec.size")


def test_the_rest_api_tells_and_refuses_when_asked_to(kube: Kube, cluster: Cluster) -> None:
    path = f"/api/v1/clusters/{cluster.public_id}/apply"
    told = kube.client.post(f"{path}?dryRun=true", misspelt(), content_type="application/json").json()
    assert any(each.startswith(f'Pod "wrong": {WORDS}') for each in told["warnings"])
    assert len(told["warnings"]) == 2
    strict = kube.client.post(f"{path}?fieldValidation=Strict", misspelt(), content_type="application/json")
    assert strict.status_code == 400
    assert "spec.nodeSelectr" in str(strict.json())
    with pytest.raises(InvalidManifest):
        apply_documents(cluster=cluster, objects=[misspelt()], field_validation="Strict")


@pytest.mark.parametrize("query", ["dryrun=All", "dry_run=All", "fieldvalidation=Strict"])
def test_a_misspelt_parameter_writes_nothing(kube: Kube, query: str) -> None:
    before = LogEntry.objects.count()
    answer = kube.post(f"{PODS}?{query}", make_pod("p9"))
    assert answer.status_code == 400
    assert "did you mean" in answer.json()["message"]
    assert LogEntry.objects.count() == before


def test_an_unknown_parameter_is_told(kube: Kube) -> None:
    answer = kube.get(f"{PODS}?xyz=1")
    assert (answer.status_code, 'parameter \\"xyz\\"' in answer["Warning"]) == (200, True)


@pytest.mark.parametrize("query", ["dryrun=true", "titel=x"])
def test_a_misspelt_parameter_of_the_rest_api_writes_nothing(
    kube: Kube, cluster: Cluster, query: str
) -> None:
    before = LogEntry.objects.count()
    answer = kube.client.post(
        f"/api/v1/clusters/{cluster.public_id}/apply?{query}", make_pod("p9"), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["field"]) == (400, query.partition("=")[0])
    assert LogEntry.objects.count() == before
