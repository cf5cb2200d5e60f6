"""Claims, templates, slices, device classes and groups as objects of a cluster, through every door."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from playground.clusters import services
from playground.clusters.errors import InvalidManifest
from playground.clusters.models import Cluster, Manifest, Pod
from playground.clusters.services.memory import EngineMemory
from playground.engine import Budget
from tests.clusters.builders import make_cluster
from tests.clusters.devices import GROUP, claim, claiming, gpu_node, template
from tests.kube_api.conftest import TABLE, Kube


def work(cluster: Cluster) -> None:
    """Decide until nothing is left to be done."""
    services.request_run(cluster=cluster, until="idle")
    visit = services.Visit(wall_s=60, batch=Budget(wall_s=60, max_cycles=50))
    report = services.advance(cluster_id=cluster.pk, memory=EngineMemory(), visit=visit)
    cluster.refresh_from_db()
    assert report.state in ("driven", "idle"), cluster.last_error


CLAIMS = f"/apis/{GROUP}/namespaces/default/resourceclaims"


@pytest.fixture
def pool(db: None, wakes: list[Any]) -> Cluster:
    """One node with two GPUs and two pods that want one each, decided."""
    cluster = make_cluster(gpu_node(), template(), claiming("a"), claiming("b"), claim())
    work(cluster)
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
    classes = kube.get(f"/apis/{GROUP}/deviceclasses").json()["items"]
    assert [item["metadata"]["name"] for item in classes] == ["gpu.playground.dev"]


def test_a_copy_a_reset_and_an_import_decide_the_devices_again(pool: Cluster) -> None:
    before = devices_of(pool)
    text = "".join(services.export_manifests(pool))
    for kind in ("ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "ResourceClaim"):
        assert f"kind: {kind}\n" in text
    copied = make_cluster()
    services.apply_documents(cluster=copied, text=text)
    assert devices_of(copied) == before
    work(copied)
    assert Pod.objects.filter(cluster=copied, node_name="g1").count() == 2
    services.reset_cluster(cluster=pool)
    assert not Manifest.objects.filter(cluster=pool, kind="ResourceSlice").exists()
    assert Manifest.objects.filter(cluster=pool, kind="ResourceClaimTemplate").count() == 1
    pool.refresh_from_db()
    work(pool)
    assert devices_of(pool) == before


def test_a_deleted_pod_gives_its_device_to_the_one_that_waits(pool: Cluster, kube: Kube) -> None:
    services.apply_documents(cluster=pool, objects=[claiming("c")])
    work(pool)
    assert "c" not in devices_of(pool)
    kube.delete("/api/v1/namespaces/default/pods/a", {"gracePeriodSeconds": 0})
    pool.refresh_from_db()
    work(pool)
    assert devices_of(pool) == {"b": ["gpu-1"], "c": ["gpu-0"]}


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"name": "UPPER"}, "spec.devices.requests[0].name", "a lowercase RFC 1123 label must consist of"),
        (
            {"exactly": {"deviceClassName": "G_"}},
            "spec.devices.requests[0].exactly.deviceClassName",
            "a lowercase RFC 1123 subdomain must consist of",
        ),
        ({"exactly": {"deviceClassName": ""}}, "spec.devices.requests[0].exactly.deviceClassName", ""),
        ({"exactly": {"deviceClassName": "x", "count": -1}}, "spec.devices.requests[0].exactly.count", ""),
        (
            {"exactly": {"deviceClassName": "x", "selectors": [{"cel": {"expression": "device.("}}]}},
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            "",
        ),
        ({"exactly": None}, "spec.devices.requests[0]", ""),
    ],
)
def test_what_an_api_server_refuses_of_a_claim_is_refused_and_nothing_kept(
    pool: Cluster, change: dict[str, Any], path: str, words: str
) -> None:
    broken = claim("broken")
    broken["spec"]["devices"]["requests"][0].update(change)
    with pytest.raises(InvalidManifest) as caught:
        services.apply_documents(cluster=pool, objects=[claim("fine"), broken])
    assert caught.value.path.endswith(path) and words in caught.value.message
    assert not Manifest.objects.filter(cluster=pool, name="fine").exists()


def test_the_first_beta_is_read_as_today_is_written(pool: Cluster) -> None:
    flat = claim("flat")
    [request] = flat["spec"]["devices"]["requests"]
    flat["spec"]["devices"]["requests"] = [{"name": "gpu", **request["exactly"], "count": 2}]
    slice_of_old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "metadata": {"name": "old"},
        "spec": {
            "driver": "old.example",
            "nodeName": "g1",
            "pool": {"name": "old", "resourceSliceCount": 1},
            "devices": [{"name": "d0", "basic": {"attributes": {"model": {"string": "x"}}}}],
        },
    }
    services.apply_documents(
        cluster=pool, objects=[{**flat, "apiVersion": "resource.k8s.io/v1beta1"}, slice_of_old]
    )
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
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    }
    workload = {
        **group,
        "kind": "Workload",
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": policy}]},
    }
    services.apply_documents(cluster=pool, objects=[workload, group])
    assert {"PodGroup", "Workload"} <= set(
        Manifest.objects.filter(cluster=pool).values_list("kind", flat=True)
    )
    for broken in ({**group, "spec": {}}, {**workload, "spec": {"podGroupTemplates": []}}):
        with pytest.raises(InvalidManifest):
            services.apply_documents(cluster=pool, objects=[broken])
