"""Kubernetes 1.37 by what its notes and the published output of real clusters say."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler_core.dynamic_resources.allocation import AllocationError, consumed, has_room
from scheduler_core.dynamic_resources.allocator import Constraint
from scheduler_core.dynamic_resources.model import slice_from
from scheduler_core.dynamic_resources.selectors import DeviceSelectorError, compiled
from scheduler_core.errors import ConfigurationError
from scheduler_core.framework.cluster_event import NODE, ActionType, ClusterEvent
from scheduler_core.framework.example import scores
from scheduler_core.objects.pod import pod_from, resized_as_sums
from scheduler_core.objects.reading import type_of
from scheduler_core.plugins.image_locality import ImageLocality
from scheduler_core.plugins.inter_pod_affinity import InterPodAffinity
from scheduler_core.releases import FROM_NOTES, NOT_MODELLED, PROVED, RELEASES, differences, release_named
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.scenario.upgrade import preview
from scheduler_core.sim.simulation import Simulation
from tests import manifests
from tests.manifests import make_object, node, scenario
from tests.tables import table

NO_CLAIMS = "no new claims to deallocate, "
NO_VICTIMS = "No preemption victims found for incoming pod."


def pod(name: str, cpu: str, priority: int = 0, on: str = "", **spec: Any) -> dict[str, Any]:
    where = {"nodeName": on} if on else {}
    how = {"priorityClassName": "high"} if priority else {}
    return manifests.pod(name, cpu, labels={"app": name.partition("-")[0]}, **where, **how, **spec)


def decided(release: str, *objects: dict[str, Any], then: tuple[dict[str, Any], ...] = ()) -> Simulation:
    document = scenario(objects=[HIGH, *objects], steps=[{"run": "cycle"}, *then])
    return run_scenario(load_scenario(json.dumps(document)), release=release_named(release)).simulation


def told(simulation: Simulation, name: str) -> str:
    found = simulation.world.pod("default", name)
    assert found is not None
    [condition] = [item for item in found.manifest["status"]["conditions"] if item["type"] == "PodScheduled"]
    return str(condition["message"])


HIGH = table(__file__, "HIGH")
NODES = [node(f"n{number}", "2") for number in (1, 2, 3)]
WEB = [pod(f"web-{number}", "1", on=f"n{number}") for number in (1, 2, 3)]
LOW = [pod(f"low-{number}", "500m", on=f"n{number}") for number in (1, 2, 3)]
EVEN = [pod(f"even-{number}", "1", 10, on=f"n{number}") for number in (1, 2, 3)]
APART = table(__file__, "APART")


@pytest.mark.parametrize(
    ("objects", "told_first", "told_then"),
    [
        ([*WEB, pod("big", "2")], "3 Insufficient cpu", NO_VICTIMS),
        (
            [pod("big", "1", nodeSelector={"disk": "ssd"})],
            "3 node(s) didn't match Pod's node affinity/selector",
            "Preemption is not helpful for scheduling.",
        ),
        ([*WEB, pod("big", "1", **APART)], "3 node(s) didn't match pod anti-affinity rules", NO_VICTIMS),
        ([*LOW, *EVEN, pod("big", "2", 10)], "3 Insufficient cpu", "Insufficient cpu."),
    ],
    ids=["no victims", "not helpful", "anti-affinity", "lower pods do not help"],
)
def test_a_pod_without_a_node_is_told_as_by_real_clusters(
    objects: list[dict[str, Any]], told_first: str, told_then: str
) -> None:
    none = "0/3 nodes are available: "
    for release, between in (("1.37", ""), ("1.36", NO_CLAIMS)):
        message = f"{none}{told_first}. {between}preemption: {none}3 {told_then}"
        assert told(decided(release, *NODES, *objects), "big") == message


def test_a_pod_that_preempts_is_told_where_and_how_many_go() -> None:
    low = [pod(f"low-{number}", "1", on="minikube-m02") for number in (1, 2)]
    objects = [node("minikube", "1"), node("minikube-m02", "2"), *low, pod("high", "2", 10)]
    first = told(decided("1.37", *objects), "high")
    assert first == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for pod on node "
        "minikube-m02, preempting 2 victims"
    )
    assert told(decided("1.36", *objects), "high") == "0/2 nodes are available: 2 Insufficient cpu."
    # Woken by the first victim's end, while the second one still ends.
    gone = {"kind": "Pod", "name": "low-1", "gracePeriodSeconds": 0}
    again = ({"delete": gone}, {"advance": "2s"})
    assert told(decided("1.37", *objects, then=again), "high") == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on the "
        "nominated node."
    )


def resized(first: tuple[str, str], second: tuple[str, str]) -> dict[str, Any]:
    """A pod of two containers: what each asks for, and what it has."""
    given = pod("p", first[0])
    other = {"name": "d", "image": "i", "resources": {"requests": {"cpu": second[0]}}}
    given["spec"]["containers"].append(other)
    given["status"] = {
        "containerStatuses": [
            {"name": name, "resources": {"requests": {"cpu": has}}, "allocatedResources": {"cpu": has}}
            for name, has in (("c", first[1]), ("d", second[1]))
        ]
    }
    return given


def test_a_pod_resized_in_opposite_directions_asks_for_the_largest_sum() -> None:
    opposite = pod_from(resized(("3", "1"), ("1", "2")))
    assert (opposite.requests["cpu"], resized_as_sums(opposite).requests["cpu"]) == (5000, 4000)
    same = pod_from(resized(("3", "1"), ("2", "1")))
    assert same.requests["cpu"] == resized_as_sums(same).requests["cpu"] == 5000
    at_rest = pod_from(pod("p", "1"))
    assert resized_as_sums(at_rest) is at_rest


@pytest.mark.parametrize(("reason", "cpu_milli"), [("Deferred", 3000), ("Infeasible", 2000)])
def test_a_resized_pod_as_a_whole_asks_for_the_largest_of_three(reason: str, cpu_milli: int) -> None:
    given = pod("p", "500m", resources={"requests": {"cpu": "3"}})
    given["status"] = {
        "resources": {"requests": {"cpu": "1"}},
        "allocatedResources": {"cpu": "2"},
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }
    assert pod_from(given).requests["cpu"] == 3000
    assert resized_as_sums(pod_from(given)).requests["cpu"] == cpu_milli


def test_images_of_volumes_raise_the_size_that_scores_most() -> None:
    there = {"status": {"images": [{"names": ["data:v1"], "sizeBytes": 700 * 2**20}]}}
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "image": {"reference": "data:v1"}}],
    }
    # 350 MiB count: 327 above the least of 977 with one image, of 1,977 with two.
    for release, points in (("1.36", 33), ("1.37", 16)):
        found = scores(ImageLocality, spec, release=release_named(release), n1=there, n2={})
        assert found == {"n1": points, "n2": 0}


def test_each_difference_says_how_it_is_known() -> None:
    found = {one.name: one for one in differences(RELEASES["1.36"], RELEASES["1.37"])}
    known = {
        name: found[name].known for name in ("StorageCapacityScoring", "PreemptionTold", "CompositePodGroup")
    }
    assert list(known.values()) == [PROVED, FROM_NOTES, NOT_MODELLED]
    assert all(one.sentence.endswith(".") for one in found.values())
    assert found["StorageCapacityScoring"].text.startswith("Alpha, off -> Beta, on. VolumeBinding prefers")
    assert found["GangScheduling"].text == "Alpha, off -> gone. GenericWorkload does the same."
    back = differences(RELEASES["1.37"], RELEASES["1.36"])
    assert {(one.name, one.known) for one in back} == {(one.name, one.known) for one in found.values()}


def test_a_gate_that_is_gone_is_what_the_release_says() -> None:
    newest = RELEASES["1.37"]
    assert newest.gate("SidecarContainers") and not newest.gate("GangScheduling")
    assert newest.with_gates({"GenericWorkload": True}).gate("GangScheduling")
    with pytest.raises(ConfigurationError, match=r"is no feature gate of 1\.37"):
        newest.with_gates({"GangScheduling": True})


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_a_pod_wakes_when_a_rival_by_any_term_is_gone(release: str) -> None:
    selectors = [{"matchLabels": {"app": app}} for app in ("web", "db")]
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": one} for one in selectors]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    waiting = pod_from(pod("p", "1", affinity=apart))
    gone = pod_from(pod("web-1", "1", on="n1"))
    profile = Simulation(release=release_named(release)).scheduler.profiles["default-scheduler"]
    plugin = profile.plugins["InterPodAffinity"]
    assert isinstance(plugin, InterPodAffinity)
    assert plugin.after_pod_change(waiting, gone, None).queues is (release == "1.37")


def test_an_error_of_a_devices_selector_names_the_device() -> None:
    cel = {"cel": {"expression": 'device.attributes["gpu.x"].memory == "big"'}}
    objects = [
        node("n1", "4"),
        make_object("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [cel]}),
        table(__file__, "an_error_of_a_devices_selector_names_the_device"),
        table(__file__, "an_error_of_a_devices_selector_names_the_device_2"),
        pod("p", "1", resourceClaims=[{"name": "r", "resourceClaimName": "mine"}]),
    ]
    assert "class gpu: selector #0: CEL runtime error: no such key: memory" in told(
        decided("1.36", *objects), "p"
    )
    assert (
        "class gpu: selector #0 on device gpu.x/pool-1/d0: CEL runtime error: no such key: memory. consider using CEL "
        "optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    ) in told(decided("1.37", *objects), "p")


def test_an_upgrade_shows_what_differs_where_the_decisions_are_alike() -> None:
    document = scenario(objects=[HIGH, node("n1", "1"), pod("low", "1", on="n1"), pod("high", "1", 10)])
    found = preview(load_scenario(document), release_named("1.36"), release_named("1.37"))
    assert found.parted is not None and found.parted.a != found.parted.b
    assert found.parted.b.endswith("found a potential placement for pod on node n1, preempting 1 victims")


def test_of_an_infeasible_resize_what_the_container_has_counts() -> None:
    # As recorded of 1.34 to 1.36: what was allocated is not said, so that only what the container has is left.
    given = pod("p", "3")
    given["status"] = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    assert pod_from(given).requests["cpu"] == 1000


def takes(release: str, asked: str | None, value: str = "4", **policy: Any) -> str:
    """What a request takes of a device's capacity `share`."""
    request: Any = SimpleNamespace(capacity_requests={} if asked is None else {"share": asked})
    device: Any = SimpleNamespace(capacity={"share": {"value": value, "requestPolicy": policy}})
    amounts = consumed(request, device, release_named(release))
    fits = has_room(request, device, {}, release_named(release))
    return f"{amounts['share']}{'' if fits else ' refused'}"


@pytest.mark.parametrize(
    ("asked", "bounds", "before", "now"),
    table(__file__, "the_range_of_a_request_policy_may_be_in_thousandths"),
)
def test_the_range_of_a_request_policy_may_be_in_thousandths(
    asked: str, bounds: dict[str, str], before: str, now: str | None
) -> None:
    # Source: consumable_capacity.go roundUpRange and violateValidRange, v1.37
    assert takes("1.36", asked, validRange=bounds) == before
    if now is None:
        with pytest.raises(AllocationError, match="request 1500u is not a representable milli value"):
            takes("1.37", asked, validRange=bounds)
    else:
        assert takes("1.37", asked, validRange=bounds) == now


@pytest.mark.parametrize(
    ("asked", "policy", "words"),
    [
        ("-1", {}, 'capacity "share": capacity value is negative'),
        ("10E", {"validRange": {"min": "1", "max": "20E", "step": "1"}}, "request 10E exceeds MaxInt64"),
        ("10E", {"validRange": {"min": "1", "step": "1"}}, "request 10E is not a representable milli value"),
    ],
)
def test_a_capacity_request_that_cannot_be_is_an_error(
    asked: str, policy: dict[str, Any], words: str
) -> None:
    with pytest.raises(AllocationError, match=re.escape(words)):
        takes("1.37", asked, **policy)


@pytest.mark.parametrize(("release", "role"), [("1.36.3", "wrong"), ("1.37", "read")])
def test_a_device_taint_rule_is_stable(release: str, role: str) -> None:
    assert type_of("resource.k8s.io/v1", "DeviceTaintRule", release).role == role
    assert type_of("resource.k8s.io/v1beta2", "DeviceTaintRule", release).role == "read"


@pytest.mark.parametrize(
    ("expression", "attribute"),
    table(__file__, "a_selector_reads_attributes_that_are_lists"),
)
def test_a_selector_reads_attributes_that_are_lists(expression: str, attribute: dict[str, Any]) -> None:
    part = {"devices": [{"name": "d0", "attributes": attribute}], "driver": "gpu.x", "nodeName": "n1"}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    device = slice_from({"metadata": {"name": "s"}, "spec": {**part, "pool": pool}}).devices()[0]
    assert compiled(expression).matches(device)
    # Source: dynamic-resource-allocation/cel/compile.go getAttributeValue, v1.36
    with pytest.raises(DeviceSelectorError, match="attribute models: unsupported attribute value"):
        compiled(expression).matches(device, with_lists=False)


def slices_of(driver: str) -> list[dict[str, Any]]:
    """A pool `n1` of one device that takes the only unit of the pool's counter."""
    counters = {"units": {"value": "1"}}
    parts: list[dict[str, Any]] = [
        {"sharedCounters": [{"name": "s", "counters": counters}]},
        {"devices": [{"name": "d0", "consumesCounters": [{"counterSet": "s", "counters": counters}]}]},
    ]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    specs = [{"driver": driver, "nodeName": "n1", "pool": pool, **part} for part in parts]
    return [
        make_object("resource.k8s.io/v1", "ResourceSlice", f"{driver}-{number}", spec=spec)
        for number, spec in enumerate(specs)
    ]


def two_drivers() -> list[dict[str, Any]]:
    """A pod that wants a device of each of two drivers, whose pools have one name."""
    drivers = ("gpu.x", "net.y")
    api = "resource.k8s.io/v1"
    classes = [
        make_object(api, "DeviceClass", driver, spec={"selectors": [{"cel": {"expression": expression}}]})
        for driver in drivers
        for expression in [f'device.driver == "{driver}"']
    ]
    requests = [{"name": f"r{n}", "exactly": {"deviceClassName": name}} for n, name in enumerate(drivers)]
    claim = make_object(api, "ResourceClaim", "both", spec={"devices": {"requests": requests}})
    wants = pod("late", "1", resourceClaims=[{"name": "c", "resourceClaimName": "both"}])
    return [*classes, *(one for driver in drivers for one in slices_of(driver)), claim, wants]


RESIZED = resized(("3", "1"), ("1", "2"))
RESIZED["spec"]["nodeName"] = "n1"
GATED = pod("held", "1", 10, schedulingGates=[{"name": "example.com/quota"}])
GATED["status"] = {"nominatedNodeName": "n1"}


@pytest.mark.parametrize(
    ("objects", "release"),
    [
        ([node("n1", "5"), RESIZED, pod("late", "1")], "1.37"),
        ([node("n1", "1"), GATED, pod("late", "1")], "1.36"),
        ([node("n1", "4"), *two_drivers()], "1.37"),
    ],
    ids=[
        "room of a pod that is resized",
        "room on the nominated node of a pod with a gate",
        "counters of two drivers' pools with one name",
    ],
)
def test_a_pod_has_room_in_one_release_only(objects: list[dict[str, Any]], release: str) -> None:
    for name in ("1.36", "1.37"):
        late = decided(name, *objects).world.pod("default", "late")
        assert late is not None and bool(late.node_name) is (name == release)


@pytest.mark.parametrize(("of_each_device", "accepted"), [(False, True), (True, False)])
def test_a_distinct_attribute_holds_for_each_device_of_a_request(
    of_each_device: bool, accepted: bool
) -> None:
    rule = Constraint((), "nic", is_distinct=True, of_each_device=of_each_device)
    request: Any = SimpleNamespace(base_name="paths", full_name="paths")
    devices: list[Any] = [
        SimpleNamespace(attribute=lambda name, value=value: ("string", value)) for value in ("nic-0", "nic-1")
    ]
    assert rule.add(request, devices[0]) and rule.add(request, devices[1])
    assert rule.add(request, devices[0]) is accepted
    if not accepted:
        rule.remove(request, devices[1])
        assert not rule.add(request, devices[0]) and rule.add(request, devices[1])


@pytest.mark.parametrize(("release", "wakes"), [("1.36", True), ("1.37", False)])
def test_changed_taints_wake_no_pod_that_waits_for_new_nodes(release: str, wakes: bool) -> None:
    hints = Simulation(release=release_named(release)).scheduler.queue._hints["default-scheduler"]
    asked = {name for name, _ in hints.interested(ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT))}
    assert "TaintToleration" in asked and ("NodeResourcesFit" in asked) is wakes
