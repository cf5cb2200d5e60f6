"""Devices in a simulated cluster: drivers publish them, claims come from templates and are given back."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.releases import RELEASES, Release
from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.controllers.device_driver import DEVICES, devices_of
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    make_cluster,
    make_node,
    make_pod,
    pod_named,
    reborn,
    state,
    write,
)
from tests.scheduler_core.stored import prepare

ALL = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)


def node_with(devices: str, name: str = "gpu-node") -> dict[str, Any]:
    node = make_node(name)
    node["metadata"]["annotations"] = {DEVICES: devices}
    return node


def template(name: str, kind: str = "gpu", **request: Any) -> dict[str, Any]:
    exactly = {
        "deviceClassName": f"{kind}.playground.dev",
        "allocationMode": "ExactCount",
        "count": 1,
        **request,
    }
    spec = {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}}
    meta = {"name": name}
    return prepare(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}
    )


def claiming(name: str, of: str = "one-gpu", **spec: Any) -> dict[str, Any]:
    claims = [{"name": "device", "resourceClaimTemplateName": of}]
    return make_pod(name, resourceClaims=claims, **spec)


def claims_of(cluster: Simulation) -> list[dict[str, Any]]:
    return [dict(stored.manifest) for stored in cluster.world.all("ResourceClaim")]


def devices_given(cluster: Simulation) -> list[str]:
    return sorted(
        result["device"]
        for claim in claims_of(cluster)
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    )


def is_bound(cluster: Simulation, name: str) -> bool:
    pod = pod_named(cluster, name)
    assert pod is not None
    return bool(pod.node_name)


@ALL
def test_a_pod_has_its_device_from_its_template_until_it_ends(release: Release) -> None:
    cluster = make_cluster(1, node_with("gpu=1"), template("one-gpu"), release=release)
    write(cluster, claiming("first"), claiming("second"))
    cluster.run_until_idle()
    assert (is_bound(cluster, "first"), is_bound(cluster, "second")) == (True, False)
    [mine] = [claim for claim in claims_of(cluster) if claim.get("status", {}).get("reservedFor")]
    assert mine["metadata"]["name"].startswith("first-device-")
    assert mine["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "device"}
    assert devices_given(cluster) == ["gpu-0"]
    again = reborn(cluster)
    assert state(again) == state(cluster)
    for it in (cluster, again):
        it.submit(DeleteObject("Pod", "default", "first", 0))
        it.run_until_idle()
        # The claim went with its pod, and what it held went to the pod that waited.
        assert [claim["metadata"]["name"].startswith("second-") for claim in claims_of(it)] == [True]
        assert is_bound(it, "second")
        assert devices_given(it) == ["gpu-0"]
    assert state(again) == state(cluster)


@ALL
def test_a_shared_claim_is_deallocated_with_its_last_pod_and_stays(release: Release) -> None:
    spec = template("any")["spec"]["spec"]
    claim = prepare(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "shared", "uid": "shared"},
            "spec": spec,
        }
    )
    users = [
        make_pod(
            name,
            resourceClaims=[{"name": "device", "resourceClaimName": "shared"}],
            restartPolicy="Never",
            annotations={"playground.dev/duration": duration},
        )
        for name, duration in (("a", "10s"), ("b", "20s"))
    ]
    cluster = make_cluster(0, node_with("gpu=2"), claim, *users, release=release)
    cluster.advance(15 * 10**9)
    [held] = claims_of(cluster)
    assert [user["name"] for user in held["status"]["reservedFor"]] == ["b"]
    cluster.run_until_idle()
    [free] = claims_of(cluster)
    assert not free["status"]
    assert "finalizers" not in free["metadata"]


def test_a_pod_whose_template_comes_later_gets_its_claim_then() -> None:
    cluster = make_cluster(0, node_with("gpu=1"), claiming("early"), release=RELEASES["1.36"])
    cluster.run_until_idle()
    assert not is_bound(cluster, "early") and not claims_of(cluster)
    again = reborn(cluster)
    for it in (cluster, again):
        write(it, template("one-gpu"))
        it.run_until_idle()
        assert is_bound(it, "early")
    assert state(again) == state(cluster)


def test_a_gpu_is_given_out_in_parts_as_long_as_its_counters_last() -> None:
    cel = {"cel": {"expression": 'device.attributes["gpu.playground.dev"].profile == "3g.40gb"'}}
    cluster = make_cluster(0, node_with("mig=1"), release=RELEASES["1.36"])
    write(cluster, template("part", "mig", selectors=[cel]), *(claiming(name, "part") for name in "abc"))
    cluster.run_until_idle()
    assert [is_bound(cluster, name) for name in "abc"] == [True, True, False]
    assert devices_given(cluster) == ["gpu-0-mig-3g-40gb-0", "gpu-0-mig-3g-40gb-4"]


def test_classes_stand_behind_resources_from_when_they_come_until_they_go() -> None:
    """All pods have one spec, so what was answered about one is said of the next until the classes change."""
    cluster = make_cluster(0, node_with("gpu=12"), release=RELEASES["1.36"])
    amounts = {"example.com/one": "1", "example.com/other": "1"}
    wants = [{"name": "main", "image": "app", "resources": {"requests": amounts}}]

    def behind(name: str) -> dict[str, Any]:
        spec = {"extendedResourceName": f"example.com/{name}"}
        meta = {"name": name, "uid": name}
        return prepare(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": meta, "spec": spec}
        )

    gone = DeleteObject("DeviceClass", "", "one", 0)
    bound = []
    for place, change in enumerate((behind("one"), behind("other"), gone, behind("one"))):
        if isinstance(change, DeleteObject):
            cluster.submit(change)
        else:
            write(cluster, change)
        write(cluster, make_pod(f"p{place}", containers=wants))
        cluster.run_until_idle()
        bound.append(is_bound(cluster, f"p{place}"))
    assert bound == [False, True, False, True]


def test_a_driver_publishes_what_a_node_says_and_takes_back_what_it_says_no_longer() -> None:
    cluster = make_cluster(0, node_with("gpu=2,nic=1"), release=RELEASES["1.36"])
    assert len(cluster.world.all("ResourceSlice")) == 2
    classes = {stored.manifest["metadata"]["name"] for stored in cluster.world.all("DeviceClass")}
    assert classes == {"gpu.playground.dev", "nic.playground.dev"}
    write(cluster, node_with("gpu=4"))
    [stored] = cluster.world.all("ResourceSlice")
    assert len(stored.manifest["spec"]["devices"]) == 4
    assert stored.manifest["spec"]["pool"]["generation"] == 2
    cluster.submit(DeleteObject("Node", "", "gpu-node", 0))
    assert not cluster.world.all("ResourceSlice")


@pytest.mark.parametrize("said", ["gpu", "gpu=0", "tpu=1", "gpu=1:Z9", "gpu=1,gpu=2", "gpu=129"])
def test_devices_that_cannot_be_read_are_named(said: str) -> None:
    with pytest.raises(InvalidObject, match=r"playground\.dev/devices"):
        devices_of(said)
