"""Devices in a simulated cluster: drivers publish them, claims come from templates and are given back."""

from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.releases import RELEASES
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


def is_bound(cluster: Simulation, name: str) -> bool:
    pod = pod_named(cluster, name)
    assert pod is not None
    return bool(pod.node_name)


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


@pytest.mark.parametrize("said", ["gpu", "gpu=0", "tpu=1", "gpu=1:Z9", "gpu=1,gpu=2", "gpu=129"])
def test_devices_that_cannot_be_read_are_named(said: str) -> None:
    with pytest.raises(InvalidObject, match=r"playground\.dev/devices"):
        devices_of(said)
