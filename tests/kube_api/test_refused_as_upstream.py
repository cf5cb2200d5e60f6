"""What an API server refuses of Leases, Jobs, annotations and objects of a kind that goes, in its words."""

import json
from pathlib import Path
from typing import Any

import pytest

from playground.clusters import kinds
from playground.clusters.errors import InvalidManifest, NotAllowed
from playground.clusters.log.writer import MAX_OBJECT_BYTES
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.apply import apply_documents
from scheduler_core.schema.tables import table_of
from tests.kube_api.conftest import PODS, Kube
from tests.kube_api.test_custom_resources import CRDS, GROUP, definition, made

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
REFUSED = table_of((Path(__file__).parent / "data" / "refused.yaml").read_text())
TOO_LONG = "metadata.annotations: Too long: may not be more than 262144 bytes"


@pytest.mark.parametrize("row", REFUSED["leases"])
def test_a_lease_is_checked(kube: Kube, row: dict[str, Any]) -> None:
    spec = row["spec"]
    good = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    assert kube.post(LEASES, good).status_code == 201
    for answer in (
        kube.post(LEASES, {"metadata": {"name": "b"}, "spec": spec}),
        kube.patch(f"{LEASES}/a", {"spec": spec}),
    ):
        status = answer.json()
        assert (status["code"], status["details"]["causes"][0]["field"]) == (422, f"spec.{row['field']}")
        assert row["words"] in status["message"]
    assert kube.get(f"{LEASES}/a").json()["spec"] == good["spec"]
    assert kube.get(f"{LEASES}/b").status_code == 404


def test_leases_of_coordinated_leader_election_are_taken(kube: Kube) -> None:
    strategy = "OldestEmulationVersion"
    times = {"acquireTime": "2026-01-01T00:00:00.000001Z", "renewTime": "2026-01-01T01:00:00.120000+01:00"}
    spec = {"holderIdentity": "a", "preferredHolder": "b", "strategy": strategy, **times}
    assert kube.post(LEASES, {"metadata": {"name": "a"}, "spec": spec}).json()["spec"] == spec


def job(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def indexed(**spec: Any) -> dict[str, Any]:
    return job(**{"completionMode": "Indexed", "completions": 4, **spec})


def rules(*rules: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}}


@pytest.mark.parametrize("row", REFUSED["jobs"])
def test_the_policies_of_a_job_are_checked(kube: Kube, row: dict[str, Any]) -> None:
    wrong = job(**row["spec"])
    cron = {"metadata": {"name": "j"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": wrong["spec"]}}}
    for path, document, place in ((JOBS, wrong, "spec"), (CRON_JOBS, cron, "spec.jobTemplate.spec")):
        status = kube.post(path, document).json()
        fields = [cause["field"] for cause in status["details"]["causes"]]
        assert status["code"] == 422 and f"{place}.{row['field']}" in fields
        assert row["words"] in status["message"]


def test_a_policy_that_pods_do_not_follow_is_kept_and_said(kube: Kube, cluster: Cluster) -> None:
    policies = {
        "backoffLimitPerIndex": 1, "maxFailedIndexes": 2, "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        **rules({"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0, 42]}}),
    }  # fmt: skip
    answer = kube.post(JOBS, indexed(**policies))
    assert answer.status_code == 201
    for name in policies:
        assert answer.json()["spec"][name] == policies[name]
        assert answer["Warning"].count(f"spec.{name}: is kept, but pods of Jobs do not follow it here") == 1
    assert "is kept" not in kube.post(JOBS, indexed() | {"metadata": {"name": "plain"}})["Warning"]
    other = {"apiVersion": "batch/v1", "kind": "Job", **indexed(**policies), "metadata": {"name": "k"}}
    [applied] = apply_documents(cluster=cluster, objects=[other]).created
    assert "spec.podFailurePolicy: is kept" in applied.note


@pytest.mark.parametrize("row", REFUSED["deployments"])
def test_a_field_is_refused_in_the_words_of_an_api_server(kube: Kube, row: dict[str, Any]) -> None:
    wrong, messages = row["object"], row["said"]
    status = kube.post("/apis/apps/v1/namespaces/default/deployments", wrong).json()
    name = wrong["metadata"]["name"]
    said = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    assert status["message"] == f'Deployment.apps "{name}" is invalid: {said}'
    assert [f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"]] == messages


def test_what_stays_as_it_was_made_is_refused_in_an_update(kube: Kube, cluster: Cluster) -> None:
    for row in REFUSED["updates"]:
        old, new, message = row["old"], row["new"], row["said"]
        kind = old["kind"]
        table_entry = kinds.by_kind(kind)
        assert table_entry is not None
        group = f"apis/{table_entry.api_version}" if table_entry.group else "api/v1"
        path = f"/{group}/namespaces/default/{table_entry.plural}"
        assert kube.post(path, old).status_code in (201, 409), kind
        # What changes nothing is taken, with or without defaults.
        assert kube.put(f"{path}/w", old).status_code == 200, kind
        assert kube.put(f"{path}/w", kube.get(f"{path}/w").json()).status_code == 200, kind
        for answer in (kube.put(f"{path}/w", new), kube.apply(f"{path}/w", new, query="&force=true")):
            status = answer.json()
            named = f"{kind}.{table_entry.group}" if table_entry.group else kind
            assert status["code"] == 422, (kind, status)
            assert status["message"].startswith(f'{named} "w" is invalid: {message}'), status["message"]
        with pytest.raises(InvalidManifest):
            apply_documents(cluster=cluster, objects=[new])
    # A Job that has not begun may still be told where to go, and a claim may ask for more.
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    suspended = job(suspend=True) | {"metadata": {"name": "later"}}
    assert kube.post(jobs, suspended).status_code == 201
    where = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}}
    assert kube.patch(f"{jobs}/later", where).status_code == 200
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert kube.patch("/api/v1/namespaces/default/persistentvolumeclaims/w", more).status_code == 200


def test_annotations_have_a_size(kube: Kube) -> None:
    full = {"a.example/key": "x" * (262_144 - len("a.example/key"))}
    pod = {"metadata": {"name": "p9", "annotations": full}, "spec": {"containers": [{"name": "c"}]}}
    assert kube.post(PODS, pod).status_code == 201
    before = LogEntry.objects.count()
    for answer in (
        kube.patch(f"{PODS}/p9", {"metadata": {"annotations": {"b": ""}}}),
        kube.post(
            CRDS, definition() | {"metadata": {"name": f"ranges.{GROUP}", "annotations": full | {"b": "é"}}}
        ),
    ):
        assert answer.status_code == 422
        assert TOO_LONG in answer.json()["message"]
    assert LogEntry.objects.count() == before


def large_definition(n_fields: int) -> dict[str, Any]:
    """As Argo CD's ApplicationSet, and larger: 0.7 kB a field."""
    large = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition()}
    schema = large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    prose = "What this field is, told at length. " * 20
    fields = {f"field{number}": {"type": "string", "description": prose} for number in range(n_fields)}
    schema["properties"]["spec"] = {"type": "object", "properties": fields}
    return large


def test_a_copy_that_kubectl_keeps_may_be_larger_and_that_is_told(kube: Kube, cluster: Cluster) -> None:
    """An API server refuses it; a manifest that cannot be applied is of no use here."""
    large = large_definition(1700)
    assert 2 * len(json.dumps(large)) > MAX_OBJECT_BYTES > len(json.dumps(large)) > 1_200_000
    annotations = {LAST_APPLIED: json.dumps(large), "a.example/key": "short"}
    meta = {"name": f"ranges.{GROUP}", "annotations": annotations}
    size = sum(len(key) + len(text) for key, text in annotations.items())
    created = kube.post(CRDS, definition() | {"metadata": meta})
    assert created.status_code == 201
    assert created.json()["metadata"]["annotations"] == annotations
    patched = kube.patch(f"{CRDS}/ranges.{GROUP}", {"metadata": {"labels": {"a": "b"}}})
    assert patched.status_code == 200
    for answer in (created, patched):
        assert f"its annotations have {size} bytes, more than 262144" in answer["Warning"]
        assert answer["Warning"].count("use kubectl apply --server-side") == 1
    whole = large | {"metadata": meta}
    [applied] = apply_documents(cluster=cluster, objects=[whole]).configured
    assert "kept, plays no part" in applied.note and "use kubectl apply --server-side" in applied.note
    before = LogEntry.objects.count()
    more = {"metadata": {"annotations": {"a.example/key": "x" * 262_144}}}
    refused = kube.patch(f"{CRDS}/ranges.{GROUP}", more)
    assert (refused.status_code, LogEntry.objects.count()) == (422, before)
    assert TOO_LONG in refused.json()["message"]
    fitting = kube.patch(f"{CRDS}/ranges.{GROUP}", {"metadata": {"annotations": {LAST_APPLIED: None}}})
    assert (fitting.status_code, fitting.get("Warning", "")) == (200, "")


def test_no_object_of_a_kind_that_goes_is_made(kube: Kube, cluster: Cluster) -> None:
    assert kube.post(CRDS, definition()).status_code == 201
    path = f"/apis/{GROUP}/v1/namespaces/default/ranges"
    held = {"metadata": {"name": "held", "finalizers": ["rules.example/hold"]}, "spec": {"min": 1}}
    assert kube.post(path, held).status_code == 201
    going = kube.delete(f"{CRDS}/ranges.{GROUP}").json()
    [condition] = [item for item in going["status"]["conditions"] if item["type"] == "Terminating"]
    assert (condition["status"], condition["reason"]) == ("True", "InstanceDeletionInProgress")
    # A second time nothing changes.
    assert kube.delete(f"{CRDS}/ranges.{GROUP}").json()["metadata"] == going["metadata"]
    status = kube.post(path, made(min=1)).json()
    assert (status["code"], status["reason"]) == (405, "MethodNotAllowed")
    assert status["message"] == "create not allowed while custom resource definition is terminating"
    whole = {"apiVersion": f"{GROUP}/v1", "kind": "Ranges", **made(min=1)}
    assert kube.apply(f"{path}/a", whole).status_code == 405
    cluster.refresh_from_db()
    with pytest.raises(NotAllowed):
        apply_documents(cluster=cluster, objects=[whole])
    # What is there can still be changed, and the last one that goes takes the definition along.
    assert kube.patch(f"{path}/held", {"spec": {"min": 2}}).status_code == 200
    assert kube.patch(f"{path}/held", {"metadata": {"finalizers": None}}).status_code == 200
    assert kube.post(path, made(min=1)).status_code == 404
