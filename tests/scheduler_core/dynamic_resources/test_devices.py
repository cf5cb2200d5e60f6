"""Devices in a whole simulated cluster: claims are allocated, shared, written and gone on with."""

from typing import Any

import pytest

from scheduler_core.clock import SECOND_NS
from scheduler_core.dynamic_resources.allocator import Allocated, Allocator
from scheduler_core.dynamic_resources.model import claim_from, slice_from
from scheduler_core.dynamic_resources.selectors import DeviceSelectorError, compiled
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.node import node_from
from scheduler_core.releases import RELEASES
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.tables import table

GPU = 'device.driver == "gpu.x"'


def cluster(release: str, **gates: bool) -> Simulation:
    """Two nodes, the second of them with one device, and a class that stands behind a resource."""
    simulation = Simulation(seed=1, release=RELEASES[release].with_gates(gates))
    for name in ("a", "b"):
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}
        put(simulation, "v1", "Node", name, status=status)
        put(simulation, "resource.k8s.io/v1", "ResourceSlice", f"slice-{name}", spec=slice_spec(name))
    spec = {"selectors": [{"cel": {"expression": GPU}}], "extendedResourceName": "example.com/gpu"}
    put(simulation, "resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
    return simulation


def put(simulation: Simulation, version: str, kind: str, name: str, **body: Any) -> None:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **body}
    simulation.submit(WriteObject(prepare(manifest)))


def slice_spec(node: str) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "d0"}] if node == "b" else []
    return {"driver": "gpu.x", "nodeName": node, "pool": pool, "devices": devices}


def claim(simulation: Simulation, name: str, **more: Any) -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **more}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    put(simulation, "resource.k8s.io/v1", "ResourceClaim", name, spec=spec)


def pod(simulation: Simulation, name: str, claim_name: str) -> None:
    claims = [{"name": "x", "resourceClaimName": claim_name}]
    put(simulation, "v1", "Pod", name, spec={"containers": [{"name": "c"}], "resourceClaims": claims})


def sentences(simulation: Simulation) -> list[str]:
    return [trace.explain()["sentence"] for trace in simulation.drain_cycles()]


@pytest.mark.parametrize("release", RELEASES)
def test_two_pods_share_a_claim_and_a_second_claim_finds_no_device(release: str) -> None:
    simulation = cluster(release)
    claim(simulation, "shared")
    claim(simulation, "late")
    for name in ("p", "q"):
        pod(simulation, name, "shared")
    pod(simulation, "r", "late")
    simulation.run_until_idle()
    first, second, third = sentences(simulation)
    assert first == "default/p bound to b: the only feasible node of 2."
    assert second == "default/q bound to b: the only feasible node of 2."
    assert "2 cannot allocate all claims" in third
    [stored] = [
        item.manifest for item in simulation.world.all("ResourceClaim") if item.manifest.get("status")
    ]
    assert [entry["name"] for entry in stored["status"]["reservedFor"]] == ["p", "q"]
    [result] = stored["status"]["allocation"]["devices"]["results"]
    assert (result["pool"], result["device"]) == ("b", "d0")


@pytest.mark.parametrize("release", RELEASES)
def test_a_restored_cluster_goes_on_with_its_devices(release: str) -> None:
    simulation = cluster(release)
    claim(simulation, "c")
    pod(simulation, "p", "c")
    simulation.run_until_idle()
    simulation.drain_cycles()
    restored = Simulation.restore(simulation.checkpoint())
    for one in (simulation, restored):
        claim(one, "d")
        pod(one, "q", "d")
        one.run_until_idle()
    assert sentences(simulation) == sentences(restored)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chosen", [None, {}, {"driver": "gpu.x", "pool": "b", "device": "d0"}])
def test_a_rule_taints_devices_where_its_gate_is_on(release: str, chosen: dict[str, str] | None) -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    spec = {"taint": taint} if chosen is None else {"taint": taint, "deviceSelector": chosen}
    gates = ("DRADeviceTaints", "DRADeviceTaintRules")
    on = {name: True for name in gates if name in RELEASES[release].gates}
    off = dict.fromkeys(on, False)
    told = []
    for switched, tolerations in ((off, []), (on, [{"operator": "Exists"}]), (on, [])):
        simulation = cluster(release, **switched)
        put(simulation, "resource.k8s.io/v1alpha3", "DeviceTaintRule", "r", spec=spec)
        claim(simulation, "c", tolerations=tolerations)
        pod(simulation, "p", "c")
        simulation.run_until_idle()
        told += sentences(simulation)
    bound = "default/p bound to b: the only feasible node of 2."
    assert told[:2] == [bound, bound] and "2 cannot allocate all claims" in told[2]
    # A rule that chooses no device wakes no pod; one that goes wakes them, as a change of the slices it tainted.
    other = {"taint": taint, "deviceSelector": {"driver": "net.y"}}
    put(simulation, "resource.k8s.io/v1alpha3", "DeviceTaintRule", "other", spec=other)
    simulation.advance(60 * SECOND_NS)
    assert sentences(simulation) == []
    simulation.submit(DeleteObject("DeviceTaintRule", "", "r"))
    simulation.advance(60 * SECOND_NS)
    assert sentences(simulation) == [bound]


def device(**attributes: Any) -> Any:
    spec = {"driver": "gpu.x", "pool": {"name": "p"}, "devices": [{"name": "d", "attributes": attributes}]}
    return slice_from({"metadata": {"name": "s"}, "spec": spec}).devices()[0]


@pytest.mark.parametrize(
    ("expression", "matches"), table(__file__, "expressions_read_as_kubernetes_reads_them")
)
def test_expressions_read_as_kubernetes_reads_them(expression: str, matches: bool) -> None:
    asked = device(gen={"int": 3}, version={"version": "1.2.0"})
    assert compiled(expression).matches(asked) is matches


@pytest.mark.parametrize(
    ("expression", "words"),
    table(__file__, "an_expression_that_fails_says_why"),
)
def test_an_expression_that_fails_says_why(expression: str, words: str) -> None:
    with pytest.raises(DeviceSelectorError, match=words):
        compiled(expression).matches(device())


def counted_slices(driver: str, total: str, **taken: dict[str, str]) -> list[Any]:
    """A pool `p` of devices that take of the counters `mem` and `cores`: (device=amounts)."""

    def amounts(of: dict[str, str]) -> dict[str, Any]:
        return {name: {"value": value} for name, value in of.items()}

    counters = [{"name": "cs", "counters": amounts({"mem": total, "cores": "8"})}]
    devices = [
        {"name": name, "consumesCounters": [{"counterSet": "cs", "counters": amounts(of)}] if of else []}
        for name, of in taken.items()
    ]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    whole = {"driver": driver, "pool": pool, "allNodes": True}
    return [
        slice_from({"metadata": {"name": f"{driver}-{number}"}, "spec": whole | body})
        for number, body in enumerate([{"sharedCounters": counters}, {"devices": devices}])
    ]


def given(slices: list[Any], allocated: set[tuple[str, str, str]], driver: str) -> list[str] | None:
    """The devices that a claim for one device of a driver gets."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    classes = {driver: {"metadata": {"name": driver}, "spec": {"selectors": [selector]}}}
    exactly = {"deviceClassName": driver, "allocationMode": "ExactCount", "count": 1}
    requests = [{"name": "r", "exactly": exactly}]
    metadata = {"name": "c", "namespace": "default", "uid": "c"}
    wanted = claim_from({"metadata": metadata, "spec": {"devices": {"requests": requests}}})
    allocator = Allocator(slices, classes, Allocated(allocated), RELEASES["1.36"])
    found = allocator.allocate(node_from({"metadata": {"name": "n"}}), [wanted])
    return None if found is None else [item["device"] for item in found[0]["devices"]["results"]]


def test_an_overdrawn_counter_blocks_every_device_of_its_pool_that_takes_of_any_counter() -> None:
    devices = {"big": {"mem": "8"}, "other": {"cores": "1"}, "plain": {}}
    allocated = {("a.x", "p", "big")}
    assert given(counted_slices("a.x", "8", **devices), allocated, "a.x") == ["other"]
    # The pool was given less memory after `big` was allocated.
    assert given(counted_slices("a.x", "4", **devices), allocated, "a.x") == ["plain"]
