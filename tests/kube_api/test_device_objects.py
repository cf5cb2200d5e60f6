"""Claims, templates, slices, device classes and groups as objects of a cluster, through every door."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters.errors import InvalidManifest
from playground.clusters.lifecycle import create_cluster, export_manifests, reset_cluster
from playground.clusters.models import Cluster, Manifest, Pod
from playground.clusters.objects.apply import apply_documents
from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.objects.reading import WRONG, type_of
from scheduler_core.scenario import ScenarioError
from scheduler_core.scenario.load import load_scenario
from tests.clusters.builders import make_cluster, run
from tests.clusters.devices import GROUP, claim, claiming, gpu_node, template
from tests.kube_api.conftest import TABLE, Kube
from tests.manifests import make_object
from tests.tables import table

CLAIMS = f"/apis/{GROUP}/namespaces/default/resourceclaims"


@pytest.fixture
def pool(db: None, wakes: list[Any]) -> Cluster:
    """One node with two GPUs and two pods that want one each, decided."""
    cluster = make_cluster(gpu_node(), template(), claiming("a"), claiming("b"), claim())
    run(cluster)
    return cluster


@pytest.fixture
def kube(client: Client, pool: Cluster) -> Kube:
    return Kube(client, f"/k8s/{pool.public_id}")


def devices_of(cluster: Cluster) -> dict[str, list[str]]:
    """Pod -> devices of its claims, by the rows."""
    found: dict[str, list[str]] = {}
    for row in Manifest.objects.filter(cluster=cluster, kind="ResourceClaim").order_by("name"):
        status = row.manifest.get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        for user in status.get("reservedFor") or ():
            found.setdefault(user["name"], []).extend(item["device"] for item in results)
    return found


def test_what_the_cluster_decides_about_claims_is_stored_and_listed(kube: Kube, pool: Cluster) -> None:
    assert devices_of(pool) == {"a": ["gpu-0"], "b": ["gpu-1"]}
    rows = kube.get(CLAIMS, accept=TABLE).json()["rows"]
    states = {row["cells"][0].rsplit("-", 1)[0]: row["cells"][1] for row in rows}
    assert states == {"a-gpu": "allocated,reserved", "b-gpu": "allocated,reserved", "shared": "pending"}
    [made] = [
        item for item in kube.get(CLAIMS).json()["items"] if item["metadata"]["name"].startswith("a-gpu-")
    ]
    assert made["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    slices = kube.get(f"/apis/{GROUP}/resourceslices", accept=TABLE).json()
    assert [column["name"] for column in slices["columnDefinitions"]] == [
        "Name",
        "Node",
        "Driver",
        "Pool",
        "Age",
    ]
    assert slices["rows"][0]["cells"][1:4] == ["g1", "gpu.playground.dev", "g1-gpu"]
    more = kube.get(f"{CLAIMS}/shared").json() | {"spec": claim(count=2)["spec"]}
    assert "field is immutable" in kube.put(f"{CLAIMS}/shared", more).json()["message"]
    classes = kube.get(f"/apis/{GROUP}/deviceclasses").json()["items"]
    assert [item["metadata"]["name"] for item in classes] == ["gpu.playground.dev"]


def test_a_copy_a_reset_and_an_import_decide_the_devices_again(pool: Cluster) -> None:
    before = devices_of(pool)
    text = "".join(export_manifests(pool))
    for kind in ("ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "ResourceClaim"):
        assert f"kind: {kind}\n" in text
    copied = make_cluster()
    apply_documents(cluster=copied, text=text)
    assert devices_of(copied) == before
    run(copied)
    assert Pod.objects.filter(cluster=copied, node_name="g1").count() == 2
    reset_cluster(cluster=pool)
    assert not Manifest.objects.filter(cluster=pool, kind="ResourceSlice").exists()
    assert Manifest.objects.filter(cluster=pool, kind="ResourceClaimTemplate").count() == 1
    pool.refresh_from_db()
    run(pool)
    assert devices_of(pool) == before


def test_a_deleted_pod_gives_its_device_to_the_one_that_waits(pool: Cluster, kube: Kube) -> None:
    apply_documents(cluster=pool, objects=[claiming("c")])
    run(pool)
    assert "c" not in devices_of(pool)
    kube.delete("/api/v1/namespaces/default/pods/a", {"gracePeriodSeconds": 0})
    pool.refresh_from_db()
    run(pool)
    assert devices_of(pool) == {"b": ["gpu-1"], "c": ["gpu-0"]}


@pytest.mark.parametrize(
    ("change", "path", "words"),
    table(__file__, "what_an_api_server_refuses_of_a_claim_is_refused_and_nothing_kept"),
)
def test_what_an_api_server_refuses_of_a_claim_is_refused_and_nothing_kept(
    pool: Cluster, change: dict[str, Any], path: str, words: str
) -> None:
    broken = claim("broken")
    broken["spec"]["devices"]["requests"][0].update(change)
    with pytest.raises(InvalidManifest) as caught:
        apply_documents(cluster=pool, objects=[claim("fine"), broken])
    assert caught.value.path.endswith(path) and words in caught.value.message
    assert not Manifest.objects.filter(cluster=pool, name="fine").exists()


def test_the_first_beta_is_read_as_today_is_written(pool: Cluster) -> None:
    flat = claim("flat")
    [request] = flat["spec"]["devices"]["requests"]
    flat["spec"]["devices"]["requests"] = [{"name": "gpu", **request["exactly"], "count": 2}]
    slice_of_old = make_object(
        "resource.k8s.io/v1beta1",
        "ResourceSlice",
        "old",
        spec={
            "driver": "old.example",
            "nodeName": "g1",
            "pool": {"name": "old", "resourceSliceCount": 1},
            "devices": [{"name": "d0", "basic": {"attributes": {"model": {"string": "x"}}}}],
        },
    )
    apply_documents(cluster=pool, objects=[{**flat, "apiVersion": "resource.k8s.io/v1beta1"}, slice_of_old])
    stored = Manifest.objects.get(cluster=pool, name="flat").manifest
    assert stored["apiVersion"] == GROUP
    assert stored["spec"]["devices"]["requests"] == [
        {
            "name": "gpu",
            "exactly": {"deviceClassName": "gpu.playground.dev", "count": 2, "allocationMode": "ExactCount"},
        }
    ]
    [device] = Manifest.objects.get(cluster=pool, name="old").manifest["spec"]["devices"]
    assert device == {"name": "d0", "attributes": {"model": {"string": "x"}}}


def test_groups_and_workloads_are_kept_and_a_broken_one_is_refused(pool: Cluster) -> None:
    policy = {"gang": {"minCount": 2}}
    group = make_object(
        "scheduling.k8s.io/v1alpha2", "PodGroup", "g", namespace="default", spec={"schedulingPolicy": policy}
    )
    workload = {
        **group,
        "kind": "Workload",
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": policy}]},
    }
    apply_documents(cluster=pool, objects=[workload, group])
    assert {"PodGroup", "Workload"} <= set(
        Manifest.objects.filter(cluster=pool).values_list("kind", flat=True)
    )
    for broken in ({**group, "spec": {}}, {**workload, "spec": {"podGroupTemplates": []}}):
        with pytest.raises(InvalidManifest):
            apply_documents(cluster=pool, objects=[broken])


# ---- DeviceTaintRules

RESOURCES = "resource.k8s.io"
SERVED = [("1.34", ["v1alpha3"]), ("1.35.6", ["v1alpha3"]), ("1.36", ["v1alpha3", "v1beta2"])]


def rule(version: str, selector: dict[str, Any] | None = None, **taint: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"taint": {"key": "example.com/broken", "effect": "NoExecute", **taint}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return make_object(f"{RESOURCES}/{version}", "DeviceTaintRule", "r", spec=spec)


def kube_of(client: Client, release: str) -> Kube:
    cluster = create_cluster(name="c", kubernetes_release=release)
    return Kube(client, f"/k8s/{cluster.public_id}")


@pytest.mark.parametrize(("release", "versions"), SERVED)
def test_it_is_served_by_the_release(client: Client, db: None, release: str, versions: list[str]) -> None:
    kube = kube_of(client, release)
    group = kube.get(f"/apis/{RESOURCES}").json()
    assert [item["version"] for item in group["versions"]] == ["v1", *reversed(versions)]
    for version in ("v1alpha3", "v1beta2"):
        path = f"/apis/{RESOURCES}/{version}/devicetaintrules"
        if version not in versions:
            assert kube.post(path, rule(version)).status_code == 404
            words = f"{RESOURCES}/{version} is not served here: DeviceTaintRule is {RESOURCES}/v1alpha3"
            assert type_of(f"{RESOURCES}/{version}", "DeviceTaintRule", release) == (
                WRONG,
                "apiVersion",
                words,
            )
            with pytest.raises(InvalidManifest, match=words):
                apply_documents(cluster=Cluster.objects.get(), objects=[rule(version)])
            with pytest.raises(ScenarioError, match=words):
                load_scenario(scenario_of_dump([rule(version)], kubernetesRelease=release))
            continue
        assert [item["name"] for item in kube.get(f"/apis/{RESOURCES}/{version}").json()["resources"]] == [
            "devicetaintrules",
            "devicetaintrules/status",
        ]
        assert kube.post(path, rule(version, {"pool": "a"})).status_code == 201
        for read in versions:
            found = kube.get(f"/apis/{RESOURCES}/{read}/devicetaintrules/r").json()
            assert found["apiVersion"] == f"{RESOURCES}/{read}" and found["spec"]["deviceSelector"] == {
                "pool": "a"
            }
        columns = kube.get(path, accept=TABLE).json()
        assert [item["name"] for item in columns["columnDefinitions"]] == [
            "Name", "Key", "Value", "Effect", "TimeAdded", "Age",
        ]  # fmt: skip
        assert columns["rows"][0]["cells"][:5] == ["r", "example.com/broken", "", "NoExecute", ""]
        assert kube.delete(f"{path}/r").status_code == 200
    explained = kube.get(f"/openapi/v3/apis/{RESOURCES}/{versions[-1]}").json()
    assert any(name.endswith("DeviceTaintRule") for name in explained["components"]["schemas"])


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
)


@pytest.mark.parametrize(
    ("selector", "taint", "words"),
    table(__file__, "what_an_api_server_refuses_is_refused"),
)
def test_what_an_api_server_refuses_is_refused(
    client: Client, db: None, selector: dict[str, Any] | None, taint: dict[str, str], words: str
) -> None:
    kube = kube_of(client, "1.36")
    refused = kube.post(f"/apis/{RESOURCES}/v1beta2/devicetaintrules", rule("v1beta2", selector, **taint))
    assert refused.status_code == 422 and words in refused.json()["message"]
